# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""What happened in each minute of each queue, counted from events alone.

How long a job waited and ran needs two events each, and they may lie in different slices: marks
remember for each live job when it became ready and when it was started.
"""

from typing import Any, Final

import apsw

from corvo.model import event as ev
from corvo.model.event import Event
from corvo.view import histogram

MINUTE_MS: Final = 60_000
KEPT_MINUTES: Final = 7 * 24 * 60

ENQUEUED, STARTED, COMPLETED, FAILED, DEAD = range(5)
_COUNTED: Final = {
    ev.ENQUEUED: ENQUEUED,
    ev.SCHEDULED: ENQUEUED,
    ev.STARTED: STARTED,
    ev.COMPLETED: COMPLETED,
    ev.FAILED: FAILED,
    ev.RECLAIMED: FAILED,
    ev.DEAD: DEAD,
}
# After these the job is ready to be handed out, as far as the event tells.
_READY: Final = frozenset(
    {ev.ENQUEUED, ev.PROMOTED, ev.RELEASED, ev.RECLAIMED, ev.UNBLOCKED, ev.APPROVED, ev.RETRIED}
    | {ev.REQUEUED, ev.RETRYING}
)
# After these an attempt is over. RECLAIMED counts as failed, but its length is the lease's.
_ATTEMPT_OVER: Final = frozenset({ev.COMPLETED, ev.FAILED})
_GONE: Final = frozenset({ev.COMPLETED, ev.DEAD, ev.CANCELLED, ev.DELETED, ev.PURGED})

_SELECT = (
    "SELECT enqueued, started, completed, failed, dead, wait_count, wait_ms, wait_histogram, "
    "run_count, run_ms, run_histogram FROM queue_minutes WHERE ns = ? AND queue = ? AND minute = ?"
)
_WRITE = "INSERT OR REPLACE INTO queue_minutes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class _Spread:
    """Durations of one kind."""

    __slots__ = ("buckets", "count", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0
        self.buckets: list[int] = [0] * histogram.BUCKETS

    def add(self, duration_ms: int) -> None:
        self.count += 1
        self.total_ms += duration_ms
        self.buckets[histogram.bucket_of(duration_ms)] += 1

    def merge(self, count: int, total_ms: int, stored: bytes) -> tuple[int, int, bytes]:
        """Join with what is stored; returns what to store."""
        pairs = zip(self.buckets, histogram.unpack(stored), strict=True)
        buckets = [mine + theirs for mine, theirs in pairs]
        return self.count + count, self.total_ms + total_ms, histogram.pack(buckets)


class _Minute:
    """What one slice adds to a minute of a queue."""

    __slots__ = ("counts", "run", "wait")

    def __init__(self) -> None:
        self.counts = [0] * 5
        self.wait = _Spread()
        self.run = _Spread()


_EMPTY: Final = histogram.pack([0] * histogram.BUCKETS)
_NOTHING: Final = (0, 0, 0, 0, 0, 0, 0, _EMPTY, 0, 0, _EMPTY)


class Minutes:
    """Gathers the events of one slice and writes what they add. Used within one transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._minutes: dict[tuple[int, str, int], _Minute] = {}
        # By job: when it became ready and when it was started; 0 when not.
        self._marks: dict[str, list[int]] = {}

    def add(self, event: Event, job_id: str, at_ms: int) -> None:
        """Count one event of a job."""
        kind = event.type
        counted = _COUNTED.get(kind)
        marks = self._marks_of(job_id, is_new=kind in (ev.ENQUEUED, ev.SCHEDULED))
        if counted is not None:
            minute = self._minute(event, at_ms)
            minute.counts[counted] += 1
            if kind == ev.STARTED:
                if marks[0]:
                    minute.wait.add(max(0, at_ms - marks[0]))
                marks[0], marks[1] = 0, at_ms
            elif kind in _ATTEMPT_OVER and marks[1]:
                minute.run.add(max(0, at_ms - marks[1]))
        self._mark(marks, event, at_ms)

    def _mark(self, marks: list[int], event: Event, at_ms: int) -> None:
        kind = event.type
        if kind in _GONE:
            marks[0] = marks[1] = 0
        elif kind in _READY:
            is_waiting = event.data is not None and "due_ms" in event.data
            marks[0], marks[1] = 0 if is_waiting else at_ms, 0
        elif kind in (ev.HELD, ev.SNOOZED):
            marks[0] = marks[1] = 0

    def _marks_of(self, job_id: str, *, is_new: bool) -> list[int]:
        marks = self._marks.get(job_id)
        if marks is None:
            found: Any = None
            if not is_new:
                sql = "SELECT ready_ms, started_ms FROM job_marks WHERE job_id = ?"
                found = self._connection.execute(sql, (job_id,)).get
            marks = self._marks[job_id] = list(found) if found else [0, 0]
        return marks

    def _minute(self, event: Event, at_ms: int) -> _Minute:
        key = (event.ns, event.queue, at_ms // MINUTE_MS)
        minute = self._minutes.get(key)
        if minute is None:
            minute = self._minutes[key] = _Minute()
        return minute

    def write(self) -> None:
        """Add everything gathered to the tables."""
        execute = self._connection.execute
        for key, minute in self._minutes.items():
            stored: Any = execute(_SELECT, key).get or _NOTHING
            counts = [mine + theirs for mine, theirs in zip(minute.counts, stored[:5], strict=True)]
            wait = minute.wait.merge(*stored[5:8])
            run = minute.run.merge(*stored[8:11])
            execute(_WRITE, (*key, *counts, *wait, *run))
        kept = [(job_id, *marks) for job_id, marks in self._marks.items() if marks[0] or marks[1]]
        gone = [(job_id,) for job_id, marks in self._marks.items() if not marks[0] and not marks[1]]
        self._connection.executemany("INSERT OR REPLACE INTO job_marks VALUES (?, ?, ?)", kept)
        self._connection.executemany("DELETE FROM job_marks WHERE job_id = ?", gone)
        self._minutes.clear()
        self._marks.clear()


def forget_old(connection: apsw.Connection, now_ms: int) -> None:
    """Drop minutes nobody asks for any more."""
    oldest = now_ms // MINUTE_MS - KEPT_MINUTES
    connection.execute("DELETE FROM queue_minutes WHERE minute < ?", (oldest,))
