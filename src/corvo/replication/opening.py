"""Opening a log directory: lock, recover or create, tidy up, and hand over an open `Wal`."""

import msgspec

from corvo.errors import StorageError
from corvo.replication.disk import LOCK_NAME, Disk, storage_error, write_all
from corvo.replication.record import (
    HEADER_BYTES,
    LAST_IN_BATCH,
    SECTOR_BYTES,
    HardState,
    Identity,
    Kind,
    SegmentHeader,
    encode_hard_state,
    encode_record,
    encode_segment_header,
    segment_mark,
)
from corvo.replication.recovery import Cut, Walk, Walker, find_segments
from corvo.replication.repair import apply_cut, sync_directory
from corvo.replication.segment import (
    BROKEN_SUFFIX,
    DELETED_SUFFIX,
    SPARE_SUFFIX,
    SUFFIX,
    Segment,
    SegmentName,
    make_blank,
)
from corvo.replication.wal import LOCAL_TERM, SEGMENT_BYTES_MIN, Wal


class Recovery(msgspec.Struct):
    """What opening the log found and did, for the start-up message and the status page."""

    is_new: bool = False
    cut: Cut | None = None
    is_clean_close: bool = False
    notes: list[str] = msgspec.field(default_factory=list[str])
    tail: list[tuple[int, int]] = msgspec.field(default_factory=list[tuple[int, int]])


def open_wal(
    disk: Disk, directory: str, *, identity: Identity, segment_bytes: int
) -> tuple[Wal, Recovery]:
    """Lock, recover and open the log, or create it; raise `CorruptionError` and change nothing."""
    if segment_bytes % SECTOR_BYTES or segment_bytes < SEGMENT_BYTES_MIN:
        raise StorageError(
            f"a log segment of {segment_bytes} bytes is not possible",
            hint=f"use a multiple of {SECTOR_BYTES}, at least {SEGMENT_BYTES_MIN}",
        )
    try:
        disk.make_directory(directory)
        lock = disk.lock(f"{directory}/{LOCK_NAME}")
    except OSError as error:
        raise storage_error(f"the log directory {directory} cannot be used", error) from error
    try:
        return _recover(disk, directory, identity, segment_bytes, lock)
    except OSError as error:
        disk.close(lock)
        raise storage_error(f"opening the log in {directory} failed", error) from error
    except BaseException:
        disk.close(lock)
        raise


def _recover(
    disk: Disk, directory: str, identity: Identity, segment_bytes: int, lock: int
) -> tuple[Wal, Recovery]:
    recovery = Recovery()
    found = find_segments(disk, directory, identity)
    if not found:
        _tidy(disk, directory, recovery)
        _create(disk, directory, identity, segment_bytes)
        recovery.is_new = True
        found = find_segments(disk, directory, identity)
    walk = Walker(disk, directory, found).walk()
    if walk.damage is not None:
        walk.damage.refuse()
    assert walk.state is not None
    if walk.cut is not None:
        recovery.cut = apply_cut(disk, directory, walk)
        recovery.notes.append(_describe_cut(recovery.cut))
    recovery.notes.extend(walk.notes)
    recovery.tail = list(walk.state.tail)
    recovery.is_clean_close = walk.state.marked_at == walk.state.sequence - 1
    if not recovery.is_new:
        _tidy(disk, directory, recovery)
    segments = _settle(disk, directory, walk)
    wal = Wal(
        disk,
        directory,
        identity=identity,
        segment_bytes=segment_bytes,
        lock=lock,
        state=walk.state,
        segments=segments,
        offset=walk.end_offset,
    )
    return wal, recovery


def _settle(disk: Disk, directory: str, walk: Walk) -> list[Segment]:
    # A killed process leaves records that are whole but were never synced. They are about to be
    # replayed and answered for, so they are made durable first.
    segments: list[Segment] = []
    kept = walk.segments[: walk.keep_count]
    for each in kept:
        assert each.header is not None
        handle = disk.open(f"{directory}/{each.name}")
        disk.fsync(handle)
        segment = Segment(each.name, each.header)
        if each is kept[-1]:
            segment.handle = handle
        else:
            disk.close(handle)
        segments.append(segment)
    sync_directory(disk, directory)
    return segments


def _create(disk: Disk, directory: str, identity: Identity, segment_bytes: int) -> None:
    # The first segment is complete and durable before it gets its name, so a directory holds
    # either no log or one with a valid first header.
    hard_state = HardState(term=LOCAL_TERM, vote=0, commit=0)
    header = SegmentHeader(
        identity=identity,
        sequence=1,
        first_index=1,
        first_record=1,
        synced_record=0,
        hard_state=hard_state,
        segment_bytes=segment_bytes,
        previous_term=0,
        previous_chain=0,
    )
    record, _, _ = encode_record(
        0,
        encode_hard_state(hard_state),
        mark=segment_mark(identity, 1),
        kind=Kind.HARDSTATE,
        flags=LAST_IN_BATCH,
        opcode=0,
        group=identity.group,
        bucket=0,
        sequence=1,
        index=0,
        term=LOCAL_TERM,
        behind=1,
        count=1,
        start=0,
    )
    path = f"{directory}/first{SPARE_SUFFIX}"
    handle = make_blank(disk, path, segment_bytes)
    try:
        write_all(disk, handle, encode_segment_header(header) + record, 0)
        disk.fsync(handle)
        disk.rename(path, f"{directory}/{SegmentName(1, 1).render()}")
    finally:
        disk.close(handle)
    sync_directory(disk, directory)
    assert HEADER_BYTES + len(record) <= segment_bytes


def _tidy(disk: Disk, directory: str, recovery: Recovery) -> None:
    # Finishes interrupted deletions and removes blanks that never became segments.
    for name in disk.list_names(directory):
        if name.endswith((DELETED_SUFFIX, SPARE_SUFFIX)):
            disk.unlink(f"{directory}/{name}")
        elif BROKEN_SUFFIX in name:
            recovery.notes.append(f"{name} is kept from an earlier repair; remove it when studied")
        elif name != LOCK_NAME and not name.endswith(SUFFIX):
            recovery.notes.append(f"{name} is not part of the log and was left alone")


def _describe_cut(cut: Cut) -> str:
    kept = f"; a copy is kept as {cut.copy_name}" if cut.copy_name else ""
    return (
        f"the unacknowledged end of the log was cut in {cut.name} at offset {cut.offset}, before"
        f" entry {cut.next_index} ({cut.reason}){kept}"
    )
