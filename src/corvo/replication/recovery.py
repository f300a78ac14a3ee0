"""What a crash may leave behind, and how the log is brought back from it.

The walk goes through the segments in numeric order and accepts whole batches while mark, sequence,
chain, checksums, indexes and terms agree. Call s the sequence of the record expected where the
walk stops. Either the log simply ends there, or something is missing or damaged. Two questions
decide, in this order.

1. Was record s acknowledged? Every record header, and every segment header, carries the sequence of
   the last record known durable when it was written, under a checksum of its own. If any header
   beyond the stop (in this segment or a later one) names s or more, then s was once durable and is
   not any more: that is corruption. The start is refused and nothing is changed.
   A valid later record alone proves nothing: two batches may have been under way, and the disk may
   have kept the second and not the first. What it says about s proves everything.

2. Could a crash have left this shape? A segment is a file of synced zeros, and a sector is either
   written whole or not at all, so a lost write reads as a whole sector of zeros. A record whose
   header holds but whose body does not must therefore show a sector of zeros more than its header
   counts, or end in a zero where filler belongs; a damaged header must be the start of a write
   that stopped, with nothing but zeros behind it. Any other shape is a changed bit: refused.

If both answers allow it, the tail is unacknowledged and torn: a copy is kept (`.broken`), the rest
of the segment is zeroed and synced, later segments are set aside under the same suffix, and the
log goes on from the last whole batch. All of this can be interrupted and done again, because
zeroing never creates a header that names s.

The limits, stated plainly. (a) The very last record has no successor to vouch for it. If it was
acknowledged and later reads with a lost (zeroed) sector, it is taken for torn; a changed bit in it
is still refused. `LocalLog.mark` (called when idle) and `close` write a SYNCED record to shrink
that window. (b) A last segment that vanished, or a file cut short after its last vouched record,
looks like a crash; the owner of the log compares the last index with what it has applied.
"""

from itertools import pairwise
from typing import Final, NoReturn

import msgspec

from corvo.errors import CorruptionError
from corvo.replication.disk import Disk
from corvo.replication.record import (
    HEADER_BYTES,
    RECORD_HEADER_BYTES,
    SECTOR_BYTES,
    ZERO_SECTOR,
    Identity,
    SegmentHeader,
    count_zero_sectors,
    decode_record_header,
    decode_segment_header,
    segment_mark,
)
from corvo.replication.segment import (
    SUFFIX,
    WINDOW_BYTES,
    BatchReader,
    SegmentName,
    Stop,
    Window,
    parse_name,
)
from corvo.replication.state import LogState

HINT: Final = (
    "nothing was changed; look with `corvo wal verify` and `corvo wal dump`, restore a backup, or "
    "run `corvo wal repair`, which keeps the damaged files and cuts the log before the damage"
)


class Cut(msgspec.Struct, frozen=True):
    """A torn tail: which file, where it is cut, the next index, and what was met there."""

    name: str
    offset: int
    next_index: int
    reason: str
    copy_name: str = ""


class Damage(msgspec.Struct, frozen=True):
    """Corruption: which file, where, the index expected there, and why it is not a torn tail."""

    name: str
    offset: int
    next_index: int
    reason: str

    def render(self) -> str:
        """One sentence for an operator."""
        return (
            f"log segment {self.name} is damaged at offset {self.offset}"
            f" (entry {self.next_index}): {self.reason}"
        )

    def refuse(self) -> NoReturn:
        """Refuse the start."""
        raise CorruptionError(self.render(), hint=HINT)


class Found(msgspec.Struct):
    """A segment file in the directory: what its name and its header say."""

    name: str
    parsed: SegmentName
    header: SegmentHeader | None


class Walk(msgspec.Struct):
    """The outcome of reading a directory: exactly one of `cut`, `damage` or neither."""

    state: LogState | None
    segments: list[Found]
    keep_count: int
    end_offset: int
    cut: Cut | None
    damage: Damage | None
    notes: list[str]


def find_segments(disk: Disk, directory: str, identity: Identity | None) -> list[Found]:
    """List the segments in numeric order with their headers; refuse what cannot belong here."""
    found: list[Found] = []
    for name in disk.list_names(directory):
        if not name.endswith(SUFFIX):
            continue
        parsed = parse_name(name)
        if parsed is None:
            Damage(name, 0, 0, "this is not the name of a log segment").refuse()
        found.append(Found(name, parsed, _load_header(disk, directory, name, parsed, identity)))
    found.sort(key=lambda each: each.parsed)
    for left, right in pairwise(found):
        if left.parsed.sequence == right.parsed.sequence:
            why = f"segment {left.parsed.sequence} exists twice, the other one is {left.name}"
            Damage(right.name, 0, right.parsed.first_index, why).refuse()
    return found


def _load_header(
    disk: Disk, directory: str, name: str, parsed: SegmentName, identity: Identity | None
) -> SegmentHeader | None:
    # None is a header of zeros: the name reached the disk and the bytes did not.
    handle = disk.open(f"{directory}/{name}")
    try:
        sector = disk.pread(handle, HEADER_BYTES, 0)
    finally:
        disk.close(handle)
    if sector == ZERO_SECTOR:
        return None
    header = decode_segment_header(sector)
    if isinstance(header, str):
        Damage(name, 0, parsed.first_index, header).refuse()
    if (header.sequence, header.first_index) != parsed:
        Damage(name, 0, parsed.first_index, "the file was renamed: its header differs").refuse()
    if identity is not None and header.identity != identity:
        why = f"it belongs to another log ({_name_identity(header.identity)})"
        Damage(name, 0, parsed.first_index, why).refuse()
    return header


def _name_identity(identity: Identity) -> str:
    cluster = identity.cluster_id.hex()
    return f"cluster {cluster}, node {identity.node_id}, group {identity.group}"


class Walker:
    """Reads a whole directory once and judges its end; changes nothing."""

    def __init__(self, disk: Disk, directory: str, found: list[Found]) -> None:
        assert found, "an empty directory has nothing to walk"
        self._disk = disk
        self._directory = directory
        self._found = found
        self._notes: list[str] = []

    def walk(self) -> Walk:
        """Read every batch of every segment and say how the log ends."""
        first = self._found[0]
        if first.header is None:
            reason = "the first segment has an empty header"
            return self._damaged(None, 0, Stop(0, 0, reason, None), reason)
        state = LogState(first.header)
        for position, each in enumerate(self._found):
            header = each.header
            assert header is not None, "a segment is entered only if its header continues the log"
            reason, stop = self._read(each, header, state)
            if reason is not None:
                return self._damaged(state, position, stop, reason)
            is_last = position + 1 == len(self._found)
            if not is_last and self._is_continued(state, position + 1):
                self._note_stray_bytes(each, stop)
                continue
            return self._judge(state, position, stop)
        raise AssertionError("the last segment always ends the walk")

    def _read(self, each: Found, header: SegmentHeader, state: LogState) -> tuple[str | None, Stop]:
        handle = self._disk.open(f"{self._directory}/{each.name}")
        try:
            window = Window(self._disk, handle)
            mark = segment_mark(header.identity, header.sequence)
            group = header.identity.group
            reader = BatchReader(
                window, mark=mark, group=group, sequence=state.sequence, chain=state.chain
            )
            for batch in reader.batches():
                for entry in batch:
                    reason = state.absorb(entry)
                    if reason is not None:
                        return reason, Stop(batch[0].offset, entry.offset, reason, entry.envelope)
                state.sequence, state.chain = reader.sequence, reader.chain
        finally:
            self._disk.close(handle)
        return None, reader.stop

    def _follows(self, header: SegmentHeader, position: int, state: LogState) -> bool:
        return (
            header.first_record == state.sequence
            and header.previous_chain == state.chain
            and header.sequence == self._found[position - 1].parsed.sequence + 1
        )

    def _is_continued(self, state: LogState, position: int) -> bool:
        header = self._found[position].header
        return header is not None and self._follows(header, position, state)

    def _judge(self, state: LogState, position: int, stop: Stop) -> Walk:
        each = self._found[position]
        assert each.header is not None
        handle = self._disk.open(f"{self._directory}/{each.name}")
        try:
            window = Window(self._disk, handle)
            evidence = self._evidence_after(window, each, stop.batch_offset, state.sequence)
            later = position + 1 < len(self._found)
            end = window.last_nonzero(stop.batch_offset)
            is_clean = end == stop.batch_offset and window.size == each.header.segment_bytes
            is_torn = is_clean or _is_torn(window, stop, end, each.header.segment_bytes)
            is_short = window.size < each.header.segment_bytes
        finally:
            self._disk.close(handle)
        why = self._acknowledged(state, position + 1, evidence)
        if why is not None:
            return self._damaged(state, position, stop, f"{stop.reason}; {why}")
        if not is_torn:
            why = "no crash leaves such bytes, so they were changed after they were written"
            return self._damaged(state, position, stop, f"{stop.reason}; {why}")
        cut = None
        if not is_clean or later:
            reason = "the next segment was never synced" if is_clean else stop.reason
            if is_short:
                reason = "the file is shorter than it was made"
            cut = Cut(each.name, stop.batch_offset, state.last_index + 1, reason)
        return self._walk(state, position + 1, stop.batch_offset, cut, None)

    def _acknowledged(self, state: LogState, position: int, evidence: int) -> str | None:
        for each in self._found[position:]:
            evidence = max(evidence, self._evidence_in(each, state.sequence))
        if evidence < state.sequence:
            return None
        return f"record {state.sequence} was durable once: a later record vouches for it"

    def _evidence_in(self, each: Found, sequence: int) -> int:
        evidence = each.header.synced_record if each.header is not None else 0
        handle = self._disk.open(f"{self._directory}/{each.name}")
        try:
            window = Window(self._disk, handle)
            return max(evidence, self._evidence_after(window, each, HEADER_BYTES, sequence))
        finally:
            self._disk.close(handle)

    def _evidence_after(self, window: Window, each: Found, start: int, sequence: int) -> int:
        # Looks at every place a record header may stand. The mark, which only this segment of this
        # log has, makes the search a scan for four bytes.
        first = self._found[0].header
        assert first is not None
        mark = segment_mark(first.identity, each.parsed.sequence).to_bytes(4, "little")
        evidence = 0
        for begin in range(start, window.size, WINDOW_BYTES):
            data = window.read(begin, WINDOW_BYTES)
            place = data.find(mark)
            while place >= 0:
                if place % RECORD_HEADER_BYTES == 0:
                    envelope = decode_record_header(data, place)
                    if envelope is not None and envelope.sequence >= sequence:
                        evidence = max(evidence, envelope.synced_record)
                place = data.find(mark, place + 1)
        return evidence

    def _note_stray_bytes(self, each: Found, stop: Stop) -> None:
        handle = self._disk.open(f"{self._directory}/{each.name}")
        try:
            end = Window(self._disk, handle).last_nonzero(stop.batch_offset)
        finally:
            self._disk.close(handle)
        if end != stop.batch_offset:
            self._notes.append(
                f"{each.name}: bytes after the last record, up to offset {end}, should be zero;"
                " no record is affected, but the disk changed them"
            )

    def _damaged(self, state: LogState | None, position: int, stop: Stop, reason: str) -> Walk:
        each = self._found[position]
        next_index = each.parsed.first_index if state is None else state.last_index + 1
        damage = Damage(each.name, stop.offset, next_index, reason)
        return self._walk(state, position + 1, stop.batch_offset, None, damage)

    def _walk(
        self,
        state: LogState | None,
        keep_count: int,
        end_offset: int,
        cut: Cut | None,
        damage: Damage | None,
    ) -> Walk:
        return Walk(state, self._found, keep_count, end_offset, cut, damage, self._notes)


def _is_torn(window: Window, stop: Stop, end: int, segment_bytes: int) -> bool:
    # `end` is the offset after the last byte that is not zero. A record that would not fit the
    # segment as it was made was never written, so its header is a lie and no crash.
    envelope = stop.envelope
    if envelope is None:
        header = window.read(stop.offset, RECORD_HEADER_BYTES)
        if len(header) < RECORD_HEADER_BYTES or not any(header):
            return True
        # A write that stopped inside the header: a whole record has filler behind its header.
        return end <= stop.offset + RECORD_HEADER_BYTES
    until = stop.offset + envelope.extent_bytes(stop.offset)
    if until > segment_bytes:
        return False
    if until > window.size or window.read(until - 1, 1) == b"\0":
        return True
    payload = window.read(stop.offset + RECORD_HEADER_BYTES, envelope.length)
    first = -(stop.offset + RECORD_HEADER_BYTES) % SECTOR_BYTES
    return count_zero_sectors(payload, first) > envelope.zero_sectors
