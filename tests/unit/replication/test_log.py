"""The local log as the engine uses it."""

import errno
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from corvo.errors import CorruptionError, RequestError, StorageError
from corvo.replication import DiskFullError, FsyncPolicy, LocalLog, MemoryDisk, RealDisk
from corvo.replication.record import HardState, Kind, payload_checksum
from corvo.replication.validator import Validator
from corvo.replication.wal import Draft
from tests.replication_kit import (
    CLUSTER_ID,
    DIRECTORY,
    append_synced,
    collect_failures,
    contents,
    noop,
    open_log,
    payload,
    segment_paths,
)


def test_a_new_log_starts_at_index_one_and_term_one() -> None:
    """An empty directory becomes a log whose first entry has index 1, at term 1."""
    disk = MemoryDisk()
    log = open_log(disk)
    assert log.recovery.is_new
    assert (log.first_index, log.last_index, log.synced_index, log.term) == (1, 0, 0, 1)
    assert log.append(b"first") == 1
    assert (log.last_index, log.synced_index) == (1, 0)
    log.sync(noop)
    assert log.synced_index == 1
    assert segment_paths(disk) == [f"{DIRECTORY}/0000000000000001-0000000000000001.wal"]


def test_a_real_directory_is_reopened_with_everything_in_it(tmp_path: Path) -> None:
    """On real files: append, rotate, close, open, replay from the middle."""
    disk, directory = RealDisk(), f"{tmp_path}/deep/log"
    log = open_log(disk, directory=directory)
    append_synced(log, *[900] * 20)
    segments_count = len(log.segments)
    assert segments_count > 2
    log.close()
    again = open_log(disk, directory=directory)
    assert again.recovery.is_clean_close
    assert again.recovery.notes == []
    assert len(again.segments) == segments_count
    assert list(again.replay(17)) == [(index, payload(index, 900)) for index in (18, 19, 20)]
    assert again.free_bytes() > 0
    again.close()


def test_a_second_open_is_refused_with_the_process_id(tmp_path: Path) -> None:
    """Two servers on one directory: the second is told which process holds it."""
    disk, directory = RealDisk(), f"{tmp_path}/log"
    log = open_log(disk, directory=directory)
    with pytest.raises(StorageError, match=r"in use by process \d+") as refusal:
        open_log(disk, directory=directory)
    assert refusal.value.code == "DIRECTORY_LOCKED"
    log.close()
    open_log(disk, directory=directory).close()


def test_the_lock_is_given_back_when_the_open_is_refused() -> None:
    """A refused start does not lock out the repair that follows it."""
    disk = MemoryDisk()
    open_log(disk).close()
    with pytest.raises(CorruptionError):
        open_log(disk, group=5)
    open_log(disk).close()


def test_rotation_needs_no_prepared_segment_but_uses_one() -> None:
    """With a spare, a rotation creates no file; without one, it makes it on the way."""
    disk = MemoryDisk()
    log = open_log(disk, segment_bytes=4096)
    assert not log.spare_needed()
    append_synced(log, 1400)
    assert log.spare_needed()
    log.prepare_next()
    assert not log.spare_needed()
    before = disk.operations_count
    log.append(payload(2, 2000))
    # Rename, header, record: nothing that waits for the disk.
    assert disk.operations_count - before == 3
    log.sync(noop)
    append_synced(log, 2000, 2000)
    assert len(log.segments) == 4
    assert contents(log)[-1] == (4, payload(4, 2000))


def test_an_entry_larger_than_a_segment_gets_a_segment_of_its_own() -> None:
    """The size of a segment is no limit for an entry."""
    disk = MemoryDisk()
    log = open_log(disk, segment_bytes=4096)
    append_synced(log, 40, 20_000, 40)
    assert [index for index, _ in contents(open_log(disk.kill()))] == [1, 2, 3]


def test_a_full_disk_refuses_the_rotation_and_loses_nothing() -> None:
    """Without room for the next segment nothing is written; with room again the log goes on."""
    disk = MemoryDisk(capacity_bytes=6000)
    log = open_log(disk, segment_bytes=4096)
    append_synced(log, 1400, 400)
    with pytest.raises(DiskFullError) as refusal:
        log.append(payload(3, 2000))
    assert refusal.value.code == "DISK_FULL"
    assert log.last_index == 2
    append_synced(log, 40)
    disk.capacity_bytes = 1 << 30
    append_synced(log, 2000)
    assert [index for index, _ in contents(open_log(disk.kill()))] == [1, 2, 3, 4]
    assert not any("spare" in name for name in disk.list_names(DIRECTORY))


def test_a_failed_sync_is_final() -> None:
    """The failure is reported once and every later call raises it; nothing is tried again."""
    disk = MemoryDisk()
    failures, on_failure = collect_failures()
    log = LocalLog.open(
        disk, DIRECTORY, policy=FsyncPolicy.always(), cluster_id=CLUSTER_ID, node_id=1,
        segment_bytes=8192, on_failure=on_failure,
    )  # fmt: skip
    log.append(b"one")
    disk.fail_at = (disk.operations_count + 1, errno.EIO)
    done: list[int] = []
    log.sync(lambda: done.append(1))
    assert done == []
    assert [failure.code for failure in failures] == ["STORAGE_FAILED"]
    before = disk.operations_count
    with pytest.raises(StorageError, match="syncing the log failed"):
        log.append(b"two")
    log.close()
    assert disk.operations_count == before, "not even the mark of a clean close is written"
    assert log.synced_index == 0


def test_a_failed_write_is_final() -> None:
    """After a write that failed the place on disk is unknown, so the log is over."""
    disk = MemoryDisk()
    log = open_log(disk)
    disk.fail_at = (disk.operations_count + 1, errno.EIO)
    for _ in range(2):
        with pytest.raises(StorageError, match="writing to the log failed"):
            log.append(b"one")
    assert log.last_index == 0


def test_release_removes_whole_segments_below_the_index_and_keeps_two() -> None:
    """Only segments wholly at or below the index go, oldest first, and two always stay."""
    disk = MemoryDisk()
    log = open_log(disk, segment_bytes=2048)
    append_synced(log, *[900] * 8)
    firsts = [segment.header.first_index for segment in log.segments]
    assert firsts == [1, 2, 3, 4, 5, 6, 7, 8]
    assert log.release(0) == 0
    assert log.release(3) == 3
    assert log.first_index == 4
    assert log.release(3) == 0
    assert log.release(100) == 3
    assert log.first_index == 7
    assert len(log.segments) == 2
    assert not any("deleted" in name for name in disk.list_names(DIRECTORY))
    again = open_log(disk.kill())
    assert (again.first_index, again.last_index) == (7, 8)
    with pytest.raises(CorruptionError, match="is gone"):
        list(again.replay(5))


def test_reset_goes_on_after_an_index_beyond_the_end() -> None:
    """The store is ahead of the log: the log continues after it and says so."""
    disk = MemoryDisk()
    log = open_log(disk)
    append_synced(log, 40, 40)
    log.reset_to(10)
    assert (log.first_index, log.last_index, log.synced_index) == (11, 10, 10)
    assert "entries 3 to 10" in log.recovery.notes[-1]
    append_synced(log, 40)
    assert log.tail() == [(11, payload_checksum(payload(11)))]
    again = open_log(disk.kill())
    assert contents(again) == [(11, payload(11))]
    assert again.release(11) == 0
    append_synced(again, *[5000] * 3)
    assert again.release(11) > 0
    assert contents(open_log(disk.kill()))[-1] == (14, payload(14, 5000))


def test_policies_decide_who_waits() -> None:
    """Under `always` the callback follows a sync; under the others it comes at once."""
    for text, expected in (("always", 1), ("interval=50ms", 0), ("off", 0)):
        disk = MemoryDisk()
        log = open_log(disk, policy=text)
        log.append(b"one")
        done: list[int] = []
        log.sync(lambda done=done: done.append(1))
        assert done == [1]
        assert log.synced_index == expected
        log.sync_now(lambda done=done: done.append(2))
        assert (done, log.synced_index) == ([1, 2], 1)


@pytest.mark.parametrize("text", ["always", "off", "interval=200ms"])
def test_a_policy_reads_back_as_written(text: str) -> None:
    """The spelling of a policy is stable."""
    assert FsyncPolicy.parse(text).render() == text
    assert FsyncPolicy.parse("interval=2s") == FsyncPolicy.interval(2000)


@pytest.mark.parametrize("text", ["", "Always", "interval", "interval=0ms", "interval=61s", "200"])
def test_an_unknown_policy_is_refused_with_the_choices(text: str) -> None:
    """A wrong spelling is an error that names the right ones."""
    with pytest.raises(RequestError) as refusal:
        FsyncPolicy.parse(text)
    assert "interval=200ms" in str(refusal.value.hint)


def test_the_validator_ring_is_seeded_from_the_tail() -> None:
    """After a restart the ring knows the last entries and reports a copy that differs."""
    disk = MemoryDisk()
    log = open_log(disk)
    append_synced(log, 40, 50)
    again = open_log(disk.kill())
    crc = payload_checksum(payload(2, 50))
    assert again.tail(1) == [(2, crc)]
    assert again.check(2, crc) is None
    mismatch = again.check(2, crc ^ 1)
    assert mismatch is not None
    assert "entry 2 differs" in mismatch.render()
    assert again.check(3, 0) is None


def test_the_validator_ring_is_bounded_and_follows_replaced_suffixes() -> None:
    """Old pairs leave, a replaced entry takes its followers with it, a jump starts over."""
    ring = Validator(size=3)
    for index in range(1, 6):
        ring.note(index, index * 10)
    assert ring.tail(9) == [(3, 30), (4, 40), (5, 50)]
    assert ring.check(2, 0) is None
    ring.note(4, 44)
    assert ring.tail(9) == [(3, 30), (4, 44)]
    ring.note(9, 90)
    assert ring.tail(9) == [(9, 90)]
    ring.note(2, 20)
    assert ring.tail(9) == [(2, 20)]


def test_bytes_since_an_index_bound_what_was_appended_after_it() -> None:
    """The count never falls short and is at most about a MiB too high."""
    log = open_log(MemoryDisk(), segment_bytes=1 << 20, policy="off")
    for _ in range(60):
        log.append(bytes(100_000))
    exact = 30 * 100_352
    assert exact <= log.bytes_since(30) <= exact + (1 << 20) + 200_000
    assert log.bytes_since(60) <= (1 << 20) + 200_000
    assert log.size_bytes >= 6_000_000


def test_a_mark_is_written_once_and_vouches_for_the_last_entry() -> None:
    """After a mark, a lost sector of the last entry is corruption instead of a torn write."""
    disk = MemoryDisk()
    log = open_log(disk)
    append_synced(log, 40)
    unmarked = disk.content(segment_paths(disk)[0])
    log.mark()
    log.mark()
    path = segment_paths(disk)[0]
    marked = disk.content(path)
    assert len(marked.rstrip(b"\0")) - len(unmarked.rstrip(b"\0")) == 512
    for content, is_refused in ((unmarked, False), (marked, True)):
        damaged = MemoryDisk()
        damaged.put(path, content[:1024] + bytes(512) + content[1536:])
        if is_refused:
            with pytest.raises(CorruptionError, match="vouches"):
                open_log(damaged)
        else:
            assert open_log(damaged).last_index == 0


def test_closing_a_full_segment_makes_no_new_one() -> None:
    """The mark of a clean close is written only where it fits, so closing needs no space."""
    disk = MemoryDisk(capacity_bytes=5000)
    log = open_log(disk, segment_bytes=4096)
    append_synced(log, 1400, 1400)
    log.close()
    assert len(segment_paths(disk)) == 1
    assert open_log(disk).last_index == 2


def test_replaced_suffixes_are_left_out_of_the_replay() -> None:
    """Raft's way: an entry at a known index replaces it and all after it, across segments."""
    disk = MemoryDisk()
    log = open_log(disk, segment_bytes=4096)
    append_synced(log, *[600] * 6)
    wal = log._wal
    wal.save_hard_state(HardState(2, 1, 2), [Draft(Kind.NORMAL, b"new-3", 3, 2)])
    wal.append([Draft(Kind.NORMAL, b"new-4", 4, 2), Draft(Kind.CONF, b"new-5", 5, 2)])
    wal.sync_blocking()
    expected = [(3, b"new-3"), (4, b"new-4"), (5, b"new-5")]
    assert list(log.replay(2)) == expected
    again = open_log(disk.kill(), segment_bytes=4096)
    assert list(again.replay(2)) == expected
    assert (again.last_index, again.term) == (5, 2)
    assert contents(again)[:2] == [(1, payload(1, 600)), (2, payload(2, 600))]
    assert [index for index, _ in again.tail()] == [1, 2, 3, 4, 5]


class LogAgainstList(RuleBasedStateMachine):
    """The log and a plain list see the same calls and must agree, through any power loss."""

    @initialize()
    def start(self) -> None:
        """Begin with an empty disk and an empty list."""
        self.disk = MemoryDisk()
        self.log = open_log(self.disk, segment_bytes=4096)
        self.model: dict[int, bytes] = {}

    @rule(data=st.binary(max_size=1500))
    def append(self, data: bytes) -> None:
        """Both take the entry."""
        index = self.log.append(data)
        self.model[index] = data

    @rule()
    def sync(self) -> None:
        """Everything appended becomes a promise."""
        self.log.sync(noop)
        assert self.log.synced_index == self.log.last_index

    @rule()
    def mark(self) -> None:
        """Write a mark, which changes no entry."""
        self.log.mark()

    @rule()
    def prepare(self) -> None:
        """Make a spare, which changes no entry."""
        self.log.prepare_next()

    @rule(upto=st.integers(0, 40))
    def release(self, upto: int) -> None:
        """Only entries at or below the synced index may be released by an engine."""
        self.log.release(min(upto, self.log.synced_index))

    @rule(choices=st.randoms(use_true_random=False))
    def lose_power(self, choices: Random) -> None:
        """Keep a prefix with every promise; the list forgets the rest."""
        promised = self.log.synced_index
        self.disk = self.disk.power_loss(choices.randrange)
        self.log = open_log(self.disk, segment_bytes=4096)
        assert self.log.last_index >= promised
        self.model = {i: data for i, data in self.model.items() if i <= self.log.last_index}

    @rule(is_killed=st.booleans())
    def reopen(self, is_killed: bool) -> None:
        """Keep everything through a clean close and through a kill."""
        if is_killed:
            self.disk = self.disk.kill()
        else:
            self.log.close()
        last = self.log.last_index
        self.log = open_log(self.disk, segment_bytes=4096)
        assert self.log.last_index == last
        assert self.log.recovery.cut is None

    @rule(ahead=st.integers(1, 5))
    def reset(self, ahead: int) -> None:
        """Go on beyond the end and forget what was before."""
        self.log.reset_to(self.log.last_index + ahead)
        self.model = {}

    @invariant()
    def agree(self) -> None:
        """Compare the replay with the list from the first index on."""
        expected = {i: data for i, data in self.model.items() if i >= self.log.first_index}
        assert dict(self.log.replay(self.log.first_index - 1)) == expected


LogAgainstList.TestCase.settings = settings(
    max_examples=150, stateful_step_count=30, deadline=None, derandomize=True
)
TestLogAgainstList = LogAgainstList.TestCase
