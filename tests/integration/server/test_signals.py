"""Stopping: the first signal drains, the second ends the process at once."""

import http.client
import signal
import threading
from pathlib import Path

import msgspec
import pytest

from corvo.cli.client import API, Client
from corvo.cli.failure import CallError
from tests.support.process import ServerProcess

JSON = {"content-type": "application/json"}


def claim(client: Client) -> dict[str, object]:
    client.call("POST", f"{API}/enqueue", {"queue": "q", "payload": {}})
    return client.call("POST", f"{API}/fetch", {"queues": ["q"], "worker_id": "w"}).body


def wait_for_drain(server: ServerProcess) -> None:
    """Ask until the server says that it drains."""
    while True:
        client = server.client()
        try:
            client.call("GET", "/healthz")
        except CallError as error:
            if error.status == 503:
                return
            raise
        finally:
            client.close()


def refusal(server: ServerProcess, path: str, body: object) -> CallError:
    client = server.client()
    with pytest.raises(CallError) as caught:
        client.call("POST", f"{API}/{path}", body)
    client.close()
    return caught.value


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_idle_server_stops_cleanly_on_the_first_signal(
    number: signal.Signals, tmp_path: Path
) -> None:
    """Nothing is under way, so nothing is waited for, and the exit code is 0."""
    with ServerProcess(tmp_path) as server:
        server.send(number)
        assert server.wait() == 0


def test_parked_fetch_is_sent_home_when_the_server_stops(tmp_path: Path) -> None:
    """A waiting worker gets 204 and is told that the connection ends."""
    with ServerProcess(tmp_path) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        body = msgspec.json.encode({"queues": ["q"], "worker_id": "w", "timeout": 60})
        connection.request("POST", f"{API}/fetch", body, JSON)
        client = server.client()
        while client.call("GET", f"{API}/cluster/status").body["fetches"]["parked_count"] == 0:
            pass
        client.close()
        server.send(signal.SIGTERM)
        response = connection.getresponse()
        assert response.status == 204
        assert response.headers["connection"] == "close"
        connection.close()
        assert server.wait() == 0


def test_draining_server_takes_reports_and_nothing_new(tmp_path: Path) -> None:
    """While a worker holds a job, it may report on it; new work is refused with DRAINING."""
    with ServerProcess(tmp_path) as server:
        client = server.client()
        job = claim(client)
        client.close()
        server.send(signal.SIGTERM)
        wait_for_drain(server)
        fetch = {"queues": ["q"], "worker_id": "w"}
        for path, body in (("enqueue", {"queue": "q", "payload": {}}), ("fetch", fetch)):
            error = refusal(server, path, body)
            assert (error.status, error.code) == (503, "DRAINING")
        token = {"lease_token": job["lease_token"]}
        client = server.client()
        beat = client.call("POST", f"{API}/heartbeat", {"jobs": {job["job_id"]: token}})
        assert beat.body["jobs"][job["job_id"]]["status"] == "ok"
        client.close()
        client = server.client()
        done = client.call("POST", f"{API}/ack/{job['job_id']}", token)
        assert done.body["status"] == "completed"
        client.close()
        # The last job is done, so the server need not wait for its time-out of thirty seconds.
        assert server.wait() == 0


def test_second_signal_stops_at_once_and_loses_nothing(tmp_path: Path) -> None:
    """The second signal does not wait for the worker, whose lease is still there afterwards."""
    with ServerProcess(tmp_path) as server:
        client = server.client()
        job = claim(client)
        client.close()
        server.send(signal.SIGTERM)
        wait_for_drain(server)
        server.send(signal.SIGTERM)
        assert server.wait() == 128 + signal.SIGTERM
    with ServerProcess(tmp_path) as server:
        client = server.client()
        token = {"lease_token": job["lease_token"]}
        assert client.call("POST", f"{API}/ack/{job['job_id']}", token).status == 200
        client.close()
        assert server.stop() == 0


def test_drain_ends_at_the_shutdown_timeout(tmp_path: Path) -> None:
    """A worker that never reports does not keep the server."""
    with ServerProcess(tmp_path, "--shutdown-timeout", "200ms") as server:
        client = server.client()
        claim(client)
        client.close()
        server.send(signal.SIGTERM)
        assert server.wait() == 0


def test_enqueue_under_way_is_answered_before_the_server_stops(tmp_path: Path) -> None:
    """Requests that race with the signal are answered, refused, or never accepted; none hangs."""
    with ServerProcess(tmp_path) as server:
        accepted: list[str] = []
        started = threading.Event()

        def produce() -> None:
            client = server.client()
            try:
                while True:
                    body = {"queue": "q", "payload": {}}
                    accepted.append(client.call("POST", f"{API}/enqueue", body).body["job_id"])
                    started.set()
            except Exception:  # noqa: BLE001 - the server is gone or draining, which ends the test
                client.close()

        producers = [threading.Thread(target=produce) for _ in range(4)]
        for producer in producers:
            producer.start()
        started.wait()
        server.send(signal.SIGTERM)
        for producer in producers:
            producer.join()
        assert server.wait() == 0
    with ServerProcess(tmp_path) as server:
        client = server.client()
        listed = client.call("GET", f"{API}/queues/q").body
        client.close()
    assert listed["pending"] >= len(accepted)
