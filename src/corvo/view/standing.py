"""What the core knows about the view: how far it is, who waits for it, what it is doing."""

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

from corvo.runtime.clock import Clock
from corvo.view.messages import Progress

WAITERS_MAX: Final = 4_096
BEHIND_S: Final = 5.0  # a view that has not been level with the server for this long is behind

OFF, DOWN, BEHIND, OK = "off", "down", "behind", "ok"


class Standing:
    """Shared by the sender, which writes it, and the client, which reads it."""

    def __init__(self, clock: Clock, index: Callable[[], int]) -> None:
        self._clock = clock
        self._index = index
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._tickets = 0
        self._rebuild_reason = ""
        self._level_s = clock.monotonic()
        self._events_before = 0
        self._events = 0
        self.position = 0
        # The last index whose events the view needs no more. It outlives the process: the next one
        # takes up the file where this one left it. 0 until the first one spoke: all are kept.
        self.needed_index = 0
        self.progress = Progress("", "none")
        self.restarts = 0
        self.pid = 0  # of the process that runs now
        self.is_connected = False
        self._has_served = False
        self._is_heard = False  # a process that started may still have to find its file
        self.on_wait: Callable[[], None] | None = None

    # --- told by the sender ---------------------------------------------------------------------

    def note_position(self, position: int, events: int, block_position: int) -> None:
        """The view has committed everything up to an index."""
        self.position = position
        self.note_needed(block_position)
        self._is_heard = True
        self._has_served = True
        self._events = events
        if position >= self._index():
            self._level_s = self._clock.monotonic()
        while self._waiters and self._waiters[0][0] <= position:
            future = heappop(self._waiters)[2]
            if not future.done():
                future.set_result(None)

    def note_needed(self, block_position: int) -> None:
        """The view stands after a block; the block itself is kept, for it names the place."""
        self.needed_index = max(0, block_position - 1)

    def note_progress(self, progress: Progress) -> None:
        """A rebuild got on."""
        self.progress = progress

    def note_connected(self, *, is_connected: bool) -> None:
        """The process came or went."""
        self.is_connected = is_connected
        self._is_heard = False
        if is_connected:
            self.restarts += 1
            # Not known before its first word: its file may be gone.
            self.position = 0
            self._events_before += self._events
            self._events = 0
            self._level_s = self._clock.monotonic()

    def take_served(self) -> bool:
        """Whether the view asked for events since this was asked last."""
        has_served, self._has_served = self._has_served, False
        return has_served

    # --- waiting --------------------------------------------------------------------------------

    @property
    def has_waiters(self) -> bool:
        return bool(self._waiters)

    async def wait_for(self, position: int, seconds: float) -> bool:
        """Wait until the view has reached an index; False when it took too long."""
        if position <= self.position:
            return True
        if len(self._waiters) >= WAITERS_MAX:
            return False
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tickets += 1
        entry = (position, self._tickets, future)
        heappush(self._waiters, entry)
        if self.on_wait is not None:
            self.on_wait()
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            return False
        finally:
            if not future.done() or future.cancelled():
                self._waiters = [each for each in self._waiters if each is not entry]
                self._waiters.sort()
        return True

    # --- rebuilding -----------------------------------------------------------------------------

    def want_rebuild(self, reason: str) -> None:
        """Have the view built anew at the next opportunity."""
        self._rebuild_reason = reason
        self.progress = Progress(reason, "waiting", 0, self.progress.rebuilds)
        if self.on_wait is not None:
            self.on_wait()

    @property
    def wants_rebuild(self) -> bool:
        return bool(self._rebuild_reason)

    def take_rebuild(self) -> str:
        """Return the wish, once."""
        reason, self._rebuild_reason = self._rebuild_reason, ""
        return reason

    # --- reporting ------------------------------------------------------------------------------

    @property
    def is_rebuilding(self) -> bool:
        return self.progress.step not in ("none", "done")

    @property
    def state(self) -> str:
        """One of down, behind, ok."""
        if not self._is_heard:
            return DOWN
        is_level = self.position >= self._index()
        if is_level or self._clock.monotonic() - self._level_s < BEHIND_S:
            return OK
        return BEHIND

    @property
    def lag(self) -> int:
        """Entries the view has not applied."""
        return max(0, self._index() - self.position)

    def statistics(self) -> dict[str, Any]:
        """Figures for `/cluster/status`."""
        return {
            "state": self.state,
            "index": self.position,
            "lag": self.lag,
            "events_applied": self._events_before + self._events,
            "starts": self.restarts,
            "pid": self.pid or None,
            "waiting_reads": len(self._waiters),
            "rebuild": self.rebuild_members(),
        }

    def rebuild_members(self) -> dict[str, Any]:
        """How far the last rebuild is."""
        progress = self.progress
        return {
            "status": "running" if self.is_rebuilding else "done" if progress.reason else "none",
            "step": progress.step if self.is_rebuilding else None,
            "reason": progress.reason or None,
            "done": progress.done,
            "rebuilds": progress.rebuilds,
        }
