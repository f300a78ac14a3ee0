"""Time-outs of many waiters on one timer of the loop.

Cost: a timer per waiter would put twenty thousand entries into the loop's heap and leave a dead one
behind for each waiter that is served early. Here a waiter enters and leaves in constant time, and
the loop sleeps until the next slot that holds anybody.
"""

import asyncio
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

SLOT_MS = 32  # a time-out is late by at most this much

Item = TypeVar("Item", bound=Hashable)


class Wheel(Generic[Item]):
    """Slots of time, each holding the items that run out in it."""

    __slots__ = ("_handle", "_handle_slot", "_loop", "_on_due", "_order", "_slots")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_due: Callable[[Item], None]) -> None:
        self._loop = loop
        self._on_due = on_due
        self._slots: dict[int, dict[Item, None]] = {}
        self._order: list[int] = []  # heap of the keys of `_slots`
        self._handle: asyncio.TimerHandle | None = None
        self._handle_slot = 0

    def slot_after(self, delay_ms: int) -> int:
        """Name the slot that ends no earlier than the delay from now."""
        return (int(self._loop.time() * 1000) + delay_ms) // SLOT_MS + 1

    def add(self, slot: int, item: Item) -> None:
        """Call back for the item when the slot is reached."""
        items = self._slots.get(slot)
        if items is None:
            items = self._slots[slot] = {}
            heappush(self._order, slot)
            if self._handle is None or slot < self._handle_slot:
                self._arm(slot)
        items[item] = None

    def remove(self, slot: int, item: Item) -> None:
        """Forget the item; its empty slot stays until it is reached."""
        items = self._slots.get(slot)
        if items is not None:
            items.pop(item, None)

    def is_past(self, slot: int) -> bool:
        """Whether a slot has been reached."""
        return self._loop.time() * 1000 >= slot * SLOT_MS

    def close(self) -> None:
        """Forget everything and never call back again."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._slots.clear()
        self._order.clear()

    def _arm(self, slot: int) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle_slot = slot
        self._handle = self._loop.call_at(slot * SLOT_MS / 1000, self._fire)

    def _fire(self) -> None:
        self._handle = None
        due: list[Item] = []
        while self._order and self.is_past(self._order[0]):
            due.extend(self._slots.pop(heappop(self._order)))
        if self._order:
            self._arm(self._order[0])
        for item in due:
            self._on_due(item)
