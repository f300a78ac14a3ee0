"""Random commands about schedules; part of `histories`."""

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from corvo.model import command as c
from corvo.model.job import Spec
from corvo.model.schedule import ScheduleSpec
from tests.factories import make_other_id
from tests.model.oracle_state import ReferenceSchedule, World

IDS = tuple(make_other_id((1 << 30) + number) for number in range(4))
NAMES = ("hourly", "daily", "weekly", "yearly")
STEPS_MS = (1_000, 5_000, 60_000)


def draw_schedule(world: World, chance: Random, draw_spec: Callable[[], Spec]) -> c.Command:
    """Draw a command about a schedule, mostly a firing of one that is due."""
    ns = world.ns
    schedule_id = chance.choice(IDS)
    known = world.schedules.get(schedule_id)
    kind = chance.randrange(20)
    if kind < 4 or (known is None and chance.randrange(3)):
        return _set(world, chance, schedule_id, draw_spec())
    if known is None:
        # Now and then somebody asks about one that is not there.
        nothing = ScheduleSpec("", "", "", Spec(schedule_id, ns, "mail", b"{}"))
        known = ReferenceSchedule(schedule_id, nothing)
    if kind < 12:
        return _fire(world, chance, known)
    if kind < 14:
        return c.RunSchedule(ns, schedule_id)
    if kind < 16:
        last = world.now_ms // 1_000 * 1_000
        slots = [last - chance.randrange(20) * 1_000 for _ in range(chance.randrange(5))]
        return c.BackfillSchedule(ns, schedule_id, tuple(sorted(set(slots))))
    if kind == 16:
        return c.DeleteSchedule(ns, schedule_id)
    if kind == 17:
        return c.PauseSchedule(ns, schedule_id, chance.choice(("", "gone")))
    revision = known.revision - (chance.randrange(5) == 0)
    return c.ResumeSchedule(ns, schedule_id, revision, _next(world, chance))


def _next(world: World, chance: Random) -> int:
    if chance.randrange(12) == 0:
        return 0
    return (world.now_ms // 1_000 + chance.randint(0, 3)) * 1_000


def _set(world: World, chance: Random, schedule_id: bytes, job: Spec) -> c.Command:
    template = replace(job, id=schedule_id, scheduled_ms=0, depends_on=(), chain=None)
    spec = ScheduleSpec(
        chance.choice(NAMES),
        "* * * * *",
        "UTC",
        template,
        chance.randrange(4),
        chance.randrange(3),
        chance.choice((0, 0, 2_500)),
    )
    is_new = schedule_id not in world.schedules and chance.randrange(8) > 0
    paused = chance.choice((None, None, None, True, False))
    return c.SetSchedule(world.ns, schedule_id, spec, _next(world, chance), is_new, paused)


def _fire(world: World, chance: Random, known: ReferenceSchedule) -> c.Command:
    """Draw a firing as the scheduler would propose it; now and then one that is stale or wrong."""
    start = known.next_ms or world.now_ms // 1_000 * 1_000
    step = chance.choice(STEPS_MS)
    slots = [start + step * number for number in range(chance.choice((0, 1, 1, 1, 2, 4)))]
    if slots and chance.randrange(3) == 0:
        slots = slots[1:]
    next_ms = (slots[-1] if slots else start) + step
    if chance.randrange(12) == 0:
        next_ms = chance.choice((0, start))
    revision = known.revision - (chance.randrange(12) == 0)
    return c.FireSchedule(world.ns, known.id, revision, start, tuple(slots), next_ms)
