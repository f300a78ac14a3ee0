"""Processes for tasks with `process=True`: one job each at a time, kept for the next.

A process is started fresh (never forked: threads and connections of the worker do not belong there)
and imports the module of the task. It speaks with the worker over one pipe:

    worker ──▶ Work, StopWork, Saved          process ──▶ Say (progress, ...), Done

A process that dies fails the attempt it worked on and nothing else. One that is asked to stop and
does not within the grace is killed; the worker never waits for it longer.
"""

import multiprocessing
import os
import threading
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Final, cast

import msgspec

from corvo_sdk.context import Context
from corvo_sdk.types import FetchedJob
from corvo_sdk.worker import logs
from corvo_sdk.worker.child import serve
from corvo_sdk.worker.execution import Runnable, of_stop
from corvo_sdk.worker.pipe import Done, Saved, Say, StopWork, Work, decode_from_child, encode
from corvo_sdk.worker.threads import Errand, ThreadPool
from corvo_sdk.worker.verdict import Failed, Verdict

KILL_GRACE_S: Final = 5.0
_POLL_S: Final = 0.1

_spawning = multiprocessing.get_context("spawn")


class ProcessTaskError(ValueError):
    """A task can not run in another process."""


def check_reachable(task: Runnable) -> None:
    """Refuse a task that another process can not import. Raises ProcessTaskError."""
    name = getattr(task.function, "__qualname__", "")
    if "<" in name or not name:
        raise ProcessTaskError(
            f"task {task.name} has process=True and must be a function of a module, "
            f"not {name or task.function!r}"
        )


class _Child:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        ours, theirs = _spawning.Pipe()
        # Safety: the type of a pipe differs by platform; what is used of it does not.
        self.pipe = cast("Connection[bytes, bytes]", ours)
        self.process = _spawning.Process(
            target=serve, args=(theirs, logs.chosen()), name="corvo-process", daemon=True
        )
        self.process.start()
        theirs.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class ProcessPool:
    """Processes, at most `size` at once; a job beyond that waits in order."""

    def __init__(self, size: int = 0, *, grace_s: float = KILL_GRACE_S) -> None:
        self._threads = ThreadPool(size or os.cpu_count() or 1, "corvo-process")
        self._grace_s = grace_s
        self._idle: list[_Child] = []
        self._all: list[_Child] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def run(self, task: Runnable, job: FetchedJob, context: Context) -> Errand:
        """Start a job; the errand ends with its verdict."""
        function = task.function
        document = msgspec.json.encode(job)
        work = Work(function.__module__, function.__qualname__, document)
        return self._threads.run(lambda: self._converse(work, context))

    def close(self) -> None:
        """End every process; those that work are killed."""
        self._is_closed = True
        with self._lock:
            children, self._all, self._idle = self._all, [], []
        for child in children:
            child.process.kill()
        self._threads.close()

    @property
    def pids(self) -> list[int]:
        """The processes that live."""
        with self._lock:
            return [child.process.pid for child in self._all if child.process.pid is not None]

    def _take(self) -> _Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.process.is_alive():
                    return child
                self._all.remove(child)
        child = _Child()
        with self._lock:
            self._all.append(child)
        return child

    def _converse(self, work: Work, context: Context) -> Verdict:
        if context.stop_reason is not None:
            return of_stop(context.stop_reason)
        child = self._take()
        try:
            child.pipe.send_bytes(encode(work))
            verdict = self._listen(child, context)
        except (EOFError, OSError):
            child.process.join(1.0)
            verdict = Failed(f"the process of the task ended with {child.process.exitcode}")
        if verdict is None:
            assert context.stop_reason is not None
            verdict = of_stop(context.stop_reason)
            child.kill()
        elif child.process.is_alive() and not self._is_closed:
            with self._lock:
                self._idle.append(child)
            return verdict
        with self._lock:
            if child in self._all:
                self._all.remove(child)
        return verdict

    def _listen(self, child: _Child, context: Context) -> Verdict | None:
        """Hear a process until it is done; None when it had to be given up."""
        waited_s = 0.0
        is_told = False
        while True:
            if child.pipe.poll(_POLL_S):
                message = decode_from_child(child.pipe.recv_bytes())
                if isinstance(message, Done):
                    return message.verdict
                self._hear(child, context, message)
                continue
            if context.stop_reason is None:
                continue
            if not is_told:
                is_told = True
                child.pipe.send_bytes(encode(StopWork(context.stop_reason)))
            waited_s += _POLL_S
            if waited_s > self._grace_s:
                return None

    def _hear(self, child: _Child, context: Context, message: Say) -> None:
        if message.kind == "checkpoint":
            saving: Future[None] = context.save_document(message.document)
            saving.add_done_callback(lambda done: _tell(child, done))
        elif message.kind == "progress":
            context.pending_progress = message.document
        else:
            context.pending_usage = message.document


def _tell(child: _Child, saving: "Future[Any]") -> None:
    error = None if saving.cancelled() else saving.exception()
    # Safety: only the heart calls back, one at a time; a dead process needs no answer.
    with suppress(OSError, ValueError):
        child.pipe.send_bytes(encode(Saved(None if error is None else str(error))))
