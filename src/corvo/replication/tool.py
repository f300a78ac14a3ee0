"""Offline tools over a log directory: verify, dump, repair. The command line prints their results.

`verify` and `dump` change nothing. All three take the lock, so that none of them looks at a log
that is being written. `repair` is the only way to give up records, and it gives up none without
keeping them: every file it touches is first copied or renamed with the suffix `.broken`.
"""

from collections.abc import Iterator

import msgspec

from corvo.errors import CorruptionError
from corvo.replication.disk import LOCK_NAME, Disk, storage_error
from corvo.replication.record import (
    HEADER_BYTES,
    Identity,
    Kind,
    decode_segment_header,
    segment_mark,
)
from corvo.replication.recovery import Cut, Damage, Found, Walk, Walker, find_segments
from corvo.replication.repair import apply_cut, set_aside
from corvo.replication.segment import SUFFIX, BatchReader, Entry, Window


class SegmentReport(msgspec.Struct, frozen=True):
    """One segment in a report."""

    name: str
    sequence: int
    first_index: int
    size_bytes: int


class VerifyReport(msgspec.Struct, frozen=True):
    """What `verify` found. `is_sound` is true if the server would start without losing a record."""

    segments: list[SegmentReport]
    first_index: int
    last_index: int
    records_count: int
    damage: Damage | None
    cut: Cut | None
    notes: list[str]

    @property
    def is_sound(self) -> bool:
        """Whether the server would start; a torn tail is sound, it was never acknowledged."""
        return self.damage is None


class DumpLine(msgspec.Struct, frozen=True):
    """One record as `dump` shows it."""

    segment: str
    offset: int
    sequence: int
    kind: str
    index: int
    term: int
    group: int
    bucket: int
    opcode: int
    count: int
    length: int
    crc: int


class RepairReport(msgspec.Struct, frozen=True):
    """What `repair` did: where the log now ends, and the files that hold what was taken out."""

    changed: bool
    last_index: int
    set_aside: list[str]
    damages: list[Damage]
    cuts: list[Cut]


def verify(disk: Disk, directory: str) -> VerifyReport:
    """Read the whole log and judge it as a start would, changing nothing."""
    lock = _lock(disk, directory)
    try:
        try:
            found = find_segments(disk, directory, _identity(disk, directory))
        except CorruptionError as error:
            damage = Damage(directory, 0, 0, error.message)
            return VerifyReport([], 0, 0, 0, damage, None, [])
        if not found:
            return VerifyReport([], 1, 0, 0, None, None, ["the directory holds no log"])
        return _report(Walker(disk, directory, found).walk())
    except OSError as error:
        raise storage_error(f"reading the log in {directory} failed", error) from error
    finally:
        disk.close(lock)


def _report(walk: Walk) -> VerifyReport:
    state = walk.state
    segments = [
        SegmentReport(each.name, each.parsed.sequence, each.parsed.first_index, _size(each))
        for each in walk.segments
    ]
    return VerifyReport(
        segments=segments,
        first_index=state.first_index if state else 0,
        last_index=state.last_index if state else 0,
        records_count=state.sequence - _first_record(walk) if state else 0,
        damage=walk.damage,
        cut=walk.cut,
        notes=walk.notes,
    )


def _first_record(walk: Walk) -> int:
    header = walk.segments[0].header
    return header.first_record if header else 0


def _size(each: Found) -> int:
    return each.header.segment_bytes if each.header else 0


def dump(disk: Disk, directory: str, limit: int | None = None) -> Iterator[DumpLine]:
    """Yield the envelope of every readable record, segment by segment, at most `limit`.

    It goes on with the next segment after a damaged place, so that what lies behind can be seen.
    """
    lock = _lock(disk, directory)
    try:
        remaining = limit
        for each in find_segments(disk, directory, None):
            for entry in _entries(disk, directory, each):
                if remaining is not None:
                    if remaining <= 0:
                        return
                    remaining -= 1
                yield _line(each.name, entry)
    except OSError as error:
        raise storage_error(f"reading the log in {directory} failed", error) from error
    finally:
        disk.close(lock)


def _entries(disk: Disk, directory: str, each: Found) -> Iterator[Entry]:
    header = each.header
    if header is None:
        return
    handle = disk.open(f"{directory}/{each.name}")
    try:
        reader = BatchReader(
            Window(disk, handle),
            mark=segment_mark(header.identity, header.sequence),
            group=header.identity.group,
            sequence=header.first_record,
            chain=header.previous_chain,
        )
        for batch in reader.batches():
            yield from batch
    finally:
        disk.close(handle)


def _line(name: str, entry: Entry) -> DumpLine:
    envelope = entry.envelope
    known = envelope.kind in Kind.__members__.values()
    return DumpLine(
        segment=name,
        offset=entry.offset,
        sequence=envelope.sequence,
        kind=Kind(envelope.kind).name if known else str(envelope.kind),
        index=envelope.index,
        term=envelope.term,
        group=envelope.group,
        bucket=envelope.bucket,
        opcode=envelope.opcode,
        count=envelope.count,
        length=envelope.length,
        crc=envelope.payload_crc,
    )


def repair(disk: Disk, directory: str) -> RepairReport:
    """Cut the log to its longest valid prefix, keeping copies of all that is taken out.

    Acknowledged records after the damage leave the log; that is why only a person may call this.
    """
    lock = _lock(disk, directory)
    try:
        return _repair(disk, directory)
    except OSError as error:
        raise storage_error(f"repairing the log in {directory} failed", error) from error
    finally:
        disk.close(lock)


def _repair(disk: Disk, directory: str) -> RepairReport:
    before = set(disk.list_names(directory))
    damages = _set_aside_unreadable(disk, directory)
    cuts: list[Cut] = []
    last_index = 0
    while found := find_segments(disk, directory, None):
        walk = Walker(disk, directory, found).walk()
        if walk.state is None:
            assert walk.damage is not None
            damages.append(walk.damage)
            set_aside(disk, directory, [found[0].name])
            continue
        last_index = walk.state.last_index
        if walk.damage is not None:
            damages.append(walk.damage)
            damage = walk.damage
            walk.cut = Cut(damage.name, walk.end_offset, damage.next_index, damage.reason)
        if walk.cut is None:
            break
        cuts.append(apply_cut(disk, directory, walk))
    aside = sorted(set(disk.list_names(directory)) - before)
    return RepairReport(bool(damages or cuts), last_index, aside, damages, cuts)


def _set_aside_unreadable(disk: Disk, directory: str) -> list[Damage]:
    # Takes out, one by one, the files that cannot be segments of this log: a damaged or foreign
    # header, a wrong name, a duplicate. Walking the rest then cuts at the hole they leave.
    identity = _identity(disk, directory)
    damages: list[Damage] = []
    while True:
        try:
            find_segments(disk, directory, identity)
        except CorruptionError as error:
            name = _culprit(disk, directory, error)
            damages.append(Damage(name, 0, 0, error.message))
            set_aside(disk, directory, [name])
        else:
            return damages


def _culprit(disk: Disk, directory: str, error: CorruptionError) -> str:
    for name in disk.list_names(directory):
        if name.endswith(SUFFIX) and f"segment {name} " in error.message:
            return name
    raise error


def _identity(disk: Disk, directory: str) -> Identity | None:
    # The log is whose most readable segments it is; a lone stranger is the one to set aside.
    votes: dict[Identity, int] = {}
    for name in disk.list_names(directory):
        if not name.endswith(SUFFIX):
            continue
        handle = disk.open(f"{directory}/{name}")
        try:
            header = decode_segment_header(disk.pread(handle, HEADER_BYTES, 0))
        finally:
            disk.close(handle)
        if not isinstance(header, str):
            votes[header.identity] = votes.get(header.identity, 0) + 1
    return max(votes, key=lambda identity: votes[identity]) if votes else None


def _lock(disk: Disk, directory: str) -> int:
    try:
        return disk.lock(f"{directory}/{LOCK_NAME}")
    except OSError as error:
        raise storage_error(f"the log directory {directory} cannot be used", error) from error
