"""The other side of `processes.py`: runs one job after another until the pipe is closed."""

import asyncio
import os
import signal
import sys
import threading
from collections import deque
from concurrent.futures import Future
from importlib import import_module
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, cast

import msgspec

from corvo_sdk.context import Context
from corvo_sdk.errors import CorvoError
from corvo_sdk.types import FetchedJob
from corvo_sdk.worker import logs
from corvo_sdk.worker.execution import Runnable, Runners, describe, execute
from corvo_sdk.worker.pipe import (
    Done,
    FromChild,
    Saved,
    Say,
    StopWork,
    Work,
    decode_to_child,
    encode,
)
from corvo_sdk.worker.threads import ThreadPool
from corvo_sdk.worker.verdict import Failed, Verdict


class _Line:
    """The pipe to the worker: sends from any thread, and carries checkpoints as a heart would."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._saving: deque[Future[None]] = deque()
        self.work: SimpleQueue[Work] = SimpleQueue()
        self.context: Context | None = None

    def send(self, message: FromChild) -> None:
        with self._lock:
            self._pipe.send_bytes(encode(message))

    def save(self, context: Context) -> "Future[None]":
        """Hand the checkpoint to the worker; the future ends when the server has it."""
        saved: Future[None] = Future()
        assert context.pending_checkpoint is not None
        with self._lock:
            # Under one lock, so that answers come in the order of the questions.
            self._saving.append(saved)
            self._pipe.send_bytes(encode(Say("checkpoint", context.pending_checkpoint)))
        context.pending_checkpoint = None
        return saved

    def listen(self) -> None:
        """Hear the worker until it is gone; then nobody wants what is done here."""
        try:
            while True:
                message = decode_to_child(self._pipe.recv_bytes())
                match message:
                    case Work():
                        self.work.put(message)
                    case StopWork():
                        if self.context is not None:
                            self.context.stop(message.reason)
                    case Saved():
                        self._on_saved(message)
        except (EOFError, OSError):
            os._exit(0)

    def _on_saved(self, message: Saved) -> None:
        saved = self._saving.popleft()
        if not saved.set_running_or_notify_cancel():
            return
        if message.error is None:
            saved.set_result(None)
        else:
            saved.set_exception(CorvoError(message.error))


class _ProcessContext(Context):
    """A context whose progress and usage go to the worker at once."""

    __slots__ = ("_line",)

    def __init__(self, job: FetchedJob, task: Runnable, line: _Line) -> None:
        super().__init__(job, task, saver=line)
        self._line = line

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        super().progress(done, total, message)
        if self.pending_progress is not None:
            self._line.send(Say("progress", self.pending_progress))

    def usage(self, **amounts: Any) -> None:
        super().usage(**amounts)
        if self.pending_usage is not None:
            self._line.send(Say("usage", self.pending_usage))


def serve(pipe: Connection, log: tuple[logs.LogFormat, str] | None = None) -> None:
    """Work until the worker is gone, logging as it does; the target of the process."""
    if log is not None:
        logs.set_up(*log)
    # A terminal sends its interrupt to the whole group; the worker decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = _Line(pipe)
    threading.Thread(target=line.listen, daemon=True).start()
    while True:
        work = line.work.get()
        line.send(Done(_run(work, line)))


def _run(work: Work, line: _Line) -> Verdict:
    try:
        task = _find(work)
    except Exception as error:  # noqa: BLE001 - importing somebody's module may raise anything
        return Failed(f"the task can not be loaded in a process: {describe(error)}")
    job = msgspec.json.decode(work.job, type=FetchedJob)
    context = _ProcessContext(job, task, line)
    line.context = context
    try:
        return asyncio.run(_execute(task, job, context))
    finally:
        line.context = None


async def _execute(task: Runnable, job: FetchedJob, context: Context) -> Verdict:
    # A sync handler gets a thread here as well: it may start a loop of its own.
    threads = ThreadPool(1, "corvo-handler")
    try:
        return await execute(task, job, context, Runners(threads))
    finally:
        threads.close()


def _find(work: Work) -> Runnable:
    module = sys.modules.get(work.module) or import_module(work.module)
    found: Any = module
    for part in work.attribute.split("."):
        found = getattr(found, part)
    if not hasattr(found, "encode_result"):
        raise LookupError(f"{work.module}.{work.attribute} is not a task")
    return cast("Runnable", found)
