"""The offline tools: verify, dump and repair."""

import pytest

from corvo.errors import StorageError
from corvo.replication import MemoryDisk, tool
from tests.replication_kit import (
    DIRECTORY,
    append_synced,
    contents,
    open_log,
    payload,
    segment_paths,
    try_contents,
)


def _closed_log(entries_count: int = 9) -> MemoryDisk:
    disk = MemoryDisk()
    log = open_log(disk, segment_bytes=4096)
    append_synced(log, *[900] * entries_count)
    log.close()
    return disk


def _flip(disk: MemoryDisk, path: str, offset: int) -> None:
    content = bytearray(disk.content(path))
    content[offset] ^= 4
    disk.put(path, bytes(content))


def _picture(disk: MemoryDisk) -> dict[str, bytes]:
    return {name: disk.content(f"{DIRECTORY}/{name}") for name in disk.list_names(DIRECTORY)}


def test_verify_reports_a_sound_log_and_changes_nothing() -> None:
    """Segments, range and number of records, with no damage and no cut."""
    disk = _closed_log()
    before = _picture(disk)
    report = tool.verify(disk, DIRECTORY)
    assert report.is_sound
    assert (report.first_index, report.last_index, report.records_count) == (1, 9, 11)
    assert [segment.sequence for segment in report.segments] == [1, 2, 3]
    assert (report.damage, report.cut, report.notes) == (None, None, [])
    assert _picture(disk) == before


def test_verify_names_damage_and_torn_tails_apart() -> None:
    """A torn tail is sound and shown as a cut to come; damage is not sound."""
    disk = _closed_log()
    paths = segment_paths(disk)
    content = disk.content(paths[-1])
    disk.put(paths[-1], content[: len(content.rstrip(b"\0")) - 100].ljust(4096, b"\0"))
    torn = tool.verify(disk, DIRECTORY)
    assert torn.is_sound
    assert torn.cut is not None
    _flip(disk, paths[1], 600)
    damaged = tool.verify(disk, DIRECTORY)
    assert damaged.damage is not None
    assert damaged.damage.name in paths[1]
    _flip(disk, paths[0], 20)
    assert "checksum of the segment header" in str(tool.verify(disk, DIRECTORY).damage)


def test_verify_of_an_empty_directory_is_sound() -> None:
    """No log is no damage."""
    disk = MemoryDisk()
    disk.make_directory(DIRECTORY)
    assert tool.verify(disk, DIRECTORY).notes == ["the directory holds no log"]
    assert list(tool.dump(disk, DIRECTORY)) == []


def test_dump_shows_every_envelope_up_to_the_limit() -> None:
    """Kinds, indexes and sequences in order; the clean close is the last line."""
    disk = _closed_log(2)
    lines = list(tool.dump(disk, DIRECTORY))
    kinds = ["HARDSTATE", "NORMAL", "NORMAL", "SYNCED"]
    assert [line.kind for line in lines] == kinds
    assert [line.sequence for line in lines] == [1, 2, 3, 4]
    assert [line.index for line in lines] == [0, 1, 2, 2]
    assert [line.length for line in lines] == [24, 900, 900, 16]
    assert len(list(tool.dump(disk, DIRECTORY, limit=2))) == 2


def test_tools_refuse_a_log_that_is_open() -> None:
    """A running server's log is not looked at."""
    disk = MemoryDisk()
    open_log(disk)
    for action in (tool.verify, tool.repair):
        with pytest.raises(StorageError, match="in use"):
            action(disk, DIRECTORY)


def test_repair_of_a_sound_log_changes_nothing() -> None:
    """There is nothing to give up."""
    disk = _closed_log()
    before = _picture(disk)
    report = tool.repair(disk, DIRECTORY)
    assert (report.changed, report.last_index, report.set_aside) == (False, 9, [])
    assert _picture(disk) == before


@pytest.mark.parametrize("offset", [20, 530, 1100, 2100])
def test_repair_cuts_to_the_longest_valid_prefix_and_keeps_every_byte(offset: int) -> None:
    """Damage in the second of three segments: the prefix stays, all else is kept aside."""
    disk = _closed_log()
    paths = segment_paths(disk)
    _flip(disk, paths[1], offset)
    before = _picture(disk)
    assert isinstance(try_contents(disk.kill()), str)
    report = tool.repair(disk, DIRECTORY)
    assert report.changed
    assert report.damages
    after = _picture(disk)
    for name in (path.rpartition("/")[2] for path in paths[1:]):
        kept = after[f"{name}.broken"]
        assert kept == before[name][: len(kept)]
        assert not any(before[name][len(kept) :])
    log = open_log(disk, segment_bytes=4096)
    assert contents(log) == [(i, payload(i, 900)) for i in range(1, report.last_index + 1)]
    assert 2 <= report.last_index <= 5
    append_synced(log, 900)
    log.close()
    assert tool.verify(disk, DIRECTORY).is_sound


def test_repair_sets_a_stranger_and_a_duplicate_aside() -> None:
    """Files that cannot belong are renamed and the log is whole again."""
    disk = _closed_log()
    other = MemoryDisk()
    log = open_log(other, segment_bytes=4096, cluster_id=b"z" * 16)
    append_synced(log, *[900] * 18)
    log.close()
    stranger = segment_paths(other)[-1]
    disk.put(stranger, other.content(stranger))
    disk.put(f"{DIRECTORY}/oops.wal", b"what")
    report = tool.repair(disk, DIRECTORY)
    assert report.last_index == 9
    assert sorted(report.set_aside) == [f"{stranger.rpartition('/')[2]}.broken", "oops.wal.broken"]
    assert open_log(disk, segment_bytes=4096).last_index == 9
