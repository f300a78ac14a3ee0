"""One segment file: its name, its making, and reading its batches back in order.

`BatchReader` is the only decoder of records. Recovery, replay and the offline tools all walk a
segment through it, so what is accepted at the start is what is replayed. It stops at the first
place that does not hold the next whole batch and says what it met; judging that place is the
business of `recovery`.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from corvo.replication.disk import Disk
from corvo.replication.record import (
    FILLER,
    HEADER_BYTES,
    LAST_IN_BATCH,
    PAYLOAD_BYTES_MAX,
    RECORD_HEADER_BYTES,
    ZERO_HEADER,
    Envelope,
    SegmentHeader,
    decode_record_header,
    extend_chain,
    payload_checksum,
)

SUFFIX: Final = ".wal"
DELETED_SUFFIX: Final = ".deleted"
BROKEN_SUFFIX: Final = ".broken"
SPARE_SUFFIX: Final = ".spare"
WINDOW_BYTES: Final = 1 << 20
_NAME = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})\.wal")


class SegmentName(NamedTuple):
    """What the name of a segment says: where it stands and which index it starts with."""

    sequence: int
    first_index: int

    def render(self) -> str:
        """Format: zero-padded hexadecimal, so that any listing shows the true order."""
        return f"{self.sequence:016x}-{self.first_index:016x}{SUFFIX}"


def parse_name(name: str) -> SegmentName | None:
    """Read the name of a segment; None if it is not one."""
    match = _NAME.fullmatch(name)
    return SegmentName(int(match[1], 16), int(match[2], 16)) if match else None


class Segment:
    """A segment the log knows: its header, and its open file while it is written or read."""

    __slots__ = ("handle", "header", "name")

    def __init__(self, name: str, header: SegmentHeader, handle: int | None = None) -> None:
        self.name = name
        self.header = header
        self.handle = handle


def make_blank(disk: Disk, path: str, segment_bytes: int) -> int:
    """Create a file of zeros and make its bytes durable; return its handle.

    Safety: only such a file may become a segment. A sector of it that a power loss took back reads
    as zeros, which is what lets recovery tell a torn write from a changed one.
    """
    handle = disk.create(path)
    try:
        disk.zero_fill(handle, 0, segment_bytes)
        disk.fsync(handle)
    except OSError:
        disk.close(handle)
        disk.unlink(path)
        raise
    return handle


class Window:
    """Sequential reads of a file through a sliding buffer, so a segment is never held whole."""

    def __init__(self, disk: Disk, handle: int) -> None:
        self._disk = disk
        self._handle = handle
        self._start = 0
        self._data = b""
        self.size = disk.size(handle)

    def load(self, offset: int, size: int) -> tuple[bytes, int]:
        """Return a buffer and the position in it of `offset`, with `size` bytes if they exist."""
        begin = offset - self._start
        if begin < 0 or begin + size > len(self._data):
            self._data = self._disk.pread(self._handle, max(size, WINDOW_BYTES), offset)
            self._start = offset
            begin = 0
        return self._data, begin

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes at `offset`, fewer at the end of the file."""
        data, begin = self.load(offset, size)
        return data[begin : begin + size]

    def last_nonzero(self, start: int) -> int:
        """Return the offset just after the last byte that is not zero, or `start` if all are."""
        until = self.size
        while until > start:
            begin = max(start, until - WINDOW_BYTES)
            chunk = self._disk.pread(self._handle, until - begin, begin).rstrip(b"\0")
            if chunk:
                return begin + len(chunk)
            until = begin
        return start


class Entry(NamedTuple):
    """One record as read: where it stands, its header and its payload."""

    offset: int
    envelope: Envelope
    payload: bytes


class Stop(NamedTuple):
    """Where a walk ended: the start of the batch it could not read, and the record it failed on."""

    batch_offset: int
    offset: int
    reason: str
    envelope: Envelope | None


class BatchReader:
    """Walks the batches of one segment; `stop` says where and why it ended.

    `sequence` and `chain` are the state after the last whole batch, so the caller can go on with
    the next segment from there.
    """

    def __init__(self, window: Window, *, mark: int, group: int, sequence: int, chain: int) -> None:
        self.sequence = sequence
        self.chain = chain
        self.stop = Stop(HEADER_BYTES, HEADER_BYTES, "not read yet", None)
        self._window = window
        self._mark = mark
        self._group = group

    def batches(self) -> Iterator[list[Entry]]:
        """Yield whole batches, each a list of at least one record, in order."""
        offset = HEADER_BYTES
        while True:
            batch: list[Entry] = []
            begin, sequence, chain = offset, self.sequence, self.chain
            is_whole = False
            while not is_whole:
                entry = self._next(offset, sequence, chain)
                if isinstance(entry, Stop):
                    self.stop = entry._replace(batch_offset=begin)
                    return
                envelope = entry.envelope
                batch.append(entry)
                offset += envelope.extent_bytes(offset)
                sequence += 1
                chain = envelope.chain
                is_whole = bool(envelope.flags & LAST_IN_BATCH)
            self.sequence, self.chain = sequence, chain
            yield batch

    def _next(self, offset: int, sequence: int, chain: int) -> Entry | Stop:
        data, begin = self._window.load(offset, RECORD_HEADER_BYTES)
        envelope = decode_record_header(data, begin)
        if envelope is None:
            header = data[begin : begin + RECORD_HEADER_BYTES]
            if header == ZERO_HEADER:
                return Stop(offset, offset, "no record", None)
            reason = "the record header is damaged" if header else "the segment is full"
            return Stop(offset, offset, reason, None)
        reason = None
        if envelope.mark != self._mark or envelope.group != self._group:
            reason = "the record belongs to another segment"
        elif envelope.sequence != sequence:
            reason = f"record {envelope.sequence} stands here"
        elif envelope.length > PAYLOAD_BYTES_MAX:
            # The length is bounded before anything of that size is read.
            reason = f"a payload of {envelope.length} bytes is too long"
        elif extend_chain(chain, data, begin) != envelope.chain:
            reason = "the chain of checksums is broken"
        return self._body(offset, envelope) if not reason else Stop(offset, offset, reason, None)

    def _body(self, offset: int, envelope: Envelope) -> Entry | Stop:
        extent = envelope.extent_bytes(offset)
        if offset + extent > self._window.size:
            return Stop(offset, offset, "the record runs past the end of the file", envelope)
        data, begin = self._window.load(offset, extent)
        start = begin + RECORD_HEADER_BYTES
        until = start + envelope.length
        payload = data[start:until]
        filler = data[until : begin + extent]
        if payload_checksum(payload) != envelope.payload_crc:
            return Stop(offset, offset, "the payload does not match its checksum", envelope)
        if filler != FILLER[: len(filler)]:
            return Stop(offset, offset, "the filler after the payload is damaged", envelope)
        return Entry(offset, envelope, payload)
