"""What is particular to the store on disk: its files, its options and its failures."""

from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from corvo.errors import CorruptionError, StorageError
from corvo.storage.rocks import RocksStore


def _fill(store: RocksStore, count: int = 20_000) -> None:
    for start in range(0, count, 500):
        store.write([(b"k%08d" % n, b"%032d" % (n * 7919)) for n in range(start, start + 500)])


def test_there_is_one_column_family(tmp_path: Path) -> None:
    """Data and applied index share a family; with two, a kill let them disagree."""
    store = RocksStore(str(tmp_path / "store"))
    store.write([(b"a", b"1")])
    store.close()
    assert Rdict.list_cf(str(tmp_path / "store")) == ["default"]


def test_store_with_a_second_family_is_refused(tmp_path: Path) -> None:
    """A directory somebody else wrote is not opened, and the hint says so."""
    directory = str(tmp_path / "store")
    database = Rdict(directory, options=Options(raw_mode=True))
    database.create_column_family("second", Options(raw_mode=True)).close()
    database.close()
    with pytest.raises(CorruptionError) as caught:
        RocksStore(directory)
    assert "second" in caught.value.message


def test_content_survives_close_and_reopen(tmp_path: Path) -> None:
    """Closing flushes: a clean shutdown needs no replay."""
    directory = str(tmp_path / "store")
    store = RocksStore(directory)
    _fill(store, 1_000)
    store.close()
    again = RocksStore(directory)
    assert len(again.scan(b"", b"\xff", 2_000)) == 1_000
    again.close()


def test_own_log_is_off(tmp_path: Path) -> None:
    """RocksDB's log stays empty: the replicated log is the only one."""
    store = RocksStore(str(tmp_path / "store"))
    _fill(store, 1_000)
    logs = list((tmp_path / "store").glob("*.log"))
    assert sum(path.stat().st_size for path in logs) == 0
    assert store.statistics()["memtable_bytes"] > 1_000
    store.close()


def test_second_opening_is_refused_with_a_hint(tmp_path: Path) -> None:
    """Two writers on one directory cannot be; the refusal says who is in the way."""
    store = RocksStore(str(tmp_path / "store"))
    with pytest.raises(StorageError) as caught:
        RocksStore(str(tmp_path / "store"))
    assert caught.value.hint == "another process has this store open"
    store.close()


def test_scans_leave_nothing_that_keeps_the_directory_locked(tmp_path: Path) -> None:
    """After full, short, empty and limited scans the store closes and opens again at once."""
    directory = str(tmp_path / "store")
    for _ in range(3):
        store = RocksStore(directory)
        _fill(store, 500)
        answers = [store.scan(b"", b"\xff", limit) for limit in (1, 500, 9_999)]
        store.scan(b"x", b"y", 5)
        store.close()
        assert [len(answer) for answer in answers] == [1, 500, 500]


def test_read_only_store_answers_and_refuses_writes(tmp_path: Path) -> None:
    """An audit can read what was flushed, and can change nothing."""
    directory = str(tmp_path / "store")
    store = RocksStore(directory)
    store.write([(b"a", b"1")])
    store.close()
    reader = RocksStore(directory, is_read_only=True)
    assert reader.get(b"a") == b"1"
    assert reader.scan(b"", b"\xff", 5) == [(b"a", b"1")]
    with pytest.raises(StorageError):
        reader.write([(b"a", b"2")])
    reader.close()


def test_read_only_opening_creates_nothing(tmp_path: Path) -> None:
    """A mistyped directory is an error and does not become a store."""
    with pytest.raises(StorageError):
        RocksStore(str(tmp_path / "absent"), is_read_only=True)
    assert not (tmp_path / "absent" / "CURRENT").exists()


def test_file_in_the_place_of_the_directory_is_a_storage_error(tmp_path: Path) -> None:
    """No exception of the library leaves the package, not even at opening."""
    (tmp_path / "store").write_text("not a directory")
    with pytest.raises(StorageError):
        RocksStore(str(tmp_path / "store"))


def test_keys_that_are_not_bytes_are_refused(tmp_path: Path) -> None:
    """A text key would sort elsewhere; it never reaches the store."""
    store = RocksStore(str(tmp_path / "store"))
    with pytest.raises(StorageError):
        store.get("a")  # pyright: ignore[reportArgumentType]
    with pytest.raises(StorageError):
        store.write([("a", b"1")])  # pyright: ignore[reportArgumentType]
    assert store.scan(b"", b"\xff", 5) == []
    store.close()


def _damage(directory: Path) -> None:
    files = sorted(directory.glob("*.sst"), key=lambda path: path.stat().st_size)
    with files[-1].open("r+b") as table:
        table.seek(files[-1].stat().st_size // 2)
        table.write(b"\xff" * 64)


def test_damaged_block_is_corruption_and_never_the_end_of_a_scan(tmp_path: Path) -> None:
    """A scan that meets damage raises, whether the damage is met midway or at its first pair."""
    store = RocksStore(str(tmp_path / "store"))
    _fill(store)
    store.close()
    _damage(tmp_path / "store")
    store = RocksStore(str(tmp_path / "store"))
    with pytest.raises(CorruptionError) as caught:
        store.scan(b"", b"\xff", 30_000)
    assert "corvo fsck" in (caught.value.hint or "")
    with pytest.raises(CorruptionError):
        for number in range(20_000):
            store.get(b"k%08d" % number)
    refused = 0
    for number in range(0, 20_000, 10):
        try:
            found = store.scan(b"k%08d" % number, b"k%08d" % (number + 10), 100)
        except CorruptionError:
            refused += 1
        else:
            assert len(found) == 10, "damage was taken for the end of the range"
    assert refused > 0
    store.close()
