"""What the scheduler relies on: `due` names exactly the sweeps that would find work."""

from random import Random

import pytest

from corvo.machine import SweepPolicy
from corvo.model import command as c
from corvo.model import job as j
from tests.model.harness import Pair
from tests.model.histories import Writer
from tests.model.oracle_dispatch import offer_of
from tests.model.oracle_state import World

POLICY = SweepPolicy(retention_ms=60_000, events_keep_ms=86_400_000, events_keep_count=10_000)
ROUNDS_MAX = 20


def overdue(world: World) -> list[str]:
    """Return what a sweep should have dealt with by now."""
    late: list[str] = []
    for job in world.jobs.values():
        name, now_ms = job.id.hex(), world.now_ms
        if job.is_doomed:
            late.append(f"{name} was cleared and is still there")
        elif job.state in (j.SCHEDULED, j.RETRYING) and job.due_ms <= now_ms:
            late.append(f"{name} was not promoted")
        elif job.state == j.ACTIVE and job.lease_until_ms <= now_ms:
            late.append(f"{name} was not reclaimed")
        elif job.is_settled and job.settled_ms + POLICY.retention_ms <= now_ms:
            if world.queues[job.queue].settings.retention_ms is None:
                late.append(f"{name} was not purged")
        elif not job.is_settled and job.state != j.ACTIVE and 0 < job.expire_ms <= now_ms:
            late.append(f"{name} did not expire")
        if job.state == j.HELD and 0 < job.hold_until_ms <= now_ms:
            late.append(f"{name} is held beyond its time-out")
    return late


def next_due_ms(world: World) -> int:
    """Return the earliest instant at which promote, reclaim or a job's deadline has work."""
    times: list[int] = []
    for job in world.jobs.values():
        if job.is_doomed or job.is_settled:
            continue
        if job.state in (j.SCHEDULED, j.RETRYING):
            times.append(job.due_ms)
        if job.state == j.ACTIVE:
            times.append(job.lease_until_ms)
        elif job.expire_ms:
            times.append(job.expire_ms)
        if job.state == j.HELD and job.hold_until_ms:
            times.append(job.hold_until_ms)
    return min(times, default=0)


def settle_time(pair: Pair) -> None:
    """Run every due sweep until none is; nothing may then be overdue."""
    for _ in range(ROUNDS_MAX):
        commands = pair.machine.due(pair.now_ms)
        commands += pair.machine.due_upkeep(pair.now_ms, POLICY)
        if not commands:
            break
        pair.step(commands)
    else:
        pytest.fail("sweeps find work without end")
    assert overdue(pair.oracle.world) == []


@pytest.mark.parametrize("seed", range(16))
def test_due_names_every_sweep_that_has_work(seed: int):
    """A server that runs what `due` names never leaves anything overdue, and comes to rest."""
    chance = Random(1_000 + seed)
    pair = Pair()
    writer = Writer(pair.oracle.world, chance)
    for _ in range(40):
        pair.step([writer.anything() for _ in range(4)], writer.advance_ms())
        writer.fresh.clear()
        settle_time(pair)
        wanted = next_due_ms(pair.oracle.world)
        found = pair.machine.next_due_ms(pair.now_ms)
        assert not wanted or 0 < found <= wanted, (found - pair.now_ms, wanted - pair.now_ms)


def test_an_idle_machine_has_nothing_due():
    """Nobody proposes an entry because a clock moved."""
    pair = Pair()
    assert pair.machine.due(pair.now_ms) == []
    assert pair.machine.due_upkeep(pair.now_ms, POLICY) == []
    assert pair.machine.next_due_ms(pair.now_ms) == 0
    pair.step([c.PauseQueue(0, "mail")])
    assert pair.machine.due(pair.now_ms + 3_600_000) == []
    assert pair.machine.due_upkeep(pair.now_ms + 3_600_000, POLICY) == []


@pytest.mark.parametrize("seed", range(8))
def test_claimable_is_a_bound_and_names_the_next_instant(seed: int):
    """A parked fetch is woken in time: before `next_at` a bound of zero stays one."""
    chance = Random(2_000 + seed)
    pair = Pair()
    writer = Writer(pair.oracle.world, chance)
    for _ in range(40):
        pair.step([writer.anything() for _ in range(3)], writer.advance_ms())
        writer.fresh.clear()
        world, now_ms = pair.oracle.world, pair.now_ms
        for name in world.queues:
            bound, next_ms = pair.machine.claimable(0, name, now_ms)
            if bound:
                continue
            for later_ms in (0, 1, 499, 2_000, 9_999):
                world.now_ms = now_ms + later_ms
                if offer_of(world, name).is_sure:
                    assert 0 < next_ms <= world.now_ms, (name, later_ms, next_ms - now_ms)
                world.now_ms = now_ms
