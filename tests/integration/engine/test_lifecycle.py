"""From start to stop and back: recovery, flushing, pruning, snapshots, the lock."""

import asyncio
from pathlib import Path

import pytest

from corvo.engine import Options
from corvo.engine.upkeep import FlushPolicy
from corvo.errors import CorruptionError, StorageError, UnavailableError
from corvo.machine import Machine, digest
from corvo.machine.apply import HANDLERS
from corvo.model.command import AckJob, PauseQueue
from corvo.storage.memory import MemoryStore
from tests.support.rig import NS, Rig, turns


async def work(rig: Rig, rounds: int = 5) -> None:
    """Put, fetch and ack some jobs, leaving a mix of states behind."""
    for number in range(rounds):
        await rig.put(f"q{number % 3}", 3)
        rig.clock.advance(10)
        fetched = await rig.fetch(f"q{number % 3}", count=2).answer
        claim = fetched.claims[0]
        await rig.engine.perform(AckJob(NS, claim.spec.id, claim.token, b'{"ok":true}'))


def test_a_killed_engine_replays_to_the_same_state():
    """With an empty store, replaying the log yields the digest and chain of before the kill."""

    async def run() -> None:
        first = Rig()
        first.engine.start()
        await work(first)
        before = digest(first.store), first.engine.read.chain, first.engine.index
        first.engine.kill()
        second = Rig(disk=first.disk.kill(), clock=first.clock)
        assert second.engine.recovery.replayed_entries == before[2]
        assert (digest(second.store), second.engine.read.chain, second.engine.index) == before
        await second.engine.close()

    asyncio.run(run())


def test_replay_begins_where_the_store_was_flushed():
    """A store flushed in the middle needs only the entries behind it, with the same result."""

    async def run() -> None:
        first = Rig()
        first.engine.start()
        await work(first)
        flushed = await first.engine.flush()
        await work(first)
        before = digest(first.store), first.engine.index
        first.engine.kill()
        second = Rig(disk=first.disk.kill(), store=first.store.flushed(), clock=first.clock)
        assert second.engine.recovery.store_index == flushed
        assert second.engine.recovery.replayed_entries == before[1] - flushed
        assert (digest(second.store), second.engine.index) == before
        await second.engine.close()

    asyncio.run(run())


def test_a_clean_stop_leaves_nothing_to_replay():
    """After `close` the next start replays no entry."""

    async def run() -> None:
        async with Rig() as first:
            await work(first)
        # A closed memory store is what a closed directory is: its flushed content, opened anew.
        second = Rig(disk=first.disk, store=first.store.flushed(), clock=first.clock)
        assert second.engine.recovery.replayed_entries == 0
        assert second.engine.index == first.log.last_index > 0
        await second.engine.close()

    asyncio.run(run())


def test_work_goes_on_after_a_restart():
    """Jobs of before are fetched after; an old token still acks."""

    async def run() -> None:
        first = Rig()
        first.engine.start()
        ids = await first.put(count=2)
        claim = (await first.fetch("q").answer).claims[0]
        first.engine.kill()
        async with Rig(disk=first.disk.kill(), clock=first.clock) as second:
            assert await second.fetch("q").ids() == ids[1:]
            outcome, _ = await second.engine.perform(AckJob(NS, claim.spec.id, claim.token))
            assert type(outcome).__name__ == "Ended"

    asyncio.run(run())


def test_a_store_ahead_of_the_log_makes_the_log_go_on_behind_it():
    """Power loss under `off`: the flushed store outlives the log; nothing flushed is lost."""

    async def run() -> None:
        first = Rig(fsync="off")
        first.engine.start()
        await work(first)
        index = await first.engine.flush()
        before = digest(first.store)
        lost = first.disk.power_loss(lambda _count: 0)
        first.engine.kill()
        async with Rig(
            disk=lost, store=first.store.flushed(), clock=first.clock, fsync="off"
        ) as second:
            assert second.engine.recovery.log_index < index
            assert len(second.engine.recovery.notes) == 1
            assert digest(second.store) == before
            await second.put()
            assert second.engine.index == index + 1
            third_disk, third_store = second.disk.kill(), MemoryStore(first.store.flushed().pairs())
        third = Rig(disk=third_disk, store=third_store, clock=first.clock, fsync="off")
        assert third.engine.index == index + 1
        await third.engine.close()

    asyncio.run(run())


def test_a_log_that_begins_after_the_store_ends_is_refused():
    """An empty store beside a pruned log is a mistake, and the start says so."""

    async def run() -> None:
        async with Rig(segment_bytes=8192) as rig:
            while len(rig.log.segments) < 6:
                await rig.put(count=8)
            await rig.engine.flush()
            assert rig.log.first_index > 1
        with pytest.raises(CorruptionError) as refusal:
            Rig(disk=rig.disk, clock=rig.clock, segment_bytes=8192)
        assert "begins at" in refusal.value.message

    asyncio.run(run())


def test_a_flush_lets_the_log_forget_and_a_restart_still_knows_everything():
    """Pruned segments are gone, the state is not."""

    async def run() -> None:
        first = Rig(segment_bytes=8192)
        first.engine.start()
        while len(first.log.segments) < 8:
            await first.put(count=8)
        before = len(first.log.segments)
        await first.engine.flush()
        assert len(first.log.segments) < before
        await first.put(count=3)
        state = digest(first.store)
        first.engine.kill()
        second = Rig(
            disk=first.disk.kill(),
            store=first.store.flushed(),
            clock=first.clock,
            segment_bytes=8192,
        )
        assert digest(second.store) == state
        await second.engine.close()

    asyncio.run(run())


def test_a_flush_is_due_by_commands_by_bytes_and_by_time():
    """Each of the three bounds alone makes a flush due; an idle engine never flushes."""

    async def run() -> None:
        for policy, step_ms in (
            (FlushPolicy(commands=5), 0),
            (FlushPolicy(log_bytes=1), 0),
            (FlushPolicy(), 30_000),
        ):
            async with Rig(options=Options(flush=policy)) as rig:
                upkeep = rig.engine._upkeep
                rig.clock.advance(step_ms)
                assert not upkeep.is_flush_due()
                await rig.put(count=5)
                assert upkeep.is_flush_due()
                await rig.engine.flush()
                rig.clock.advance(step_ms)
                assert not upkeep.is_flush_due()

    asyncio.run(run())


def test_a_failed_flush_ends_the_process():
    """A store that cannot be flushed is reported as fatal."""

    async def run() -> None:
        rig = Rig(options=Options(flush=FlushPolicy(commands=1)))
        rig.engine.start()
        await rig.put()
        rig.store.close()
        await rig.failed.wait()
        assert isinstance(rig.failures[0], StorageError)
        with pytest.raises(UnavailableError):
            rig.engine.submit(rig.enqueue(), lambda _o, _i: None)

    asyncio.run(run())


def test_a_snapshot_holds_at_least_what_was_applied(tmp_path: Path):
    """A checkpoint opened elsewhere is a machine at the index that was named."""

    async def run() -> None:
        async with Rig() as rig:
            await work(rig)
            target = tmp_path / "snapshot"
            index = await rig.engine.snapshot(str(target))
            copy = Machine(MemoryStore.load(str(target)))
            assert copy.index == index == rig.engine.index
            assert copy.chain == rig.engine.read.chain

    asyncio.run(run())


def test_a_second_engine_on_the_same_directory_is_refused():
    """The lock of the log keeps a second server out."""

    async def run() -> None:
        async with Rig() as rig:
            with pytest.raises(StorageError):
                Rig(disk=rig.disk)

    asyncio.run(run())


def test_closing_waits_for_what_is_pending():
    """Commands taken before `close` are answered and on disk."""

    async def run() -> None:
        rig = Rig()
        rig.engine.start()
        rig.syncer.is_held = True
        done: list[int] = []
        rig.engine.submit(rig.enqueue(), lambda _, index: done.append(index))
        closing = asyncio.ensure_future(rig.engine.close())
        await turns(5)
        assert not closing.done()
        rig.syncer.let_all_go()
        await closing
        assert done == [1]
        await rig.engine.close()

    asyncio.run(run())


def test_a_killed_engine_acknowledges_nothing_more():
    """A sync that returns after `kill` answers nobody."""

    async def run() -> None:
        rig = Rig()
        rig.engine.start()
        rig.syncer.is_held = True
        done: list[int] = []
        rig.engine.submit(rig.enqueue(), lambda _, index: done.append(index))
        await turns()
        rig.engine.kill()
        rig.syncer.let_all_go()
        await turns(5)
        assert done == []

    asyncio.run(run())


def test_a_command_that_breaks_the_machine_raises_an_alarm_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
):
    """The poison command is answered and reported; its neighbours and a replay are unharmed."""

    def boom(_state: object, _command: object) -> None:
        raise RuntimeError("poison")

    async def run() -> None:
        monkeypatch.setitem(HANDLERS, PauseQueue, boom)
        first = Rig()
        first.engine.start()
        outcomes = await first.perform_all([first.enqueue(), PauseQueue(NS, "q"), first.enqueue()])
        assert [type(outcome).__name__ for outcome in outcomes] == [
            "Enqueued",
            "Rejected",
            "Enqueued",
        ]
        assert outcomes[1].code == "INTERNAL_ERROR"
        ((index, ordinal, text),) = first.faults
        assert (index, ordinal) == (1, 1)
        assert "poison" in text
        assert first.failures == []
        state = digest(first.store)
        first.engine.kill()
        second = Rig(disk=first.disk.kill(), clock=first.clock)
        assert digest(second.store) == state
        await second.engine.close()

    asyncio.run(run())


def test_the_feed_gives_events_from_the_ring_and_from_the_store():
    """A consumer from index 0 and one that keeps up read the same history."""

    async def run() -> None:
        first = Rig()
        first.engine.start()
        await work(first)
        live = first.engine.feed(0, 1 << 20)
        first.engine.kill()
        async with Rig(disk=first.disk.kill(), clock=first.clock) as second:
            assert second.engine.feed(0, 1 << 20) == live
            assert [index for index, _ in live] == sorted(index for index, _ in live)
            middle = live[len(live) // 2][0]
            assert second.engine.feed(middle, 1 << 20) == [x for x in live if x[0] > middle]

    asyncio.run(run())


def test_status_names_the_figures_an_operator_asks_for():
    """Histograms and pipeline figures are there and count what happened."""

    async def run() -> None:
        async with Rig() as rig:
            await work(rig)
            status = rig.engine.status()
            assert status["index"] == rig.log.last_index
            assert status["queue_time"]["count"] == status["pipeline"]["entries_count"]
            assert status["apply_time"]["count"] == status["pipeline"]["entries_count"]
            assert status["log"]["synced_index"] == rig.log.last_index

    asyncio.run(run())
