"""Counts and times taken from events: what `/metrics` and `/metrics/throughput` answer with.

Cost: about a microsecond an event, on the loop but outside of any request; the hot path counts
nothing of this. All of it starts empty with the process, except the minutes, which the hub fills
from stored events (`Hub.recall`).
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from corvo.model import event as ev
from corvo.model import limits
from corvo.model.event import EVENT_NAMES, EventBlock
from corvo.model.ids import DEFAULT_NAMESPACE
from corvo.runtime.clock import Clock

MINUTES_KEPT: Final = 60
MINUTE_MS: Final = 60_000
MINUTE_QUEUES_MAX: Final = 2_000  # queues told apart within one minute; the others are in the sum
OPEN_MAX: Final = 200_000  # jobs whose start or return is remembered; when full it starts again
OTHERS: Final = "*"  # not a name a queue can have
LATE_MS: Final = 1_000

COLUMNS: Final = ("enqueued", "started", "completed", "failed", "dead")
BUCKETS_S: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
)  # fmt: skip
_BUCKETS_MS: Final = tuple(int(bound * 1000) for bound in BUCKETS_S)

_COLUMN: Final = [-1] * len(EVENT_NAMES)
for _kind, _place in {
    ev.ENQUEUED: 0,
    ev.SCHEDULED: 0,
    ev.STARTED: 1,
    ev.COMPLETED: 2,
    ev.FAILED: 3,
    ev.DEAD: 4,
}.items():
    _COLUMN[_kind] = _place
_READY: Final = frozenset(
    {
        ev.PROMOTED, ev.RELEASED, ev.RECLAIMED, ev.APPROVED, ev.UNBLOCKED, ev.RETRIED,
        ev.REQUEUED, ev.RETRYING,
    }
)  # fmt: skip
_STOPPED: Final = frozenset(
    {ev.RELEASED, ev.SNOOZED, ev.RECLAIMED, ev.CANCELLED, ev.HELD, ev.DELETED, ev.DEAD}
)
_RARE: Final = _READY | _STOPPED


Rows = dict[tuple[int, str], list[int]]  # counts of a minute by namespace and queue
_NOTHING: Final = (0,) * len(COLUMNS)


class Times:
    """How long something took, as counts in fixed buckets."""

    __slots__ = ("counts", "total_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BUCKETS_MS) + 1)
        self.total_ms = 0

    def observe(self, duration_ms: int) -> None:
        """Note a duration; a clock that differs by a little must not make it negative."""
        duration_ms = max(0, duration_ms)
        self.counts[bisect_left(_BUCKETS_MS, duration_ms)] += 1
        self.total_ms += duration_ms


class QueueFigures:
    """What is known of one queue."""

    __slots__ = ("runs", "totals", "waits")

    def __init__(self) -> None:
        self.totals = [0] * len(COLUMNS)
        self.waits = Times()  # from being ready to being handed out
        self.runs = Times()  # from being handed out to being reported on


class Figures:
    """Everything counted from events since the process started. Counts only rise."""

    def __init__(self, clock: Clock, *, queues_max: int = limits.METRIC_QUEUES_MAX) -> None:
        self._clock = clock
        self._queues_max = queues_max
        self.by_type = [0] * len(EVENT_NAMES)
        # Bounded in all; a queue of another namespace is another queue, whatever its name.
        self.queues: dict[tuple[int, str], QueueFigures] = {}
        self._others = QueueFigures()
        # Cost: the time of a new job is in its id; only jobs that become ready later are kept here.
        self._ready_ms: dict[bytes, int] = {}
        self._started_ms: dict[bytes, int] = {}
        self._minutes: dict[int, Rows] = {}

    def observe(self, blocks: list[EventBlock]) -> None:
        """Count new events."""
        by_type = self.by_type
        for block in blocks:
            at_ms = block.at_ms
            # A derived id carries the time of its parent: such a job was not made just now.
            late = max(0, at_ms - LATE_MS).to_bytes(6, "big")
            # Cost: neighbours are mostly of one queue, so it is looked up when it changes.
            name, ns = None, 0
            queue = self._others
            for event in block.events:
                kind = event.type
                by_type[kind] += 1
                column = _COLUMN[kind]
                if column >= 0:
                    if event.queue != name or event.ns != ns:
                        name, ns = event.queue, event.ns
                        queue = self.queues.get((ns, name)) or self._queue(ns, name)
                    queue.totals[column] += 1
                    if kind == ev.STARTED:
                        self._start(queue, event.job, event.attempt, at_ms)
                    elif kind == ev.COMPLETED or kind == ev.FAILED:  # noqa: PLR1714 - twice as fast
                        started_ms = self._started_ms.pop(event.job, 0)
                        if started_ms:
                            queue.runs.observe(at_ms - started_ms)
                    elif kind == ev.ENQUEUED and event.job < late:
                        self._note_ready(event.job, at_ms)
                if kind in _RARE:
                    self._take_rare(kind, event.job, at_ms)
        self.observe_minutes(blocks)

    def _take_rare(self, kind: int, job: bytes, at_ms: int) -> None:
        if kind in _STOPPED:
            self._started_ms.pop(job, None)
        if kind in _READY:
            self._note_ready(job, at_ms)

    def _start(self, queue: QueueFigures, job: bytes, attempt: int, at_ms: int) -> None:
        ready_ms = self._ready_ms.pop(job, 0)
        if not ready_ms and attempt == 1:
            ready_ms = _created_ms(job)
        if ready_ms:
            queue.waits.observe(at_ms - ready_ms)
        if len(self._started_ms) >= OPEN_MAX:
            self._started_ms.clear()
        self._started_ms[job] = at_ms

    def _note_ready(self, job: bytes, at_ms: int) -> None:
        if len(self._ready_ms) >= OPEN_MAX:
            self._ready_ms.clear()
        self._ready_ms[job] = at_ms

    def _queue(self, ns: int, name: str) -> QueueFigures:
        if len(self.queues) >= self._queues_max:
            return self.queues.setdefault((DEFAULT_NAMESPACE, OTHERS), self._others)
        return self.queues.setdefault((ns, name), QueueFigures())

    def observe_minutes(self, blocks: list[EventBlock]) -> None:
        """Count events into their minutes; those that are too old are not kept."""
        for block in blocks:
            rows = self._rows(block.at_ms // MINUTE_MS)
            name, ns = None, -1
            total = row = _new()
            for event in block.events:
                column = _COLUMN[event.type]
                if column < 0:
                    continue
                if event.queue != name or event.ns != ns:
                    name, ns = event.queue, event.ns
                    # Invariant: the sum of a namespace is always there; only queues are bounded.
                    total = rows.get((ns, OTHERS)) or rows.setdefault((ns, OTHERS), _new())
                    row = rows.get((ns, name)) or _new_row(rows, (ns, name))
                total[column] += 1
                row[column] += 1

    def _rows(self, minute: int) -> "Rows":
        rows = self._minutes.get(minute)
        if rows is None:
            rows = self._minutes[minute] = {}
            if len(self._minutes) > MINUTES_KEPT + 1:
                del self._minutes[min(self._minutes)]
        return rows

    def throughput(self, ns: int, queue: str | None) -> list[tuple[int, Sequence[int]]]:
        """Return the last sixty minutes, oldest first: when each began, and its counts."""
        last = self._clock.now_ms() // MINUTE_MS
        found: list[tuple[int, Sequence[int]]] = []
        for minute in range(last - MINUTES_KEPT + 1, last + 1):
            rows = self._minutes.get(minute, {})
            found.append((minute * MINUTE_MS, rows.get((ns, queue or OTHERS), _NOTHING)))
        return found


def _new() -> list[int]:
    return [0] * len(COLUMNS)


def _new_row(rows: "Rows", key: tuple[int, str]) -> list[int]:
    row = _new()
    if len(rows) <= MINUTE_QUEUES_MAX:
        rows[key] = row
    return row


def _created_ms(job: bytes) -> int:
    return int.from_bytes(job[:6], "big")
