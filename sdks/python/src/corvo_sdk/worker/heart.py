"""The heart: a thread with a connection of its own that renews the leases of all jobs in hand.

A handler that blocks the event loop must not cost it its lease, so nothing here needs the loop.
One call renews everything that is due, and carries progress, checkpoints and usage with it. A
checkpoint does not wait for its turn: the heart beats at once, for all who asked meanwhile.

Documents never endanger leases: when the server refuses a call because of one of them, the leases
are renewed without documents, then each document is sent alone, and only the wrong one fails.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Protocol

from msgspec import Raw

from corvo_sdk.context import Context, Stop
from corvo_sdk.errors import (
    ConnectionFailedError,
    CorvoError,
    LeaseLostError,
    OverloadedError,
    UnavailableError,
)
from corvo_sdk.types import Heartbeat, HeartbeatAnswer
from corvo_sdk.worker.flights import Flights

INTERVAL_S_MAX = 15.0
CALL_JOBS_MAX = 500  # a server takes a thousand in one call
CALL_BYTES_MAX = 2 * 1024 * 1024  # and four MiB
_AGAIN_S = 0.5  # after a call that failed

_log = logging.getLogger("corvo.worker")


class HeartbeatClient(Protocol):
    """The one call that is needed of a client; it must not belong to a loop."""

    def heartbeat(
        self, jobs: dict[str, Heartbeat] | None = None, *, worker_id: str | None = None
    ) -> HeartbeatAnswer: ...


class _Item:
    """What one call says about one job: read once, so that what is confirmed is what was sent."""

    __slots__ = ("checkpoint", "context", "progress", "size", "usage")

    def __init__(self, context: Context, *, is_plain: bool = False) -> None:
        self.context = context
        self.checkpoint = None if is_plain else context.pending_checkpoint
        self.progress = None if is_plain else context.pending_progress
        self.usage = None if is_plain else context.pending_usage
        documents = (self.checkpoint, self.progress, self.usage)
        self.size = sum(len(document) for document in documents if document) + 128

    def heartbeat(self) -> Heartbeat:
        return Heartbeat(
            lease_token=self.context.job.lease_token,
            checkpoint=None if self.checkpoint is None else Raw(self.checkpoint),
            progress=None if self.progress is None else Raw(self.progress),
            usage=None if self.usage is None else Raw(self.usage),
        )

    def confirm(self) -> None:
        """Strike what arrived, unless the handler has said something newer."""
        context = self.context
        if context.pending_checkpoint is self.checkpoint:
            context.pending_checkpoint = None
        if context.pending_progress is self.progress:
            context.pending_progress = None
        if context.pending_usage is self.usage:
            context.pending_usage = None

    def has_documents(self) -> bool:
        return self.size > 128


class Heart:
    """Renews leases until it is stopped."""

    def __init__(
        self,
        client: HeartbeatClient,
        flights: Flights,
        worker_id: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._flights = flights
        self._worker_id = worker_id
        self._clock = clock
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._savers: list[tuple[Context, Future[None]]] = []
        self._is_stopped = False
        self._thread: threading.Thread | None = None
        self._said_at_s = 0.0
        self.interval_s = INTERVAL_S_MAX
        self.reached_at_s = clock()  # when the server last answered
        self.beats_count = 0
        self.failures_count = 0
        self._is_failing = False
        self._is_told = False

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="corvo-heart", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; whoever waits for a checkpoint is told that it was not saved."""
        self._is_stopped = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(1.0)
        self._answer(self._take_savers(), lambda _: _ended())

    def adapt(self, lease_s: float) -> None:
        """Beat often enough for a lease: at least three times in it, and every 15 seconds."""
        interval_s = min(INTERVAL_S_MAX, lease_s / 3)
        if interval_s < self.interval_s:
            self.interval_s = interval_s
            self._wake.set()

    def save(self, context: Context) -> "Future[None]":
        """Beat now for a job; the future ends when the server has what the context holds."""
        saved: Future[None] = Future()
        with self._lock:
            if self._is_stopped:
                saved.set_exception(_ended())
                return saved
            self._savers.append((context, saved))
        self._wake.set()
        return saved

    def _run(self) -> None:
        while not self._is_stopped:
            self._wake.wait(self._pause_s())
            self._wake.clear()
            if not self._is_stopped:
                self.beat()

    def _pause_s(self) -> float:
        if self._is_failing:
            return min(_AGAIN_S, self.interval_s / 2)
        # Half an interval: a job that was too young for one beat is not too old at the next.
        return self.interval_s / 2

    def beat(self) -> None:
        """Renew what is due, in as many calls as it takes."""
        savers = self._take_savers()
        asked = {id(context) for context, _ in savers}
        now_s = self._clock()
        due = [
            _Item(context)
            for context in self._flights.all()
            if id(context) in asked or self._is_due(context, now_s)
        ]
        if not due and now_s - self._said_at_s < INTERVAL_S_MAX:
            self._answer(savers, _lost)
            return
        failures: dict[int, CorvoError] = {}
        self._is_failing = False
        for part in _parts(due):
            self._send(part, failures)
        self._said_at_s = now_s
        sent = {id(item.context) for item in due}
        self._answer(
            savers, lambda context: failures.get(id(context)) if id(context) in sent else _lost()
        )

    def _is_due(self, context: Context, now_s: float) -> bool:
        if context.stop_reason is Stop.LOST:
            return False
        return now_s - context.renewed_at_s >= min(self.interval_s, context.job.lease_duration / 3)

    def _send(self, part: list[_Item], failures: dict[int, CorvoError]) -> None:
        try:
            self._call(part)
        except (ConnectionFailedError, OverloadedError, UnavailableError) as error:
            self._failed(part, failures, error)
        except CorvoError as error:
            if not any(item.has_documents() for item in part):
                self._failed(part, failures, error)
            elif len(part) == 1:
                # This document is the wrong one: it is dropped, and its handler is told.
                part[0].confirm()
                failures[id(part[0].context)] = error
                _log.warning("a document of %s was refused: %s", part[0].context.job_id, error)
            else:
                self._send([_Item(item.context, is_plain=True) for item in part], failures)
                for item in part:
                    if item.has_documents():
                        self._send([item], failures)

    def _failed(
        self, part: list[_Item], failures: dict[int, CorvoError], error: CorvoError
    ) -> None:
        self.failures_count += 1
        self._is_failing = True
        failures.update((id(item.context), error) for item in part)
        if not self._is_told:
            # Once: it is tried twice a second while the server is away.
            self._is_told = True
            _log.warning("the heartbeat of %d jobs failed: %s", len(part), error)

    def _call(self, part: list[_Item]) -> None:
        # Safety: the lease is counted from before the call, so that ours ends before the server's.
        sent_at_s = self._clock()
        jobs = {item.context.job.job_id: item.heartbeat() for item in part}
        answer = self._client.heartbeat(jobs, worker_id=self._worker_id)
        self.reached_at_s = self._clock()
        self.beats_count += 1
        self._is_told = False
        for item in part:
            context = item.context
            beat = answer.jobs.get(context.job.job_id)
            if beat is None or beat.status == "lost":
                # A job that was settled while the call was under way is "lost" as well; its
                # context has left the flights then, and nobody listens to it any more.
                context.stop(Stop.LOST)
                continue
            context.renewed_at_s = sent_at_s
            context.lease_until_s = sent_at_s + context.job.lease_duration
            item.confirm()
            if beat.status == "cancel":
                context.stop(Stop.CANCEL)

    def _take_savers(self) -> list[tuple[Context, "Future[None]"]]:
        with self._lock:
            savers, self._savers = self._savers, []
        return savers

    @staticmethod
    def _answer(
        savers: list[tuple[Context, "Future[None]"]],
        failure_of: Callable[[Context], CorvoError | None],
    ) -> None:
        for context, saved in savers:
            error = failure_of(context)
            if error is None and context.stop_reason is Stop.LOST:
                error = _lost()
            # A handler that was cancelled while it waited has cancelled the future.
            if not saved.set_running_or_notify_cancel():
                continue
            if error is None:
                saved.set_result(None)
            else:
                saved.set_exception(error)


def _ended() -> CorvoError:
    return ConnectionFailedError("the worker has ended", was_sent=False)


def _lost(_: Context | None = None) -> CorvoError:
    return LeaseLostError("the job is not this worker's any more; its checkpoint was not saved")


def _parts(items: list[_Item]) -> Iterator[list[_Item]]:
    part: list[_Item] = []
    size = 0
    for item in items:
        if part and (len(part) >= CALL_JOBS_MAX or size + item.size > CALL_BYTES_MAX):
            yield part
            part, size = [], 0
        part.append(item)
        size += item.size
    # With nothing in hand the call still says that the worker lives.
    yield part
