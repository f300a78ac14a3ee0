"""The store on disk: RocksDB, tuned for a queue, with every failure translated.

Who calls what from where: reads and `write` run on the event loop and must be short, since
rocksdict holds the interpreter lock in all of them. `flush`, `compact` and `checkpoint` block and
are meant for a thread; the first two release the lock while they wait.
"""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    CompactOptions,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from corvo.errors import CorruptionError, StorageError

MIB = 1 << 20
MEMTABLE_BYTES = 32 * MIB
MEMTABLES_COUNT = 4
CACHE_BYTES = 64 * MIB
COPY_CACHE_BYTES = 8 * MIB  # a copy is read from front to back

_CURRENT = "CURRENT"

# What `statistics` reads, under the names it reports. `delayed_write_rate` and `is_write_stopped`
# tell that RocksDB slows writes down, which freezes the loop; admission must slow down before.
_PROPERTIES = {
    "delayed_write_rate": "rocksdb.actual-delayed-write-rate",
    "is_write_stopped": "rocksdb.is-write-stopped",
    "memtable_bytes": "rocksdb.cur-size-all-mem-tables",
    "memtables_waiting_count": "rocksdb.num-immutable-mem-table",
    "sst_bytes": "rocksdb.live-sst-files-size",
    "level0_files_count": "rocksdb.num-files-at-level0",
    "pending_compaction_bytes": "rocksdb.estimate-pending-compaction-bytes",
    "compactions_running_count": "rocksdb.num-running-compactions",
    "flushes_running_count": "rocksdb.num-running-flushes",
    "background_errors_count": "rocksdb.background-errors",
    "keys_estimate_count": "rocksdb.estimate-num-keys",
    "cache_bytes": "rocksdb.block-cache-usage",
    "table_readers_bytes": "rocksdb.estimate-table-readers-mem",
}


def _options(*, is_read_only: bool, memtable_bytes: int, cache_bytes: int) -> Options:
    """How RocksDB is set up. Each line that is not a default says why."""
    # Raw mode: keys and values are bytes as given, so they sort as `keys` intends.
    options = Options(raw_mode=True)
    options.create_if_missing(not is_read_only)
    _tune_memtables(options, memtable_bytes)
    _tune_compaction(options)
    _tune_files(options, cache_bytes)
    return options


def _tune_memtables(options: Options, memtable_bytes: int) -> None:
    # Memory is capped at four times 32 MiB. Four, because a write that finds no free memtable waits
    # for a flush with the interpreter lock held: default options were measured to stall 270 ms.
    options.set_write_buffer_size(memtable_bytes)
    options.set_max_write_buffer_number(MEMTABLES_COUNT)
    # There is one writer, the loop. Cost: the lock-free insert meant for several made random keys
    # two to six times dearer.
    options.set_allow_concurrent_memtable_write(False)


def _tune_compaction(options: Options) -> None:
    # Two flushes and two compactions at once. They are threads of RocksDB, outside the interpreter.
    options.set_max_background_jobs(4)
    # Writes are slowed and stopped by files of level 0. The triggers are far above the number at
    # which compaction starts (4), so a burst is absorbed by files instead of by a frozen loop.
    options.set_level_zero_slowdown_writes_trigger(40)
    options.set_level_zero_stop_writes_trigger(80)
    # A queue leaves tombstones behind its head, and a seek has to walk over them. A file in which
    # half of some 16,384 neighbours are deletions is compacted without waiting for its level.
    options.add_compact_on_deletion_collector_factory(16_384, 8_192, 0.5)
    # Costs less than the disk time it saves; payloads are mostly JSON.
    options.set_compression_type(DBCompressionType.lz4())


def _tune_files(options: Options, cache_bytes: int) -> None:
    table = BlockBasedOptions()
    table.set_block_cache(Cache(cache_bytes))
    # Ten bits a key, one false positive in a hundred: a miss costs 0.4 µs instead of 1.4 to 2.2,
    # and every enqueue with a fresh id or unique key is a miss. False selects the filter per file.
    table.set_bloom_filter(10, False)
    options.set_block_based_table_factory(table)
    # A damaged block is an error and never a shorter answer.
    options.set_paranoid_checks(True)
    # Sockets need descriptors too: 512 files of 64 MiB are 32 GiB before any is reopened.
    options.set_max_open_files(512)
    # Flushed files reach the disk in steps, not in one burst that delays the log's sync.
    options.set_bytes_per_sync(1 * MIB)
    # Freeing an iterator on the loop must not delete files there.
    options.set_avoid_unnecessary_blocking_io(True)
    # Opening reads no file only to refresh statistics; restart time matters.
    options.set_skip_stats_update_on_db_open(True)
    # RocksDB's own diagnostics: a few small files, no dump every ten minutes.
    options.set_keep_log_file_num(3)
    options.set_max_log_file_size(4 * MIB)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)


def _write_options() -> WriteOptions:
    options = WriteOptions()
    # The replicated log is the only write-ahead log (see the package's invariants). The type stub
    # of rocksdict 0.3.29 calls this a method; it is a property.
    options.disable_wal = True  # pyright: ignore[reportAttributeAccessIssue]
    return options


def _translated(doing: str, failure: Exception) -> StorageError | CorruptionError:
    """An error of ours for what rocksdict raised, which is mostly a plain `Exception`."""
    message = f"{doing}: {failure}"
    if str(failure).startswith("Corruption"):
        hint = "keep a copy of the data directory, then run: corvo fsck --data-dir DIRECTORY"
        return CorruptionError(message, hint=hint)
    if "/LOCK" in str(failure):
        return StorageError(message, hint="another process has this store open")
    return StorageError(message)


class RocksStore:
    """A store in a directory. One process at a time may open it for writing."""

    def __init__(
        self,
        directory: str,
        *,
        is_read_only: bool = False,
        memtable_bytes: int = MEMTABLE_BYTES,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        """Open or create the store; with `is_read_only` only open it, and see what was flushed."""
        self._directory = directory
        self._is_read_only = is_read_only
        self._is_closed = False
        options = _options(
            is_read_only=is_read_only, memtable_bytes=memtable_bytes, cache_bytes=cache_bytes
        )
        access = AccessType.read_only(False) if is_read_only else AccessType.read_write()
        try:
            if Path(directory, _CURRENT).exists():
                _check_one_family(Rdict.list_cf(directory))
            self._database = Rdict(directory, options=options, access_type=access)
            self._database.set_write_options(_write_options())
        except CorruptionError:
            raise
        except Exception as failure:
            raise _translated(f"cannot open the store in {directory}", failure) from failure

    @property
    def directory(self) -> str:
        return self._directory

    def get(self, key: bytes) -> bytes | None:
        try:
            return self._database.get(key)
        except Exception as failure:
            raise _translated("cannot read a key", failure) from failure

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Values in the order of the keys; cheaper than one by one when they are not in memory."""
        try:
            found: Any = self._database.get(keys)  # pyright: ignore[reportArgumentType]
        except Exception as failure:
            raise _translated("cannot read keys", failure) from failure
        return found

    def scan(self, start: bytes, until: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """The first `limit` pairs with start <= key < until, ascending.

        Cost: the upper bound is given to RocksDB, so the seek does not walk over tombstones behind
        the range. Tombstones inside the range are walked: never scan what was consumed.
        """
        if start >= until or limit <= 0:
            return []
        try:
            bounds = ReadOptions()
            bounds.set_iterate_upper_bound(until)
            # Safety: the iterator dies with this call. One that is alive at `close` would keep the
            # directory locked.
            pairs: list[Any] = list(
                islice(self._database.items(from_key=start, read_opt=bounds), limit)
            )
            if len(pairs) < limit:
                self._check_end(pairs[-1][0] if pairs else start, bounds)
        except Exception as failure:
            raise _translated("cannot scan", failure) from failure
        return pairs

    def _check_end(self, final: bytes, bounds: ReadOptions) -> None:
        # Safety: rocksdict's `items` ends without a word when it meets a damaged block, which would
        # look like the end of the range and lose jobs in silence. Walking once more from the last
        # pair and asking for the status raises instead. It costs about 2 µs, on short answers only.
        iterator = self._database.iter(read_opt=bounds)
        iterator.seek(final)
        if iterator.valid():
            iterator.next()
        iterator.status()

    def write(
        self,
        writes: Sequence[tuple[bytes, bytes | None]],
        cleared: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Remove the cleared ranges, then put each value or delete where it is None; atomically.

        A failure leaves memory ahead of disk: the caller must let the process stop.
        """
        try:
            batch = WriteBatch(raw_mode=True)
            for start, until in cleared:
                if start < until:
                    batch.delete_range(start, until)
            put = batch.put
            for key, value in writes:
                if value is None:
                    batch.delete(key)
                else:
                    put(key, value)
            self._database.write(batch)
        except Exception as failure:
            raise _translated("cannot write", failure) from failure

    def flush(self) -> None:
        """Bring everything written before this call to disk. Blocks; durable when it returns."""
        try:
            self._database.flush(True)
        except Exception as failure:
            raise _translated("cannot flush", failure) from failure

    def checkpoint(self, directory: str) -> None:
        """Make a consistent copy in a directory that must not exist. Blocks."""
        # The checkpoint itself flushes what is in memory, with the interpreter lock held: 630 ms
        # were seen. The first flush takes the bulk, the second what was written meanwhile, and the
        # checkpoint finds next to nothing.
        self.flush()
        self.flush()
        try:
            Checkpoint(self._database).create_checkpoint(directory)
        except Exception as failure:
            raise _translated(f"cannot copy the store to {directory}", failure) from failure

    def open_copy(self, directory: str) -> "RocksStore":
        """Open a copy that `checkpoint` wrote, for reading. Blocks."""
        return RocksStore(directory, is_read_only=True, cache_bytes=COPY_CACHE_BYTES)

    def compact(self, start: bytes, until: bytes) -> None:
        """Drop the tombstones of a range from disk. Blocks."""
        options = CompactOptions()
        # Ordinary compactions go on beside this one; otherwise level 0 would grow towards a stall.
        options.set_exclusive_manual_compaction(False)
        try:
            self._database.compact_range(start, until, options)
        except Exception as failure:
            raise _translated("cannot compact", failure) from failure

    def statistics(self) -> dict[str, int]:
        """Figures of RocksDB; zero where it has none."""
        try:
            read = self._database.property_value
            return {name: int(read(key) or 0) for name, key in _PROPERTIES.items()}
        except Exception as failure:
            raise _translated("cannot read statistics", failure) from failure

    def close(self) -> None:
        """Flush and close. May be called again."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            # RocksDB would also flush while closing, and keep quiet when that fails.
            if not self._is_read_only:
                self._database.flush(True)
        except Exception as failure:
            raise _translated("cannot flush before closing", failure) from failure
        finally:
            self._database.close()


def _check_one_family(families: list[str]) -> None:
    # Invariant: one column family, always (see the package's docstring).
    if families != ["default"]:
        raise CorruptionError(
            f"the store has column families {families}, and this program writes only one",
            hint="this directory was not written by corvo",
        )
