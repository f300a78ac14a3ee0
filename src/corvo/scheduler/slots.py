"""From schedules that are due to firings: which slots to propose, and the slot after them.

A slot noticed within a minute of its time is on time and is always proposed. Older ones were missed
while nobody looked (the server was down, the disk was full), and `catch_up` says what becomes of
them: nothing, the last of them when none is on time, or all, the oldest first, up to a bound.
"""

from typing import Protocol

from corvo.errors import RequestError
from corvo.model import limits
from corvo.model import schedule as sc
from corvo.model.command import Command, FireSchedule, PauseSchedule
from corvo.model.outcome import Outcome, Swept
from corvo.model.schedule import ScheduleSpec
from corvo.model.view import ScheduleView
from corvo.scheduler import cron
from corvo.scheduler.cron import Timing

# Schedules looked at before others get their turn; the calendar is slow and the loop must go on.
SCHEDULES_PER_ROUND = 16
# Rounds of one tick: leases and promotions wait meanwhile.
ROUNDS_MAX = 32


class Fireable(Protocol):
    """The part of the engine that slots need."""

    @property
    def now_ms(self) -> int:
        """The time an entry written now would at least have."""
        ...

    def due_schedules(self, limit: int) -> list[ScheduleView]:
        """Schedules whose next slot is to be fired now."""
        ...

    async def sweep(self, commands: list[Command]) -> list[Outcome]:
        """Submit the commands and wait for what they moved."""
        ...


class Slots:
    """Fires what is due. Called by the ticker."""

    def __init__(self, engine: Fireable) -> None:
        self._engine = engine
        self.fired_total = 0

    async def tick(self) -> int:
        """Propose the slots that are due; return how many were decided."""
        total = 0
        for _ in range(ROUNDS_MAX):
            due = self._engine.due_schedules(SCHEDULES_PER_ROUND)
            if not due:
                break
            now_ms = self._engine.now_ms
            outcomes = await self._engine.sweep([propose(view, now_ms) for view in due])
            moved = sum(found.count for found in outcomes if isinstance(found, Swept))
            total += moved
            if not moved:
                # Somebody else was faster, or all of them were paused; look again next time.
                break
        self.fired_total += total
        return total

    def statistics(self) -> dict[str, int]:
        return {"slots_total": self.fired_total}


def propose(view: ScheduleView, now_ms: int) -> FireSchedule | PauseSchedule:
    """Work out the firing of a schedule that is due."""
    spec, record = view.spec, view.schedule
    try:
        timing = cron.parse(spec.cron, spec.timezone)
    except RequestError as error:
        # It was accepted once: this server's time zones are other ones. Stopping it where people
        # look beats guessing, and beats not starting at all.
        return PauseSchedule(record.ns, record.id, error.message)
    chosen = _choose(view, timing, now_ms)
    # Whatever lies between the last one chosen and what is on time was missed and is let go.
    after_ms = chosen[-1] if chosen else max(record.next_ms, _edge_ms(view, now_ms))
    next_ms = first_slot(timing, spec, after_ms)
    return FireSchedule(
        record.ns, record.id, record.revision, record.next_ms, tuple(chosen), next_ms
    )


def _choose(view: ScheduleView, timing: Timing, now_ms: int) -> list[int]:
    """Choose the slots to fire, from the one the schedule stands at up to now."""
    spec, record = view.spec, view.schedule
    before_ms = record.next_ms - 1
    until_ms = min(now_ms, spec.until_ms - 1) if spec.until_ms else now_ms
    most = limits.SCHEDULE_SLOTS_MAX
    is_patient = spec.catch_up == sc.CATCH_UP_ALL and record.backlog < limits.SCHEDULE_CATCH_UP_MAX
    edge_ms = before_ms if is_patient else max(before_ms, _edge_ms(view, now_ms))
    found = _due(view, cron.slots(timing, edge_ms, until_ms, most), now_ms)
    if found or edge_ms == before_ms or spec.catch_up == sc.CATCH_UP_SKIP:
        return found
    missed_ms = cron.last_ms(timing, before_ms, until_ms)
    return _due(view, [missed_ms] if missed_ms else [], now_ms)


def _edge_ms(view: ScheduleView, now_ms: int) -> int:
    """Slots after this instant are on time; jitter makes a slot's time later."""
    return now_ms - limits.SCHEDULE_GRACE_MS - view.spec.jitter_ms


def _due(view: ScheduleView, found: list[int], now_ms: int) -> list[int]:
    """Keep slots up to the first whose jitter has not passed: they are fired in order."""
    for position, slot_ms in enumerate(found):
        if sc.due_ms(view.schedule.id, view.spec, slot_ms) > now_ms:
            return found[:position]
    return found


def first_slot(timing: Timing, spec: ScheduleSpec, after_ms: int) -> int:
    """Return the first slot after an instant within the schedule's own bounds; 0: none."""
    slot_ms = timing.next_ms(max(after_ms, spec.start_ms - 1))
    return 0 if spec.until_ms and slot_ms >= spec.until_ms else slot_ms
