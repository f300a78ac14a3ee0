"""Retention of events waits for the view, as it waits for webhooks."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process import ServerProcess
from tests.support.viewed import ask, reach, view_of

KEPT = 100
FLAGS = ("--fsync", "off", "--shutdown-timeout", "1s", "--retention-interval", "1ms")
TRIES = 2_000


def enqueue(server: ServerProcess, count: int) -> None:
    """Enqueue jobs one by one, each an event in an entry of its own."""
    client = server.client()
    try:
        for _ in range(count):
            client.call("POST", "/api/v1/enqueue", {"queue": "q"})
    finally:
        client.close()


def oldest(server: ServerProcess) -> int:
    """The sequence number of the oldest event that is kept."""
    return ask(server, "GET", "/cluster/events?after_seq=0&limit=1")[2]["events"][0]["seq"]


def wait_oldest(server: ServerProcess, seq: int) -> None:
    """Wait until retention has come as far as an event."""
    for _ in range(TRIES):
        if oldest(server) >= seq:
            return
    raise AssertionError(f"the oldest event is still {oldest(server)}, not {seq}")


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Hold a process still; it never stays so, for it would hold up the end of the test."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("is_killed", [False, True])
def test_events_wait_for_a_view_that_stopped(tmp_path: Path, is_killed: bool):
    """It comes back, or another one in its place, and follows: nothing is built anew."""
    with ServerProcess(tmp_path / "data", *FLAGS, "--events-max", str(KEPT)) as server:
        enqueue(server, KEPT + 50)
        reach(server)
        wait_oldest(server, 50)
        reached = ask(server, "GET", "/admin/view")[2]["seq"]
        pid = view_of(server)["pid"]
        with stopped(pid):
            enqueue(server, 2 * KEPT)
            # Without the view's word these would be gone: only the last hundred are kept.
            wait_oldest(server, reached - 1)
            assert reached - 1 <= oldest(server) <= reached + 1
            if is_killed:
                os.kill(pid, signal.SIGKILL)
        reach(server)
        wait_oldest(server, reached + KEPT)
        figures = view_of(server)
        assert figures["rebuild"]["rebuilds"] == 0
        assert figures["starts"] == 1 + is_killed
        assert server.stop() == 0
        assert "anew" not in server.errors()


def test_a_view_that_is_away_too_long_is_not_waited_for(tmp_path: Path):
    """Four times the usual length is the end of it; then the view is built anew."""
    with ServerProcess(tmp_path / "data", *FLAGS, "--events-max", "20") as server:
        enqueue(server, 10)
        reach(server)
        with stopped(view_of(server)["pid"]):
            enqueue(server, 150)
            wait_oldest(server, 60)
        reach(server)
        assert view_of(server)["rebuild"]["rebuilds"] == 1
        assert server.stop() == 0
