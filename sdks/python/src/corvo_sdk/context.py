"""What a handler knows about the attempt it runs, and what it may say about it.

A context belongs to one lease of one job. The handler reads it and writes documents into it
(checkpoint, progress, usage); the worker's own thread carries these to the server with the next
heartbeat, or at once for a checkpoint. Nothing here talks to the network: who carries is passed in,
so the testing kit uses the same class.

Safety: a context is written by the handler (on the loop or in a thread) and by the threads of the
worker. Every field that crosses is one attribute that is replaced as a whole, never changed in
place, so a reader sees the old value or the new one.
"""

import asyncio
import logging
import time
from collections.abc import Callable, MutableMapping
from concurrent.futures import Future
from contextvars import ContextVar, Token
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Protocol

import msgspec

from corvo_sdk.errors import LeaseLostError
from corvo_sdk.types import FetchedJob

DOCUMENT_BYTES_MAX = 256 * 1024  # what a server takes unless its operator chose otherwise
PROGRESS_BYTES_MAX = 4_096
USAGE_BYTES_MAX = 4_096
SAVE_WAIT_S = 30.0

_encode = msgspec.json.encode


class Stop(Enum):
    """Why a handler is asked to stop."""

    CANCEL = "cancel"  # somebody cancelled the job
    TIMEOUT = "timeout"  # the attempt took longer than its task allows
    SHUTDOWN = "shutdown"  # the worker ends
    LOST = "lost"  # the lease is gone: somebody else may be running the job


class JobCancelled(Exception):  # noqa: N818 - a request to stop, not an error
    """Raised by `raise_if_cancelled` once the handler was asked to stop."""

    def __init__(self, reason: Stop) -> None:
        super().__init__(f"the handler was asked to stop: {reason.value}")
        self.reason = reason


class TaskLike(Protocol):
    """What a context tells of the task it belongs to."""

    @property
    def name(self) -> str: ...
    @property
    def queue(self) -> str: ...


class Saver(Protocol):
    """Carries a checkpoint to the server."""

    def save(self, context: "Context") -> "Future[None]":
        """Send what is waiting in the context now; the future ends when the server has it."""
        ...


class Context:
    """One attempt of one job."""

    __slots__ = (
        "_checkpoint",
        "_interrupt",
        "_log",
        "_loop",
        "_saver",
        "attempt_until_s",
        "handed_at_s",
        "has_seen_stop",
        "job",
        "lease_until_s",
        "lingering",
        "pending_checkpoint",
        "pending_progress",
        "pending_usage",
        "renewed_at_s",
        "started_at_s",
        "state",
        "stop_reason",
        "task",
    )

    def __init__(
        self,
        job: FetchedJob,
        task: TaskLike | None = None,
        *,
        state: Any = None,
        saver: Saver | None = None,
        now_s: float | None = None,
    ) -> None:
        now = time.monotonic() if now_s is None else now_s
        self.job = job
        self.task = task
        self.state = state
        self.stop_reason: Stop | None = None
        self.has_seen_stop = False
        self.handed_at_s = now
        self.renewed_at_s = now
        self.lease_until_s = now + job.lease_duration
        self.started_at_s = 0.0
        self.attempt_until_s: float | None = None
        self.pending_checkpoint: bytes | None = None
        self.pending_progress: bytes | None = None
        self.pending_usage: bytes | None = None
        self.lingering: Any = None  # the errand of a thread that outlived its attempt
        self._checkpoint: Any = msgspec.UNSET
        self._saver = saver
        self._loop: asyncio.AbstractEventLoop | None = None
        self._interrupt: Callable[[Stop], object] | None = None
        self._log: logging.LoggerAdapter[logging.Logger] | None = None

    # --- what is known ----------------------------------------------------------------------------

    @property
    def job_id(self) -> str:
        return self.job.job_id

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1."""
        return self.job.attempt

    @property
    def max_retries(self) -> int:
        return self.job.max_retries

    @property
    def lease_token(self) -> int:
        """Rises with every lease of a job: pass it on where a late writer must be recognised."""
        return self.job.lease_token

    @property
    def checkpoint_value(self) -> Any:
        """The last checkpoint, of this attempt or of an earlier one; None when there is none."""
        if self._checkpoint is msgspec.UNSET:
            raw = self.job.checkpoint
            self._checkpoint = None if raw is None else msgspec.json.decode(raw)
        return self._checkpoint

    @property
    def remaining_s(self) -> float | None:
        """Seconds until the attempt times out; None when its task has no timeout."""
        until_s = self.attempt_until_s
        return None if until_s is None else max(0.0, until_s - time.monotonic())

    @property
    def deadline(self) -> datetime | None:
        """When the attempt times out; None when its task has no timeout."""
        remaining_s = self.remaining_s
        if remaining_s is None:
            return None
        return datetime.now(UTC) + timedelta(seconds=remaining_s)

    @property
    def cancelled(self) -> bool:
        """Whether the handler is asked to stop; a sync handler of some length looks at it.

        A handler that saw it and returns nothing has stopped and not finished: its job goes on
        elsewhere from the last checkpoint.
        """
        if self.stop_reason is None:
            return False
        self.has_seen_stop = True
        return True

    def raise_if_cancelled(self) -> None:
        """End the handler here when it is asked to stop."""
        if self.stop_reason is not None:
            raise JobCancelled(self.stop_reason)

    @property
    def log(self) -> "logging.LoggerAdapter[logging.Logger]":
        """A logger that adds the job, the task and the attempt to every line."""
        if self._log is None:
            name = self.task.name if self.task is not None else self.job.queue
            fields = {"job_id": self.job_id, "task": name, "attempt": self.attempt}
            self._log = _JobLog(logging.getLogger(f"corvo.task.{name}"), fields)
        return self._log

    # --- what is said -----------------------------------------------------------------------------

    def checkpoint(self, value: Any) -> None:
        """Save where the work stands, so that a later attempt goes on from there.

        Returns when the server has it. On the event loop, which must not wait, it returns at once
        and the value is sent in the background: there, await `acheckpoint`.
        """
        saving = self._save(value)
        if saving is not None and not self._is_on_loop():
            saving.result(SAVE_WAIT_S)

    async def acheckpoint(self, value: Any) -> None:
        """Save where the work stands; returns when the server has it."""
        saving = self._save(value)
        if saving is not None:
            async with asyncio.timeout(SAVE_WAIT_S):
                await asyncio.wrap_future(saving)

    def _save(self, value: Any) -> "Future[None] | None":
        if self.stop_reason is Stop.LOST:
            raise LeaseLostError("the lease of the job is gone; its checkpoint was not saved")
        document = _bounded(value, "checkpoint", DOCUMENT_BYTES_MAX)
        self._checkpoint = value
        self.pending_checkpoint = document
        return None if self._saver is None else self._saver.save(self)

    def save_document(self, document: bytes) -> "Future[None]":
        """Save a checkpoint that is JSON already; for those who run handlers."""
        self.pending_checkpoint = document
        if self._saver is not None:
            return self._saver.save(self)
        saved: Future[None] = Future()
        saved.set_result(None)
        return saved

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Say how far the work is; sent with the next heartbeat."""
        fields: dict[str, Any] = {"done": done}
        if total is not None:
            fields["total"] = total
        if message is not None:
            fields["message"] = message
        self.pending_progress = _bounded(fields, "progress", PROGRESS_BYTES_MAX)

    def usage(self, **amounts: Any) -> None:
        """Say what the work used in all (tokens, money, bytes); sent with heartbeat and report."""
        self.pending_usage = _bounded(amounts, "usage", USAGE_BYTES_MAX)

    def _is_on_loop(self) -> bool:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    # --- for the worker ---------------------------------------------------------------------------

    def listen(self, interrupt: Callable[[Stop], object] | None) -> None:
        """Name what `stop` calls on the loop; None once the handler has ended."""
        self._interrupt = interrupt
        if interrupt is not None:
            self._loop = asyncio.get_running_loop()
            if self.stop_reason is not None:
                self._fire(self.stop_reason)

    def stop(self, reason: Stop) -> None:
        """Ask the handler to stop; from any thread. A lost lease outweighs any other reason."""
        if self.stop_reason is None or reason is Stop.LOST:
            is_first = self.stop_reason is None
            self.stop_reason = reason
            loop = self._loop
            if is_first and loop is not None and not loop.is_closed():
                loop.call_soon_threadsafe(self._fire, reason)

    def _fire(self, reason: Stop) -> None:
        # Safety: runs on the loop, where the handler's end also clears it: never both, and once.
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            interrupt(reason)


class _JobLog(logging.LoggerAdapter[logging.Logger]):
    """Adds the fields of the job, and keeps those a call brings itself."""

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


def _bounded(value: Any, name: str, bytes_max: int) -> bytes:
    document = _encode(value)
    if len(document) > bytes_max:
        raise ValueError(f"the {name} has {len(document)} bytes, at most {bytes_max} are kept")
    return document


_current: ContextVar[Context] = ContextVar("corvo_context")


def current_context() -> Context:
    """Give the context of the job that runs here; RuntimeError outside of a handler."""
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError("no job runs here: current_context is for handlers") from None


def enter(context: Context) -> Token[Context]:
    """Make a context the current one; for those who run handlers."""
    return _current.set(context)


def leave(token: Token[Context]) -> None:
    """Undo `enter`."""
    _current.reset(token)
