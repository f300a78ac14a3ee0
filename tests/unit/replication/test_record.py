"""The bytes of the log, alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.replication.record import (
    HEADER_BYTES,
    LAST_IN_BATCH,
    SECTOR_BYTES,
    Envelope,
    HardState,
    Identity,
    Kind,
    SegmentHeader,
    decode_record_header,
    decode_segment_header,
    encode_record,
    encode_segment_header,
    extend_chain,
    payload_checksum,
    segment_mark,
)

IDENTITY = Identity(bytes(16), 3, 4)
HEADER = SegmentHeader(IDENTITY, 5, 60, 70, 69, HardState(7, 8, 9), 8192, 6, 0xABCD)


def _encode(payload: bytes, *, start: int = 0, flags: int = LAST_IN_BATCH) -> bytes:
    data, _, _ = encode_record(
        11, payload, mark=segment_mark(IDENTITY, 5), kind=Kind.NORMAL, flags=flags, opcode=2,
        group=4, bucket=5, sequence=70, index=60, term=7, behind=1, count=3, start=start,
    )  # fmt: skip
    return data


def _decode(data: bytes) -> Envelope:
    envelope = decode_record_header(data, 0)
    assert envelope is not None
    return envelope


@given(st.binary(max_size=3000), st.integers(0, 15), st.booleans())
def test_a_record_reads_back_as_written(payload: bytes, place: int, is_last: bool) -> None:
    """Header fields, payload and extent survive, wherever in a sector the record starts."""
    start = place * 64
    data = _encode(payload, start=start, flags=LAST_IN_BATCH if is_last else 0)
    envelope = _decode(data)
    assert len(data) == envelope.extent_bytes(start)
    assert (start + len(data)) % (SECTOR_BYTES if is_last else 64) == 0
    assert data[64 : 64 + envelope.length] == payload
    assert data[-1] == 0xA5
    assert envelope.payload_crc == payload_checksum(payload)
    assert envelope.chain == extend_chain(11, data, 0)
    assert (envelope.sequence, envelope.index, envelope.term) == (70, 60, 7)
    assert (envelope.opcode, envelope.group, envelope.bucket, envelope.count) == (2, 4, 5, 3)
    assert envelope.synced_record == 69


def test_every_changed_bit_of_a_record_header_is_noticed() -> None:
    """The header's own checksum covers all 512 bits of it."""
    data = _encode(b"payload")
    for bit in range(64 * 8):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        assert decode_record_header(bytes(changed), 0) is None


@pytest.mark.parametrize(
    ("size", "first", "expected"), [(2000, 448, 0), (2048, 448, 3), (4096, 448, 7), (511, 448, 0)]
)
def test_zero_sectors_of_a_payload_are_counted(size: int, first: int, expected: int) -> None:
    """The header counts the payload's own zero sectors, so they are not taken for lost ones."""
    payload = bytes(size) if expected else b"x" * size
    assert first == SECTOR_BYTES - 64
    assert _decode(_encode(payload)).zero_sectors == expected


def test_a_segment_header_reads_back_and_every_changed_bit_is_noticed() -> None:
    """The first sector holds all fields and no bit of it can change unseen."""
    sector = encode_segment_header(HEADER)
    assert len(sector) == HEADER_BYTES
    assert decode_segment_header(sector) == HEADER
    for bit in range(HEADER_BYTES * 8):
        changed = bytearray(sector)
        changed[bit // 8] ^= 1 << bit % 8
        assert isinstance(decode_segment_header(bytes(changed)), str)


def test_an_unknown_version_is_named() -> None:
    """A log of a later release is refused by its version, not as damage."""
    sector = bytearray(encode_segment_header(HEADER))
    sector[8] = 9
    sector[508:] = payload_checksum(bytes(sector[:508])).to_bytes(4, "little")
    assert "version 9" in str(decode_segment_header(bytes(sector)))


@given(st.binary(max_size=600))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    """The decoders never fail in any other way."""
    assert decode_record_header(data, 0) is None
    assert isinstance(decode_segment_header(data), str)


def test_marks_differ_between_segments_and_logs() -> None:
    """A record of another segment or another log never passes for one of this segment."""
    marks = {segment_mark(Identity(bytes(16), node, 0), seq) for node in (1, 2) for seq in (1, 2)}
    assert len(marks) == 4
