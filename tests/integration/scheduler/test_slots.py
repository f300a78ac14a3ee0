"""Slots through restart, clocks that are set, and calendars that are not there."""

import asyncio

import pytest

from corvo.machine.audit import audit
from corvo.model.command import FetchJobs, SetSchedule
from corvo.model.job import Spec
from corvo.model.outcome import Rejected
from corvo.model.schedule import CATCH_UP_ALL, CATCH_UP_LAST, CATCH_UP_SKIP, ScheduleSpec
from corvo.model.view import ScheduleView
from corvo.runtime.clock import VirtualClock
from corvo.scheduler import Ticker, cron
from tests.support.rig import NS, Poll, Rig

START_MS = 1_700_000_000_000
MINUTE_MS = 60_000
FIRST_MS = 1_700_000_040_000  # the first whole minute after the start


async def schedule(rig: Rig, expression: str = "* * * * *", **fields: int) -> bytes:
    """Create a schedule that stands at its first slot."""
    identifier = rig.engine.new_id()
    spec = ScheduleSpec("n", expression, "UTC", Spec(identifier, NS, "q", b"{}"), **fields)
    timing = cron.parse(expression, "UTC")
    next_ms = timing.next_ms(rig.engine.now_ms)
    outcome, _ = await rig.engine.perform(SetSchedule(NS, identifier, spec, next_ms))
    assert not isinstance(outcome, Rejected)
    return identifier


async def settle_down(rig: Rig) -> None:
    """Tick until nothing is due any more."""
    ticker = Ticker(rig.engine)
    while await ticker.tick():
        pass


async def fired(rig: Rig) -> list[int]:
    """Claim every job there is and return their slots."""
    command = FetchJobs(NS, ["q"], "w", count=500, lease_ms=86_400_000)
    poll = Poll(rig.engine, command, 0)
    return sorted(claim.spec.scheduled_ms for claim in (await poll.answer).claims)


def view(rig: Rig, identifier: bytes) -> ScheduleView:
    """Read a schedule that exists."""
    found = rig.engine.read.schedule(NS, identifier)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        (CATCH_UP_SKIP, [FIRST_MS + 9 * MINUTE_MS]),
        (CATCH_UP_LAST, [FIRST_MS + 9 * MINUTE_MS]),
        (CATCH_UP_ALL, [FIRST_MS + n * MINUTE_MS for n in range(10)]),
    ],
)
def test_a_restart_fires_each_slot_once(catch_up: int, expected: list[int]):
    """Ten minutes down: what is on time, and what catch_up makes of the rest; nothing twice."""

    async def run() -> None:
        clock = VirtualClock(START_MS)
        async with Rig(clock=clock) as rig:
            await schedule(rig, catch_up=catch_up)
        clock.advance_to(FIRST_MS + 9 * MINUTE_MS + 1_000)
        slots: list[int] = []
        for _ in range(3):
            async with Rig(disk=rig.disk, store=rig.store.flushed(), clock=clock) as rig:
                await settle_down(rig)
                slots += await fired(rig)
        assert slots == expected
        assert audit(rig.store.flushed()) == []

    asyncio.run(run())


def test_a_clock_set_back_fires_no_slot_again():
    """A restart with a clock an hour behind: entries and slots go on from where they were."""

    async def run() -> None:
        async with Rig(clock=VirtualClock(START_MS)) as rig:
            await schedule(rig)
            rig.clock.advance_to(FIRST_MS)
            await settle_down(rig)
            assert await fired(rig) == [FIRST_MS]
        behind = VirtualClock(START_MS - 3_600_000)
        async with Rig(disk=rig.disk, store=rig.store.flushed(), clock=behind) as rig:
            for _ in range(3):
                await settle_down(rig)
                behind.advance(20 * MINUTE_MS)
            assert await fired(rig) == []
            behind.advance_to(FIRST_MS + MINUTE_MS)
            await settle_down(rig)
            assert await fired(rig) == [FIRST_MS + MINUTE_MS]

    asyncio.run(run())


def test_two_proposers_at_once_make_one_job():
    """As after a failover, when the old leader's proposal is still on its way."""

    async def run() -> None:
        async with Rig(clock=VirtualClock(START_MS)) as rig:
            await schedule(rig)
            rig.clock.advance_to(FIRST_MS)
            moved = await asyncio.gather(*(Ticker(rig.engine).tick() for _ in range(4)))
            assert sum(moved) == 1
            assert await fired(rig) == [FIRST_MS]

    asyncio.run(run())


def test_an_idle_schedule_writes_nothing():
    """Between two slots the log does not grow."""

    async def run() -> None:
        async with Rig(clock=VirtualClock(START_MS)) as rig:
            await schedule(rig, "0 0 1 1 *")
            before = rig.log.last_index
            ticker = Ticker(rig.engine)
            for _ in range(50):
                rig.clock.advance(5_000)
                await ticker.tick()
            assert rig.log.last_index == before

    asyncio.run(run())


def test_a_schedule_whose_time_zone_is_gone_is_paused_with_the_reason():
    """The server goes on; the schedule says what is wrong with it."""

    async def run() -> None:
        async with Rig(clock=VirtualClock(START_MS)) as rig:
            identifier = rig.engine.new_id()
            template = Spec(identifier, NS, "q", b"{}")
            spec = ScheduleSpec("n", "* * * * *", "Atlantis/Capital", template)
            await rig.engine.perform(SetSchedule(NS, identifier, spec, FIRST_MS))
            rig.clock.advance_to(FIRST_MS)
            await settle_down(rig)
            record = view(rig, identifier).schedule
            assert record.paused_ms == FIRST_MS
            assert "Atlantis/Capital" in record.paused_reason
            assert await fired(rig) == []

    asyncio.run(run())


def test_slots_wait_while_the_disk_is_full():
    """A job more would need the space; the slot comes when there is some again."""

    async def run() -> None:
        async with Rig(clock=VirtualClock(START_MS)) as rig:
            await schedule(rig)
            rig.engine._admission.observe_disk(is_full=True)
            rig.clock.advance_to(FIRST_MS)
            await settle_down(rig)
            assert await fired(rig) == []
            rig.engine._admission.observe_disk(is_full=False)
            await settle_down(rig)
            assert await fired(rig) == [FIRST_MS]

    asyncio.run(run())
