"""The local log: what the engine of a single node appends to, syncs, replays and releases.

Commit means synced here; there is no quorum. A directory written by it holds the records a raft log
writes, at term 1, so it can be opened by one later without conversion.

The log lives on the loop's thread. `prepare_next` and `release` block on the disk and are made to
run in one worker thread while the loop goes on appending.
"""

from collections.abc import Callable, Iterator
from typing import NoReturn

from corvo.errors import StorageError
from corvo.replication.disk import Disk
from corvo.replication.opening import Recovery, open_wal
from corvo.replication.policy import FsyncPolicy
from corvo.replication.record import Identity
from corvo.replication.replay import replay_entries
from corvo.replication.segment import Segment
from corvo.replication.sync import DurableSync, InlineSync
from corvo.replication.validator import RING_COUNT, Mismatch, Validator
from corvo.replication.wal import SEGMENT_BYTES, SyncTarget, Wal


def _raise_failure(failure: StorageError) -> NoReturn:
    raise failure


class LocalLog:
    """An open local log; `LocalLog.open` recovers it."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        wal: Wal,
        recovery: Recovery,
        *,
        policy: FsyncPolicy,
        syncer: DurableSync,
        on_failure: Callable[[StorageError], None],
    ) -> None:
        self.policy = policy
        self.recovery = recovery
        self.validator = Validator()
        self.validator.seed(recovery.tail)
        self._disk = disk
        self._directory = directory
        self._wal = wal
        self._syncer = syncer
        self._on_failure = on_failure
        self._syncing: SyncTarget | None = None
        self._is_closed = False

    @staticmethod
    def open(  # noqa: PLR0913 - everything a log is made of, named at the call
        disk: Disk,
        directory: str,
        *,
        policy: FsyncPolicy,
        cluster_id: bytes,
        node_id: int,
        group: int = 0,
        segment_bytes: int = SEGMENT_BYTES,
        syncer: DurableSync | None = None,
        on_failure: Callable[[StorageError], None] = _raise_failure,
    ) -> "LocalLog":
        """Open or create the log in `directory`, recovering what a crash left.

        `on_failure` is called once when a sync fails, and must end the process; by default it
        raises. Raises `CorruptionError` without changing anything when the log is damaged, and
        `StorageError` when the directory is in use or the disk fails.
        """
        identity = Identity(cluster_id, node_id, group)
        wal, recovery = open_wal(disk, directory, identity=identity, segment_bytes=segment_bytes)
        strategy = InlineSync(disk) if syncer is None else syncer
        return LocalLog(
            disk,
            directory,
            wal,
            recovery,
            policy=policy,
            syncer=strategy,
            on_failure=on_failure,
        )

    # Position.

    @property
    def first_index(self) -> int:
        """The lowest index that can be replayed; last_index + 1 if there is none."""
        return self._wal.first_index

    @property
    def last_index(self) -> int:
        """The index of the last appended entry, durable or not."""
        return self._wal.last_index

    @property
    def synced_index(self) -> int:
        """The index up to which entries are known to be durable."""
        return self._wal.synced_index

    @property
    def term(self) -> int:
        """The term of new entries; 1 in a local log."""
        return self._wal.hard_state.term

    @property
    def is_syncing(self) -> bool:
        """Whether a sync is under way; at most one is."""
        return self._syncing is not None

    # Writing.

    def append(self, payload: bytes, *, opcode: int = 0, bucket: int = 0, count: int = 1) -> int:
        """Write one entry at the next index and return that index; it is not durable yet.

        Raises `DiskFullError` with nothing written when a new segment is due and has no room.
        """
        index, payload_crc = self._wal.append_entry(payload, opcode, bucket, count)
        self.validator.note(index, payload_crc)
        return index

    def sync(self, on_done: Callable[[], None]) -> None:
        """Call back once everything appended so far is as durable as the policy promises."""
        if self.policy.is_always:
            self.sync_now(on_done)
        else:
            on_done()

    def sync_now(self, on_done: Callable[[], None]) -> None:
        """Sync whatever the policy says; the engine calls it at each interval."""
        assert self._syncing is None, "one sync at a time"
        target = self._wal.sync_target()
        if target is None:
            on_done()
            return
        self._syncing = target

        def finish() -> None:
            self._syncing = None
            self._wal.synced(target)
            on_done()

        self._syncer.start(target.files, target.directories, finish, self._sync_failed)

    def _sync_failed(self, error: OSError) -> None:
        # The sync stays "under way" for ever: what it covered is neither durable nor lost.
        self._on_failure(self._wal.fail("syncing the log failed", error))

    def mark(self) -> None:
        """Write a SYNCED record if the last entry has none to vouch for it; call it when idle.

        It need not be synced: once it reaches the disk by itself, damage to the last entry is
        told from a torn write. A segment without room for it gets none: a mark is no reason to
        begin another.
        """
        wal = self._wal
        is_synced = wal.synced_record == wal.sequence - 1
        if is_synced and wal.marked_at != wal.sequence - 1 and wal.has_room_for_mark():
            wal.append_mark()

    def reset_to(self, index: int) -> None:
        """Continue at `index` + 1, because the state already reaches `index` and the log does not.

        This happens after a power loss under the policies `interval` and `off`: the store flushed
        what the log had not synced. Blocks until the new segment is durable.
        """
        lost_from = self._wal.last_index + 1
        self._wal.start_after(index)
        self._wal.sync_blocking()
        self.validator.seed(())
        self.recovery.notes.append(
            f"entries {lost_from} to {index} are in the store but not in the log, which goes on"
            f" at entry {index + 1}"
        )

    # Reading.

    def replay(self, after_index: int) -> Iterator[tuple[int, bytes]]:
        """Yield (index, payload) of every entry above `after_index`, in order."""
        entries = replay_entries(self._disk, self._directory, self._wal, after_index)
        return ((entry.envelope.index, entry.payload) for entry in entries)

    def tail(self, count: int = RING_COUNT) -> list[tuple[int, int]]:
        """Return the last (index, payload checksum) pairs, oldest first, at most 512."""
        return self.validator.tail(count)

    def check(self, index: int, checksum: int) -> Mismatch | None:
        """Compare the checksum of a copy of an entry with the ring."""
        return self.validator.check(index, checksum)

    # Space.

    def release(self, upto_index: int) -> int:
        """Remove segments that hold nothing above `upto_index`; return how many. Blocks."""
        return self._wal.release(upto_index)

    def spare_needed(self) -> bool:
        """Whether `prepare_next` should be called in a thread now."""
        return self._wal.spare_needed()

    def prepare_next(self) -> None:
        """Make the next segment ahead of need. Blocks; call it in a thread, one at a time."""
        self._wal.prepare_next()

    def bytes_since(self, index: int) -> int:
        """Bytes appended by this process after entry `index`, up to a MiB too many."""
        return self._wal.bytes_since(index)

    @property
    def size_bytes(self) -> int:
        """What the log takes on disk."""
        return self._wal.size_bytes

    @property
    def segments(self) -> list[Segment]:
        """The segments, oldest first."""
        return self._wal.segments

    def free_bytes(self) -> int:
        """How many bytes the disk under the log still takes, for `--disk-reserve`."""
        return self._disk.free_bytes(self._directory)

    def close(self) -> None:
        """Sync, write the mark of a clean close, sync that, and give back the lock.

        After a failure it only closes: the mark would vouch for what may be lost.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._syncer.close()
        try:
            if self._wal.failure is None:
                self._wal.sync_blocking()
                self.mark()
                self._wal.sync_blocking()
        finally:
            self._wal.close()
