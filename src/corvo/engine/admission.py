"""Who gets in: bounded pending work, and refusals that say when to come back.

Two bounds, commands and bytes, cover everything between submission and apply. Past them a producer
is told how long the queue ahead of it takes at the rate measured just now. Commands that end work
(ack, fail, heartbeat, release, snooze) have a second helping of the same size: when producers flood
the server, finished work must still be able to leave it.

While draining, nothing new is taken or handed out; while the disk is full, nothing new is taken.
Ending work is allowed in both.
"""

from msgspec import Struct

from corvo.errors import CorvoError, OverloadedError, UnavailableError
from corvo.model import limits
from corvo.model.command import (
    AckJob,
    BackfillSchedule,
    Command,
    EnqueueBatch,
    EnqueueJob,
    FailJob,
    FetchJobs,
    HeartbeatJob,
    ImportRecords,
    ReleaseJob,
    RunSchedule,
    SetSchedule,
    SnoozeJob,
)

# Commands alone would let 16,384 bodies of 4 MiB wait, which is all memory there is.
PENDING_BYTES_MAX = 64 * 1024 * 1024
ENDING_FACTOR = 2
# A store that is about to stall gets a smaller queue in front of it, so that callers wait outside.
STALLED_DIVISOR = 4

RETRY_MS_MIN = 50
RETRY_MS_MAX = 30_000
RETRY_MS_UNKNOWN = 1_000
RATE_WINDOW_S = 1.0

OPEN, STARTING, DRAINING, CLOSED = range(4)

_ADDING = (
    EnqueueJob,
    EnqueueBatch,
    BackfillSchedule,
    RunSchedule,
    SetSchedule,
    ImportRecords,
)
_ENDING = (AckJob, FailJob, HeartbeatJob, ReleaseJob, SnoozeJob)


class Bounds(Struct, frozen=True):
    """How much may wait between submission and apply."""

    pending_max: int = limits.PENDING_MAX_DEFAULT
    pending_bytes_max: int = PENDING_BYTES_MAX


class Admission:
    """Decides at submission; the hot path only compares two numbers and one flag."""

    __slots__ = (
        "_bounds",
        "_is_disk_full",
        "_is_stalled",
        "_phase",
        "_rate",
        "_window_count",
        "_window_s",
        "is_guarded",
        "pending_bytes_max",
        "pending_max",
        "refused_count",
    )

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._phase = STARTING
        self._is_disk_full = False
        self._is_stalled = False
        self._rate = 0.0  # commands a second, as measured while there was work
        self._window_count = 0
        self._window_s = 0.0
        self.pending_max = bounds.pending_max
        self.pending_bytes_max = bounds.pending_bytes_max
        self.is_guarded = True  # some commands are refused whatever the load
        self.refused_count = 0

    # --- the decision -------------------------------------------------------------------------

    def check(self, command: Command, count: int, pending_count: int, pending_bytes: int) -> None:
        """Raise unless `count` commands like this one may enter now."""
        if self.is_guarded:
            self._check_phase(command)
        room = self.pending_max
        room_bytes = self.pending_bytes_max
        if isinstance(command, _ENDING):
            room *= ENDING_FACTOR
            room_bytes *= ENDING_FACTOR
        # A call larger than the whole bound enters when nothing is ahead of it: refusing it would
        # be refusing it for ever.
        if pending_count and (pending_count + count > room or pending_bytes >= room_bytes):
            self.refused_count += 1
            raise OverloadedError(
                "the server has as much work waiting as it admits",
                retry_after_ms=self.retry_after_ms(pending_count),
            )

    def _check_phase(self, command: Command) -> None:
        if self._phase == CLOSED:
            raise self._refusal("the server is stopping", "DRAINING", "connect again shortly")
        if self._phase == STARTING:
            raise self._refusal("the server is starting", "STARTING", "try again shortly")
        if self._phase == DRAINING and isinstance(command, (*_ADDING, FetchJobs)):
            raise self._refusal("the server is draining", "DRAINING", "connect again shortly")
        if self._is_disk_full and isinstance(command, _ADDING):
            raise self._refusal("the disk is full", "DISK_FULL", "free disk space on the server")

    def _refusal(self, message: str, code: str, hint: str) -> CorvoError:
        self.refused_count += 1
        return UnavailableError(message, code=code, hint=hint)

    def retry_after_ms(self, pending_count: int) -> int:
        """How long what is pending will take, at the rate measured last."""
        if self._rate <= 0:
            return RETRY_MS_UNKNOWN
        return max(RETRY_MS_MIN, min(RETRY_MS_MAX, int(pending_count * 1000 / self._rate) + 1))

    # --- what it learns -----------------------------------------------------------------------

    def observe_applied(self, count: int, busy_s: float) -> None:
        """Note that `count` commands left after `busy_s` seconds of work, waiting not counted."""
        self._window_count += count
        self._window_s += busy_s
        if self._window_s >= RATE_WINDOW_S or self._rate == 0.0:
            measured = self._window_count / max(self._window_s, 1e-6)
            self._rate = measured if self._rate == 0.0 else (self._rate + measured) / 2
            self._window_count = 0
            self._window_s = 0.0

    def observe_store(self, *, is_stalled: bool) -> None:
        """Take less while the store says that it is falling behind."""
        self._is_stalled = is_stalled
        divisor = STALLED_DIVISOR if is_stalled else 1
        self.pending_max = max(1, self._bounds.pending_max // divisor)
        self.pending_bytes_max = max(1, self._bounds.pending_bytes_max // divisor)

    def observe_disk(self, *, is_full: bool) -> None:
        """Refuse what adds to the disk while it is full."""
        self._is_disk_full = is_full
        self._guard()

    def enter(self, phase: int) -> None:
        """Open, drain or close the door."""
        self._phase = phase
        self._guard()

    def _guard(self) -> None:
        self.is_guarded = self._phase != OPEN or self._is_disk_full

    @property
    def phase(self) -> int:
        return self._phase

    @property
    def is_disk_full(self) -> bool:
        return self._is_disk_full

    def statistics(self) -> dict[str, int]:
        return {
            "pending_max": self.pending_max,
            "pending_bytes_max": self.pending_bytes_max,
            "refused_count": self.refused_count,
            "rate_per_second": int(self._rate),
            "is_stalled": int(self._is_stalled),
            "is_disk_full": int(self._is_disk_full),
        }
