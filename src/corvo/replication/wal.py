"""The write-ahead log: batches of records appended to segments, rotated, released and replayed.

`Wal` is what a local log and a raft log share. It writes a batch with one `pwrite`, hands out what
has to be synced and is told when it was, and never waits for a disk on its own once it is open,
except when a segment is full and no spare was prepared.

Invariant: a sector that was synced is never written again, since every batch starts on a sector of
its own. Invariant: after a failure every further call raises that failure.
"""

import bisect
import itertools
import threading
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from corvo.errors import StorageError
from corvo.replication.disk import Disk, DiskFullError, storage_error, write_all
from corvo.replication.record import (
    BEHIND_MAX,
    COUNT_MAX,
    HEADER_BYTES,
    LAST_IN_BATCH,
    PAYLOAD_BYTES_MAX,
    SECTOR_BYTES,
    HardState,
    Identity,
    Kind,
    SegmentHeader,
    encode_hard_state,
    encode_position,
    encode_record,
    encode_segment_header,
    extent_bytes,
    segment_mark,
)
from corvo.replication.repair import sync_directory
from corvo.replication.segment import DELETED_SUFFIX, SPARE_SUFFIX, Segment, SegmentName, make_blank
from corvo.replication.state import LogState

SEGMENT_BYTES: Final = 64 << 20
SEGMENT_BYTES_MIN: Final = 4 * SECTOR_BYTES
SEGMENTS_KEPT: Final = 2
POSITION_BYTES: Final = 1 << 20
LOCAL_TERM: Final = 1


class Draft(msgspec.Struct, frozen=True, gc=False):
    """A record to be written; sequence, chain and the rest are the log's to fill in."""

    kind: Kind
    payload: bytes
    index: int
    term: int
    opcode: int = 0
    bucket: int = 0
    count: int = 1


class SyncTarget(msgspec.Struct, frozen=True):
    """What one sync has to cover, and how far the log is durable once it has."""

    files: tuple[int, ...]
    directories: tuple[int, ...]
    record: int
    index: int
    retired_count: int


class _Spare(NamedTuple):
    path: str
    handle: int
    size: int


class Wal:
    """An open log; made by `opening.open_wal`."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        *,
        identity: Identity,
        segment_bytes: int,
        lock: int,
        state: LogState,
        segments: list[Segment],
        offset: int,
    ) -> None:
        self.identity = identity
        self.segment_bytes = segment_bytes
        self.hard_state = state.hard_state
        self.first_index = state.first_index
        self.last_index = state.last_index
        self.last_term = state.last_term
        self.snapshot_index = state.snapshot_index
        self.sequence = state.sequence
        self.marked_at = state.marked_at
        self.failure: StorageError | None = None
        self._disk = disk
        self._directory = directory
        self._directory_handle = disk.open_directory(directory)
        self._lock = lock
        self._chain = state.chain
        self._overwrites = state.overwrites
        self._segments = segments
        self._retired: list[int] = []
        self._directory_is_dirty = False
        self._spare: _Spare | None = None
        self._spare_numbers = itertools.count(1)
        # Held only to hand the spare over between the thread that makes it and the loop.
        self._spare_lock = threading.Lock()
        self._enter(segments[-1], offset)
        # Everything recovery accepted was synced by `open_wal` before this object exists.
        self.synced_record = self.sequence - 1
        self.synced_index = self.last_index
        self._written_bytes = 0
        self._positions: list[tuple[int, int]] = [(self.last_index, 0)]
        self._write = disk.pwrite

    def _enter(self, segment: Segment, offset: int) -> None:
        assert segment.handle is not None
        self._handle = segment.handle
        self._offset = offset
        self._end = segment.header.segment_bytes
        self._mark = segment_mark(self.identity, segment.header.sequence)

    # Writing.

    def append_entry(self, payload: bytes, opcode: int, bucket: int, count: int) -> tuple[int, int]:
        """Append one NORMAL entry at the next index; return the index and the payload's CRC."""
        size = extent_bytes(len(payload), 0, is_last=True)
        if self.failure is not None or self._offset + size > self._end or count > COUNT_MAX:
            self._make_room(size, len(payload), count)
        sequence = self.sequence
        behind = sequence - self.synced_record
        index = self.last_index + 1
        data, chain, payload_crc = encode_record(
            self._chain,
            payload,
            mark=self._mark,
            kind=1,
            flags=LAST_IN_BATCH,
            opcode=opcode,
            group=self.identity.group,
            bucket=bucket,
            sequence=sequence,
            index=index,
            term=self.hard_state.term,
            behind=min(behind, BEHIND_MAX),
            count=count,
            start=0,
        )
        self._put(data, size)
        self._chain = chain
        self.sequence = sequence + 1
        self.last_index = index
        self.last_term = self.hard_state.term
        return index, payload_crc

    def append(self, drafts: Sequence[Draft]) -> None:
        """Append a batch with one write; after a crash it is there whole or not at all.

        An entry at an index the log already has replaces it and everything after it, which is how
        raft drops an uncommitted suffix.
        """
        assert drafts, "an empty batch has nothing to write"
        last = len(drafts) - 1
        size = 0
        for position, draft in enumerate(drafts):
            size += extent_bytes(len(draft.payload), size, is_last=position == last)
        longest = max(len(draft.payload) for draft in drafts)
        self._make_room(size, longest, max(draft.count for draft in drafts))
        data, chain = self._encode_batch(drafts)
        assert len(data) == size
        self._put(data, size)
        self._chain = chain
        for draft in drafts:
            self._adopt(draft)

    def _encode_batch(self, drafts: Sequence[Draft]) -> tuple[bytes, int]:
        parts: list[bytes] = []
        chain = self._chain
        start = 0
        for position, draft in enumerate(drafts):
            sequence = self.sequence + position
            data, chain, _ = encode_record(
                chain,
                draft.payload,
                mark=self._mark,
                kind=draft.kind,
                flags=LAST_IN_BATCH if position == len(drafts) - 1 else 0,
                opcode=draft.opcode,
                group=self.identity.group,
                bucket=draft.bucket,
                sequence=sequence,
                index=draft.index,
                term=draft.term,
                behind=min(sequence - self.synced_record, BEHIND_MAX),
                count=draft.count,
                start=start,
            )
            parts.append(data)
            start += len(data)
        return b"".join(parts), chain

    def _adopt(self, draft: Draft) -> None:
        if draft.kind in (Kind.NORMAL, Kind.CONF):
            assert draft.index <= self.last_index + 1, "entries are contiguous"
            assert draft.index > max(self.hard_state.commit, self.snapshot_index)
            if draft.index <= self.last_index:
                self.overwrites.append((self.sequence, draft.index))
                self.synced_index = min(self.synced_index, draft.index - 1)
            self.last_index = draft.index
            self.last_term = draft.term
        elif draft.kind is Kind.SNAPSHOT:
            self.snapshot_index = max(self.snapshot_index, draft.index)
            if draft.index > self.last_index:
                self.first_index = draft.index + 1
                self.last_index = draft.index
                self.last_term = draft.term
        elif draft.kind is Kind.SYNCED:
            self.marked_at = self.sequence
        self.sequence += 1

    def save_hard_state(self, state: HardState, entries: Sequence[Draft] = ()) -> None:
        """Append entries and then the hard state in one batch; it counts once it is synced."""
        assert state.term >= self.hard_state.term, "a term never goes back"
        draft = Draft(Kind.HARDSTATE, encode_hard_state(state), self.last_index, state.term)
        self.append([*entries, draft])
        self.hard_state = state

    def has_room_for_mark(self) -> bool:
        """Whether a SYNCED record fits the current segment; it takes one sector."""
        return self._offset + SECTOR_BYTES <= self._end

    def append_mark(self) -> None:
        """Append a SYNCED record: its header vouches for everything synced so far."""
        payload = encode_position(self.synced_index, self.last_term)
        self.append([Draft(Kind.SYNCED, payload, self.last_index, self.hard_state.term)])

    def start_after(self, index: int) -> None:
        """Begin a new segment at `index` + 1 with a SNAPSHOT record; what was before is history."""
        assert index > self.last_index, "the log already reaches that index"
        self._check()
        self._rotate(0, first_index=index + 1)
        term = self.hard_state.term
        self.append([Draft(Kind.SNAPSHOT, encode_position(index, term), index, term)])

    def _put(self, data: bytes, size: int) -> None:
        offset = self._offset
        try:
            written = self._write(self._handle, data, offset)
            if written != size:
                write_all(self._disk, self._handle, data[written:], offset + written)
        except OSError as error:
            raise self.fail("writing to the log failed", error) from error
        self._offset = offset + size
        self._written_bytes += size
        if self._written_bytes - self._positions[-1][1] >= POSITION_BYTES:
            self._positions.append((self.last_index, self._written_bytes))

    def _make_room(self, size: int, longest: int, count: int) -> None:
        self._check()
        assert longest <= PAYLOAD_BYTES_MAX, "the caller bounds its payloads"
        assert count <= COUNT_MAX, "the caller bounds its batches"
        if self._offset + size > self._end:
            self._rotate(size, first_index=self.last_index + 1)

    # Segments.

    def spare_needed(self) -> bool:
        """Whether the current segment is at least half full and no next one is ready."""
        return self._spare is None and self._offset * 2 >= self._end

    def prepare_next(self) -> None:
        """Make the next segment ahead of need. Blocks; call it from a thread, one at a time."""
        if self._spare is not None:
            return
        made = self._make_spare(self.segment_bytes)
        with self._spare_lock:
            if self._spare is None:
                self._spare = made
                return
        self._discard(made)

    def _make_spare(self, segment_bytes: int) -> _Spare:
        path = f"{self._directory}/next-{next(self._spare_numbers)}{SPARE_SUFFIX}"
        try:
            return _Spare(path, make_blank(self._disk, path, segment_bytes), segment_bytes)
        except OSError as error:
            # Nothing of the log was touched: a full disk here is a refusal, not a failure.
            failure = storage_error("preparing a log segment failed", error)
            if not isinstance(failure, DiskFullError):
                self.failure = failure
            raise failure from error

    def _rotate(self, size: int, *, first_index: int) -> None:
        needed = max(self.segment_bytes, HEADER_BYTES + size)
        with self._spare_lock:
            spare = self._spare
            if spare is not None and spare.size >= needed:
                self._spare = None
        if spare is None or spare.size < needed:
            # A spare that is too small stays for the next ordinary rotation.
            spare = self._make_spare(needed)
        previous = self._segments[-1].header
        header = SegmentHeader(
            identity=self.identity,
            sequence=previous.sequence + 1,
            first_index=first_index,
            first_record=self.sequence,
            synced_record=self.synced_record,
            hard_state=self.hard_state,
            segment_bytes=spare.size,
            previous_term=self.last_term,
            previous_chain=self._chain,
        )
        name = SegmentName(header.sequence, first_index).render()
        try:
            self._disk.rename(spare.path, f"{self._directory}/{name}")
            self._directory_is_dirty = True
            write_all(self._disk, spare.handle, encode_segment_header(header), 0)
        except OSError as error:
            raise self.fail("starting a log segment failed", error) from error
        # Safety: neither the old segment nor the name of the new one is synced here. The next sync
        # covers both before anything in the new segment is acknowledged, and the header names only
        # what was durable before, so recovery judges any part of this that survives a power loss.
        self._retired.append(self._handle)
        self._segments[-1].handle = None
        segment = Segment(name, header, spare.handle)
        self._segments.append(segment)
        self._enter(segment, HEADER_BYTES)

    def _discard(self, spare: _Spare) -> None:
        self._disk.close(spare.handle)
        self._disk.unlink(spare.path)

    def release(self, upto_index: int) -> int:
        """Remove segments whose last index is at most `upto_index`; return how many.

        Blocks; may run in a thread while the loop appends. Oldest first, and the directory is
        synced after each rename, so no power loss can leave a hole. The last two segments stay.
        """
        self._check()
        released = 0
        doomed: list[str] = []
        try:
            while len(self._segments) > SEGMENTS_KEPT:
                kept = self._segments[1]
                if kept.header.first_index - 1 > upto_index:
                    break
                if kept.header.first_record > self.synced_record:
                    self._sync_kept(kept)
                path = f"{self._directory}/{self._segments[0].name}"
                self._disk.rename(path, path + DELETED_SUFFIX)
                sync_directory(self._disk, self._directory)
                doomed.append(path + DELETED_SUFFIX)
                self.first_index = max(self.first_index, kept.header.first_index)
                del self._segments[0]
                released += 1
            for path in doomed:
                self._disk.unlink(path)
        except OSError as error:
            raise self.fail("removing log segments failed", error) from error
        return released

    def _sync_kept(self, segment: Segment) -> None:
        # The segment that becomes the first must have a durable header and a durable name before
        # the one in front of it goes. A handle of our own is used, since the loop may close the
        # segment's at any time.
        handle = self._disk.open(f"{self._directory}/{segment.name}")
        try:
            self._disk.fsync(handle)
        finally:
            self._disk.close(handle)
        sync_directory(self._disk, self._directory)

    # Durability.

    def sync_target(self) -> SyncTarget | None:
        """Return what must be synced to make everything written durable; None if nothing."""
        self._check()
        if self.synced_record == self.sequence - 1 and not self._directory_is_dirty:
            return None
        directories = (self._directory_handle,) if self._directory_is_dirty else ()
        self._directory_is_dirty = False
        files = (*self._retired, self._handle)
        return SyncTarget(
            files, directories, self.sequence - 1, self.last_index, len(self._retired)
        )

    def synced(self, target: SyncTarget) -> None:
        """Note that everything `target` names is durable."""
        assert target.record >= self.synced_record, "syncs finish in order"
        self.synced_record = target.record
        index = target.index
        for sequence, first in reversed(self._overwrites):
            # A suffix replaced while the sync was under way is not covered by it.
            if sequence <= target.record:
                break
            index = min(index, first - 1)
        self.synced_index = index
        for handle in self._retired[: target.retired_count]:
            self._disk.close(handle)
        del self._retired[: target.retired_count]

    def sync_blocking(self) -> None:
        """Make everything written durable, waiting for the disk."""
        target = self.sync_target()
        if target is None:
            return
        try:
            for handle in target.files:
                self._disk.fdatasync(handle)
            for handle in target.directories:
                self._disk.fsync(handle)
        except OSError as error:
            raise self.fail("syncing the log failed", error) from error
        self.synced(target)

    def fail(self, action: str, error: OSError) -> StorageError:
        """Enter the failed state, which has no way out, and return the failure to raise."""
        if self.failure is None:
            failure = storage_error(action, error)
            self.failure = StorageError(failure.message, hint=failure.hint)
        return self.failure

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    # Facts.

    @property
    def overwrites(self) -> list[tuple[int, int]]:
        """Where a later record replaced a suffix: (its sequence, its index), in order."""
        return self._overwrites

    @property
    def segments(self) -> list[Segment]:
        """The segments, oldest first."""
        return list(self._segments)

    @property
    def size_bytes(self) -> int:
        """What the segments take on disk, preallocated space included."""
        return sum(segment.header.segment_bytes for segment in self._segments)

    def bytes_since(self, index: int) -> int:
        """Bytes written in this process after entry `index`, up to a MiB too many."""
        place = bisect.bisect_right(self._positions, (index, 1 << 62)) - 1
        before = self._positions[place][1] if place >= 0 else 0
        return self._written_bytes - before

    def close(self) -> None:
        """Close every file and give back the lock; writes and syncs nothing."""
        try:
            if self._spare is not None:
                self._discard(self._spare)
        except OSError as error:
            raise self.fail("closing the log failed", error) from error
        finally:
            for handle in (*self._retired, self._handle, self._directory_handle, self._lock):
                self._disk.close(handle)
