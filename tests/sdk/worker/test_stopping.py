"""The end of a worker: nothing burnt, nothing lost, nothing twice."""

import asyncio
import threading
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest

from corvo_sdk.context import Context
from corvo_sdk.worker.runtime import Worker
from tests.support.server import Server, SystemClock, running
from tests.support.worker import (
    WorkerProcess,
    WorkerThread,
    app_of,
    wait_state,
    wait_until,
    working,
)


@pytest.fixture
def server() -> Any:
    with running("fast", clock=SystemClock()) as server:
        yield server


def test_draining_worker_finishes_what_it_runs_and_fetches_nothing(server: Server) -> None:
    """stop() waits for handlers; jobs enqueued later stay pending."""
    app = app_of(server)
    gate = threading.Event()

    @app.task(queue="q")
    def handler() -> str:
        gate.wait(30)
        return "done"

    first = handler.enqueue()
    thread = WorkerThread(Worker(app, concurrency=1)).start()
    wait_state(server, first.id, "active")
    thread.worker.stop()
    wait_until(lambda: thread.worker.is_draining)
    later = handler.enqueue()
    gate.set()
    thread.join()
    app.close()
    assert server.job(first.id)["result"] == "done"
    assert server.job(later.id)["state"] == "pending"


def test_heartbeats_go_on_while_draining(server: Server) -> None:
    """A drain longer than the lease does not lose the job."""
    app = app_of(server)
    gate = threading.Event()

    @app.task(queue="q", lease="1s")
    def handler() -> str:
        gate.wait(30)
        return "done"

    handle = handler.enqueue()
    thread = WorkerThread(Worker(app)).start()
    wait_state(server, handle.id, "active")
    thread.worker.stop()
    first = server.job(handle.id)["lease_expires_at"]
    seen = {first}

    def is_renewed_twice() -> bool:
        server.run(server.ticker.tick)
        seen.add(server.job(handle.id)["lease_expires_at"])
        return len(seen) > 3

    wait_until(is_renewed_twice)
    gate.set()
    thread.join()
    app.close()
    job = server.job(handle.id)
    assert job["state"] == "completed"
    assert job["attempt"] == 1


@pytest.mark.parametrize("is_async", [True, False])
def test_job_that_does_not_end_in_time_is_released_with_its_checkpoint(
    server: Server, is_async: bool
) -> None:
    """After the time-out the handler is asked to stop; no attempt is burnt."""
    app = app_of(server)

    if is_async:

        @app.task(queue="q", name="handler")
        async def handler(ctx: Context) -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                await ctx.acheckpoint({"row": 9})
    else:

        @app.task(queue="q", name="handler")
        def handler(ctx: Context) -> None:
            wait_until(lambda: ctx.cancelled)
            ctx.checkpoint({"row": 9})

    job_id = server.enqueue("q")
    thread = WorkerThread(Worker(app, shutdown_timeout_s=0.05)).start()
    wait_state(server, job_id, "active")
    thread.worker.stop()
    thread.join()
    app.close()
    job = server.job(job_id)
    assert job["state"] == "pending"
    assert job["attempt"] == 0
    assert job["checkpoint"] == {"row": 9}


@pytest.mark.parametrize("is_async", [True, False])
def test_handler_that_ignores_everything_does_not_keep_its_job(
    server: Server, is_async: bool
) -> None:
    """After the grace the job is released although its handler goes on; the worker ends."""
    app = app_of(server)
    gate = threading.Event()

    if is_async:

        @app.task(queue="q", name="handler")
        async def handler() -> None:
            while not gate.is_set():
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    continue
    else:

        @app.task(queue="q", name="handler")
        def handler() -> None:
            gate.wait(30)

    job_id = server.enqueue("q")
    thread = WorkerThread(Worker(app, shutdown_timeout_s=0.0, stop_grace_s=0.05)).start()
    wait_state(server, job_id, "active")
    thread.worker.stop()
    wait_state(server, job_id, "pending")
    gate.set()
    thread.join()
    app.close()
    assert server.job(job_id)["attempt"] == 0


def test_second_stop_releases_at_once(server: Server) -> None:
    """Who asks twice does not wait for the time-out."""
    app = app_of(server)

    @app.task(queue="q")
    async def handler() -> None:
        await asyncio.get_running_loop().create_future()

    handle = handler.enqueue()
    thread = WorkerThread(Worker(app, shutdown_timeout_s=600)).start()
    wait_state(server, handle.id, "active")
    thread.worker.stop()
    wait_until(lambda: thread.worker.is_draining)
    assert thread.is_alive
    thread.worker.stop()
    thread.join()
    app.close()
    assert server.job(handle.id)["state"] == "pending"


def test_drain_under_load_burns_no_attempt_and_runs_nothing_twice(server: Server) -> None:
    """Workers come and go in the middle of thousands of jobs; each job runs once."""
    app = app_of(server)
    ran: list[int] = []

    @app.task(queue="q", retries=1)
    async def note(n: int) -> None:
        ran.append(n)

    count = 3_000
    ids = [h.id for h in note.enqueue_many([note.call(n) for n in range(count)])]
    for share in (0.2, 0.5, 0.8):
        thread = WorkerThread(Worker(app, concurrency=20)).start()
        wait_until(lambda share=share: len(ran) >= count * share)
        thread.worker.stop()
        thread.join()
        assert len(thread.worker.flights) == 0
    with working(app):
        wait_until(lambda: len(ran) >= count)
    assert sorted(ran) == list(range(count))
    for job_id in ids[::50]:
        assert server.job(job_id)["state"] == "completed"
        assert server.job(job_id)["attempt"] == 1


JOBS = """
import asyncio, pathlib, time
from corvo_sdk import Context, Corvo

app = Corvo("jobs")
HERE = pathlib.Path(__file__).parent

@app.task(queue="sleep")
async def sleep(ctx: Context) -> None:
    (HERE / "started").touch()
    try:
        await asyncio.sleep(600)
    finally:
        await ctx.acheckpoint({"row": 5})

@app.task(queue="work")
async def work(ctx: Context) -> str:
    (HERE / "started").touch()
    while not (HERE / "go").exists():
        await asyncio.sleep(0.01)
    return "done"

@app.task(queue="hog")
async def hog() -> None:
    await asyncio.sleep(0.3)  # long enough that the next fetch is parked
    (HERE / "started").touch()
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.py").write_text(JOBS)
    return tmp_path


def url_of(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"


def test_sigterm_lets_a_process_finish_its_job(server: Server, folder: Path) -> None:
    """One signal: the job completes, the process ends with 0."""
    job_id = server.enqueue("work")
    with WorkerProcess(folder, url_of(server)) as process:
        wait_until((folder / "started").exists)
        process.send(SIGTERM)
        process.wait_log("draining")
        assert server.job(job_id)["state"] == "active"
        (folder / "go").touch()
        assert process.wait() == 0
    assert server.job(job_id)["result"] == "done"


def test_second_sigterm_releases_the_job_of_a_process(server: Server, folder: Path) -> None:
    """Two signals: the handler saves its checkpoint, the job is pending, the exit code is 0."""
    job_id = server.enqueue("sleep")
    with WorkerProcess(folder, url_of(server)) as process:
        wait_until((folder / "started").exists)
        process.send(SIGTERM)
        process.wait_log("draining")
        process.send(SIGTERM)
        assert process.wait() == 0
    job = server.job(job_id)
    assert job["state"] == "pending"
    assert job["attempt"] == 0
    assert job["checkpoint"] == {"row": 5}


def test_process_whose_loop_is_blocked_still_releases_its_job(server: Server, folder: Path) -> None:
    """When the loop does not answer, the watch releases what is in hand and ends the process."""
    job_id = server.enqueue("hog")
    with WorkerProcess(folder, url_of(server), "--stop-grace", "0.1") as process:
        wait_until((folder / "started").exists)
        process.send(SIGTERM)
        process.wait_log("draining")
        process.send(SIGTERM)
        assert process.wait() == 70
    job = server.job(job_id)
    assert job["state"] == "pending"
    assert job["attempt"] == 0
