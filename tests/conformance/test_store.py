"""What every adapter of the key-value port promises, on disk and in memory alike."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.errors import StorageError
from corvo.storage.checkpoint import remove_partial, save_checkpoint
from corvo.storage.memory import MemoryStore
from corvo.storage.rocks import RocksStore


class Store(Protocol):
    """The port, as the machine states it."""

    def get(self, key: bytes) -> bytes | None: ...
    def get_many(self, keys: list[bytes]) -> list[bytes | None]: ...
    def scan(self, start: bytes, until: bytes, limit: int) -> list[tuple[bytes, bytes]]: ...
    def write(
        self,
        writes: list[tuple[bytes, bytes | None]],
        cleared: Sequence[tuple[bytes, bytes]] = ...,
    ) -> None: ...
    def flush(self) -> None: ...
    def checkpoint(self, directory: str) -> None: ...
    def compact(self, start: bytes, until: bytes) -> None: ...
    def statistics(self) -> dict[str, int]: ...
    def close(self) -> None: ...


@contextlib.contextmanager
def memory_store() -> Iterator[Store]:
    yield MemoryStore()


@contextlib.contextmanager
def rocks_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder:
        store = RocksStore(f"{folder}/store")
        try:
            yield store
        finally:
            store.close()


Opener = Callable[[], contextlib.AbstractContextManager[Store]]
OPENERS: dict[str, Opener] = {"memory": memory_store, "rocks": rocks_store}
REOPENERS: dict[str, Callable[[str], Store]] = {"memory": MemoryStore.load, "rocks": RocksStore}
LAST = b"\xff" * 8


@pytest.fixture(params=sorted(OPENERS))
def adapter(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def store(adapter: str) -> Iterator[Store]:
    with OPENERS[adapter]() as opened:
        yield opened


def test_written_value_is_read_and_absent_key_is_none(store: Store) -> None:
    """A key has the value last written, an empty value is a value, and no value is None."""
    store.write([(b"a", b"1"), (b"b", b""), (b"a", b"2")])
    assert store.get(b"a") == b"2"
    assert store.get(b"b") == b""
    assert store.get(b"c") is None


def test_get_many_answers_in_the_order_asked(store: Store) -> None:
    """Answers stand at the place of their key, repeated and absent ones included."""
    store.write([(b"a", b"1"), (b"b", b"2")])
    assert store.get_many([b"b", b"x", b"a", b"b"]) == [b"2", None, b"1", b"2"]
    assert store.get_many([]) == []


def test_scan_is_half_open_ascending_and_limited(store: Store) -> None:
    """The start belongs to the range and the end does not; bytes sort as unsigned numbers."""
    keys = [b"a", b"a\x00", b"a\x7f", b"a\xff", b"b"]
    store.write([(key, key) for key in reversed(keys)])
    assert [key for key, _ in store.scan(b"a", b"b", 10)] == keys[:4]
    assert [key for key, _ in store.scan(b"a\x00", LAST, 2)] == keys[1:3]
    assert store.scan(b"", LAST, 10) == [(key, key) for key in keys]


def test_scan_of_nothing_is_empty(store: Store) -> None:
    """An empty, reversed or unlimited-by-zero range yields nothing and is no error."""
    store.write([(b"a", b"1")])
    assert store.scan(b"b", b"c", 10) == []
    assert store.scan(b"b", b"a", 10) == []
    assert store.scan(b"a", b"a", 10) == []
    assert store.scan(b"a", b"b", 0) == []


def test_none_deletes_and_the_last_word_on_a_key_counts(store: Store) -> None:
    """Within one batch a later write of a key replaces an earlier one, deletions included."""
    store.write([(b"a", b"1"), (b"b", b"1")])
    store.write([(b"a", None), (b"a", b"2"), (b"b", b"2"), (b"b", None), (b"c", None)])
    assert store.scan(b"", LAST, 10) == [(b"a", b"2")]


def test_cleared_ranges_go_before_the_writes_of_their_batch(store: Store) -> None:
    """A batch can empty a range and fill it anew; what lies outside the range stays."""
    store.write([(b"q1", b"1"), (b"q2", b"2"), (b"r", b"3")])
    store.write([(b"q2", b"new")], [(b"q", b"r"), (b"z", b"z")])
    assert store.scan(b"", LAST, 10) == [(b"q2", b"new"), (b"r", b"3")]


def test_content_is_the_same_after_flush_and_compaction(store: Store) -> None:
    """Moving data to disk and dropping tombstones changes no answer."""
    store.write([(b"k%04d" % number, b"v" * 50) for number in range(500)])
    store.flush()
    store.write([(b"k%04d" % number, None) for number in range(400)])
    store.flush()
    store.compact(b"k", b"l")
    assert [key for key, _ in store.scan(b"", LAST, 1_000)] == [
        b"k%04d" % n for n in range(400, 500)
    ]
    assert store.get(b"k0000") is None


def test_checkpoint_holds_the_moment_it_was_taken(
    store: Store, adapter: str, tmp_path: Path
) -> None:
    """Unflushed data is in the copy; what is written later is not, and neither harms the other."""
    store.write([(b"a", b"1"), (b"b", b"2")])
    directory = str(tmp_path / "copies" / "first")
    save_checkpoint(store, directory)
    store.write([(b"a", b"changed"), (b"c", b"3")])
    copy = REOPENERS[adapter](directory)
    assert copy.scan(b"", LAST, 10) == [(b"a", b"1"), (b"b", b"2")]
    copy.write([(b"a", b"of the copy")])
    copy.close()
    assert store.get(b"a") == b"changed"


def test_checkpoint_never_replaces_a_directory(store: Store, tmp_path: Path) -> None:
    """A copy that has its name is whole, and stays."""
    with pytest.raises(StorageError):
        save_checkpoint(store, str(tmp_path))
    with pytest.raises(StorageError):
        store.checkpoint(str(tmp_path))


def test_partial_copy_is_cleared_away(store: Store, tmp_path: Path) -> None:
    """What a crash left of a copy is removed at start, or replaced by the next copy."""
    (tmp_path / "first.partial").mkdir()
    (tmp_path / "first.partial" / "rest").write_bytes(b"x")
    assert remove_partial(str(tmp_path)) == ["first.partial"]
    (tmp_path / "first.partial").mkdir()
    save_checkpoint(store, str(tmp_path / "first"))
    assert [path.name for path in tmp_path.iterdir()] == ["first"]
    assert remove_partial(str(tmp_path / "absent")) == []


def test_closed_store_refuses_and_may_be_closed_again(store: Store) -> None:
    """After close every call is a StorageError, never a wrong answer."""
    store.close()
    store.close()
    calls: list[Callable[[], object]] = [
        lambda: store.get(b"a"),
        lambda: store.get_many([b"a"]),
        lambda: store.scan(b"a", b"b", 1),
        lambda: store.write([(b"a", b"1")]),
        store.flush,
        lambda: store.compact(b"a", b"b"),
        store.statistics,
    ]
    for call in calls:
        with pytest.raises(StorageError):
            call()


def test_statistics_name_what_admission_reads(store: Store) -> None:
    """Both adapters report the figures from which admission decides to slow down."""
    store.write([(b"a", b"1")])
    figures = store.statistics()
    for name in (
        "delayed_write_rate",
        "is_write_stopped",
        "memtable_bytes",
        "sst_bytes",
        "pending_compaction_bytes",
    ):
        assert figures[name] >= 0
    assert all(type(value) is int for value in figures.values())


# Short keys over a small alphabet, so that keys meet, nest and border on ranges.
keys = st.binary(min_size=1, max_size=3).map(lambda key: bytes(b"\x00ab\xff"[c & 3] for c in key))
values = st.binary(max_size=4)
steps = st.one_of(
    st.tuples(
        st.just("write"),
        st.lists(st.tuples(keys, st.none() | values), max_size=8),
        st.lists(st.tuples(keys, keys), max_size=2),
    ),
    st.tuples(st.just("scan"), st.tuples(keys, keys), st.integers(0, 6)),
    st.tuples(st.sampled_from(["flush", "compact"]), st.none(), st.none()),
)


def _expected_scan(
    model: dict[bytes, bytes], start: bytes, until: bytes
) -> list[tuple[bytes, bytes]]:
    return sorted((key, value) for key, value in model.items() if start <= key < until)


def _write_to_model(model: dict[bytes, bytes], writes: list, cleared: list) -> None:
    for start, until in cleared:
        for key, _ in _expected_scan(model, start, until):
            del model[key]
    for key, value in writes:
        if value is None:
            model.pop(key, None)
        else:
            model[key] = value


@settings(max_examples=60, deadline=None)
@given(script=st.lists(steps, max_size=25))
@pytest.mark.parametrize("name", sorted(OPENERS))
def test_store_agrees_with_a_dictionary(name: str, script: list) -> None:
    """Whatever is written, cleared, flushed and scanned, answers are those of a sorted dict."""
    model: dict[bytes, bytes] = {}
    with OPENERS[name]() as opened:
        for verb, first, second in script:
            if verb == "write":
                opened.write(first, second)
                _write_to_model(model, first, second)
                touched = [key for key, _ in first]
                assert opened.get_many(touched) == [model.get(key) for key in touched]
            elif verb == "scan":
                assert opened.scan(*first, second) == _expected_scan(model, *first)[:second]
            elif verb == "flush":
                opened.flush()
            else:
                opened.compact(b"", LAST)
        assert opened.scan(b"", LAST, 1_000) == sorted(model.items())
