"""Natural group commit, on a disk that answers when the test says so."""

import asyncio
import errno

import pytest

from corvo.engine import Options
from corvo.errors import UnavailableError
from corvo.keys.codec import decode_entry
from corvo.model.outcome import Enqueued, Rejected
from corvo.replication import MemoryDisk
from corvo.replication.record import PAYLOAD_BYTES_MAX
from tests.support.rig import Rig, turns


def entries(rig: Rig) -> list[int]:
    """How many commands each entry of the log holds."""
    return [len(decode_entry(raw).commands) for _, raw in rig.log.replay(0)]


def test_commands_of_one_turn_share_one_entry():
    """Commands submitted in one turn of the loop are one entry and one sync."""

    async def run() -> None:
        async with Rig() as rig:
            before = rig.syncer.syncs_count
            done: list[int] = []
            for _ in range(40):
                rig.engine.submit(rig.enqueue(), lambda _, index: done.append(index))
            await turns(5)
            assert done == [1] * 40
            assert entries(rig) == [40]
            assert rig.syncer.syncs_count == before + 1

    asyncio.run(run())


def test_commands_gather_while_the_disk_is_busy():
    """What comes during a sync, over many turns, is one entry behind it."""

    async def run() -> None:
        async with Rig() as rig:
            rig.syncer.is_held = True
            order: list[int] = []
            for number in range(10):
                rig.engine.submit(rig.enqueue(), lambda _o, _i, n=number: order.append(n))
                await turns(2)
            assert rig.log.last_index == 1
            assert order == []
            rig.syncer.let_one_go()
            assert order == [0]
            rig.syncer.let_one_go()
            assert order == list(range(10))
            assert entries(rig) == [1, 9]

    asyncio.run(run())


def test_nothing_is_answered_before_its_sync():
    """An outcome is delivered only after the sync that covers it returned."""

    async def run() -> None:
        async with Rig() as rig:
            rig.syncer.is_held = True
            done: list[object] = []
            command = rig.enqueue()
            rig.engine.submit(command, lambda outcome, _: done.append(outcome))
            await turns(10)
            assert rig.log.last_index == 1
            assert done == []
            assert rig.engine.read.job(0, command.spec.id) is None
            rig.syncer.let_all_go()
            assert isinstance(done[0], Enqueued)
            assert rig.engine.read.job(0, command.spec.id) is not None

    asyncio.run(run())


def test_the_next_batch_is_on_its_way_before_the_finished_one_is_answered():
    """When a sync returns, the following batch is written and syncing before replies run."""

    async def run() -> None:
        async with Rig() as rig:
            rig.syncer.is_held = True
            seen: list[tuple[int, bool]] = []

            def on_done(_outcome: object, _index: int) -> None:
                seen.append((rig.log.last_index, rig.syncer.is_waiting))

            rig.engine.submit(rig.enqueue(), on_done)
            await turns()
            rig.engine.submit(rig.enqueue(), lambda _o, _i: None)
            rig.syncer.let_one_go()
            assert seen == [(2, True)]

    asyncio.run(run())


def test_an_entry_holds_at_most_256_commands():
    """A thousand commands at once become entries of at most 256, answered in order."""

    async def run() -> None:
        async with Rig() as rig:
            order: list[int] = []
            for number in range(1000):
                rig.engine.submit(rig.enqueue(), lambda _o, _i, n=number: order.append(n))
            while len(order) < 1000:
                await turns()
            assert order == list(range(1000))
            assert entries(rig) == [256, 256, 256, 232]

    asyncio.run(run())


def test_an_entry_closes_at_its_size_in_bytes():
    """Payloads of 100 KiB share an entry only two by two."""

    async def run() -> None:
        async with Rig(segment_bytes=4 << 20) as rig:
            payload = b'"' + b"x" * 100_000 + b'"'
            done: list[int] = []
            for _ in range(6):
                rig.engine.submit(rig.enqueue(payload=payload), lambda _, i: done.append(i))
            while len(done) < 6:
                await turns()
            assert entries(rig) == [2, 2, 2]

    asyncio.run(run())


def test_commands_submitted_together_stay_together():
    """A group that does not fit behind what has gathered opens an entry of its own."""

    async def run() -> None:
        async with Rig() as rig:
            for _ in range(200):
                rig.engine.submit(rig.enqueue(), lambda _o, _i: None)
            outcomes = await rig.perform_all([rig.enqueue() for _ in range(100)])
            assert len(outcomes) == 100
            assert entries(rig) == [200, 100]

    asyncio.run(run())


def test_a_group_larger_than_an_entry_spans_several_in_order():
    """Six hundred commands submitted together are answered once, in order, at the last index."""

    async def run() -> None:
        async with Rig() as rig:
            commands = [rig.enqueue() for _ in range(600)]
            done: asyncio.Future = asyncio.get_running_loop().create_future()
            rig.engine.submit_many(list(commands), lambda o, i: done.set_result((o, i)))
            outcomes, index = await done
            assert [outcome.id for outcome in outcomes] == [c.spec.id for c in commands]
            assert index == 3
            assert entries(rig) == [256, 256, 88]

    asyncio.run(run())


def test_a_failing_reply_does_not_silence_the_others():
    """An exception in one callback is reported, and the callbacks behind it still run."""

    async def run() -> None:
        async with Rig() as rig:
            done: list[int] = []

            def fail(_outcome: object, _index: int) -> None:
                raise RuntimeError("the client went away")

            rig.engine.submit(rig.enqueue(), lambda _, i: done.append(i))
            rig.engine.submit(rig.enqueue(), fail)
            rig.engine.submit(rig.enqueue(), lambda _, i: done.append(i))
            await turns(5)
            assert done == [1, 1]
            assert [str(error) for error in rig.reply_failures] == ["the client went away"]

    asyncio.run(run())


def test_stamps_never_go_back():
    """Entries written while earlier ones wait for the disk carry stamps that do not fall."""

    async def run() -> None:
        async with Rig() as rig:
            for step in range(5):
                rig.clock.advance(step % 2)
                await rig.put()
            stamps = [decode_entry(raw).now_ms for _, raw in rig.log.replay(0)]
            assert stamps == sorted(stamps)
            assert stamps[-1] == rig.clock.now_ms()

    asyncio.run(run())


def test_fsync_off_answers_without_a_sync():
    """Under `off` outcomes come without any sync of the log."""

    async def run() -> None:
        async with Rig(fsync="off") as rig:
            before = rig.syncer.syncs_count
            await rig.put(count=300)
            assert rig.syncer.syncs_count == before
            assert entries(rig) == [256, 44]

    asyncio.run(run())


def test_fsync_interval_answers_at_once_and_syncs_soon():
    """Under `interval` outcomes do not wait, and a sync follows by itself."""

    async def run() -> None:
        async with Rig(fsync="interval=5ms") as rig:
            await rig.put()
            assert rig.log.synced_index == 0
            await rig.syncer.has_synced.wait()
            assert rig.log.synced_index == 1

    asyncio.run(run())


def test_a_failed_sync_ends_the_engine_and_answers_nobody():
    """After a sync that failed nothing is acknowledged and nothing more is taken."""

    async def run() -> None:
        disk = MemoryDisk()
        rig = Rig(disk=disk)
        rig.engine.start()
        await turns(5)
        done: list[int] = []
        rig.engine.submit(rig.enqueue(), lambda _, i: done.append(i))
        disk.fail_at = (disk.operations_count + 2, errno.EIO)  # the write, then the sync
        await turns(5)
        assert done == []
        assert len(rig.failures) == 1
        rig.engine.kill()
        with pytest.raises(UnavailableError):
            rig.engine.submit(rig.enqueue(), lambda _o, _i: None)

    asyncio.run(run())


def test_a_full_disk_refuses_the_batch_and_keeps_the_log_whole():
    """When no segment can be had, commands get DISK_FULL, and nothing of them is in the log."""

    async def run() -> None:
        disk = MemoryDisk(capacity_bytes=300_000)
        async with Rig(disk=disk, segment_bytes=65_536) as rig:
            outcomes: list[object] = []
            payload = b'"' + b"x" * 20_000 + b'"'
            while not any(isinstance(outcome, Rejected) for outcome in outcomes):
                assert len(outcomes) < 100
                rig.engine.submit(rig.enqueue(payload=payload), lambda o, _: outcomes.append(o))
                await turns(5)
            assert outcomes[-1].code == "DISK_FULL"
            assert rig.engine.index == rig.log.last_index == len(outcomes) - 1
            with pytest.raises(UnavailableError) as refusal:
                rig.engine.submit(rig.enqueue(), lambda _o, _i: None)
            assert refusal.value.code == "DISK_FULL"
            assert rig.failures == []

    asyncio.run(run())


def test_a_command_larger_than_an_entry_is_refused_and_the_rest_goes_on():
    """A command no record of the log could hold is answered, not written, and ends nothing."""

    async def run() -> None:
        async with Rig(segment_bytes=64 << 10) as rig:
            payload = b'"' + b"x" * PAYLOAD_BYTES_MAX + b'"'
            outcome, index = await rig.engine.perform(rig.enqueue(payload=payload))
            assert (outcome.code, index) == ("PAYLOAD_TOO_LARGE", 0)
            await rig.put()
            assert rig.log.last_index == 1
            assert rig.failures == []

    asyncio.run(run())


def test_the_entry_bound_is_an_option():
    """`entry_commands_max` bounds an entry."""

    async def run() -> None:
        async with Rig(options=Options(entry_commands_max=4)) as rig:
            await rig.put(count=10)
            assert entries(rig) == [4, 4, 2]

    asyncio.run(run())
