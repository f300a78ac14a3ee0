"""When to look again: at the interval one asked for, later when looking is dear or in vain."""

import asyncio

from msgspec import Struct

# A look may take this share of the time between two looks. Cost: listing ten thousand queues keeps
# the server's loop busy for the better part of a second; asked every other second, `top` would be
# the load it shows.
BUSY_SHARE = 0.05
LIGHT_S = 0.25  # a look this short is no burden, whatever the interval
STRETCH_S_MAX = 20.0  # however dear: whoever watches wants to know when the server is gone
INTERVAL_S_MIN, INTERVAL_S_MAX = 0.2, 60.0
FIRST_RETRY_S, LAST_RETRY_S = 0.5, 5.0


class Pace:
    """Decides how long to wait between two looks, and waits; may be woken."""

    def __init__(self, interval_s: float) -> None:
        self.interval_s = min(max(interval_s, INTERVAL_S_MIN), INTERVAL_S_MAX)
        self.failures_count = 0
        self._took_before_s = 0.0
        self._woken = asyncio.Event()

    def delay_s(self, took_s: float) -> float:
        """The time until the next look, after one that took so long."""
        if self.failures_count:
            doubled = FIRST_RETRY_S * 2 ** min(self.failures_count - 1, 8)
            return min(doubled, LAST_RETRY_S)
        # One slow look is a hiccup of either side; two in a row are what looking costs.
        cost_s, self._took_before_s = min(took_s, self._took_before_s), took_s
        if cost_s <= LIGHT_S:
            return self.interval_s
        return max(self.interval_s, min(cost_s / BUSY_SHARE, STRETCH_S_MAX))

    def succeed(self) -> None:
        self.failures_count = 0

    def fail(self) -> None:
        self.failures_count += 1

    def wake(self) -> None:
        """Look again at once."""
        self._woken.set()

    async def wait(self, took_s: float) -> None:
        """Return when it is time to look again, or when woken."""
        try:
            async with asyncio.timeout(self.delay_s(took_s)):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()


class Link(Struct):
    """Whether the server answers, since when it does not, and what was heard last."""

    is_up: bool = False
    has_answered: bool = False
    down_since_s: float | None = None
    complaint: str = ""

    def answered(self) -> None:
        self.is_up = self.has_answered = True
        self.down_since_s = None
        self.complaint = ""

    def failed(self, complaint: str, now_s: float) -> None:
        self.is_up = False
        if self.down_since_s is None:
            self.down_since_s = now_s
        self.complaint = complaint
