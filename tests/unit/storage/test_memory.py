"""What the store in memory offers beyond the port: moments to look at."""

from pathlib import Path

import pytest

from corvo.errors import CorruptionError, StorageError
from corvo.storage.memory import CHECKPOINT_NAME, MemoryStore


def test_copy_is_independent() -> None:
    """Two stores that were one go their own ways."""
    store = MemoryStore([(b"a", b"1")])
    copy = store.copy()
    store.write([(b"a", b"2")])
    copy.write([(b"b", b"3")])
    assert store.pairs() == [(b"a", b"2")]
    assert copy.pairs() == [(b"a", b"1"), (b"b", b"3")]


def test_crash_falls_back_to_the_last_flush() -> None:
    """What was written after the flush is gone; what was written before is there."""
    store = MemoryStore()
    store.write([(b"a", b"1")])
    store.flush()
    store.write([(b"a", b"2"), (b"b", b"2")])
    assert store.flushed().pairs() == [(b"a", b"1")]
    store.close()
    assert store.flushed().pairs() == [(b"a", b"2"), (b"b", b"2")]


def test_many_fresh_keys_are_sorted_like_few() -> None:
    """The order does not depend on how many keys arrived between two scans."""
    store = MemoryStore()
    numbers = [(number * 7919) % 1_000 for number in range(1_000)]
    for number in numbers:
        store.write([(b"%04d" % number, b"")])
        if number % 100 == 0:
            store.scan(b"", b"\xff", 1)
    store.write([(b"%04d" % number, None) for number in range(0, 1_000, 2)])
    assert [key for key, _ in store.pairs()] == [b"%04d" % number for number in range(1, 1_000, 2)]


def test_damaged_copy_is_refused(tmp_path: Path) -> None:
    """A copy that cannot be read is corruption; a copy that is not there is a storage error."""
    (tmp_path / CHECKPOINT_NAME).write_bytes(b"\x93not a list of pairs")
    with pytest.raises(CorruptionError):
        MemoryStore.load(str(tmp_path))
    with pytest.raises(StorageError):
        MemoryStore.load(str(tmp_path / "absent"))
