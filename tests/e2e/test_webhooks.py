"""Webhooks of a server as a person starts it: its own process, files, and a restart by force."""

from pathlib import Path

from tests.support.process import ServerProcess
from tests.support.receiver import receiving


def test_webhook_of_a_real_server_survives_a_kill(tmp_path: Path) -> None:
    """Created, delivered, killed and started again: the next event comes, under its own id."""
    with receiving() as receiver:
        with ServerProcess(tmp_path / "data", "--webhook-allow", "127.0.0.1") as server:
            client = server.client()
            body = {"url": receiver.url, "events": ["job.enqueued"]}
            client.call("POST", "/api/v1/webhooks", body)
            client.call("POST", "/api/v1/enqueue", {"queue": "mail"})
            client.close()
            receiver.wait_until(lambda: len(receiver.requests) >= 1)
            server.kill()
        with ServerProcess(tmp_path / "data", "--webhook-allow", "127.0.0.1") as server:
            client = server.client()
            job = client.call("POST", "/api/v1/enqueue", {"queue": "mail"}).body["job_id"]
            client.close()
            receiver.wait_until(
                lambda: job in [got.json["event"]["job_id"] for got in receiver.requests]
            )
            assert server.stop() == 0
        assert len({got.delivery_id for got in receiver.requests}) == 2
