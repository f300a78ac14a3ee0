"""A worker beside a real server: in a thread of this process, or in a process of its own."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from corvo_sdk.app import Corvo
from corvo_sdk.worker.runtime import Worker
from tests.support.process import ROOT, WAIT_SECONDS, environment
from tests.support.server import Server

_TURN = threading.Event()  # never set: waiting on it lets other threads go on


def wait_until(fact: Callable[[], object], seconds: float = 30.0) -> None:
    """Let others go on until a fact holds; the bound is for one that never comes."""
    until = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < until, "the fact did not come"
        _TURN.wait(0.005)


class WorkerThread:
    """A worker that serves on a loop of its own, in a thread."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="worker-under-test", daemon=True)

    def _run(self) -> None:
        try:
            asyncio.run(self.worker.serve())
        except BaseException as error:  # noqa: BLE001 - told to the test that joins
            self.error = error

    def start(self) -> Self:
        self._thread.start()
        wait_until(lambda: self.worker.is_ready or self.error is not None)
        return self

    def join(self) -> None:
        """Wait for the end; what went wrong inside fails the test."""
        self._thread.join(WAIT_SECONDS)
        assert not self._thread.is_alive(), "the worker did not end"
        if self.error is not None:
            raise self.error

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()


@contextmanager
def working(app: Corvo, **options: Any) -> Iterator[Worker]:
    """A worker for one test; it is drained at the end and must leave nothing behind."""
    thread = WorkerThread(Worker(app, **options)).start()
    is_failed = True
    try:
        yield thread.worker
        is_failed = False
    finally:
        # A handler of a failed test may wait for what never comes.
        thread.worker.stop(at_once=is_failed)
        thread.join()
        app.close()
    assert len(thread.worker.flights) == 0


def app_of(server: Server) -> Corvo:
    return Corvo("test", url=f"http://127.0.0.1:{server.port}")


def wait_state(server: Server, job_id: str, *states: str) -> Any:
    """Wait until a job is in one of these states; returns the job."""
    wait_until(lambda: server.job(job_id)["state"] in states)
    return server.job(job_id)


class WorkerProcess:
    """`python -m corvo_sdk.worker` with an app written by the test."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *arguments: str,
        app: str = "jobs:app",
        variables: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        known = environment() | {"CORVO_URL": url, "PYTHONPATH": str(ROOT / "sdks/python/src")}
        command = [sys.executable, "-m", "corvo_sdk.worker", app, "--health-port", "off"]
        self._errors = (folder / "worker.log").open("ab")
        self.process = subprocess.Popen(
            [*command, *arguments],
            env=known | (variables or {}),
            cwd=folder,
            stdout=self._errors,
            stderr=self._errors,
        )

    def log(self) -> str:
        """What the worker wrote."""
        return (self.folder / "worker.log").read_text(encoding="utf-8")

    def wait_log(self, text: str) -> None:
        """Wait until the worker wrote something."""
        wait_until(lambda: text in self.log() or self.process.poll() is not None)
        assert text in self.log(), self.log()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        try:
            return self.process.wait(WAIT_SECONDS)
        finally:
            self._errors.close()

    def kill(self) -> None:
        self.process.kill()
        self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
        elif not self._errors.closed:
            self._errors.close()
