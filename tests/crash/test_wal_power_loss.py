"""Power loss at every disk operation of every script, under the cruel disk of `MemoryDisk`.

For each script and each operation the power fails, several remains of that moment are drawn, and
the log must start on every one of them, hold every acknowledged entry, hold nothing that was never
written, and hold the same when it is started again. A power loss alone is never refused.
"""

import errno
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from corvo.errors import StorageError
from corvo.replication import LocalLog, MemoryDisk, tool
from corvo.replication.memory_disk import PowerLossError
from corvo.replication.record import HardState, Kind
from corvo.replication.wal import Draft
from tests.replication_kit import (
    DIRECTORY,
    LateSync,
    append_synced,
    contents,
    noop,
    open_log,
    payload,
    segment_paths,
)

REMAINS_COUNT = 40


class Journal:
    """What a script wrote and what it was told is durable."""

    def __init__(self) -> None:
        self.written: dict[int, bytes] = {}
        self.acknowledged = 0
        self.released = 0

    def append(self, log: LocalLog, size: int) -> None:
        """Append one entry, remembering it before it can be on disk."""
        index = log.last_index + 1
        self.written[index] = payload(index, size)
        assert log.append(self.written[index]) == index

    def sync(self, log: LocalLog) -> None:
        """Sync and take the answer for a promise."""
        last = log.last_index

        def done() -> None:
            self.acknowledged = last

        log.sync_now(done)

    def check(self, log: LocalLog) -> None:
        """Hold a recovered log against what was promised."""
        found = contents(log)
        assert log.last_index >= self.acknowledged, "an acknowledged entry is missing"
        assert log.first_index <= self.released + 1, "more was released than asked for"
        for index, data in found:
            assert self.written[index] == data, "an entry differs from what was written"
        assert [index for index, _ in found] == list(range(log.first_index, log.last_index + 1))


Script = Callable[[MemoryDisk, Journal], None]


def _append_one_by_one(disk: MemoryDisk, journal: Journal) -> None:
    log = open_log(disk)
    for size in (10, 700, 2000, 448):
        journal.append(log, size)
        journal.sync(log)
    log.close()


def _several_appends_per_sync(disk: MemoryDisk, journal: Journal) -> None:
    log = open_log(disk)
    for _ in range(3):
        for size in (10, 1500, 10):
            journal.append(log, size)
        journal.sync(log)


def _append_across_rotations(disk: MemoryDisk, journal: Journal) -> None:
    log = open_log(disk, segment_bytes=4096)
    for size in (1500, 1500, 1500, 900):
        journal.append(log, size)
        journal.append(log, size)
        journal.sync(log)


def _rotate_into_prepared_segments(disk: MemoryDisk, journal: Journal) -> None:
    log = open_log(disk, segment_bytes=4096)
    for _ in range(5):
        if log.spare_needed():
            log.prepare_next()
        journal.append(log, 1300)
        journal.sync(log)
    log.close()


def _never_sync_across_rotations(disk: MemoryDisk, journal: Journal) -> None:
    log = open_log(disk, segment_bytes=4096, policy="off")
    for _ in range(7):
        journal.append(log, 1300)
        log.sync(noop)


def _sync_now_and_then(disk: MemoryDisk, journal: Journal) -> None:
    log = open_log(disk, segment_bytes=4096, policy="interval=200ms")
    for position in range(8):
        journal.append(log, 900)
        if position % 3 == 2:
            journal.sync(log)
            log.mark()


def _release_segments(disk: MemoryDisk, journal: Journal) -> None:
    log = open_log(disk, segment_bytes=2048)
    for _ in range(6):
        journal.append(log, 900)
        journal.sync(log)
    journal.released = 4
    log.release(4)
    journal.append(log, 100)
    journal.sync(log)


def _release_without_syncs(disk: MemoryDisk, journal: Journal) -> None:
    log = open_log(disk, segment_bytes=2048, policy="off")
    for _ in range(6):
        journal.append(log, 900)
    # The store has flushed up to here, so these entries need not survive in the log.
    journal.released = 4
    log.release(4)


def _append_while_a_sync_is_under_way(disk: MemoryDisk, journal: Journal) -> None:
    syncer = LateSync(disk)
    log = open_log(disk, segment_bytes=4096, syncer=syncer)
    for size in (40, 1400, 900, 40):
        journal.append(log, size)
        journal.sync(log)
        journal.append(log, size)
        syncer.finish()
        journal.append(log, 40)


def _mark_and_reopen(disk: MemoryDisk, journal: Journal) -> None:
    log = open_log(disk)
    journal.append(log, 600)
    journal.sync(log)
    log.mark()
    log.close()
    log = open_log(disk)
    journal.append(log, 600)
    journal.sync(log)


SCRIPTS: list[Script] = [
    _append_one_by_one,
    _several_appends_per_sync,
    _append_across_rotations,
    _rotate_into_prepared_segments,
    _never_sync_across_rotations,
    _sync_now_and_then,
    _release_segments,
    _release_without_syncs,
    _mark_and_reopen,
    _append_while_a_sync_is_under_way,
]


def _run_until(script: Script, operation: int) -> tuple[MemoryDisk, Journal, bool]:
    disk, journal = MemoryDisk(), Journal()
    disk.stop_at = operation
    try:
        script(disk, journal)
    except PowerLossError:
        return disk, journal, False
    return disk, journal, True


def _operations(script: Script) -> int:
    disk = MemoryDisk()
    script(disk, Journal())
    return disk.operations_count


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__.strip("_"))
def test_the_acknowledged_prefix_survives_power_loss_at_every_operation(script: Script) -> None:
    """Whatever the disk kept of an unsynced write, the start finds a log with every promise."""
    for operation in range(1, _operations(script) + 2):
        disk, journal, _ = _run_until(script, operation)
        for seed in range(REMAINS_COUNT):
            remains = disk.power_loss(Random(operation * 1000 + seed).randrange)
            log = open_log(remains, segment_bytes=4096)
            if log.last_index > 0 or journal.acknowledged > 0:
                journal.check(log)
            first = contents(log)
            again = open_log(remains.kill(), segment_bytes=4096)
            assert again.recovery.cut is None, "recovery finished its work the first time"
            assert contents(again) == first


@pytest.mark.parametrize(
    "script",
    [_several_appends_per_sync, _append_across_rotations, _never_sync_across_rotations],
    ids=lambda script: script.__name__.strip("_"),
)
def test_a_second_power_loss_during_recovery_changes_nothing(script: Script) -> None:
    """Recovery may be cut off at each of its own operations and still keeps every promise."""
    interrupted = 0
    for operation in range(4, _operations(script) + 2):
        disk, journal, _ = _run_until(script, operation)
        remains = disk.power_loss(Random(operation).randrange)
        probe = remains.power_loss(Random(0).randrange)
        open_log(probe, segment_bytes=4096)
        for step in range(1, probe.operations_count + 1):
            victim = remains.power_loss(Random(0).randrange)
            victim.stop_at = step
            with pytest.raises(PowerLossError):
                open_log(victim, segment_bytes=4096)
            interrupted += 1
            for seed in range(3):
                second = victim.power_loss(Random(step * 100 + seed).randrange)
                log = open_log(second, segment_bytes=4096)
                if log.last_index > 0 or journal.acknowledged > 0:
                    journal.check(log)
    assert interrupted > 50


def test_entries_written_after_a_recovery_survive_the_next_power_loss() -> None:
    """Two crashes in a row: what was cut never comes back, what came after stays."""
    for seed in range(60):
        chance = Random(seed)
        disk, journal = MemoryDisk(), Journal()
        for _ in range(4):
            log = open_log(disk, segment_bytes=4096)
            journal.check(log)
            # An index that was cut is written again, with other bytes.
            for index in [each for each in journal.written if each > log.last_index]:
                del journal.written[index]
            for _ in range(chance.randrange(1, 4)):
                journal.append(log, chance.randrange(1, 1800))
                if chance.randrange(2):
                    journal.sync(log)
            disk = disk.power_loss(chance.randrange)


def test_what_a_killed_process_left_unsynced_is_durable_once_it_is_replayed() -> None:
    """A start answers for whole records it found, so a power loss after it may not take them."""
    for policy in ("always", "off"):
        disk = MemoryDisk()
        log = open_log(disk, segment_bytes=4096, policy=policy)
        for index in range(1, 8):
            log.append(payload(index, 900))
        killed = disk.kill()
        assert open_log(killed, segment_bytes=4096, policy=policy).synced_index == 7
        for seed in range(REMAINS_COUNT):
            remains = killed.power_loss(Random(seed).randrange)
            assert open_log(remains, segment_bytes=4096).last_index == 7


def test_reset_beyond_the_end_survives_power_loss_at_every_operation() -> None:
    """After `reset_to` returned the log goes on at the index asked for; before, it is as it was."""

    def script(disk: MemoryDisk, done: list[int]) -> None:
        log = open_log(disk, policy="off")
        append_synced_off(log)
        log.reset_to(50)
        done.append(50)
        log.append(payload(51))
        log.sync_now(lambda: done.append(51))

    def append_synced_off(log: LocalLog) -> None:
        for size in (100, 900):
            log.append(payload(log.last_index + 1, size))

    whole = MemoryDisk()
    script(whole, [])
    outcomes: set[int] = set()
    for operation in range(1, whole.operations_count + 2):
        disk, done = MemoryDisk(), list[int]()
        disk.stop_at = operation
        with suppress(PowerLossError):
            script(disk, done)
        for seed in range(REMAINS_COUNT):
            log = open_log(disk.power_loss(Random(operation * 100 + seed).randrange))
            outcomes.add(log.last_index)
            assert log.last_index in (0, 1, 2, 50, 51)
            assert log.last_index >= max(done, default=0)
            if log.last_index >= 50:
                assert log.first_index == 51
                assert contents(log) == [(51, payload(51))][: log.last_index - 50]
    assert outcomes == {0, 1, 2, 50, 51}


def test_hard_state_and_replaced_suffix_survive_power_loss_at_every_operation() -> None:
    """A raft-style batch (entries over an old suffix, then hard state) is all or nothing."""

    def script(disk: MemoryDisk, done: list[int]) -> None:
        log = open_log(disk)
        append_synced(log, 100, 100, 100)
        wal = log._wal
        entries = [Draft(Kind.NORMAL, payload(index, 700), index, 2) for index in (2, 3)]
        wal.save_hard_state(HardState(2, 9, 1), entries)
        wal.sync_blocking()
        done.append(2)

    whole = MemoryDisk()
    script(whole, [])
    outcomes: set[int] = set()
    for operation in range(1, whole.operations_count + 2):
        disk, done = MemoryDisk(), list[int]()
        disk.stop_at = operation
        with suppress(PowerLossError):
            script(disk, done)
        for seed in range(REMAINS_COUNT):
            log = open_log(disk.power_loss(Random(operation * 100 + seed).randrange))
            outcomes.add(log.term)
            assert log.term == 2 or not done
            if log.term == 2:
                expected = [(1, payload(1, 100)), (2, payload(2, 700)), (3, payload(3, 700))]
                assert contents(log) == expected
    assert outcomes == {1, 2}


def test_repair_keeps_its_copies_through_power_loss_at_every_operation() -> None:
    """A repair cut off anywhere can be done again, and the damaged bytes are still there."""
    disk = MemoryDisk()
    log = open_log(disk, segment_bytes=4096)
    append_synced(log, 900, 900, 900, 900, 900)
    log.close()
    path = segment_paths(disk)[0]
    damaged = bytearray(disk.content(path))
    damaged[2200] ^= 1
    disk.remove(path)
    disk.put(path, bytes(damaged))
    probe = disk.power_loss(Random(0).randrange)
    expected = tool.repair(probe, DIRECTORY).last_index
    for operation in range(1, probe.operations_count + 1):
        victim = disk.power_loss(Random(0).randrange)
        victim.stop_at = operation
        with pytest.raises(PowerLossError):
            tool.repair(victim, DIRECTORY)
        for seed in range(4):
            remains = victim.power_loss(Random(seed).randrange)
            assert tool.repair(remains, DIRECTORY).last_index == expected
            assert open_log(remains, segment_bytes=4096).last_index == expected
            files = [f"{DIRECTORY}/{name}" for name in remains.list_names(DIRECTORY)]
            assert any(damaged[2048:2560] in remains.content(file) for file in files)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("script", SCRIPTS[:5], ids=lambda script: script.__name__.strip("_"))
def test_a_failing_operation_is_reported_and_loses_no_promise(script: Script, number: int) -> None:
    """EIO or ENOSPC at each operation raises a coded error; a new start holds every promise."""
    for operation in range(1, _operations(script) + 1):
        disk, journal = MemoryDisk(), Journal()
        disk.fail_at = (operation, number)
        with pytest.raises(StorageError) as failure:
            script(disk, journal)
        assert failure.value.code in ("STORAGE_FAILED", "DISK_FULL")
        remains = disk.power_loss(Random(operation).randrange)
        log = open_log(remains, segment_bytes=4096)
        if log.last_index > 0 or journal.acknowledged > 0:
            journal.check(log)
