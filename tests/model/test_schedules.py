"""Schedules in the machine: histories that are mostly about them, and the facts by name."""

from random import Random

import pytest

from corvo.keys.codec import decode_entry
from corvo.machine import Machine, digest
from corvo.model import command as c
from corvo.model import event as e
from corvo.model import job as j
from corvo.model import outcome as o
from corvo.model import schedule as s
from corvo.storage.memory import MemoryStore
from tests.factories import START_MS, make_fetch, make_other_id, make_spec
from tests.model.harness import Pair
from tests.model.histories import Writer
from tests.model.profiles import IS_LONG
from tests.model.test_grouping import compare

SEEDS = range(500) if IS_LONG else range(25)
ID = make_other_id(1)
MINUTE_MS = 60_000


@pytest.mark.parametrize("seed", SEEDS)
def test_schedules_agree_with_the_reference_queue_however_grouped(seed: int):
    """Outcomes, jobs and records are the plain ones', one by one as in one commit, and again."""
    chance = Random(7_000 + seed)
    pair, store = Pair(), MemoryStore()
    writer = Writer(pair.oracle.world, chance)
    stepwise = Machine(store)
    for _ in range(40):
        count = chance.choice((1, 2, 4))
        commands = [
            writer.schedule() if chance.randrange(3) else writer.anything() for _ in range(count)
        ]
        outcomes = pair.step(commands, writer.advance_ms())
        writer.fresh.clear()
        raw = pair.log[-1]
        assert outcomes == stepwise.apply_stepwise(len(pair.log), raw, decode_entry(raw))
        compare(pair.store, store)
    again = MemoryStore()
    for index, raw in enumerate(pair.log, start=1):
        Machine(again).apply(index, raw, decode_entry(raw))
    assert digest(pair.store) == digest(again)


def started(overlap: int = s.OVERLAP_ALLOW, **fields: object) -> Pair:
    """Return a machine with one schedule that stands at a slot a minute away."""
    pair = Pair()
    spec = s.ScheduleSpec("n", "* * * * *", "UTC", make_spec(0), overlap, **fields)
    pair.step([c.SetSchedule(0, ID, spec, START_MS + MINUTE_MS)])
    return pair


def fire(slot: int, *, revision: int = 1) -> c.FireSchedule:
    """Return the firing of the n-th minute."""
    slot_ms = START_MS + slot * MINUTE_MS
    return c.FireSchedule(0, ID, revision, slot_ms, (slot_ms,), slot_ms + MINUTE_MS)


def states(pair: Pair) -> list[str]:
    """Return the states of the jobs, in the order of their slots."""
    jobs = sorted(pair.oracle.world.jobs.values(), key=lambda job: job.id)
    return [j.STATE_NAMES[job.state] for job in jobs]


def test_a_slot_fired_twice_has_one_job():
    """In one entry, in two entries, and by a proposer that is late."""
    pair = started()
    first = pair.step([fire(1), fire(1)], MINUTE_MS)
    assert first == [o.Swept(1), o.Swept(0)]
    assert pair.step([fire(1)]) == [o.Swept(0)]
    assert states(pair) == ["pending"]


def test_a_slot_is_not_fired_before_its_time():
    """A proposer whose clock is ahead changes nothing."""
    pair = started()
    assert pair.step([fire(1)], MINUTE_MS - 1) == [o.Swept(0)]
    assert pair.step([fire(1)], 1) == [o.Swept(1)]


def test_a_schedule_set_back_to_a_decided_slot_does_not_fire_it_again():
    """Also when the job of that slot is long gone."""
    pair = started()
    pair.step([fire(1)], MINUTE_MS)
    (job,) = pair.oracle.world.jobs
    spec = pair.oracle.world.schedules[ID].spec
    again = c.SetSchedule(0, ID, spec, START_MS + MINUTE_MS, is_new=False)
    pair.step([c.DeleteJob(0, job), again])
    assert pair.step([fire(1, revision=2)]) == [o.Swept(1)]
    assert states(pair) == []


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        (s.OVERLAP_ALLOW, ["active", "pending"]),
        (s.OVERLAP_SKIP, ["active"]),
        (s.OVERLAP_CANCEL, ["active", "pending"]),
    ],
)
def test_overlap_decides_about_a_job_that_is_still_running(overlap: int, expected: list[str]):
    """Run beside it, make none, or ask it to stop."""
    pair = started(overlap)
    pair.step([fire(1), make_fetch("mail", lease_ms=3_600_000)], MINUTE_MS)
    pair.step([fire(2)], MINUTE_MS)
    assert states(pair) == expected
    first = min(pair.oracle.world.jobs.values(), key=lambda job: job.id)
    assert bool(first.cancel_ms) == (overlap == s.OVERLAP_CANCEL)


def test_queued_slots_run_one_after_the_other():
    """Each waits for the one before, however that ends."""
    pair = started(s.OVERLAP_QUEUE)
    for slot in (1, 2, 3):
        pair.step([fire(slot)], MINUTE_MS)
    fetched = pair.step([make_fetch("mail", count=5)])[0]
    assert isinstance(fetched, o.Fetched)
    (claim,) = fetched.claims
    failed = c.FailJob(0, claim.spec.id, claim.token, "no", is_retryable=False)
    fetched = pair.step([failed, make_fetch("mail", count=5)])[1]
    assert isinstance(fetched, o.Fetched)
    assert [x.spec.scheduled_ms for x in fetched.claims] == [START_MS + 2 * MINUTE_MS]


def test_jitter_delays_a_slot_always_by_the_same():
    """The index has the schedule under slot plus jitter, within its bound."""
    pair = started(jitter_ms=30_000)
    spec = pair.oracle.world.schedules[ID].spec
    slot_ms = START_MS + MINUTE_MS
    due_ms = s.due_ms(ID, spec, slot_ms)
    assert slot_ms <= due_ms <= slot_ms + 30_000
    assert pair.machine.next_schedule_ms(START_MS) == due_ms
    spread = {s.due_ms(ID, spec, slot_ms + n * MINUTE_MS) % MINUTE_MS for n in range(50)}
    assert len(spread) > 40


def test_events_say_what_became_of_a_slot():
    """Fired with its job, skipped with a reason, missed with the span."""
    pair = started(s.OVERLAP_SKIP)
    slot_ms = START_MS + MINUTE_MS
    slots = (slot_ms + MINUTE_MS, slot_ms + 2 * MINUTE_MS)
    command = c.FireSchedule(0, ID, 1, slot_ms, slots, slot_ms + 3 * MINUTE_MS)
    pair.step([command], 10 * MINUTE_MS)
    _, block = pair.machine.events(1, 10)[0]
    about = [x for x in block.events if e.EVENT_NAMES[x.type].startswith("schedule.")]
    names = [e.EVENT_NAMES[event.type] for event in about]
    assert names == ["schedule.missed", "schedule.fired", "schedule.skipped"]
    assert about[0].data is not None
    assert (about[0].data["from_ms"], about[0].data["until_ms"]) == (slot_ms, slots[0])
    assert about[1].job == s.slot_job_id(ID, slots[0])
    assert about[2].data is not None
    assert about[2].data["reason"] == "overlap"
