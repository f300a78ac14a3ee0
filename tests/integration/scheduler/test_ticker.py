"""Time passes by commands, and only when something is due."""

import asyncio

from corvo.model.command import FetchJobs
from corvo.model.job import PENDING
from corvo.scheduler import Ticker
from tests.support.rig import NS, Rig


def test_an_idle_server_proposes_nothing():
    """Hours of ticks without anything due leave the log as it is."""

    async def run() -> None:
        async with Rig() as rig:
            ticker = Ticker(rig.engine)
            await rig.put()
            before = rig.log.last_index
            for _ in range(200):
                rig.clock.advance(50_000)
                await ticker.tick()
            assert rig.log.last_index == before
            assert ticker.sweeps_total == 0

    asyncio.run(run())


def test_a_scheduled_job_is_promoted_on_the_first_tick_after_its_time():
    """A job is not promoted before its time and is promoted by the next tick after it."""

    async def run() -> None:
        async with Rig() as rig:
            ticker = Ticker(rig.engine)
            await ticker.tick()
            command = rig.enqueue(scheduled_ms=rig.clock.now_ms() + 500)
            await rig.engine.perform(command)
            poll = rig.fetch("q")
            rig.clock.advance(450)
            assert await ticker.tick() == 0
            rig.clock.advance(50)
            assert await ticker.tick() == 1
            assert await poll.ids() == [command.spec.id]

    asyncio.run(run())


def test_a_lost_lease_is_reclaimed_within_a_second():
    """The job of a silent worker is handed out again once its lease ran out."""

    async def run() -> None:
        async with Rig() as rig:
            ticker = Ticker(rig.engine)
            ids = await rig.put()
            await rig.engine.perform(FetchJobs(NS, ["q"], "silent", lease_ms=5_000))
            poll = rig.fetch("q")
            rig.clock.advance(4_900)
            await ticker.tick()
            assert not poll.is_done
            rig.clock.advance(200)
            await ticker.tick()
            fetched = await poll.answer
            assert [claim.spec.id for claim in fetched.claims] == ids
            assert fetched.claims[0].attempt == 2

    asyncio.run(run())


def test_more_than_a_sweep_may_move_is_moved_in_several_rounds():
    """Two thousand jobs due at once are all pending after one tick."""

    async def run() -> None:
        async with Rig() as rig:
            ticker = Ticker(rig.engine)
            due_ms = rig.clock.now_ms() + 100
            await rig.perform_all([rig.enqueue(scheduled_ms=due_ms) for _ in range(2_000)])
            rig.clock.advance(100)
            assert await ticker.tick() == 2_000
            assert rig.engine.read.queue(NS, "q").record.counts[PENDING] == 2_000

    asyncio.run(run())


def test_a_draining_engine_is_left_alone():
    """The ticker proposes nothing once the engine drains."""

    async def run() -> None:
        async with Rig() as rig:
            await rig.engine.perform(rig.enqueue(scheduled_ms=rig.clock.now_ms() + 100))
            await rig.engine.drain()
            rig.clock.advance(1_000)
            before = rig.log.last_index
            assert await Ticker(rig.engine).tick() == 0
            assert rig.log.last_index == before

    asyncio.run(run())
