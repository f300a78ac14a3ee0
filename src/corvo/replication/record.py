"""The bytes of the log: segment header and record.

Format: a segment is one preallocated file, little-endian throughout, zeros where nothing was
written. The header has the first sector (512 bytes) to itself; batches of records follow.

    0        512                       512 + n · 512
    ┌────────┬───────────┬─────────────┬──────────┬───────────────┐
    │ header │ batch     │ batch       │ batch    │ zeros …       │
    └────────┴───────────┴─────────────┴──────────┴───────────────┘
              one pwrite, starts on a sector, is padded to the end of a sector

Segment header (512 bytes):

    offset size field
    0      8    magic "CORVOWAL"
    8      4    format version
    12     4    group id
    16     16   cluster id
    32     8    node id
    40     8    segment sequence, 1 for the first, in the file name too
    48     8    index the next entry will have, in the file name too
    56     8    sequence of the first record
    64     8    sequence of the last record known durable when the segment was made
    72     24   hard state: term, vote, commit
    96     8    size of the file
    104    8    term of the entry before the first index
    112    4    chain value of the last record before this segment
    116    392  zeros
    508    4    CRC32C of bytes 0..508

Record: a 64-byte header on a 64-byte boundary, so that it never spans two sectors, then the
payload, then at least one byte of filler (0xA5) up to the next boundary: 64 inside a batch, 512
after the last record of a batch (flag 1).

    0      4    mark of the segment: CRC32C of cluster, node, group and segment sequence
    4      1    kind            5   1  flags          6   2  opcode
    8      4    group           12  4  bucket
    16     8    sequence        24  8  raft index     32  8  term
    40     4    behind: sequence minus that of the last record known durable at the write
    44     4    payload length
    48     2    count of commands in the entry
    50     2    count of whole sectors inside the payload that are zero as written
    52     4    CRC32C of the payload
    56     4    chain: CRC32C of bytes 0..56 of every record since the log began, rolling
    60     4    CRC32C of bytes 0..60, never zero

The chain binds every record to all before it (a payload through its own CRC), so a stale, moved or
foreign record cannot follow. The header's own CRC lets recovery trust a length and a `behind`
without knowing what came before, which is what tells a torn tail from corruption; see `recovery`.

Version 1 is the only one. To change the format: raise FORMAT_VERSION, keep the magic, the version
and the CRC where they are, teach the reader both versions, write the new one only from the next
rotation on, and keep a directory of the old version under tests/compat. A reader that meets a
higher version refuses to start and changes nothing.
"""

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Final, NamedTuple, cast

import google_crc32c
import msgspec

FORMAT_VERSION: Final = 1
MAGIC: Final = b"CORVOWAL"
SECTOR_BYTES: Final = 512
HEADER_BYTES: Final = SECTOR_BYTES
RECORD_HEADER_BYTES: Final = 64
PAYLOAD_BYTES_MAX: Final = 16 << 20
LAST_IN_BATCH: Final = 1
BEHIND_MAX: Final = 0xFFFF_FFFF
COUNT_MAX: Final = 0xFFFF
CLUSTER_ID_BYTES: Final = 16
FILLER: Final = b"\xa5" * SECTOR_BYTES
ZERO_SECTOR: Final = bytes(SECTOR_BYTES)
ZERO_HEADER: Final = bytes(RECORD_HEADER_BYTES)

_SEGMENT = struct.Struct("<8sII16sQQQQQQQQQQI")
_MARK = struct.Struct("<16sQIQ")
_FIELDS = struct.Struct("<IBBHIIQQQIIHHI")
_CHECKS = struct.Struct("<II")
_WORD = struct.Struct("<I")
_HARD_STATE = struct.Struct("<QQQ")
_POSITION = struct.Struct("<QQ")
_HEADER_CRC_OFFSET = HEADER_BYTES - 4

# The library has no annotations of its own.
_extend = cast("Callable[[int, bytes], int]", google_crc32c.extend)  # pyright: ignore[reportUnknownMemberType]
_value = cast("Callable[[bytes], int]", google_crc32c.value)  # pyright: ignore[reportUnknownMemberType]


class Kind(IntEnum):
    """What a record is. NORMAL and CONF have an index of their own; the others repeat the last."""

    NORMAL = 1
    CONF = 2
    HARDSTATE = 3
    SNAPSHOT = 4
    SYNCED = 5


class Identity(NamedTuple):
    """Whose log it is; a segment of another log is never read into this one."""

    cluster_id: bytes
    node_id: int
    group: int


class HardState(NamedTuple):
    """What raft may never forget; a local log stays at term 1."""

    term: int
    vote: int
    commit: int


class SegmentHeader(NamedTuple):
    """The first sector of a segment, see the drawing above."""

    identity: Identity
    sequence: int
    first_index: int
    first_record: int
    synced_record: int
    hard_state: HardState
    segment_bytes: int
    previous_term: int
    previous_chain: int


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """The header of a record in memory, in the order of the bytes."""

    mark: int
    kind: int
    flags: int
    opcode: int
    group: int
    bucket: int
    sequence: int
    index: int
    term: int
    behind: int
    length: int
    count: int
    zero_sectors: int
    payload_crc: int
    chain: int

    @property
    def synced_record(self) -> int:
        """The sequence of the last record that was durable when this one was written."""
        return self.sequence - self.behind

    def extent_bytes(self, offset: int) -> int:
        """How many bytes the record takes when it stands at `offset`, filler included."""
        return extent_bytes(self.length, offset, is_last=bool(self.flags & LAST_IN_BATCH))


def extent_bytes(length: int, offset: int, *, is_last: bool) -> int:
    """Round the end of header, payload and at least one byte of filler up to a boundary."""
    boundary = SECTOR_BYTES if is_last else RECORD_HEADER_BYTES
    return (offset + RECORD_HEADER_BYTES + length) // boundary * boundary + boundary - offset


def segment_mark(identity: Identity, sequence: int) -> int:
    """Derive the mark of a segment's records; never zero, so never mistaken for unwritten."""
    packed = _MARK.pack(identity.cluster_id, identity.node_id, identity.group, sequence)
    return _value(packed) or 1


def encode_segment_header(header: SegmentHeader) -> bytes:
    """Render the first sector of a segment."""
    identity = header.identity
    assert len(identity.cluster_id) == CLUSTER_ID_BYTES
    fields = _SEGMENT.pack(
        MAGIC,
        FORMAT_VERSION,
        identity.group,
        identity.cluster_id,
        identity.node_id,
        header.sequence,
        header.first_index,
        header.first_record,
        header.synced_record,
        *header.hard_state,
        header.segment_bytes,
        header.previous_term,
        header.previous_chain,
    )
    body = fields.ljust(_HEADER_CRC_OFFSET, b"\0")
    return body + _WORD.pack(_value(body))


def decode_segment_header(sector: bytes) -> SegmentHeader | str:
    """Read the first sector of a segment, or say in a phrase what is wrong with it."""
    if len(sector) < HEADER_BYTES:
        return "the file is shorter than a segment header"
    fields = _SEGMENT.unpack_from(sector)
    if fields[0] != MAGIC:
        return "the magic bytes of a log segment are missing"
    (crc,) = _WORD.unpack_from(sector, _HEADER_CRC_OFFSET)
    if crc != _value(sector[:_HEADER_CRC_OFFSET]):
        return "the checksum of the segment header does not match"
    if fields[1] != FORMAT_VERSION:
        return f"format version {fields[1]} is not known to this release ({FORMAT_VERSION})"
    return SegmentHeader(
        identity=Identity(fields[3], fields[4], fields[2]),
        sequence=fields[5],
        first_index=fields[6],
        first_record=fields[7],
        synced_record=fields[8],
        hard_state=HardState(*fields[9:12]),
        segment_bytes=fields[12],
        previous_term=fields[13],
        previous_chain=fields[14],
    )


def encode_record(  # noqa: PLR0913 - the fields of the header, in the order of the bytes
    chain: int,
    payload: bytes,
    *,
    mark: int,
    kind: int,
    flags: int,
    opcode: int,
    group: int,
    bucket: int,
    sequence: int,
    index: int,
    term: int,
    behind: int,
    count: int,
    start: int,
) -> tuple[bytes, int, int]:
    """Render a record `start` bytes into its batch; return (bytes, chain, payload crc).

    Cost: 2 µs for a payload of 4 KiB, half of it the two passes over the payload.
    """
    length = len(payload)
    payload_crc = _value(payload)
    zero_sectors = 0
    # Cost: one byte of each sector decides; payloads of text never go further than this slice.
    if length >= SECTOR_BYTES:
        first = -(start + RECORD_HEADER_BYTES) % SECTOR_BYTES
        if 0 in payload[first::SECTOR_BYTES]:
            zero_sectors = count_zero_sectors(payload, first)
    fields = _FIELDS.pack(
        mark, kind, flags, opcode, group, bucket, sequence, index, term,
        behind, length, count, zero_sectors, payload_crc,
    )  # fmt: skip
    chain = _extend(chain, fields)
    header_crc = _extend(_value(fields), _WORD.pack(chain)) or 1
    boundary = SECTOR_BYTES if flags & LAST_IN_BATCH else RECORD_HEADER_BYTES
    filler = FILLER[(start + RECORD_HEADER_BYTES + length) % boundary : boundary]
    return b"".join((fields, _CHECKS.pack(chain, header_crc), payload, filler)), chain, payload_crc


def decode_record_header(data: bytes, offset: int) -> Envelope | None:
    """Read a record header at `offset`, or None if its own checksum does not hold."""
    if len(data) - offset < RECORD_HEADER_BYTES:
        return None
    chain, header_crc = _CHECKS.unpack_from(data, offset + _FIELDS.size)
    if header_crc != (_value(data[offset : offset + RECORD_HEADER_BYTES - 4]) or 1):
        return None
    return Envelope(*_FIELDS.unpack_from(data, offset), chain=chain)


def extend_chain(chain: int, data: bytes, offset: int) -> int:
    """Return the chain value after the record header at `offset`."""
    return _extend(chain, data[offset : offset + _FIELDS.size])


def payload_checksum(payload: bytes) -> int:
    """CRC32C of a payload, the value kept in the record and in the validator's ring."""
    return _value(payload)


def count_zero_sectors(data: bytes, first: int) -> int:
    """Count whole sectors of zeros in `data`, sectors starting at `first`."""
    last = len(data) - SECTOR_BYTES + 1
    return sum(
        data[offset : offset + SECTOR_BYTES] == ZERO_SECTOR
        for offset in range(first, last, SECTOR_BYTES)
    )


def encode_hard_state(state: HardState) -> bytes:
    """Payload of a HARDSTATE record."""
    return _HARD_STATE.pack(*state)


def decode_hard_state(payload: bytes) -> HardState | None:
    """Read the payload of a HARDSTATE record; None if it cannot be one."""
    return HardState(*_HARD_STATE.unpack(payload)) if len(payload) == _HARD_STATE.size else None


def encode_position(index: int, term: int) -> bytes:
    """Payload of a SNAPSHOT or SYNCED record: the index and term it speaks of."""
    return _POSITION.pack(index, term)


def decode_position(payload: bytes) -> tuple[int, int] | None:
    """Read the payload of a SNAPSHOT or SYNCED record; None if it cannot be one."""
    if len(payload) != _POSITION.size:
        return None
    index, term = _POSITION.unpack(payload)
    return index, term
