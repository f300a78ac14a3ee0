"""What is proposed for a schedule that is due, against a walk over all its slots."""

from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.model import limits
from corvo.model import schedule as sc
from corvo.model.command import FireSchedule
from corvo.model.job import Spec
from corvo.model.schedule import Schedule, ScheduleSpec
from corvo.model.view import ScheduleView
from corvo.scheduler import cron
from corvo.scheduler.slots import propose

ID = bytes(16)
START_MS = 1_700_000_000_000
EXPRESSIONS = ("* * * * *", "*/7 * * * *", "*/20 * * * * *", "@hourly", "@every 17s", "0 0 * * *")


@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from((sc.CATCH_UP_SKIP, sc.CATCH_UP_LAST, sc.CATCH_UP_ALL)),
    st.sampled_from((0, 0, 5_000, 90_000)),
    st.sampled_from((0, 0, 1, 900)),
    st.integers(0, 3_600_000),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_a_proposal_is_what_a_walk_over_all_slots_says(
    expression: str, catch_up: int, jitter_ms: int, backlog: int, late_ms: int, has_end: bool
):
    """On time is always fired; missed slots as catch_up says; then the first slot that is left."""
    timing = cron.parse(expression, "UTC")
    first_ms = timing.next_ms(START_MS)
    until_ms = first_ms + 1_800_000 if has_end else 0
    template = Spec(ID, 0, "q", b"{}")
    spec = ScheduleSpec("n", expression, "UTC", template, 0, catch_up, jitter_ms, until_ms=until_ms)
    record = Schedule(ID, 0, START_MS, START_MS, next_ms=first_ms, backlog=backlog)
    now_ms = sc.due_ms(ID, spec, first_ms) + late_ms
    proposed = propose(ScheduleView(spec, record), now_ms)
    assert isinstance(proposed, FireSchedule)

    everything = cron.slots(timing, START_MS, now_ms + 3_700_000, 20_000)
    if until_ms:
        everything = [slot for slot in everything if slot < until_ms]
    came = [slot for slot in everything if slot <= now_ms]
    edge_ms = now_ms - limits.SCHEDULE_GRACE_MS - jitter_ms
    on_time = [slot for slot in came if slot > edge_ms]
    if catch_up == sc.CATCH_UP_ALL:
        wanted = came
    elif on_time or catch_up == sc.CATCH_UP_SKIP:
        wanted = on_time
    else:
        wanted = came[-1:]
    expected: list[int] = []
    for slot in wanted[: limits.SCHEDULE_SLOTS_MAX]:
        if sc.due_ms(ID, spec, slot) > now_ms:
            break
        expected.append(slot)
    assert list(proposed.slots) == expected
    after = expected[-1] if expected else max(first_ms, edge_ms)
    rest = [slot for slot in everything if slot > after]
    if rest:
        assert proposed.next_ms == rest[0]
    elif until_ms:
        assert proposed.next_ms == 0


def test_a_long_backlog_ends_catching_up():
    """After a thousand late slots in a row only what is on time, or else the last, is fired."""
    spec = ScheduleSpec("n", "* * * * *", "UTC", Spec(ID, 0, "q", b"{}"), catch_up=sc.CATCH_UP_ALL)
    first_ms = cron.parse("* * * * *", "UTC").next_ms(START_MS)
    record = Schedule(ID, 0, 1, 1, next_ms=first_ms, backlog=limits.SCHEDULE_CATCH_UP_MAX)
    proposed = propose(ScheduleView(spec, record), first_ms + 10 * 60_000)
    assert isinstance(proposed, FireSchedule)
    assert proposed.slots == (first_ms + 10 * 60_000,)
