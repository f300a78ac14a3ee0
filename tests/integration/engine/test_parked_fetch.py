"""Parked fetches: who waits, who is woken, and what it costs."""

import asyncio

import pytest

from corvo.engine import Options
from corvo.engine.admission import Bounds
from corvo.errors import OverloadedError
from corvo.keys.codec import decode_entry
from corvo.model.command import (
    AckJob,
    ConfigureQueue,
    EnqueueBatch,
    EnqueueJob,
    FetchJobs,
    PauseQueue,
    PromoteJobs,
    ResumeQueue,
)
from corvo.model.job import PENDING
from corvo.model.queue import Rate, SettingsPatch
from corvo.runtime.clock import SystemClock
from tests.support.rig import NS, Rig, turns


def kinds(rig: Rig) -> list[list[str]]:
    """Name the commands of each entry of the log."""
    return [
        [type(command).__name__ for command in decode_entry(raw).commands]
        for _, raw in rig.log.replay(0)
    ]


def test_a_fetch_finds_what_is_there():
    """A job that is pending is claimed at once."""

    async def run() -> None:
        async with Rig() as rig:
            ids = await rig.put(count=2)
            assert await rig.fetch("q").ids() == ids[:1]
            assert await rig.fetch("q", count=5).ids() == ids[1:]

    asyncio.run(run())


def test_an_empty_poll_writes_nothing():
    """A fetch without waiting time on an empty queue is answered at once, past log and disk."""

    async def run() -> None:
        async with Rig() as rig:
            before = rig.log.last_index
            operations = rig.disk.operations_count
            for _ in range(100):
                poll = rig.fetch("q", timeout_ms=0)
                assert poll.is_done
                assert await poll.ids() == []
            await turns()
            assert rig.log.last_index == before
            assert rig.disk.operations_count == operations

    asyncio.run(run())


def test_an_enqueue_wakes_a_parked_fetch_within_one_sync():
    """The waiting fetch follows the enqueue in the same entry."""

    async def run() -> None:
        async with Rig() as rig:
            poll = rig.fetch("q")
            assert rig.engine.waiting(NS, "q") == 1
            command = rig.enqueue()
            rig.engine.submit(command, lambda _o, _i: None)
            assert await poll.ids() == [command.spec.id]
            assert kinds(rig) == [["EnqueueJob", "FetchJobs"]]
            assert rig.engine.waiting(NS, "q") == 0

    asyncio.run(run())


def test_parked_fetches_are_served_in_the_order_they_came():
    """Three workers that wait get three jobs in order."""

    async def run() -> None:
        async with Rig() as rig:
            polls = [rig.fetch("q") for _ in range(3)]
            ids = await rig.put(count=3)
            assert [await poll.ids() for poll in polls] == [[id_] for id_ in ids]

    asyncio.run(run())


def test_a_batch_of_jobs_wakes_as_many_fetches_as_it_has_jobs():
    """An atomic batch of three wakes three of five waiting workers, in one entry."""

    async def run() -> None:
        async with Rig() as rig:
            polls = [rig.fetch("q") for _ in range(5)]
            specs = [rig.enqueue().spec for _ in range(3)]
            await rig.engine.perform(EnqueueBatch(specs))
            assert [poll.is_done for poll in polls] == [True, True, True, False, False]
            assert kinds(rig) == [["EnqueueBatch"] + ["FetchJobs"] * 3]

    asyncio.run(run())


def test_a_promoted_job_wakes_a_parked_fetch():
    """A scheduled job reaches the waiting worker when the sweep promotes it."""

    async def run() -> None:
        async with Rig() as rig:
            poll = rig.fetch("q")
            command = rig.enqueue(scheduled_ms=rig.clock.now_ms() + 1000)
            await rig.engine.perform(command)
            assert not poll.is_done
            rig.clock.advance(1000)
            await rig.engine.perform(PromoteJobs())
            assert await poll.ids() == [command.spec.id]

    asyncio.run(run())


def test_resuming_a_queue_wakes_a_parked_fetch():
    """A paused queue hands out nothing; resuming it does."""

    async def run() -> None:
        async with Rig() as rig:
            await rig.engine.perform(PauseQueue(NS, "q"))
            ids = await rig.put()
            poll = rig.fetch("q")
            await turns(5)
            assert not poll.is_done
            await rig.engine.perform(ResumeQueue(NS, "q"))
            assert await poll.ids() == ids

    asyncio.run(run())


def test_a_freed_slot_wakes_a_parked_fetch():
    """With one slot in the queue, the ack of the running job lets the next one go."""

    async def run() -> None:
        async with Rig() as rig:
            await rig.engine.perform(ConfigureQueue(NS, "q", SettingsPatch(max_concurrency=1)))
            ids = await rig.put(count=2)
            first = await rig.fetch("q").answer
            poll = rig.fetch("q")
            await turns(5)
            assert not poll.is_done
            await rig.engine.perform(AckJob(NS, ids[0], first.claims[0].token))
            assert await poll.ids() == ids[1:]

    asyncio.run(run())


def test_a_fetch_of_several_queues_waits_at_each_and_leaves_all():
    """Woken through one queue, a fetch no longer waits at the others."""

    async def run() -> None:
        async with Rig() as rig:
            poll = rig.fetch("a", "b", "c")
            assert [rig.engine.waiting(NS, name) for name in "abc"] == [1, 1, 1]
            ids = await rig.put("b")
            assert await poll.ids() == ids
            assert [rig.engine.waiting(NS, name) for name in "abc"] == [0, 0, 0]
            await rig.put("a")
            assert rig.engine.read.queue(NS, "a").record.counts[PENDING] == 1

    asyncio.run(run())


def test_rotation_moves_on_from_fetch_to_fetch():
    """Fetches of two full queues of equal tier alternate between them."""

    async def run() -> None:
        async with Rig() as rig:
            await rig.put("a", 4)
            await rig.put("b", 4)
            queues = []
            for _ in range(4):
                fetched = await rig.fetch("a", "b").answer
                queues.append(fetched.claims[0].queue)
            assert sorted(queues) == ["a", "a", "b", "b"]
            assert queues[0] != queues[1]

    asyncio.run(run())


def test_a_fetch_that_waited_in_vain_is_answered_empty():
    """After its waiting time a fetch is answered without jobs, and nothing was written."""

    async def run() -> None:
        async with Rig() as rig:
            poll = rig.fetch("q", timeout_ms=20)
            assert await poll.ids() == []
            assert rig.log.last_index == 0
            assert rig.engine.waiting(NS, "q") == 0

    asyncio.run(run())


def test_a_dropped_fetch_leaves_its_place():
    """A fetch whose client is gone gets nothing; the next in line does."""

    async def run() -> None:
        async with Rig() as rig:
            gone, kept = rig.fetch("q"), rig.fetch("q")
            gone.ticket.drop()
            assert rig.engine.waiting(NS, "q") == 1
            ids = await rig.put()
            assert await kept.ids() == ids
            assert not gone.is_done

    asyncio.run(run())


def test_a_job_claimed_for_a_gone_client_is_released():
    """A client that leaves while its fetch is on the way to disk gives the job back, unburnt."""

    async def run() -> None:
        async with Rig() as rig:
            ids = await rig.put()
            rig.syncer.is_held = True
            gone = rig.fetch("q")
            await turns()
            gone.ticket.drop()
            rig.syncer.let_all_go()
            fetched = await rig.fetch("q").answer
            assert [claim.spec.id for claim in fetched.claims] == ids
            assert fetched.claims[0].attempt == 1
            assert not gone.is_done

    asyncio.run(run())


def test_dropping_an_answered_fetch_does_nothing():
    """A ticket that was answered may be dropped late without effect."""

    async def run() -> None:
        async with Rig() as rig:
            await rig.put()
            poll = rig.fetch("q")
            await poll.answer
            before = rig.log.last_index
            poll.ticket.drop()
            await turns(5)
            assert rig.log.last_index == before

    asyncio.run(run())


def test_a_thousand_parked_fetches_write_nothing_while_other_queues_work():
    """Waiting workers cost no entries, also while entries of another queue are applied."""

    async def run() -> None:
        async with Rig() as rig:
            polls = [rig.fetch("idle", f"own-{number}") for number in range(1000)]
            await turns(5)
            assert rig.log.last_index == 0
            for _ in range(5):
                await rig.put("busy")
            assert rig.log.last_index == 5
            assert sum(poll.is_done for poll in polls) == 0
            assert rig.engine.waiting(NS, "idle") == 1000

    asyncio.run(run())


def test_a_paused_queue_with_waiters_does_not_multiply_the_log():
    """Enqueues into a paused queue draw at most one fetch behind them, not one each."""

    async def run() -> None:
        async with Rig() as rig:
            await rig.engine.perform(PauseQueue(NS, "q"))
            polls = [rig.fetch("q") for _ in range(10)]
            for _ in range(20):
                await rig.put()
            fetches = sum(names.count("FetchJobs") for names in kinds(rig))
            assert fetches <= 1
            assert sum(poll.is_done for poll in polls) == 0
            await rig.engine.perform(ResumeQueue(NS, "q"))
            for poll in polls:
                assert len(await poll.ids()) == 1

    asyncio.run(run())


def test_an_empty_return_parks_in_front():
    """A fetch that was woken in vain is still the first to be served."""

    async def run() -> None:
        async with Rig() as rig:
            await rig.engine.perform(PauseQueue(NS, "q"))
            first = rig.fetch("q")
            second = rig.fetch("q")
            ids = await rig.put(count=1)
            await turns(5)
            assert not first.is_done
            await rig.engine.perform(ResumeQueue(NS, "q"))
            assert await first.ids() == ids
            assert not second.is_done

    asyncio.run(run())


def test_fetches_in_flight_are_bounded_per_queue_and_none_is_forgotten():
    """With two permits, ten fetches for ten jobs are all served, two at a time."""

    async def run() -> None:
        async with Rig(options=Options(fetch_inflight_max=2)) as rig:
            await rig.put(count=10)
            polls = [rig.fetch("q") for _ in range(10)]
            for poll in polls:
                assert len(await poll.ids()) == 1
            fetches = [names for names in kinds(rig) if "FetchJobs" in names]
            assert [len(names) for names in fetches] == [2] * 5

    asyncio.run(run())


def test_a_fetch_that_takes_from_another_queue_leaves_the_job_to_the_next():
    """A woken fetch that finds better work elsewhere does not strand the job that woke it."""

    async def run() -> None:
        async with Rig() as rig:
            rig.syncer.is_held = True
            both = rig.fetch("a", "b")
            only = rig.fetch("a")
            rig.engine.submit(rig.enqueue("b"), lambda _o, _i: None)
            rig.engine.submit(rig.enqueue("a"), lambda _o, _i: None)
            rig.syncer.let_all_go()
            found = await both.answer, await only.answer
            assert [fetched.claims[0].queue for fetched in found] == ["b", "a"]

    asyncio.run(run())


def test_a_job_that_a_fetch_in_flight_left_alone_goes_to_the_one_who_waits():
    """A fetch on its way was expected to empty queue a; it took from b, so a's waiter is called."""

    async def run() -> None:
        async with Rig() as rig:
            await rig.put("a")
            await rig.engine.perform(rig.enqueue("b", tier=0))
            rig.syncer.is_held = True
            both = rig.fetch("a", "b")
            only = rig.fetch("a")
            assert rig.engine.waiting(NS, "a") == 1
            await turns()
            rig.syncer.let_all_go()
            found = await both.answer, await only.answer
            assert [fetched.claims[0].queue for fetched in found] == ["b", "a"]

    asyncio.run(run())


def test_a_fetch_that_came_to_a_full_pipeline_is_served_when_there_is_room():
    """With the pipeline full of another queue's work, a fetch waits and is not forgotten."""

    async def run() -> None:
        async with Rig(options=Options(bounds=Bounds(pending_max=2))) as rig:
            ids = await rig.put("q")
            rig.syncer.is_held = True
            for _ in range(2):
                rig.engine.submit(rig.enqueue("other"), lambda _o, _i: None)
            poll = rig.fetch("q")
            assert rig.engine.waiting(NS, "q") == 1
            await turns()
            rig.syncer.let_all_go()
            assert await poll.ids() == ids

    asyncio.run(run())


def test_a_rate_limited_queue_serves_its_waiters_as_tokens_come():
    """Three waiters of a queue with 50 tokens a second are served by alarms, without polling."""

    async def run() -> None:
        async with Rig(clock=SystemClock()) as rig:
            rate = Rate(rate=50, period_ms=1_000, burst=1)
            await rig.engine.perform(ConfigureQueue(NS, "q", SettingsPatch(rate=rate)))
            await rig.put(count=3)
            polls = [rig.fetch("q") for _ in range(3)]
            for poll in polls:
                assert len(await poll.ids()) == 1
            fetches = sum(names.count("FetchJobs") for names in kinds(rig))
            assert fetches <= 6

    asyncio.run(run())


def test_past_the_bound_of_parked_fetches_the_next_is_refused():
    """The 429 for waiting workers comes only at `parked_max`, and a place freed is a place."""

    async def run() -> None:
        async with Rig(options=Options(parked_max=3)) as rig:
            polls = [rig.fetch("q") for _ in range(3)]
            with pytest.raises(OverloadedError) as refusal:
                rig.fetch("q")
            assert refusal.value.retry_after_ms > 0
            polls[0].ticket.drop()
            rig.fetch("q")

    asyncio.run(run())


def test_a_failing_answer_of_one_waiter_does_not_keep_others_waiting():
    """A time-out whose reply raises is reported; those of the same moment are still answered."""

    async def run() -> None:
        async with Rig() as rig:

            def fail(_fetched: object, _index: int) -> None:
                raise RuntimeError("gone")

            rig.engine.fetch(FetchJobs(NS, ["q"], "w"), 10, fail)
            poll = rig.fetch("q", timeout_ms=10)
            assert await poll.ids() == []
            assert len(rig.reply_failures) == 1

    asyncio.run(run())


def test_a_held_back_job_draws_no_fetch_behind_its_enqueue():
    """A job scheduled for later does not make waiting fetches write."""

    async def run() -> None:
        async with Rig() as rig:
            rig.fetch("q")
            command = rig.enqueue(scheduled_ms=rig.clock.now_ms() + 60_000)
            assert isinstance(command, EnqueueJob)
            await rig.engine.perform(command)
            await turns(5)
            assert kinds(rig) == [["EnqueueJob"]]

    asyncio.run(run())
