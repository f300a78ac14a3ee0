"""A worker against a real server: what it takes, runs, reports and refuses."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import pytest

from corvo_sdk.app import Corvo
from corvo_sdk.context import Context
from corvo_sdk.control import Discard, Hold, Retry, Snooze
from corvo_sdk.worker.runtime import Worker
from corvo_sdk.worker.settings import WorkerSettingsError
from tests.support.server import Server, SystemClock, running
from tests.support.worker import app_of, wait_state, wait_until, working


@pytest.fixture
def server() -> Any:
    with running("fast", clock=SystemClock()) as server:
        yield server


def test_async_and_sync_handlers_run_side_by_side(server: Server) -> None:
    """Results of both kinds reach the job."""
    app = app_of(server)

    @app.task(queue="a")
    async def double(n: int) -> int:
        return 2 * n

    @app.task(queue="b")
    def join(parts: list[str]) -> str:
        return "-".join(parts)

    first, second = double.enqueue(21), join.enqueue(["x", "y"])
    with working(app):
        assert wait_state(server, first.id, "completed")["result"] == 42
        assert wait_state(server, second.id, "completed")["result"] == "x-y"


def test_many_short_jobs_travel_in_few_calls(server: Server) -> None:
    """At a high rate one fetch and one acknowledgement carry many jobs, each run once."""
    app = app_of(server)
    seen: list[int] = []

    @app.task(queue="q")
    async def note(n: int) -> None:
        seen.append(n)

    count = 2_000
    note.enqueue_many([note.call(n) for n in range(count)])
    with working(app, concurrency=10) as worker:
        wait_until(lambda: worker.figures.reported_count == count)
        parts = worker._parts
        assert parts is not None
        calls = sum(fetcher.calls_count for fetcher in parts.fetchers)
        assert calls < count / 20
        assert parts.reporter.sent_calls_count < count / 10
    assert sorted(seen) == list(range(count))


def test_control_values_reach_the_server(server: Server) -> None:
    """Snooze, Retry, Discard and Hold leave the job in the state they name."""
    app = app_of(server)

    @app.task(queue="q", retries=5)
    async def decide(word: str) -> None:
        match word:
            case "snooze":
                raise Snooze("1h")
            case "retry":
                raise Retry(after="1h", error="not yet")
            case "hold":
                raise Hold("look at it")
            case _:
                raise Discard("nobody wants it")

    ids = {word: decide.enqueue(word).id for word in ("snooze", "retry", "hold", "discard")}
    with working(app):
        snoozed = wait_state(server, ids["snooze"], "scheduled")
        retried = wait_state(server, ids["retry"], "retrying")
        held = wait_state(server, ids["hold"], "held")
        discarded = wait_state(server, ids["discard"], "dead")
    assert snoozed["attempt"] == 0
    assert retried["errors"][0]["error"] == "not yet"
    assert held["hold_reason"] == "look at it"
    assert discarded["errors"][0]["error"] == "nobody wants it"


def test_failure_carries_error_and_backtrace(server: Server) -> None:
    """Who looks at the job sees where it failed."""
    app = app_of(server)

    @app.task(queue="q", retries=1)
    def fail() -> None:
        raise LookupError("gone")

    handle = fail.enqueue()
    with working(app):
        job = wait_state(server, handle.id, "dead")
    assert job["errors"][0]["error"] == "LookupError: gone"
    assert "in fail" in job["errors"][0]["backtrace"]


def test_payload_nobody_can_read_is_dead_at_once(server: Server) -> None:
    """No attempts are wasted on a payload that will never fit."""
    app = app_of(server)

    @app.task(queue="q")
    async def count(n: int) -> None: ...

    job_id = server.enqueue("q", payload={"n": "many"}, max_retries=9)
    with working(app):
        job = wait_state(server, job_id, "dead")
    assert job["attempt"] == 1


def test_job_of_an_unknown_task_is_snoozed_and_never_acked(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody else, or the next version, may know it; no attempt is burnt."""
    app = app_of(server)

    @app.task(queue="q")
    async def known() -> None: ...

    job_id = server.enqueue("q", tags={"task": "unheard"}, max_retries=1)
    with caplog.at_level(logging.WARNING, "corvo.worker"), working(app) as worker:
        job = wait_state(server, job_id, "scheduled")
        assert worker.figures.unknown_count == 1
    assert job["attempt"] == 0
    assert "unheard" in caplog.text


def test_queue_without_a_task_is_never_fetched(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Jobs of a queue that no task is declared on stay where they are."""
    app = app_of(server)

    @app.task(queue="mine")
    async def known() -> None: ...

    strange, mine = server.enqueue("strange"), server.enqueue("mine")
    with caplog.at_level(logging.WARNING), working(app, queues={"mine": 0, "strange": 0}):
        wait_state(server, mine, "completed")
    assert server.job(strange)["state"] == "pending"
    assert "strange" in caplog.text


def test_worker_without_any_queue_does_not_start(server: Server) -> None:
    """Nothing to do is a mistake of the command line."""
    with pytest.raises(WorkerSettingsError, match="no queue"):
        Worker(app_of(server))


def test_full_queue_does_not_stop_the_others(server: Server) -> None:
    """A queue with no free slot is not fetched; the others go on."""
    app = app_of(server)
    gate = threading.Event()
    started: list[int] = []

    @app.task(queue="slow")
    def slow(n: int) -> None:
        started.append(n)
        gate.wait(30)

    @app.task(queue="fast")
    async def fast() -> None: ...

    slow_ids = [slow.enqueue(n).id for n in range(5)]
    with working(app, queues={"slow": 2, "fast": 3}):
        wait_until(lambda: len(started) == 2)
        for _ in range(3):
            wait_state(server, fast.enqueue().id, "completed")
        assert len(started) == 2
        states = sorted(server.job(job_id)["state"] for job_id in slow_ids)
        assert states == ["active", "active", "pending", "pending", "pending"]
        gate.set()
        for job_id in slow_ids:
            wait_state(server, job_id, "completed")


def test_lifespan_surrounds_all_jobs_and_gives_them_its_state(server: Server) -> None:
    """What the lifespan yields is `ctx.state`; it is closed after the last job."""
    app = app_of(server)
    seen: list[str] = []

    @app.lifespan
    async def life() -> AsyncIterator[dict[str, str]]:
        seen.append("open")
        yield {"name": "pool"}
        seen.append("close")

    @app.task(queue="q")
    async def use(ctx: Context) -> str:
        seen.append("job")
        return ctx.state["name"]

    handle = use.enqueue()
    with working(app):
        assert wait_state(server, handle.id, "completed")["result"] == "pool"
    assert seen == ["open", "job", "close"]


def test_at_most_once_is_acknowledged_before_it_runs(server: Server) -> None:
    """A task that must not be repeated is settled when its handler begins, whatever it does."""
    app = app_of(server)
    states: list[str] = []

    @app.task(queue="q", at_most_once=True)
    def charge(ctx: Context) -> None:
        states.append(server.job(ctx.job_id)["state"])
        server.close_connection()  # the one of this thread
        raise RuntimeError("after the charge")

    handle = charge.enqueue()
    with working(app) as worker:
        wait_until(lambda: worker.figures.tasks.get("charge") is not None)
    assert states == ["completed"]
    assert server.job(handle.id)["state"] == "completed"


def test_result_the_server_refuses_fails_the_job_alone(server: Server) -> None:
    """A result that is too large fails its own job for good; others in the batch are acked."""
    app = app_of(server)

    @app.task(queue="q")
    async def grow(size: int) -> str:
        return "x" * size

    handles = grow.enqueue_many([grow.call(size) for size in (1, 400_000, 2)])
    with working(app):
        states = [wait_state(server, handle.id, "completed", "dead")["state"] for handle in handles]
    assert states == ["completed", "dead", "completed"]
    assert "result was refused" in server.job(handles[1].id)["errors"][0]["error"]


def test_context_variables_do_not_leak_between_jobs(server: Server) -> None:
    """What one handler leaves behind, the next does not find."""
    variable: ContextVar[str] = ContextVar("variable", default="clean")
    app = app_of(server)

    @app.task(queue="q")
    async def look() -> str:
        found = variable.get()
        variable.set("used")
        await asyncio.sleep(0)
        return found

    handles = look.enqueue_many([look.call() for _ in range(20)])
    with working(app, concurrency=1):
        for handle in handles:
            assert wait_state(server, handle.id, "completed")["result"] == "clean"


def test_worker_is_shown_to_operators(server: Server) -> None:
    """The server lists the worker with its name, version and slots."""
    app = app_of(server)

    @app.task(queue="q")
    async def known() -> None: ...

    with working(app, worker_id="w-7", version="1.2", concurrency=4):
        wait_until(lambda: server.get("/workers").json)
        (shown,) = server.get("/workers").json
    assert shown["id"] == "w-7"
    assert shown["version"] == "1.2"


def test_bug_of_the_worker_ends_it_instead_of_hiding(server: Server) -> None:
    """An error that no handler raised ends the worker with that error; jobs are released."""

    class Broken(Corvo):
        def find(self, queue: str, tags: Any) -> Any:
            raise ZeroDivisionError(queue, tags)

    app = Broken("broken", url=f"http://127.0.0.1:{server.port}")

    @app.task(queue="q")
    async def known() -> None: ...

    known.enqueue()
    with pytest.raises(ZeroDivisionError):
        asyncio.run(Worker(app).serve())


def test_worker_finds_the_server_that_answers(server: Server) -> None:
    """With several addresses one that is away costs nothing but a look."""
    app = Corvo("several", url=["http://127.0.0.1:9", f"http://127.0.0.1:{server.port}"])

    @app.task(queue="q", lease="1s")
    async def handler(ctx: Context) -> str:
        await ctx.acheckpoint({"row": 1})
        return "done"

    handle = handler.enqueue()
    with working(app):
        assert wait_state(server, handle.id, "completed")["result"] == "done"
