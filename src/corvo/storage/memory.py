"""The store in memory: a dictionary with its keys kept in order, for tests and simulation.

It keeps the same promises as the one on disk as far as memory can: batches are atomic, scans are
ordered, a closed store refuses. `copy` and `flushed` let a test look at the state of a moment, and
at what a crash would leave.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from pathlib import Path

import msgspec

from corvo.check import corrupt
from corvo.errors import StorageError

# Format: a checkpoint is one MessagePack file, an array of [key, value] in key order.
CHECKPOINT_NAME = "memory.msgpack"

# Up to here fresh keys are inserted one by one; beyond, sorting once is cheaper.
_INSERTS_MAX = 32

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[tuple[bytes, bytes]])


class MemoryStore:
    """A store that lives as long as the object."""

    def __init__(self, pairs: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self._values: dict[bytes, bytes] = dict(pairs)
        # Invariant: `_keys` is sorted; it and `_fresh` are disjoint, and together they are exactly
        # the keys of `_values`. Keys are sorted only when somebody scans.
        self._keys: list[bytes] = sorted(self._values)
        self._fresh: set[bytes] = set()
        self._flushed: dict[bytes, bytes] = dict(self._values)
        self._is_closed = False
        self._flushes_count = 0

    def get(self, key: bytes) -> bytes | None:
        self._check_open()
        return self._values.get(key)

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        self._check_open()
        return [self._values.get(key) for key in keys]

    def scan(self, start: bytes, until: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first `limit` pairs with start <= key < until, ascending."""
        self._check_open()
        if start >= until or limit <= 0:
            return []
        keys = self._sorted_keys()
        first = bisect_left(keys, start)
        final = min(bisect_left(keys, until, first), first + limit)
        values = self._values
        return [(key, values[key]) for key in keys[first:final]]

    def write(
        self,
        writes: Sequence[tuple[bytes, bytes | None]],
        cleared: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Remove the cleared ranges, then put each value or delete where it is None."""
        self._check_open()
        for start, until in cleared:
            self._clear(start, until)
        values = self._values
        for key, value in writes:
            # RocksDB refuses what is not bytes; a test here must not pass on the wrong thing.
            assert type(key) is bytes
            if value is None:
                self._delete(key)
            else:
                assert type(value) is bytes
                if key not in values:
                    self._fresh.add(key)
                values[key] = value

    def _delete(self, key: bytes) -> None:
        if self._values.pop(key, None) is None:
            return
        if key in self._fresh:
            self._fresh.remove(key)
        else:
            del self._keys[bisect_left(self._keys, key)]

    def _clear(self, start: bytes, until: bytes) -> None:
        if start >= until:
            return
        keys = self._sorted_keys()
        first, final = bisect_left(keys, start), bisect_left(keys, until)
        for key in keys[first:final]:
            del self._values[key]
        del keys[first:final]

    def _sorted_keys(self) -> list[bytes]:
        if self._fresh:
            if len(self._fresh) <= _INSERTS_MAX:
                for key in self._fresh:
                    insort(self._keys, key)
            else:
                # The list is one long run and the fresh keys are appended: a merge, not a sort.
                self._keys += sorted(self._fresh)
                self._keys.sort()
            self._fresh.clear()
        return self._keys

    def flush(self) -> None:
        """Remember this moment as the one a crash falls back to. Costs a copy of the dictionary."""
        self._check_open()
        self._flushed = dict(self._values)
        self._flushes_count += 1

    def checkpoint(self, directory: str) -> None:
        """Write a copy into a directory that must not exist."""
        self.flush()
        path = Path(directory)
        try:
            path.mkdir()
            (path / CHECKPOINT_NAME).write_bytes(_encoder.encode(self.pairs()))
        except OSError as failure:
            raise StorageError(f"cannot copy the store to {directory}: {failure}") from failure

    @classmethod
    def load(cls, directory: str) -> "MemoryStore":
        """Open a copy that `checkpoint` wrote."""
        try:
            content = Path(directory, CHECKPOINT_NAME).read_bytes()
        except OSError as failure:
            raise StorageError(f"cannot open the copy in {directory}: {failure}") from failure
        try:
            return cls(_decoder.decode(content))
        except msgspec.DecodeError as failure:
            corrupt(f"the copy in {directory} cannot be read: {failure}")

    def open_copy(self, directory: str) -> "MemoryStore":
        """Open a copy that `checkpoint` wrote."""
        return MemoryStore.load(directory)

    def compact(self, start: bytes, until: bytes) -> None:
        """Nothing to do: memory keeps no tombstones."""
        self._check_open()
        assert start <= until

    def statistics(self) -> dict[str, int]:
        """The figures that have a meaning here, under the names of the store on disk."""
        self._check_open()
        return {
            "delayed_write_rate": 0,
            "is_write_stopped": 0,
            "memtable_bytes": 0,
            "sst_bytes": 0,
            "pending_compaction_bytes": 0,
            "keys_estimate_count": len(self._values),
            "flushes_count": self._flushes_count,
        }

    def close(self) -> None:
        """Refuse everything from now on, except to be copied. May be called again."""
        self._flushed = dict(self._values)
        self._is_closed = True

    def pairs(self) -> list[tuple[bytes, bytes]]:
        """Everything, in key order."""
        return [(key, self._values[key]) for key in self._sorted_keys()]

    def copy(self) -> "MemoryStore":
        """An open store with the same content, independent from now on."""
        return MemoryStore(self.pairs())

    def flushed(self) -> "MemoryStore":
        """An open store as a crash at this moment would leave it: at the last flush."""
        return MemoryStore(sorted(self._flushed.items()))

    def _check_open(self) -> None:
        if self._is_closed:
            raise StorageError("the store is closed")
