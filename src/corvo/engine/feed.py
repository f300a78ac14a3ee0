"""Recent events in memory, older ones from the store: consumers pull, nothing is queued for them.

A consumer (view, event stream, webhooks) asks for what follows an index and gets a slice. The ring
answers those that keep up without touching the store; whoever falls behind the ring is answered
from the store in slices of the same shape. A slow consumer therefore costs nothing but its own
time.
"""

from bisect import bisect_right
from collections.abc import Callable

from corvo.model.event import EventBlock

BLOCKS_MAX = 4_096
EVENTS_MAX = 65_536
# Bytes an event takes on the wire, as a rule; exact sizes would need the encoding done twice.
EVENT_BYTES = 96
STORE_BLOCKS_MAX = 512
STORE_BLOCKS_STEP = 8

Slice = list[tuple[int, EventBlock]]


def _first(item: tuple[int, EventBlock]) -> int:
    return item[0]


def _first_seq(item: tuple[int, EventBlock]) -> int:
    return item[1].first_seq


class Feed:
    """A ring of (index, block), and the store behind it."""

    __slots__ = ("_blocks", "_events_count", "_floor", "_load")

    def __init__(self, applied_index: int, load: Callable[[int, int], Slice]) -> None:
        self._load = load
        self._blocks: Slice = []
        self._events_count = 0
        # Invariant: the ring holds every block with an index above the floor.
        self._floor = applied_index

    def append(self, index: int, block: EventBlock) -> None:
        """Take the events of the entry that was just applied."""
        blocks = self._blocks
        blocks.append((index, block))
        self._events_count += len(block.events)
        # Cost: trimming half at a time makes the list's copying constant per block.
        if len(blocks) > BLOCKS_MAX or self._events_count > EVENTS_MAX:
            self._trim()

    def _trim(self) -> None:
        blocks = self._blocks
        cut = (len(blocks) + 1) // 2
        self._floor = blocks[cut - 1][0]
        self._events_count -= sum(len(block.events) for _, block in blocks[:cut])
        del blocks[:cut]

    def read(self, after_index: int, max_bytes: int) -> Slice:
        """Return blocks that follow an index, in order, about as many as fit; never half a block.

        The first block is returned whatever its size, so that a consumer always gets on.
        """
        if after_index < self._floor:
            return self._from_store(after_index, max_bytes)
        start = bisect_right(self._blocks, after_index, key=_first)
        return _fitting(self._blocks, start, max_bytes)

    @property
    def floor(self) -> int:
        """The index after which every block is in memory."""
        return self._floor

    def locate(self, seq: int, floor_index: int) -> int:
        """Return the index after which the block with the event that follows `seq` comes first.

        `floor_index` is the first index whose events are kept. Without such an event, what is
        returned leads to the last block or to none. Cost: a bisection of the ring, or about thirty
        reads of one block each from the store.
        """
        wanted = seq + 1
        blocks = self._blocks
        if blocks and blocks[0][1].first_seq <= wanted:
            return blocks[bisect_right(blocks, wanted, key=_first_seq) - 1][0] - 1
        start, final = floor_index - 1, self._floor
        while start < final:
            middle = (start + final + 1) // 2
            found = self._load(middle, 1)
            if found and found[0][1].first_seq <= wanted:
                start = max(middle, found[0][0] - 1)
            else:
                final = middle - 1
        return start

    def locate_time(self, at_ms: int, floor_index: int, last_index: int) -> int:
        """Return the index after which the first block at or after an instant comes first."""
        start, final = floor_index - 1, last_index
        while start < final:
            middle = (start + final + 1) // 2
            found = self._load(middle - 1, 1)
            if found and found[0][1].at_ms < at_ms:
                start = found[0][0]
            else:
                final = middle - 1
        return start

    def _from_store(self, after_index: int, max_bytes: int) -> Slice:
        # Cost: a few blocks at a time. Decoding all that might be asked for, to give a part of it
        # away, would hold up the loop for as long as a consumer is behind.
        taken: Slice = []
        left = max_bytes
        while len(taken) < STORE_BLOCKS_MAX:
            found = self._load(after_index, STORE_BLOCKS_STEP)
            for item in found:
                left -= len(item[1].events) * EVENT_BYTES
                if left < 0 and taken:
                    return taken
                taken.append(item)
            if len(found) < STORE_BLOCKS_STEP:
                break
            after_index = found[-1][0]
        return taken

    def statistics(self) -> dict[str, int]:
        return {
            "blocks_count": len(self._blocks),
            "events_count": self._events_count,
            "floor_index": self._floor,
        }


def _fitting(blocks: Slice, start: int, max_bytes: int) -> Slice:
    taken: Slice = []
    left = max_bytes
    for position in range(start, len(blocks)):
        item = blocks[position]
        left -= len(item[1].events) * EVENT_BYTES
        if left < 0 and taken:
            break
        taken.append(item)
    return taken
