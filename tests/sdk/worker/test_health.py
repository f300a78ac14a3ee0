"""The health port answers when nothing else does."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from corvo_sdk.worker.runtime import Worker
from corvo_sdk.worker.settings import WorkerSettingsError
from corvo_sdk.worker.statistics import Figures, render
from tests.support.server import Server, SystemClock, running
from tests.support.worker import WorkerThread, app_of, wait_state, wait_until, working


@pytest.fixture
def server() -> Iterator[Server]:
    with running("fast", clock=SystemClock()) as server:
        yield server


def ask(worker: Worker, path: str) -> tuple[int, str]:
    assert worker.health is not None
    connection = http.client.HTTPConnection("127.0.0.1", worker.health.port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def healthz(worker: Worker) -> tuple[int, Any]:
    status, text = ask(worker, "/healthz")
    return status, json.loads(text)


def test_worker_that_serves_is_healthy_and_tells_its_figures(server: Server) -> None:
    """/healthz is 200, /metrics is Prometheus text with the attempts of each task."""
    app = app_of(server)

    @app.task(queue="q", name='odd "name"')
    async def handler() -> None: ...

    with working(app, health_port=0) as worker:
        wait_state(server, handler.enqueue().id, "completed")
        wait_until(lambda: len(worker.flights) == 0)
        status, body = healthz(worker)
        assert (status, body["status"]) == (200, "ok")
        _, text = ask(worker, "/metrics")
        assert ask(worker, "/elsewhere")[0] == 404
    assert "corvo_worker_jobs_fetched_total 1" in text
    assert 'corvo_worker_attempts_total{task="odd \\"name\\"",outcome="completed"} 1' in text
    assert 'corvo_worker_attempt_seconds_count{task="odd \\"name\\""} 1' in text


def test_worker_tells_what_its_tasks_take(server: Server) -> None:
    """/schemas has the JSON Schema of every task, for forms and other languages."""
    app = app_of(server)

    @app.task(queue="q")
    async def resize(path: str, width: int = 100) -> None: ...

    with working(app, health_port=0) as worker:
        status, text = ask(worker, "/schemas")
    assert status == 200
    schema = json.loads(text)["resize"]
    assert schema["properties"]["path"]["type"] == "string"
    assert schema["required"] == ["path"]


def test_blocked_loop_is_unhealthy_and_says_who_blocks_it(server: Server) -> None:
    """503 with the name of the task, answered while the loop is blocked."""
    app = app_of(server)
    free = threading.Event()

    @app.task(queue="q", name="hog")
    async def hog() -> None:
        free.wait(30)  # blocks the loop

    with working(app, health_port=0, lag_warning_s=0.1) as worker:
        assert worker.health is not None
        worker.health._lag_s_max = 0.3
        hog.enqueue()
        wait_until(lambda: healthz(worker)[0] == 503)
        status, body = healthz(worker)
        free.set()
        wait_until(lambda: healthz(worker)[0] == 200)
    assert (status, body["status"]) == (503, "blocked")
    assert "hog" in body["blocked_by"]


def test_worker_whose_server_is_away_for_long_is_unhealthy(server: Server) -> None:
    """A short absence is not: restarts are nothing to alarm anybody about."""
    app = app_of(server)

    @app.task(queue="q")
    async def handler() -> None: ...

    with working(app, health_port=0) as worker:
        parts = worker._parts
        assert parts is not None
        parts.heart.reached_at_s = time.monotonic() - 30
        assert healthz(worker)[0] == 200
        parts.heart.reached_at_s = time.monotonic() - 300
        assert healthz(worker)[1]["status"] == "unreachable"


def test_draining_worker_is_not_ready(server: Server) -> None:
    """Who balances load by readiness sees the drain."""
    app = app_of(server)
    gate = threading.Event()

    @app.task(queue="q")
    def handler() -> None:
        gate.wait(30)

    handle = handler.enqueue()
    thread = WorkerThread(Worker(app, health_port=0)).start()
    wait_state(server, handle.id, "active")
    thread.worker.stop()
    wait_until(lambda: thread.worker.is_draining)
    status, body = healthz(thread.worker)
    gate.set()
    thread.join()
    app.close()
    assert (status, body["status"]) == (503, "draining")


def test_taken_port_is_refused_or_done_without(server: Server) -> None:
    """A port that was named must be free; the default one need not be."""
    app = app_of(server)

    @app.task(queue="q")
    async def handler() -> None: ...

    with working(app, health_port=0) as worker:
        assert worker.health is not None
        port = worker.health.port
        thread = WorkerThread(Worker(app, health_port=port))
        thread.start()
        with pytest.raises(WorkerSettingsError, match="can not be opened"):
            thread.join()
        with working(app, health_port=port, health_required=False) as other:
            assert other.health is None
            wait_state(server, handler.enqueue().id, "completed")


def test_figures_of_endless_task_names_are_bounded() -> None:
    """Labels can not grow without end, whatever names come."""
    figures = Figures()
    for number in range(2_000):
        figures.note(f"task-{number}", "completed", 0.01)
    assert len(figures.tasks) <= 501
    assert 'task="other"' in render(figures, {})
