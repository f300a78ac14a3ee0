"""The validator: a ring of the last (index, checksum) pairs, against which copies are compared."""

from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec

RING_COUNT: Final = 512


class Mismatch(msgspec.Struct, frozen=True):
    """Two copies of one entry differ; the node that finds this must stop."""

    index: int
    expected_crc: int
    actual_crc: int

    def render(self) -> str:
        """One sentence for an operator."""
        return (
            f"entry {self.index} differs from the copy that was logged:"
            f" checksum {self.actual_crc:08x} instead of {self.expected_crc:08x}"
        )


class Validator:
    """Remembers the checksums of the last entries of the log.

    Invariant: the indexes in the ring are contiguous, so an entry is found by its distance from the
    last one. An index outside the ring is not judged.
    """

    def __init__(self, *, size: int = RING_COUNT) -> None:
        assert size > 0
        self._checksums: deque[int] = deque(maxlen=size)
        self._last_index = 0
        self.mismatches_count = 0

    def seed(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Start over from the tail of a log."""
        self._checksums.clear()
        for index, checksum in pairs:
            self.note(index, checksum)

    def note(self, index: int, checksum: int) -> None:
        """Remember an appended entry; one at a known index replaces it and all after it."""
        distance = index - self._last_index
        if distance != 1:
            if distance > 1 or index <= self._last_index - len(self._checksums):
                self._checksums.clear()
            for _ in range(min(1 - distance, len(self._checksums))):
                self._checksums.pop()
        self._checksums.append(checksum)
        self._last_index = index

    def check(self, index: int, checksum: int) -> Mismatch | None:
        """Compare a copy of an entry; None if it agrees or is too old to be known."""
        place = len(self._checksums) - 1 - (self._last_index - index)
        if not 0 <= place < len(self._checksums):
            return None
        expected = self._checksums[place]
        if expected == checksum:
            return None
        self.mismatches_count += 1
        return Mismatch(index, expected, checksum)

    def tail(self, count: int) -> list[tuple[int, int]]:
        """Return the last `count` pairs, oldest first."""
        first = self._last_index - len(self._checksums) + 1
        pairs = [(first + place, crc) for place, crc in enumerate(self._checksums)]
        return pairs[-count:] if count > 0 else []
