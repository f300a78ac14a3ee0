"""Damaged logs: what is cut, what is refused, and that nothing is accepted in silence."""

from random import Random

import pytest

from corvo.errors import CorruptionError, StorageError
from corvo.replication import MemoryDisk
from corvo.replication.record import (
    LAST_IN_BATCH,
    PAYLOAD_BYTES_MAX,
    Identity,
    Kind,
    encode_record,
    segment_mark,
)
from tests.replication_kit import (
    CLUSTER_ID,
    DIRECTORY,
    append_synced,
    contents,
    open_log,
    payload,
    segment_paths,
    try_contents,
)


def _small_log(*sizes: int, is_closed: bool = False) -> tuple[MemoryDisk, str]:
    disk = MemoryDisk()
    log = open_log(disk, segment_bytes=4096)
    append_synced(log, *sizes)
    if is_closed:
        log.close()
    return disk, segment_paths(disk)[0]


def _expected(*sizes: int) -> list[tuple[int, bytes]]:
    return [(index, payload(index, size)) for index, size in enumerate(sizes, 1)]


def _with(path: str, content: bytes) -> MemoryDisk:
    disk = MemoryDisk()
    disk.put(path, content)
    return disk


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "killed"])
def test_no_flipped_bit_of_a_log_is_accepted_in_silence(is_closed: bool) -> None:
    """Each of the 32,768 bits of a 4 KiB log: refused, or provably harmless and reported."""
    sizes = (40, 700, 40)
    disk, path = _small_log(*sizes, is_closed=is_closed)
    content = disk.content(path)
    assert len(content) == 4096
    used = len(content.rstrip(b"\0"))
    refused = harmless = 0
    for bit in range(len(content) * 8):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        remains = _with(path, bytes(changed))
        result = try_contents(remains)
        if isinstance(result, str):
            assert path.rpartition("/")[2] in result
            assert remains.content(path) == bytes(changed), "a refusal changes nothing"
            refused += 1
        else:
            # Only a bit in the unwritten zeros may be repaired, and it loses nothing.
            assert bit // 8 >= used
            assert result == _expected(*sizes)
            assert any(".broken" in name for name in remains.list_names(DIRECTORY))
            harmless += 1
    assert refused >= used * 8
    assert harmless > 0


@pytest.mark.parametrize("size", [10, 448, 900])
def test_a_write_cut_at_every_byte_of_the_last_record_is_torn(size: int) -> None:
    """Zeros from any byte of the last record on: it is cut, a copy is kept, the rest stays."""
    disk, path = _small_log(40, 700)
    start = len(disk.content(path).rstrip(b"\0"))
    log = open_log(disk.kill(), segment_bytes=4096)
    log.append(payload(3, size))
    content = disk.content(path)
    until = len(content.rstrip(b"\0"))
    for end in range(start, until):
        remains = _with(path, content[:end].ljust(4096, b"\0"))
        reopened = open_log(remains, segment_bytes=4096)
        assert contents(reopened) == _expected(40, 700)
        assert remains.content(path) == content[:start].ljust(4096, b"\0")
        cut = reopened.recovery.cut
        if end == start:
            assert cut is None
        else:
            assert cut is not None
            assert (cut.offset, cut.next_index) == (start, 3)
            assert remains.content(f"{DIRECTORY}/{cut.copy_name}") == content[:end].rstrip(b"\0")


def test_a_file_cut_short_inside_the_last_record_is_torn_and_made_whole() -> None:
    """A truncated last file is cut before the torn record and gets its size back."""
    disk, path = _small_log(40, 700, 300)
    content = disk.content(path)
    start = len(content.rstrip(b"\0")) - 512
    for size in range(start, start + 512):
        remains = _with(path, content[:size])
        log = open_log(remains, segment_bytes=4096)
        assert contents(log) == _expected(40, 700)
        assert "shorter" in log.recovery.notes[0]
        assert len(remains.content(path)) == 4096


def test_every_lost_sector_of_an_acknowledged_record_is_refused() -> None:
    """A zeroed sector below a record that vouches for it is corruption, not a torn write."""
    disk, path = _small_log(40, 1400, 40)
    content = disk.content(path)
    # The last record vouches for the two before it, which end where it starts.
    last = len(content.rstrip(b"\0")) - 512
    for sector in range(0, last, 512):
        damaged = bytearray(content)
        damaged[sector : sector + 512] = bytes(512)
        assert isinstance(try_contents(_with(path, bytes(damaged))), str)


def test_a_zero_payload_that_is_damaged_is_not_taken_for_torn() -> None:
    """Zero sectors a payload has by itself do not hide a changed bit, even in the last record."""
    disk = MemoryDisk()
    log = open_log(disk)
    log.append(bytes(3000) + b"end")
    log.sync(lambda: None)
    path = segment_paths(disk)[0]
    assert open_log(disk.kill()).last_index == 1
    damaged = bytearray(disk.content(path))
    damaged[1024 + 64 + 3001] ^= 8
    assert "no crash leaves such bytes" in str(try_contents(_with(path, bytes(damaged))))


def test_stale_bytes_after_the_tail_are_never_resurrected() -> None:
    """A copy of an older record behind the end is removed, not replayed."""
    disk, path = _small_log(40, 40, 40)
    content = bytearray(disk.content(path))
    end = len(content.rstrip(b"\0"))
    content[end + 512 : end + 1024] = content[1024:1536]
    remains = _with(path, bytes(content))
    log = open_log(remains, segment_bytes=4096)
    assert contents(log) == _expected(40, 40, 40)
    assert not any(remains.content(path)[end:])
    # Directly at the end the stale record stands where the next one belongs: no crash does that.
    content[end : end + 512] = content[1024:1536]
    assert isinstance(try_contents(_with(path, bytes(content))), str)


def test_a_record_cut_off_does_not_come_back_after_a_shorter_one_is_written() -> None:
    """What recovery cut is zeroed on disk, so a later, shorter record has no stale neighbour."""
    disk, path = _small_log(40)
    log = open_log(disk.kill(), segment_bytes=4096)
    log.append(payload(2, 900))
    log.append(payload(3, 40))
    content = bytearray(disk.content(path))
    start = 512 * 3
    content[start : start + 512] = bytes(512)
    remains = _with(path, bytes(content))
    again = open_log(remains, segment_bytes=4096)
    assert again.last_index == 1
    append_synced(again, 40)
    assert contents(open_log(remains.kill(), segment_bytes=4096)) == _expected(40, 40)


def _many_segments(disk: MemoryDisk, count: int = 14) -> list[str]:
    log = open_log(disk, segment_bytes=2048)
    while len(log.segments) < count:
        append_synced(log, 900)
    return segment_paths(disk)


def test_more_than_ten_segments_are_read_in_numeric_order() -> None:
    """Segment 10 comes after segment 9, in the listing and in the log."""
    disk = MemoryDisk()
    paths = _many_segments(disk, 18)
    log = open_log(disk.kill())
    assert [segment.header.sequence for segment in log.segments] == list(range(1, 19))
    assert contents(log) == _expected(*[900] * log.last_index)
    assert len(paths) == 18


def test_a_missing_middle_segment_is_refused() -> None:
    """A hole in the sequence is refused and the segment beyond it is not touched."""
    for position in (1, 2, 5, 12):
        disk = MemoryDisk()
        paths = _many_segments(disk)
        disk.remove(paths[position])
        assert "vouches" in str(try_contents(disk.kill()))


def test_a_missing_first_segment_is_noticed_by_the_replay() -> None:
    """A log may begin anywhere after a release, but it never skips what it is asked for."""
    disk = MemoryDisk()
    paths = _many_segments(disk)
    disk.remove(paths[0])
    log = open_log(disk.kill())
    with pytest.raises(CorruptionError, match="is gone"):
        list(log.replay(0))


def test_swapped_renamed_and_duplicated_segments_are_refused() -> None:
    """A file's name and its header must agree, and each sequence exists once."""
    disk = MemoryDisk()
    paths = _many_segments(disk)
    first, second = disk.content(paths[3]), disk.content(paths[4])
    disk.put(paths[3], second)
    disk.put(paths[4], first)
    assert "renamed" in str(try_contents(disk.kill()))
    disk.put(paths[3], first)
    disk.put(paths[4], second)
    disk.put(f"{DIRECTORY}/{4:016x}-{99:016x}.wal", first)
    assert isinstance(try_contents(disk.kill()), str)
    disk.remove(f"{DIRECTORY}/{4:016x}-{99:016x}.wal")
    disk.put(f"{DIRECTORY}/00004.wal", first)
    assert "not the name" in str(try_contents(disk.kill()))


def test_a_flipped_bit_in_a_middle_segment_is_refused_everywhere() -> None:
    """Damage in an old segment never cuts the log; stray bits in its zeros are reported."""
    disk = MemoryDisk()
    paths = _many_segments(disk, 4)
    content = disk.content(paths[1])
    used = len(content.rstrip(b"\0"))
    for byte in range(0, len(content), 7):
        changed = bytearray(content)
        changed[byte] ^= 16
        disk.put(paths[1], bytes(changed))
        if byte < used:
            assert isinstance(try_contents(disk.kill()), str)
        else:
            log = open_log(disk.kill())
            assert log.recovery.cut is None
            assert "should be zero" in log.recovery.notes[0]


def test_another_group_or_cluster_is_refused() -> None:
    """A log opens only for the cluster, node and group it was made for."""
    disk, _ = _small_log(40)
    with pytest.raises(CorruptionError, match="another log"):
        open_log(disk.kill(), group=1)
    with pytest.raises(CorruptionError, match="another log"):
        open_log(disk.kill(), cluster_id=b"x" * 16)


def test_wrong_magic_and_an_empty_first_header_are_refused() -> None:
    """A file that is not a segment is refused, whatever its name says."""
    disk, path = _small_log(40)
    content = disk.content(path)
    assert "magic" in str(try_contents(_with(path, b"NOTAWAL!" + content[8:])))
    assert "empty header" in str(try_contents(_with(path, bytes(4096))))
    assert "shorter than a segment header" in str(try_contents(_with(path, content[:100])))


@pytest.mark.parametrize("length", [PAYLOAD_BYTES_MAX + 1, 0xFFFF_FFFF, 100_000])
def test_a_length_bomb_is_refused_without_reading_it(length: int) -> None:
    """A header with a valid checksum and an absurd length is refused."""
    disk, path = _small_log(40)
    content = bytearray(disk.content(path))
    end = len(content.rstrip(b"\0"))
    content[end : end + 512] = _forge(disk, path, length)
    assert isinstance(try_contents(_with(path, bytes(content))), str)


def _forge(disk: MemoryDisk, path: str, length: int) -> bytes:
    # Encodes a record and then rewrites its length with all checksums made right again.
    chain = int.from_bytes(disk.content(path)[1024 + 56 : 1024 + 60], "little")
    record, _, _ = encode_record(
        chain, b"", mark=segment_mark(Identity(CLUSTER_ID, 7, 0), 1), kind=Kind.NORMAL,
        flags=LAST_IN_BATCH, opcode=0, group=0, bucket=0, sequence=3, index=2, term=1, behind=1,
        count=1, start=0,
    )  # fmt: skip
    import google_crc32c  # noqa: PLC0415 - only the forger needs it

    fields = record[:44] + length.to_bytes(4, "little") + record[48:56]
    fields += google_crc32c.extend(chain, fields).to_bytes(4, "little")
    return fields + google_crc32c.value(fields).to_bytes(4, "little") + record[64:]


def test_random_garbage_in_the_tail_never_yields_a_wrong_entry() -> None:
    """Garbage over the unsynced tail is cut or refused; the synced prefix is never changed."""
    disk, path = _small_log(40, 700)
    content = disk.content(path)
    end = len(content.rstrip(b"\0"))
    refused = 0
    for seed in range(300):
        chance = Random(seed)
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 4)):
            start = chance.randrange(end, 4000)
            damaged[start : start + 64] = chance.randbytes(64)
        result = try_contents(_with(path, bytes(damaged)))
        refused += isinstance(result, str)
        if not isinstance(result, str):
            assert result == _expected(40, 700)
    assert 0 < refused < 300


def test_other_files_are_left_alone_and_half_deleted_ones_removed() -> None:
    """The start finishes deletions, drops blanks, and reports what it does not know."""
    disk, path = _small_log(40)
    disk.put(f"{path}.deleted", b"old")
    disk.put(f"{DIRECTORY}/next-9.spare", bytes(4096))
    disk.put(f"{DIRECTORY}/readme.txt", b"hello")
    log = open_log(disk.kill(), segment_bytes=4096)
    assert log.last_index == 1
    assert disk.list_names(DIRECTORY) == [path.rpartition("/")[2], "readme.txt"]
    assert log.recovery.notes == ["readme.txt is not part of the log and was left alone"]


def test_a_refusal_names_the_place_and_the_commands() -> None:
    """The error says file, offset, entry and reason, and what to run."""
    disk, path = _small_log(40, 40, 40)
    damaged = bytearray(disk.content(path))
    damaged[1536 + 70] ^= 1
    with pytest.raises(CorruptionError) as refusal:
        open_log(_with(path, bytes(damaged)))
    assert "offset 1536 (entry 2)" in refusal.value.message
    assert "payload does not match" in refusal.value.message
    assert "corvo wal verify" in str(refusal.value.hint)
    assert "corvo wal repair" in str(refusal.value.hint)


def test_an_impossible_segment_size_is_refused() -> None:
    """Sizes that are not whole sectors, or too small for a batch, are refused at open."""
    for size in (0, 1024, 5000):
        with pytest.raises(StorageError, match="not possible"):
            open_log(MemoryDisk(), segment_bytes=size)
