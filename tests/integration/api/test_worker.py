"""What a worker can say: fetch, ack, fail, release, snooze, heartbeat."""

import socket
import threading
import time

from tests.support.server import Server, SystemClock, running


def test_a_fetched_job_has_every_field(server: Server):
    """The fields of the example, and lease token, priority, group, times and trace."""
    identifier = server.enqueue(
        "emails.send",
        payload={"to": "a"},
        max_retries=5,
        tags={"tenant": "acme-corp"},
        priority="high",
        group="g",
        trace={"id": 1},
        checkpoint={"offset": 1},
    )
    reply = server.post(
        "/fetch",
        {
            "queues": ["emails.send", "emails.bulk"],
            "worker_id": "worker-abc",
            "hostname": "pod-xyz-123",
            "timeout": 30,
        },
    )
    job = reply.json
    assert isinstance(job.pop("lease_token"), int)
    assert job == {
        "job_id": identifier,
        "queue": "emails.send",
        "payload": {"to": "a"},
        "attempt": 1,
        "max_retries": 5,
        "lease_duration": 60,
        "priority": "high",
        "checkpoint": {"offset": 1},
        "tags": {"tenant": "acme-corp"},
        "group": "g",
        "created_at": "2023-11-14T22:13:20.000Z",
        "scheduled_at": None,
        "trace": {"id": 1},
        "index": reply.index,
    }
    held = server.job(identifier)
    assert held["worker"] == {"id": "worker-abc", "hostname": "pod-xyz-123"}
    assert held["lease_expires_at"] == "2023-11-14T22:14:20.000Z"


def test_a_fetch_without_work_is_204_and_writes_nothing(server: Server):
    """A time-out is an empty answer; the log does not grow."""
    before = server.index
    reply = server.post("/fetch", {"queues": ["q"], "worker_id": "w", "timeout": 0})
    assert (reply.status, reply.body) == (204, b"")
    assert reply.index == before == server.index
    batch = server.post("/fetch/batch", {"queues": ["q"], "worker_id": "w", "timeout": 0})
    assert (batch.status, batch.json["jobs"]) == (200, [])
    assert server.index == before


def test_a_batch_of_jobs_is_fetched_and_acknowledged(server: Server):
    """fetch/batch hands out up to count; ack/batch has a result per item."""
    identifiers = [server.enqueue() for _ in range(3)]
    body = {"queues": ["q"], "worker_id": "w", "count": 2}
    jobs = server.post("/fetch/batch", body).json["jobs"]
    assert [job["job_id"] for job in jobs] == identifiers[:2]
    acks = [
        {"job_id": jobs[0]["job_id"], "lease_token": jobs[0]["lease_token"], "result": 1},
        {"job_id": jobs[1]["job_id"], "lease_token": jobs[1]["lease_token"] + 1},
        {"job_id": identifiers[2]},
        {"job_id": "job_" + "0" * 26},
    ]
    reply = server.post("/ack/batch", {"acks": acks})
    assert reply.status == 200
    assert reply.json["acked"] == 1
    results = [(item["status"], item.get("code")) for item in reply.json["results"]]
    assert results == [
        ("completed", None),
        ("rejected", "LEASE_LOST"),
        ("rejected", "NOT_ACTIVE"),
        ("rejected", "NOT_FOUND"),
    ]


def test_a_batch_of_large_jobs_is_handed_out_in_parts(server: Server):
    """What does not fit into one answer is pending again, and burns no attempt."""
    large = {"queue": "q", "payload": "x" * 250_000}
    for _ in range(2):
        assert server.post("/enqueue/batch", {"jobs": [large] * 40}).status == 201
    body = {"queues": ["q"], "worker_id": "w", "count": 512}
    first = server.post("/fetch/batch", body)
    assert 60 < len(first.json["jobs"]) < 80
    server.wait_until(lambda: server.engine.read.queue(0, "q").record.counts[1] > 0)  # type: ignore[union-attr]
    second = server.post("/fetch/batch", body).json["jobs"]
    assert len(first.json["jobs"]) + len(second) == 80
    assert {job["attempt"] for job in second} == {1}
    asked = {"job_ids": [job["job_id"] for job in first.json["jobs"] + second]}
    reply = server.post("/jobs/bulk-get", asked)
    assert (reply.status, reply.json["code"]) == (413, "PAYLOAD_TOO_LARGE")


def test_an_ack_completes_and_repeats(server: Server):
    """200 completed; the same token gets the same answer again; a stale one is LEASE_LOST."""
    identifier = server.enqueue()
    token = server.fetch()["lease_token"]
    body = {"result": {"sent": True}, "step_status": "continue", "lease_token": token}
    first = server.post(f"/ack/{identifier}", body)
    assert (first.status, first.json["status"]) == (200, "completed")
    assert first.json["index"] == first.index
    assert server.post(f"/ack/{identifier}", body).json["status"] == "completed"
    stale = server.post(f"/ack/{identifier}", {"lease_token": token + 1})
    assert (stale.status, stale.json["code"]) == (409, "LEASE_LOST")
    job = server.job(identifier)
    assert (job["state"], job["result"]) == ("completed", {"sent": True})
    assert job["completed_at"] is not None


def test_acks_of_no_job_and_of_nobodys_job_are_told_apart(server: Server):
    """404 when there is none, 409 NOT_ACTIVE when nobody works on it."""
    for name in ("job_" + "0" * 26, "nonsense", "job_%00", "../x"):
        reply = server.post(f"/ack/{name}")
        assert (reply.status, reply.json["code"]) == (404, "NOT_FOUND"), name
    reply = server.post(f"/ack/{server.enqueue()}")
    assert (reply.status, reply.json["code"]) == (409, "NOT_ACTIVE")
    assert reply.json["state"] == "pending"


def test_an_ack_with_a_status_of_a_feature_not_built_changes_nothing(server: Server):
    """400 NOT_SUPPORTED and the job stays active."""
    identifier = server.enqueue()
    server.fetch()
    reply = server.post(f"/ack/{identifier}", {"agent_status": "continue"})
    assert (reply.status, reply.json["code"]) == (400, "NOT_SUPPORTED")
    assert server.job(identifier)["state"] == "active"


def test_a_failure_is_retried_with_backoff_and_ends_dead(server: Server):
    """The fail example: retrying with the next time and attempts left, finally dead."""
    identifier = server.enqueue(max_retries=2)
    server.fetch()
    body = {"error": "SMTP connection timeout", "backtrace": "at send_email:42"}
    reply = server.post(f"/fail/{identifier}", body)
    assert reply.status == 200
    assert reply.json == {
        "status": "retrying",
        "next_attempt_at": "2023-11-14T22:13:25.000Z",
        "attempts_remaining": 1,
        "index": reply.index,
    }
    server.advance(5_000)
    server.fetch()
    reply = server.post(f"/fail/{identifier}", {})
    assert (reply.json["status"], reply.json["next_attempt_at"]) == ("dead", None)
    job = server.job(identifier)
    assert job["errors"][0]["error"] == "SMTP connection timeout"
    assert job["errors"][0]["backtrace"] == "at send_email:42"
    assert [error["attempt"] for error in job["errors"]] == [1, 2]


def test_a_failure_can_say_that_trying_again_is_useless(server: Server):
    """Not retryable is dead at once; retry_after overrides the backoff."""
    server.enqueue()
    job = server.fetch()
    reply = server.post(f"/fail/{job['job_id']}", {"error": "x", "retry_after": "1h"})
    assert reply.json["next_attempt_at"] == "2023-11-14T23:13:20.000Z"
    other = server.enqueue()
    server.fetch()
    assert server.post(f"/fail/{other}", {"retryable": False}).json["status"] == "dead"


def test_release_and_snooze_burn_no_attempt(server: Server):
    """Both set the attempt back; a snoozed job waits for its delay."""
    identifier = server.enqueue()
    token = server.fetch()["lease_token"]
    reply = server.post(f"/release/{identifier}", {"lease_token": token, "checkpoint": {"n": 1}})
    assert (reply.status, reply.json["status"]) == (200, "pending")
    job = server.fetch()
    assert (job["attempt"], job["checkpoint"]) == (1, {"n": 1})
    reply = server.post(f"/snooze/{identifier}", {"delay": "10s"})
    assert reply.json["status"] == "scheduled"
    assert reply.json["scheduled_at"] == "2023-11-14T22:13:30.000Z"
    assert server.fetch() is None
    server.advance(10_000)
    assert server.fetch()["attempt"] == 1
    reply = server.post(f"/snooze/{identifier}", {"until": "2023-11-14T22:20:00Z"})
    assert reply.json["scheduled_at"] == "2023-11-14T22:20:00.000Z"
    assert server.post(f"/snooze/{identifier}", {}).status == 400


def test_a_heartbeat_answers_ok_cancel_and_lost(server: Server):
    """One call for all jobs; the lease is extended, progress and checkpoint are kept."""
    first, second = server.enqueue(), server.enqueue()
    tokens = {job["job_id"]: job["lease_token"] for job in (server.fetch(), server.fetch())}
    server.advance(30_000)
    server.post(f"/jobs/{second}/cancel")
    gone = "job_" + "0" * 26
    progress = {"current": 450, "total": 1000, "message": "Sending batch"}
    reply = server.post(
        "/heartbeat",
        {
            "jobs": {
                first: {"progress": progress, "checkpoint": {"offset": 47000}, "usage": {"n": 1}},
                second: {"lease_token": tokens[second]},
                gone: {},
                "nonsense": {},
            },
            "worker_id": "w",
        },
    )
    assert reply.status == 200
    statuses = {name: item["status"] for name, item in reply.json["jobs"].items()}
    assert statuses == {first: "ok", second: "cancel", gone: "lost", "nonsense": "lost"}
    assert reply.json["jobs"][first]["lease_expires_at"] == "2023-11-14T22:14:50.000Z"
    job = server.job(first)
    assert (job["progress"], job["checkpoint"]) == (progress, {"offset": 47000})
    stale = server.post("/heartbeat", {"jobs": {first: {"lease_token": tokens[first] + 1}}})
    assert stale.json["jobs"][first]["status"] == "lost"


def test_an_empty_heartbeat_is_fine(server: Server):
    """A worker without jobs may say so; nothing is written."""
    before = server.index
    for body in ({"jobs": {}}, {}, None):
        reply = server.post("/heartbeat", body)
        assert (reply.status, reply.json["jobs"]) == (200, {})
    assert server.index == before


def test_a_lost_lease_comes_back_and_fences_the_first_holder(server: Server):
    """After the lease the job is somebody else's; the late ack is LEASE_LOST."""
    identifier = server.enqueue()
    late = server.fetch(lease_duration="1s")["lease_token"]
    server.advance(2_000)
    again = server.fetch(worker="other")
    assert (again["job_id"], again["attempt"]) == (identifier, 2)
    assert again["lease_token"] > late
    reply = server.post(f"/ack/{identifier}", {"lease_token": late})
    assert (reply.status, reply.json["code"]) == (409, "LEASE_LOST")


def test_a_cancelled_active_job_is_settled_by_its_ack(server: Server):
    """Cancel is cooperative: active until the worker reports, then cancelled with its result."""
    identifier = server.enqueue()
    server.fetch()
    reply = server.post(f"/jobs/{identifier}/cancel")
    assert (reply.json["status"], reply.json["state"]) == ("cancelling", "active")
    assert server.job(identifier)["cancel_requested_at"] is not None
    reply = server.post(f"/ack/{identifier}", {"result": 1})
    assert (reply.status, reply.json["status"]) == (200, "cancelled")


def test_a_waiting_fetch_gets_the_job_that_comes(server: Server):
    """A parked fetch is answered by the enqueue, whichever lane it waits in."""
    answers: list[object] = []

    def work() -> None:
        connection = server.connect()
        body = {"queues": ["q"], "worker_id": "w", "timeout": 30}
        answers.append(server.request("POST", "/api/v1/fetch", body, connection=connection).json)
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    server.wait_until(lambda: server.engine.waiting(0, "q") == 1)
    assert server.get("/queues").json == []
    identifier = server.enqueue()
    worker.join(10)
    assert answers[0]["job_id"] == identifier  # type: ignore[index]


def test_a_worker_that_leaves_while_it_waits_gets_nothing(server: Server):
    """A parked fetch of a closed connection is dropped; the next worker has the job."""
    connection = socket.create_connection(("127.0.0.1", server.port))
    body = b'{"queues":["q"],"worker_id":"gone","timeout":60}'
    connection.sendall(
        b"POST /api/v1/fetch HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(body), body)
    )
    server.wait_until(lambda: server.engine.waiting(0, "q") == 1)
    connection.close()
    server.wait_until(lambda: server.engine.waiting(0, "q") == 0)
    identifier = server.enqueue()
    assert server.job(identifier)["state"] == "pending"
    assert server.fetch()["attempt"] == 1


def test_a_job_claimed_for_a_worker_that_left_is_released(server: Server):
    """The claim was on its way to the disk when the client went: the job burns no attempt."""
    identifier = server.enqueue()
    server.hold_disk()
    connection = socket.create_connection(("127.0.0.1", server.port))
    body = b'{"queues":["q"],"worker_id":"gone","timeout":60}'
    connection.sendall(
        b"POST /api/v1/fetch HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(body), body)
    )
    server.wait_until(lambda: server.syncer.is_waiting)
    open_before = server.listener.statistics().connections
    connection.close()
    server.wait_until(lambda: server.listener.statistics().connections < open_before)
    server.free_disk()
    server.wait_until(lambda: server.index >= 3)
    job = server.fetch()
    assert (job["job_id"], job["attempt"]) == (identifier, 1)
    assert server.job(identifier)["errors"] == []


def test_a_fetch_times_out_with_204_on_the_real_clock():
    """The waiting time of a fetch is real time."""
    with running("fast", clock=SystemClock()) as server:
        body = {"queues": ["q"], "worker_id": "w", "timeout": "100ms"}
        started = time.monotonic()
        assert server.post("/fetch", body).status == 204
        assert 0.08 < time.monotonic() - started < 5


def test_workers_are_listed(server: Server):
    """The registry knows who fetched what and when."""
    server.fetch("a", "b", worker="w-1", hostname="pod", version="2", concurrency=4)
    server.fetch("a", worker="w-2", draining=True)
    first, second = server.get("/workers").json
    assert first["id"] == "w-1"
    assert (first["hostname"], first["version"], first["slots"]) == ("pod", "2", 4)
    assert first["queues"] == ["a", "b"]
    assert (first["status"], second["status"]) == ("healthy", "draining")


def test_a_queue_that_requires_tokens_refuses_a_bare_ack(server: Server):
    """With require_token, only the holder of the token settles a job."""
    server.request("PATCH", "/api/v1/queues/q", {"require_token": True})
    identifier = server.enqueue()
    token = server.fetch()["lease_token"]
    bare = server.post(f"/ack/{identifier}")
    assert (bare.status, bare.json["field"]) == (400, "lease_token")
    assert server.job(identifier)["state"] == "active"
    assert server.post(f"/ack/{identifier}", {"lease_token": token}).status == 200
