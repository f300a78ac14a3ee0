"""A server killed in the middle of bulk operations: each job is changed once, whatever happens."""

import contextlib
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from corvo.cli.client import API, Client
from corvo.cli.failure import UnreachableError
from tests.support.process import ServerProcess, corvo

JOBS = 20_000
PART = 5_000
UNFINISHED = ("collecting", "running", "undoing")
DEADLINE_S = 60.0


def enqueue(client: Client) -> list[str]:
    """Enqueue all jobs."""
    names: list[str] = []
    for _ in range(JOBS // PART):
        jobs = [{"queue": "q"}] * PART
        names += client.call("POST", f"{API}/enqueue/batch", {"jobs": jobs}).body["job_ids"]
    return names


def read(client: Client, name: str) -> dict[str, Any]:
    """Read an operation."""
    return client.call("GET", f"{API}/bulk/{name}").body


def wait_for(
    client: Client, name: str, *, processed: int, statuses: tuple[str, ...] = UNFINISHED
) -> dict[str, Any]:
    """Read an operation until it has come that far, or is in another status."""
    end_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < end_s:
        found = read(client, name)
        done = found["processed"] + found["restored"] + found["not_restored"]
        if done >= processed or found["status"] not in statuses:
            return found
    raise AssertionError(f"the operation stands still: {found}")


@pytest.mark.timeout(120)
def test_operation_survives_kills_and_changes_every_job_once(tmp_path: Path) -> None:
    """20,000 jobs cancelled, and that undone, with a kill in the middle of either."""
    chance = random.Random(7)
    data = tmp_path / "data"
    server = ServerProcess(data, "--shutdown-timeout", "1ms")
    with server:
        client = server.client()
        body = {"action": "cancel", "job_ids": enqueue(client)}
        answer = client.call("POST", f"{API}/jobs/bulk", body).body
        name = answer["bulk_operation_id"]
        assert answer["estimated_total"] == JOBS
        found = wait_for(client, name, processed=chance.randrange(JOBS // 2))
        client.close()
        server.kill()
    assert found["status"] == "running"
    with server:
        client = server.client()
        found = wait_for(client, name, processed=2 * JOBS)
        assert (found["status"], found["affected"], found["skipped"]) == ("completed", JOBS, 0)
        queue = client.call("GET", f"{API}/queues/q").body
        assert (queue["cancelled"], queue["pending"]) == (JOBS, 0)
        kill_while_undoing(server, name, JOBS + chance.randrange(JOBS // 2))
        client.close()
    with server:
        client = server.client()
        found = wait_for(client, name, processed=3 * JOBS)
        assert (found["status"], found["restored"]) == ("undone", JOBS)
        queue = client.call("GET", f"{API}/queues/q").body
        assert (queue["cancelled"], queue["pending"]) == (0, JOBS)
        client.close()
        assert server.stop() == 0, server.errors()
    audited = corvo("fsck", "--data-dir", str(data))
    assert audited.returncode == 0, audited.stdout + audited.stderr


def kill_while_undoing(server: ServerProcess, name: str, point: int) -> None:
    """Ask for an undo, and pull the plug when it has come to a point; it is not answered before."""

    def ask() -> None:
        client = server.client()
        with contextlib.suppress(UnreachableError):
            client.call("POST", f"{API}/bulk/{name}/undo")
        client.close()

    asking = threading.Thread(target=ask)
    asking.start()
    client = server.client()
    found = wait_for(client, name, processed=point, statuses=("completed", "undoing"))
    client.close()
    server.kill()
    asking.join()
    assert found["status"] == "undoing"
