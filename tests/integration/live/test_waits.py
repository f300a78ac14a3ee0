"""Waiting for a job: answered when it ends, by whatever end, and cheap for thousands."""

import socket
import threading
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.server import Reply, Server


def waiting(server: Server, job: str, query: str = "?timeout=20") -> tuple[threading.Thread, list]:
    """Start a wait in a thread; the list gets its answer."""
    answers: list[Reply] = []

    def call() -> None:
        connection = server.connect()
        path = f"/api/v1/jobs/{job}/wait{query}"
        answers.append(server.request("GET", path, connection=connection))
        connection.close()

    before = server.live.waits.count
    thread = threading.Thread(target=call)
    thread.start()
    server.wait_until(lambda: server.live.waits.count > before)
    return thread, answers


def ack(server: Server, job: str) -> Any:
    server.fetch()
    return server.post(f"/ack/{job}", {"result": {"answer": 42}})


def fail(server: Server, job: str) -> Any:
    server.fetch()
    return server.post(f"/fail/{job}", {"error": "no", "retryable": False})


def cancel(server: Server, job: str) -> Any:
    return server.post(f"/jobs/{job}/cancel")


@pytest.mark.parametrize(
    ("end", "state"), [(ack, "completed"), (fail, "dead"), (cancel, "cancelled")]
)
def test_a_wait_is_answered_with_the_job_when_it_ends(server: Server, end: Any, state: str):
    """200 and the job object, whichever way it ended."""
    job = server.enqueue()
    thread, answers = waiting(server, job)
    assert end(server, job).status == 200
    thread.join()
    (reply,) = answers
    assert (reply.status, reply.json["id"], reply.json["state"]) == (200, job, state)
    assert reply.json == server.job(job)
    if end is ack:
        assert reply.json["result"] == {"answer": 42}


def test_a_settled_job_is_answered_at_once_and_an_unknown_one_is_404(server: Server):
    """No event is needed for what is already known."""
    job = server.enqueue()
    ack(server, job)
    assert server.get(f"/jobs/{job}/wait").json["state"] == "completed"
    for name in ("job_01ARZ3NDEKTSV4RRFFQ69G5FAV", "nonsense"):
        assert server.get(f"/jobs/{name}/wait").status == 404


def test_a_wait_that_runs_out_is_204(server: Server):
    """Time-out zero looks once; a retry in between is not an end."""
    job = server.enqueue()
    reply = server.get(f"/jobs/{job}/wait?timeout=0")
    assert (reply.status, reply.body) == (204, b"")
    assert reply.index == server.index
    assert server.get(f"/jobs/{job}/wait?timeout=20ms").status == 204


def test_a_failure_that_is_retried_is_not_an_end(server: Server):
    """The wait goes on until the job is settled."""
    job = server.enqueue(retry_base_delay="1s")
    thread, answers = waiting(server, job)
    server.fetch()
    server.post(f"/fail/{job}", {"error": "try again"})
    assert answers == []
    server.advance(5_000)
    ack(server, job)
    thread.join()
    assert answers[0].json["state"] == "completed"


def test_a_job_that_is_deleted_while_waited_for_is_404(server: Server):
    """There is nothing left to answer with."""
    job = server.enqueue()
    thread, answers = waiting(server, job)
    assert server.request("DELETE", f"/api/v1/jobs/{job}").status == 200
    thread.join()
    assert (answers[0].status, answers[0].json["code"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("timeout", ["-1", "61", "1h", "x", "9" * 30, "²"])
def test_a_bad_timeout_is_400(server: Server, timeout: str):
    """The bound is a minute."""
    job = server.enqueue()
    reply = server.get(f"/jobs/{job}/wait?timeout={quote(timeout)}")
    assert (reply.status, reply.json["field"]) == (400, "timeout")


def test_a_client_that_leaves_waits_no_longer(server: Server):
    """What nobody will read holds no place."""
    job = server.enqueue()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"GET /api/v1/jobs/%b/wait HTTP/1.1\r\nhost: x\r\n\r\n" % job.encode())
        server.wait_until(lambda: server.live.waits.count == 1)
    server.wait_until(lambda: server.live.waits.count == 0)


def test_waits_are_sent_home_when_the_server_drains(server: Server):
    """204, as at the end of their time; the client asks again elsewhere."""
    job = server.enqueue()
    thread, answers = waiting(server, job)
    server.run(server.engine.drain)
    thread.join()
    assert answers[0].status == 204


def test_thousands_wait_at_once(server: Server):
    """Each is woken by its own job only."""
    count = 1_000
    jobs = server.post("/enqueue/batch", {"jobs": [{"queue": "q"}] * count}).json["job_ids"]
    connections = []
    for job in jobs:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        connection.sendall(b"GET /api/v1/jobs/%b/wait HTTP/1.1\r\nhost: x\r\n\r\n" % job.encode())
        connections.append(connection)
    server.wait_until(lambda: server.live.waits.count == count)
    body = {"queues": ["q"], "worker_id": "w", "count": 512, "timeout": 0}
    for _ in range(2):
        claims = server.post("/fetch/batch", body).json["jobs"]
        acks = [{"job_id": claim["job_id"]} for claim in claims]
        assert server.post("/ack/batch", {"acks": acks}).status == 200
    for job, connection in zip(jobs, connections, strict=True):
        text = connection.recv(1 << 16)
        while b'"id":' not in text:
            text += connection.recv(1 << 16)
        assert text.startswith(b"HTTP/1.1 200"), text[:40]
        assert job.encode() in text
        connection.close()


def test_too_many_waits_are_429(server: Server):
    """The bound is an answer."""
    server.live.waits._waits_max = 0
    reply = server.get(f"/jobs/{server.enqueue()}/wait")
    assert (reply.status, reply.json["code"]) == (429, "OVERLOADED")
