"""The worker stream as a worker uses it: the same facts as over plain HTTP, and its own."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from corvo_sdk.context import Context
from corvo_sdk.control import Discard, Hold, Snooze
from corvo_sdk.errors import CorvoError
from corvo_sdk.worker.runtime import Worker
from corvo_sdk.worker.stream import StreamLink
from tests.support.server import Server, SystemClock, running
from tests.support.worker import WorkerThread, app_of, wait_state, wait_until, working


@pytest.fixture
def server() -> Iterator[Server]:
    with running("fast", clock=SystemClock()) as server:
        yield server


def link_of(worker: Worker) -> StreamLink:
    assert worker._parts is not None
    link = worker._parts.link
    assert isinstance(link, StreamLink)
    return link


def test_stream_is_used_when_the_server_has_it(server: Server) -> None:
    """`auto` asks the server; results travel as over HTTP."""
    app = app_of(server)

    @app.task(queue="q")
    async def double(n: int) -> int:
        return 2 * n

    with working(app) as worker:
        link_of(worker)
        assert wait_state(server, double.enqueue(4).id, "completed")["result"] == 8


def test_every_verdict_travels_over_the_stream(server: Server) -> None:
    """Ack, fail, snooze, hold and release leave the job where they say."""
    app = app_of(server)

    @app.task(queue="q", retries=5)
    async def decide(word: str) -> str:
        match word:
            case "snooze":
                raise Snooze("1h")
            case "hold":
                raise Hold("look at it", timeout="1h", timeout_action="cancel")
            case "discard":
                raise Discard("nobody wants it")
            case "fail":
                raise LookupError("gone")
            case _:
                return word

    states = {
        "snooze": "scheduled",
        "hold": "held",
        "discard": "dead",
        "fail": "retrying",
        "done": "completed",
    }
    ids = {word: decide.enqueue(word).id for word in states}
    with working(app, link="stream"):
        jobs = {word: wait_state(server, ids[word], state) for word, state in states.items()}
    assert jobs["snooze"]["attempt"] == 0
    assert jobs["hold"]["hold_reason"] == "look at it"
    assert jobs["fail"]["errors"][0]["error"] == "LookupError: gone"
    assert jobs["done"]["result"] == "done"


def test_many_jobs_run_once_with_few_grants(server: Server) -> None:
    """Places become free by themselves: jobs keep coming without being asked for."""
    app = app_of(server)
    seen: list[int] = []

    @app.task(queue="q")
    async def note(n: int) -> None:
        seen.append(n)

    count = 3_000
    note.enqueue_many([note.call(n) for n in range(count)])
    with working(app, link="stream") as worker:
        wait_until(lambda: worker.figures.reported_count == count)
        assert link_of(worker)._number < count / 20
    assert sorted(seen) == list(range(count))


def test_slots_are_never_exceeded(server: Server) -> None:
    """A queue with two slots has two jobs in flight, whatever waits."""
    app = app_of(server)
    gate = threading.Event()
    started: list[int] = []

    @app.task(queue="slow")
    def slow(n: int) -> None:
        started.append(n)
        gate.wait(30)

    @app.task(queue="fast")
    async def fast() -> None: ...

    ids = [slow.enqueue(n).id for n in range(5)]
    with working(app, queues={"slow": 2, "fast": 3}, link="stream"):
        wait_until(lambda: len(started) == 2)
        wait_state(server, fast.enqueue().id, "completed")
        states = sorted(server.job(job_id)["state"] for job_id in ids)
        assert states == ["active", "active", "pending", "pending", "pending"]
        gate.set()
        for job_id in ids:
            wait_state(server, job_id, "completed")


@pytest.mark.parametrize("word", ["cancel", "lost"])
def test_signals_are_pushed_without_waiting_for_a_heartbeat(server: Server, word: str) -> None:
    """A cancel or a loss reaches the handler at once, whatever the lease."""
    app = app_of(server)
    started = threading.Event()
    seen: list[str] = []

    @app.task(queue="q", lease="1h")
    async def handler() -> None:
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("stopped")
            raise

    handle = handler.enqueue()
    with working(app, link="stream"):
        assert started.wait(30)
        if word == "cancel":
            server.post(f"/jobs/{handle.id}/cancel")
            wait_state(server, handle.id, "cancelled")
        else:
            server.post(f"/jobs/{handle.id}/hold", {})
        wait_until(lambda: seen)


def test_broken_connection_loses_nothing(server: Server) -> None:
    """The worker connects again and resumes; jobs run once, reports arrive."""
    app = app_of(server)
    ran: list[int] = []
    gate = threading.Event()

    @app.task(queue="q")
    def note(n: int) -> int:
        if n == 0:
            gate.wait(30)
        ran.append(n)
        return n

    ids = [handle.id for handle in note.enqueue_many([note.call(n) for n in range(50)])]
    with working(app, link="stream", concurrency=5) as worker:
        wait_until(lambda: len(ran) >= 20)
        link = link_of(worker)
        assert worker._parts is not None
        assert link._line is not None
        broken = link._line
        asyncio.run_coroutine_threadsafe(_break(link), worker._parts.loop).result(10)
        gate.set()
        for job_id in ids:
            wait_state(server, job_id, "completed")
        assert link._line is not broken
    assert sorted(ran) == list(range(50))


async def _break(link: StreamLink) -> None:
    assert link._line is not None
    transport: Any = link._line.socket._response.connection
    assert transport is not None
    transport.transport.abort()


def test_draining_worker_gives_back_what_was_pushed(server: Server) -> None:
    """Jobs that came and did not run are pending again, no attempt burnt."""
    app = app_of(server)
    ran: list[int] = []

    @app.task(queue="q", retries=1)
    async def note(n: int) -> None:
        ran.append(n)

    count = 2_000
    ids = [handle.id for handle in note.enqueue_many([note.call(n) for n in range(count)])]
    for share in (0.3, 0.6):
        thread = WorkerThread(Worker(app, link="stream")).start()
        wait_until(lambda share=share: len(ran) >= count * share)
        thread.worker.stop()
        thread.join()
        assert len(thread.worker.flights) == 0
        states = {server.job(job_id)["state"] for job_id in ids[::100]}
        assert states <= {"completed", "pending"}
    with working(app, link="stream"):
        wait_until(lambda: len(ran) >= count)
    assert sorted(ran) == list(range(count))


def test_checkpoint_of_a_streamed_job_is_saved(server: Server) -> None:
    """Heartbeats keep their own connection and know jobs of the stream."""
    app = app_of(server)
    kept: list[Any] = []

    @app.task(queue="q")
    def handler(ctx: Context) -> None:
        ctx.checkpoint({"row": 1})
        kept.append(server.job(ctx.job_id)["checkpoint"])
        server.close_connection()

    handle = handler.enqueue()
    with working(app, link="stream"):
        wait_state(server, handle.id, "completed")
    assert kept == [{"row": 1}]


def test_server_that_is_away_ends_a_worker_that_insists_on_the_stream() -> None:
    """`stream` is a demand: it does not fall back in silence."""
    from corvo_sdk.app import Corvo  # noqa: PLC0415

    app = Corvo("away", url="http://127.0.0.1:9", retries=0)

    @app.task(queue="q")
    async def handler() -> None: ...

    with pytest.raises(CorvoError):
        asyncio.run(Worker(app, link="stream").serve())
    app.close()
