"""Windows over ordered indexes: the near end of an index in memory, the rest in the store.

A seek over consumed keys is slow (every deletion leaves a mark the store has to step over), so the
machine never rescans what it has consumed. Two shapes serve all its needs:

- `Window`: all live keys up to `high`, sorted; pops come from it, an insert below `high` goes into
  it, a refill reads on from `high`. For indexes that are consumed at full speed.
- `Ordered`: only a low-water mark: nothing live lies below it. For indexes a sweep visits.

Both are caches. Dropping one and building it anew from the store gives the same answers.
"""

from bisect import bisect_left, insort
from typing import Protocol

from corvo.model import limits


class Scanner(Protocol):
    """What a window reads from: the store with the writes of the current entry on top."""

    def scan(self, start: bytes, until: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` live pairs with start <= key < until, ascending."""
        ...


class Window:
    """The near end of an ordered index. Invariant: every live key <= high is in items[head:]."""

    __slots__ = ("complete", "head", "high", "items", "prefix", "until")

    def __init__(self, prefix: bytes, until: bytes, *, complete: bool = False) -> None:
        self.prefix = prefix
        self.until = until
        self.items: list[bytes] = []
        self.head = 0
        self.high = prefix  # exclusive of nothing: no live key is smaller than the prefix
        self.complete = complete  # items hold every live key

    def first(self, scanner: Scanner) -> bytes | None:
        """Return the smallest live key, or None."""
        if self.head < len(self.items):
            return self.items[self.head]
        if self.complete:
            return None
        self._refill(scanner)
        return self.items[0] if self.items else None

    def second(self, scanner: Scanner) -> bytes | None:
        """Return the key after the first, or None."""
        if self.first(scanner) is None:
            return None
        if self.head + 1 >= len(self.items) and not self.complete:
            kept = self.items[self.head]
            self._refill(scanner)
            self.items.insert(0, kept)
        return self.items[self.head + 1] if self.head + 1 < len(self.items) else None

    def pop(self) -> None:
        """Forget the first key; the caller deletes it from the index."""
        self.head += 1
        if self.head >= 1024:
            del self.items[: self.head]
            self.head = 0

    def insert(self, key: bytes) -> None:
        """Take note of a key put into the index."""
        items = self.items
        if self.complete:
            if not items or key > items[-1]:
                if len(items) - self.head < limits.WINDOW_ITEMS_MAX:
                    items.append(key)
                    return
                # The far end is left to the store from here on.
                self.complete = False
                self.high = items[-1]
                return
            insort(items, key, self.head)
        elif key <= self.high:
            insort(items, key, self.head)

    def remove(self, key: bytes) -> None:
        """Take note of a key deleted from the index."""
        position = bisect_left(self.items, key, self.head)
        if position < len(self.items) and self.items[position] == key:
            if position == self.head:
                self.pop()
            else:
                del self.items[position]

    def _refill(self, scanner: Scanner) -> None:
        start = self.high if self.high == self.prefix else self.high + b"\x00"
        found = scanner.scan(start, self.until, limits.WINDOW_ITEMS)
        self.items = [key for key, _ in found]
        self.head = 0
        self.complete = len(found) < limits.WINDOW_ITEMS
        if found:
            self.high = self.items[-1]


class Ordered:
    """The low end of an ordered index. Invariant: no live key is smaller than `low`."""

    __slots__ = ("low", "prefix", "until")

    def __init__(self, prefix: bytes, until: bytes) -> None:
        self.prefix = prefix
        self.until = until
        self.low = prefix

    def added(self, key: bytes) -> None:
        """Take note of a key put into the index."""
        self.low = min(self.low, key)

    def first(self, scanner: Scanner, limit: int) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` pairs from the low end."""
        found = scanner.scan(self.low, self.until, limit)
        self.low = found[0][0] if found else self.until
        return found
