"""Tasks with process=True: another process runs them, and its death is theirs alone."""

import os
import signal
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from corvo_sdk.worker.processes import ProcessTaskError
from corvo_sdk.worker.runtime import Worker
from tests.support.server import Server, SystemClock, running
from tests.support.worker import app_of, wait_state, wait_until, working

MODULE = textwrap.dedent(
    '''
    """Tasks for a test; found by name in another process."""

    import os
    import pathlib
    import time

    from corvo_sdk import Context, Corvo

    app = Corvo("crunch")


    @app.task(queue="q", process=True)
    def crunch(n: int) -> dict[str, int]:
        return {"twice": 2 * n, "pid": os.getpid()}


    @app.task(queue="q", process=True)
    async def later(n: int) -> int:
        return n


    @app.task(queue="q", process=True, retries=1)
    def die() -> None:
        os._exit(41)


    @app.task(queue="q", process=True, retries=1)
    def fail() -> None:
        raise LookupError("gone")


    @app.task(queue="q", process=True)
    def step(ctx: Context) -> int:
        ctx.checkpoint({"row": 3})
        ctx.progress(1, 2)
        return ctx.attempt


    @app.task(queue="q", process=True, lease="1s")
    def polite(ctx: Context, started: str) -> None:
        pathlib.Path(started).touch()
        while not ctx.cancelled:
            time.sleep(0.01)


    @app.task(queue="q", process=True, timeout="100ms", retries=1)
    def deaf() -> None:
        while True:
            time.sleep(0.01)
    '''
)


@pytest.fixture
def server() -> Iterator[Server]:
    with running("fast", clock=SystemClock()) as server:
        yield server


@pytest.fixture
def crunching(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    (tmp_path / "crunching.py").write_text(MODULE)
    sys.path.insert(0, str(tmp_path))
    try:
        monkeypatch.setenv("CORVO_URL", f"http://127.0.0.1:{server.port}")
        yield import_module("crunching")
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("crunching", None)


def test_process_runs_jobs_and_is_kept_for_the_next(server: Server, crunching: Any) -> None:
    """Results come back, of sync and async handlers; one process serves one job after another."""
    with working(crunching.app, processes=1):
        first = wait_state(server, crunching.crunch.enqueue(21).id, "completed")["result"]
        second = wait_state(server, crunching.crunch.enqueue(4).id, "completed")["result"]
        third = wait_state(server, crunching.later.enqueue(8).id, "completed")["result"]
    assert (first["twice"], second["twice"], third) == (42, 8, 8)
    assert first["pid"] == second["pid"] != os.getpid()


def test_death_of_a_process_fails_its_attempt_only(server: Server, crunching: Any) -> None:
    """The worker goes on, with another process."""
    with working(crunching.app, processes=1):
        dead = wait_state(server, crunching.die.enqueue().id, "dead")
        job = wait_state(server, crunching.crunch.enqueue(1).id, "completed")
    assert "ended with 41" in dead["errors"][0]["error"]
    assert job["result"]["twice"] == 2


def test_error_in_a_process_carries_its_backtrace(server: Server, crunching: Any) -> None:
    """It looks as if the handler had run here."""
    with working(crunching.app, processes=1):
        job = wait_state(server, crunching.fail.enqueue().id, "dead")
    assert job["errors"][0]["error"] == "LookupError: gone"
    assert "in fail" in job["errors"][0]["backtrace"]


def test_context_works_across_the_pipe(server: Server, crunching: Any) -> None:
    """Checkpoints and progress of a process reach the server."""
    with working(crunching.app, processes=1):
        job = wait_state(server, crunching.step.enqueue().id, "completed")
    assert job["checkpoint"] == {"row": 3}
    assert job["result"] == 1


def test_cancel_reaches_a_process(server: Server, crunching: Any, tmp_path: Path) -> None:
    """`ctx.cancelled` turns true there, too."""
    started = tmp_path / "started"
    with working(crunching.app, processes=1):
        handle = crunching.polite.enqueue(str(started))
        wait_until(started.exists)
        server.post(f"/jobs/{handle.id}/cancel")
        wait_state(server, handle.id, "cancelled")


def test_process_that_does_not_stop_is_killed(server: Server, crunching: Any) -> None:
    """A time-out ends even what never looks at it; the next job gets a new process."""
    with working(crunching.app, processes=1) as worker:
        parts = worker._parts
        assert parts is not None
        parts.processes._grace_s = 0.1
        job = wait_state(server, crunching.deaf.enqueue().id, "dead")
        assert "timeout" in job["errors"][0]["error"]
        assert wait_state(server, crunching.crunch.enqueue(1).id, "completed")


def test_processes_end_with_the_worker(server: Server, crunching: Any) -> None:
    """Nothing is left behind, whether the worker ends in order or is killed."""
    with working(crunching.app, processes=1) as worker:
        pid = wait_state(server, crunching.crunch.enqueue(1).id, "completed")["result"]["pid"]
        assert worker._parts is not None
        assert worker._parts.processes.pids == [pid]
        os.kill(pid, 0)
    wait_until(lambda: not _is_alive(pid))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    return state != "Z"


def test_interrupt_of_the_terminal_is_not_for_the_process(server: Server, crunching: Any) -> None:
    """Ctrl-C goes to the whole group; only the worker acts on it."""
    with working(crunching.app, processes=1):
        pid = wait_state(server, crunching.crunch.enqueue(1).id, "completed")["result"]["pid"]
        os.kill(pid, signal.SIGINT)
        again = wait_state(server, crunching.crunch.enqueue(2).id, "completed")["result"]
    assert again["pid"] == pid


def test_function_that_no_process_can_find_is_refused_at_the_start(server: Server) -> None:
    """A task inside a function can not be imported by name."""
    app = app_of(server)

    @app.task(queue="q", process=True)
    def inner() -> None: ...

    with pytest.raises(ProcessTaskError, match="must be a function of a module"):
        Worker(app)
