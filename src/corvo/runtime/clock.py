"""The clock port: time that never goes back, however the wall clock is treated.

The engine stamps every entry of the log with `now_ms()`, and leases, schedules and retention are
decided from those stamps. A wall clock is set by operators, by daemons and by virtual machines that
wake up, so it is only ever followed, never obeyed:

    now = wall time at start + elapsed time since + correction

The correction moves towards the wall clock by at most two percent of the time that passed. A wall
clock that is an hour off is therefore caught up with in about two days, and until then leases of
thirty seconds last thirty seconds, give or take half a second.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Protocol

NANOSECONDS_PER_MS = 1_000_000

# How often the wall clock is looked at. Between two looks `now_ms` costs one reading.
CHECK_NANOSECONDS = 100 * NANOSECONDS_PER_MS

# Share of the elapsed time that a correction may use.
# Invariant: below 100, or time could stand still.
SLEW_PERCENT = 2

# A long pause between two looks (nobody asked for the time) must not turn a correction into a jump.
SLEW_NANOSECONDS_MAX = 1_000 * NANOSECONDS_PER_MS * SLEW_PERCENT // 100

# From here on a difference is not drift: somebody set the clock, and an operator should know.
STEP_NANOSECONDS = 60_000 * NANOSECONDS_PER_MS

assert 0 < SLEW_PERCENT < 100


class Clock(Protocol):
    """Where time comes from; the system's in production, a virtual one in tests and simulation."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, never less than the answer before."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment, for measuring how long something took."""
        ...


def _elapsed_ns_reader() -> Callable[[], int]:
    """The steadiest counter of elapsed time the system has.

    `CLOCK_BOOTTIME` also counts while the machine sleeps. With the plain monotonic clock a laptop
    that slept for eight hours would be eight hours behind, and slewing would take weeks.
    """
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    if boottime is None:
        return time.monotonic_ns
    return partial(time.clock_gettime_ns, boottime)


class SystemClock:
    """The wall clock, followed smoothly. One per process; not for use from several threads."""

    def __init__(
        self,
        *,
        wall_ns: Callable[[], int] = time.time_ns,
        elapsed_ns: Callable[[], int] | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> None:
        self._wall_ns = wall_ns
        self._elapsed_ns = elapsed_ns if elapsed_ns is not None else _elapsed_ns_reader()
        self._on_step = on_step
        elapsed = self._elapsed_ns()
        self._checked_ns = elapsed
        self._offset_ns = wall_ns() - elapsed
        self._latest_ms = 0
        # Wall clock minus our clock, as last seen: what is still to be slewed.
        self._difference_ns = 0
        self._steps_count = 0
        self._step_ms = 0

    def now_ms(self) -> int:
        elapsed = self._elapsed_ns()
        if elapsed - self._checked_ns >= CHECK_NANOSECONDS:
            self._follow(elapsed)
        now = (elapsed + self._offset_ns) // NANOSECONDS_PER_MS
        # Invariant: time never goes back. A correction downwards takes two milliseconds of every
        # hundred, so for that moment the clock holds its last answer instead.
        if now < self._latest_ms:
            return self._latest_ms
        self._latest_ms = now
        return now

    def monotonic(self) -> float:
        return time.monotonic()

    def _follow(self, elapsed: int) -> None:
        passed = elapsed - self._checked_ns
        self._checked_ns = elapsed
        difference = self._wall_ns() - (elapsed + self._offset_ns)
        step = difference - self._difference_ns
        if abs(step) > STEP_NANOSECONDS:
            self._steps_count += 1
            self._step_ms = step // NANOSECONDS_PER_MS
            if self._on_step is not None:
                self._on_step(self._step_ms)
        allowed = min(passed * SLEW_PERCENT // 100, SLEW_NANOSECONDS_MAX)
        correction = max(-allowed, min(difference, allowed))
        self._offset_ns += correction
        self._difference_ns = difference - correction

    def statistics(self) -> dict[str, int]:
        """How far the wall clock is ahead, and how often and how far it was last set."""
        return {
            "ahead_ms": self._difference_ns // NANOSECONDS_PER_MS,
            "steps_count": self._steps_count,
            "step_ms": self._step_ms,
        }


class TurnClock:
    """A clock that is read once per turn of the loop.

    Cost: `SystemClock.now_ms` takes 0.4 µs and a fetch asks three times. Within one turn the loop's
    own time stands still, and so may this; a turn lasts about a millisecond under full load.
    """

    __slots__ = ("_clock", "_now_ms", "_tick", "_ticked")

    def __init__(self, clock: Clock, tick: Callable[[], float]) -> None:
        self._clock = clock
        self._tick = tick
        self._ticked = -1.0
        self._now_ms = 0

    def now_ms(self) -> int:
        ticked = self._tick()
        if ticked != self._ticked:
            self._ticked = ticked
            self._now_ms = self._clock.now_ms()
        return self._now_ms

    def monotonic(self) -> float:
        return self._clock.monotonic()


class VirtualClock:
    """Time that moves only when told, for tests and simulation."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = now_ms
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return (self._now_ms - self._start_ms) / 1_000

    def advance(self, ms: int) -> int:
        """Move time forward and return the new moment."""
        assert ms >= 0, "time never goes back"
        self._now_ms += ms
        return self._now_ms

    def advance_to(self, at_ms: int) -> int:
        """Move time forward to a moment that is not in the past."""
        return self.advance(at_ms - self._now_ms)
