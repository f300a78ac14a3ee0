"""Leases: renewed from a thread of their own, lost for good, and never worked on without."""

import asyncio
import logging
import threading
import time
from typing import Any

import pytest

from corvo_sdk.context import Context
from corvo_sdk.errors import CorvoError, LeaseLostError
from tests.support.server import Server, SystemClock, running
from tests.support.worker import app_of, wait_state, wait_until, working


@pytest.fixture
def server() -> Any:
    with running("fast", clock=SystemClock()) as server:
        yield server


def expire(server: Server) -> None:
    """Let the server notice which leases have run out."""
    server.run(server.ticker.tick)


def test_lease_lives_while_a_handler_blocks_the_event_loop(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Heartbeats come from a thread of their own; the log names the task that holds the loop."""
    app = app_of(server)

    @app.task(queue="q", name="hog", lease="1s")
    async def hog() -> None:
        until = time.monotonic() + 1.6
        while time.monotonic() < until:
            pass

    handle = hog.enqueue()
    with caplog.at_level(logging.WARNING), working(app, lag_warning_s=0.3) as worker:
        wait_until(lambda: len(worker.flights) == 1)
        while len(worker.flights):
            expire(server)
        job = server.job(handle.id)
    assert job["state"] == "completed"
    assert job["attempt"] == 1
    assert "blocked" in caplog.text
    assert "task hog" in caplog.text
    assert "test_leases.py" in caplog.text


def test_job_waiting_for_a_slot_keeps_its_lease(server: Server) -> None:
    """What was fetched ahead is renewed like what runs."""
    app = app_of(server)
    gate = threading.Event()
    ran: list[int] = []

    @app.task(queue="q", lease="1s")
    def wait(n: int) -> None:
        ran.append(n)
        if n == 100:
            gate.wait(30)

    with working(app, concurrency=1) as worker:
        # Short jobs teach the worker to fetch ahead; the long one then holds the slot.
        ids = [handle.id for handle in wait.enqueue_many([wait.call(n) for n in range(200)])]
        wait_until(lambda: 100 in ran and len(worker.flights) > 1)
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            expire(server)
        gate.set()
        for job_id in ids:
            job = wait_state(server, job_id, "completed")
            assert job["attempt"] == 1
    assert sorted(ran) == list(range(200))


@pytest.mark.parametrize("is_async", [True, False])
def test_cancel_reaches_the_handler(server: Server, is_async: bool) -> None:
    """An async handler gets CancelledError, a sync one sees ctx.cancelled; the job is cancelled."""
    app = app_of(server)
    started = threading.Event()
    seen: list[str] = []

    if is_async:

        @app.task(queue="q", name="handler", lease="1s")
        async def handler() -> None:
            started.set()
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise
    else:

        @app.task(queue="q", name="handler", lease="1s")
        def handler(ctx: Context) -> None:
            started.set()
            wait_until(lambda: ctx.cancelled)
            seen.append("cancelled")

    job_id = server.enqueue("q")
    with working(app):
        assert started.wait(30)
        assert server.post(f"/jobs/{job_id}/cancel").status == 200
        wait_state(server, job_id, "cancelled")
    assert seen == ["cancelled"]


@pytest.mark.parametrize("loss", ["hold", "delete"])
def test_lost_lease_cancels_the_handler_and_forbids_its_ack(server: Server, loss: str) -> None:
    """A job that was taken away is not reported on, even when its handler returns."""
    app = app_of(server)
    started = threading.Event()
    seen: list[str] = []

    @app.task(queue="q", lease="1s")
    async def handler() -> str:
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("cancelled")
        return "too late"

    handle = handler.enqueue()
    with working(app) as worker:
        assert started.wait(30)
        if loss == "hold":
            assert server.post(f"/jobs/{handle.id}/hold", {}).status == 200
        else:
            assert server.request("DELETE", f"/api/v1/jobs/{handle.id}").status == 200
        wait_until(lambda: worker.figures.lost_count == 1)
    assert seen == ["cancelled"]
    if loss == "hold":
        assert server.job(handle.id)["state"] == "held"


def test_lease_that_runs_out_unrenewed_stops_the_handler(server: Server) -> None:
    """When no heartbeat comes through, the worker's own clock ends the work in time."""
    app = app_of(server)
    started = threading.Event()
    ended: list[float] = []

    class DeafClient:
        def heartbeat(self, *_: Any, **__: Any) -> Any:
            raise CorvoError("the network is gone", status=503)

    @app.task(queue="q", lease="1s")
    async def handler() -> None:
        started.set()
        begun = time.monotonic()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(time.monotonic() - begun)

    with working(app) as worker:
        parts = worker._parts
        assert parts is not None
        parts.heart._client = DeafClient()
        handle = handler.enqueue()
        assert started.wait(30)
        wait_until(lambda: worker.figures.lost_count == 1)
        wait_until(lambda: ended)
        assert ended[0] >= 0.9
        assert server.job(handle.id)["state"] == "active"


@pytest.mark.parametrize("is_async", [True, False])
def test_checkpoint_is_at_the_server_when_the_call_returns(server: Server, is_async: bool) -> None:
    """A checkpoint does not wait for the next heartbeat, and a later attempt finds it."""
    app = app_of(server)
    kept: list[Any] = []
    found: list[Any] = []

    def look(ctx: Context) -> None:
        kept.append(server.job(ctx.job_id)["checkpoint"])
        server.close_connection()

    if is_async:

        @app.task(queue="q", name="handler", retries=3, backoff="none")
        async def handler(ctx: Context) -> None:
            found.append(ctx.checkpoint_value)
            if ctx.attempt == 1:
                await ctx.acheckpoint({"row": 7})
                await asyncio.to_thread(look, ctx)
                raise RuntimeError
    else:

        @app.task(queue="q", name="handler", retries=3, backoff="none")
        def handler(ctx: Context) -> None:
            found.append(ctx.checkpoint_value)
            if ctx.attempt == 1:
                ctx.checkpoint({"row": 7})
                look(ctx)
                raise RuntimeError

    job_id = server.enqueue("q", max_retries=3, retry_backoff="none")
    with working(app):
        wait_state(server, job_id, "completed")
    assert kept == [{"row": 7}]
    assert found == [None, {"row": 7}]


def test_progress_and_usage_travel_with_the_heartbeat(server: Server) -> None:
    """The next heartbeat carries what the handler said last."""
    app = app_of(server)
    gate = threading.Event()

    @app.task(queue="q", lease="1s")
    def handler(ctx: Context) -> None:
        ctx.progress(1, 4, "first")
        ctx.progress(3, 4, "third")
        ctx.usage(tokens=12)
        gate.wait(30)

    handle = handler.enqueue()
    with working(app):
        wait_until(lambda: server.job(handle.id).get("progress") is not None)
        job = server.job(handle.id)
        gate.set()
    assert job["progress"] == {"done": 3, "total": 4, "message": "third"}
    assert job["usage"] == {"tokens": 12}


def test_checkpoint_of_a_lost_job_is_an_error_of_the_handler(server: Server) -> None:
    """Who goes on after the loss is told at the next checkpoint."""
    app = app_of(server)
    errors: list[type[BaseException]] = []
    started = threading.Event()
    held = threading.Event()

    @app.task(queue="q", lease="60s")
    def handler(ctx: Context) -> None:
        started.set()
        held.wait(30)
        try:
            ctx.checkpoint({"row": 1})
        except CorvoError as error:
            errors.append(type(error))

    handle = handler.enqueue()
    with working(app):
        assert started.wait(30)
        server.post(f"/jobs/{handle.id}/hold", {})
        held.set()
        wait_until(lambda: errors)
    assert errors == [LeaseLostError]
