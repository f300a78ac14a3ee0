"""How much of the core the view may take: what it needs, but little of a core that is busy.

The view may lag while the server is saturated and catches up afterwards; writers must not wait for
it. So while others keep the core busy, the sender rests many times as long as each slice took.
"""

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Final

BUSY_SHARE: Final = 0.7  # of one core, by everybody but the sender: from here on it holds back
REST_FACTOR: Final = 16  # so the sender takes a seventeenth of the time at most
REST_S_MAX: Final = 2.0
WINDOW_S: Final = 0.1  # shorter spans tell too little


class Pacing:
    """Counts what the sender takes and what the whole process takes."""

    def __init__(
        self, wall: Callable[[], float] = perf_counter, busy: Callable[[], float] = process_time
    ) -> None:
        self._wall = wall
        self._busy = busy
        self._since_s = wall()
        self._busy_s = busy()
        self._own_s = 0.0  # in the window
        self._slice_s = 0.0  # since the last rest
        self._is_busy = False

    def count(self, began_s: float) -> None:
        """Note that the sender had the loop from a moment until now."""
        took_s = self._wall() - began_s
        self._own_s += took_s
        self._slice_s += took_s

    def now(self) -> float:
        return self._wall()

    def rest_s(self) -> float:
        """How long to rest after a slice; nothing while the core has time to spare."""
        now_s, busy_s = self._wall(), self._busy()
        span_s = now_s - self._since_s
        if span_s >= WINDOW_S:
            others_s = busy_s - self._busy_s - self._own_s
            self._is_busy = others_s >= BUSY_SHARE * span_s
            self._since_s, self._busy_s, self._own_s = now_s, busy_s, 0.0
        took_s, self._slice_s = self._slice_s, 0.0
        return min(REST_S_MAX, took_s * REST_FACTOR) if self._is_busy else 0.0
