"""The port to a key-value store: ordered bytes, atomic batches. RocksDB and memory implement it."""

from typing import Protocol


class Reader(Protocol):
    """Point and range reads of committed state."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value, or None."""
        ...

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Return the values in the order of the keys."""
        ...

    def scan(self, start: bytes, until: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` pairs with start <= key < until, ascending."""
        ...


class Store(Reader, Protocol):
    """A reader that also takes atomic batches and can make them durable."""

    def write(
        self,
        writes: list[tuple[bytes, bytes | None]],
        cleared: list[tuple[bytes, bytes]] = ...,
    ) -> None:
        """Apply all or nothing: first remove the cleared ranges, then put (None deletes)."""
        ...

    def flush(self) -> None:
        """Make everything written so far durable. Blocking; may be called from a thread."""
        ...

    def checkpoint(self, directory: str) -> None:
        """Write a consistent copy of the store into a directory that does not exist yet."""
        ...

    def open_copy(self, directory: str) -> "Store":
        """Open a copy that `checkpoint` wrote, for reading. Blocking."""
        ...

    def compact(self, start: bytes, until: bytes) -> None:
        """Drop what deletions left behind in a range. Blocking; may be called from a thread."""
        ...

    def statistics(self) -> dict[str, int]:
        """Return sizes and stall figures."""
        ...

    def close(self) -> None:
        """Release files and locks."""
        ...
