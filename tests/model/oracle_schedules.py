"""Schedules in the reference queue: each slot is decided once, and has one job or a reason."""

from itertools import pairwise

from msgspec.structs import replace

from corvo.model import command as c
from corvo.model import job as j
from corvo.model import outcome as o
from corvo.model import schedule as s
from tests.model import oracle_operate as operate
from tests.model import oracle_produce as produce
from tests.model.oracle_state import ReferenceSchedule, World, refuse


def set_schedule(world: World, command: c.SetSchedule) -> o.Outcome:
    """Create, or replace what was asked for."""
    known = world.schedules.get(command.id)
    if known is None and not command.is_new:
        return refuse(o.NOT_FOUND)
    for other in world.schedules.values():
        if other.spec.name == command.spec.name and other.id != command.id:
            return refuse(o.NAME_TAKEN)
    status = "updated"
    if known is None:
        known = world.schedules[command.id] = ReferenceSchedule(command.id, command.spec)
        known.revision = 0
        status = "created"
    known.spec = command.spec
    known.revision += 1
    if command.paused is not None:
        known.is_paused = command.paused
    known.next_ms = 0 if known.is_paused else command.next_ms
    return o.ScheduleChanged(status, known.next_ms)


def delete_schedule(world: World, command: c.DeleteSchedule) -> o.Outcome:
    """Forget it; jobs stay."""
    if world.schedules.pop(command.id, None) is None:
        return refuse(o.NOT_FOUND)
    return o.ScheduleChanged("deleted")


def pause_schedule(world: World, command: c.PauseSchedule) -> o.Outcome:
    """Stand at no slot."""
    known = world.schedules.get(command.id)
    if known is None:
        return refuse(o.NOT_FOUND)
    known.revision += not known.is_paused
    known.is_paused, known.next_ms = True, 0
    return o.ScheduleChanged("paused")


def resume_schedule(world: World, command: c.ResumeSchedule) -> o.Outcome:
    """Stand at the slot that was worked out for it as it is."""
    known = world.schedules.get(command.id)
    if known is None:
        return refuse(o.NOT_FOUND)
    if known.is_paused:
        if known.revision != command.revision:
            return refuse(o.INVALID_STATE)
        known.is_paused, known.next_ms = False, command.next_ms
        known.revision += 1
    return o.ScheduleChanged("resumed", known.next_ms)


def fire_schedule(world: World, command: c.FireSchedule) -> o.Outcome:
    """Decide slots, unless the proposal is for another moment of the schedule."""
    known = world.schedules.get(command.id)
    if known is None or not known.next_ms:
        return o.Swept(0)
    if (known.next_ms, known.revision) != (command.from_ms, command.revision):
        return o.Swept(0)
    due = [s.due_ms(known.id, known.spec, slot) for slot in (command.from_ms, *command.slots)]
    rising = [command.from_ms - 1, *command.slots]
    if command.next_ms:
        rising.append(command.next_ms)
    is_sound = all(a < b for a, b in pairwise(rising)) and max(due) <= world.now_ms
    if not is_sound or 0 < command.next_ms <= command.from_ms:
        return o.Swept(0)
    for slot in command.slots:
        if slot > known.decided_ms:
            known.decided_ms = slot
            known.skipped += make(world, known, slot, known.spec.overlap) is None
    known.next_ms = command.next_ms
    return o.Swept(len(command.slots) or 1)


def make(world: World, known: ReferenceSchedule, slot: int, overlap: int) -> bytes | None:
    """Make one job, or none when something stands in the way."""
    job_id = s.manual_job_id(known.id, world.now_ms, known.runs)
    if slot:
        job_id = s.slot_job_id(known.id, slot)
    if job_id in world.jobs:
        return None
    before = world.job(known.last_job)
    is_live = before is not None and not before.is_settled
    if is_live and overlap == s.OVERLAP_SKIP:
        return None
    spec = replace(
        known.spec.template, id=job_id, ns=world.ns, scheduled_ms=slot, schedule_id=known.id
    )
    if is_live and overlap == s.OVERLAP_QUEUE:
        spec = replace(spec, depends_on=(known.last_job,), on_dependency_failure=j.DEPENDENCY_RUN)
    if produce.refusal(world, spec, set()) is not None:
        return None
    if is_live and overlap == s.OVERLAP_CANCEL:
        operate.cancel_job(world, c.CancelJob(world.ns, known.last_job))
    if not isinstance(produce.accept(world, spec, is_member=False), o.Enqueued):
        return None
    known.last_job = job_id
    known.fired += 1
    return job_id


def run_schedule(world: World, command: c.RunSchedule) -> o.Outcome:
    """Make a job by hand."""
    known = world.schedules.get(command.id)
    if known is None:
        return refuse(o.NOT_FOUND)
    before = world.job(known.last_job)
    is_live = before is not None and not before.is_settled
    if is_live and known.spec.overlap == s.OVERLAP_SKIP:
        return refuse(o.INVALID_STATE)
    job_id = make(world, known, 0, known.spec.overlap)
    if job_id is None:
        return refuse(o.UNIQUE_CONFLICT)
    known.runs += 1
    return o.ScheduleChanged("started", known.next_ms, [job_id])


def backfill_schedule(world: World, command: c.BackfillSchedule) -> o.Outcome:
    """Make the jobs of slots that have none."""
    known = world.schedules.get(command.id)
    if known is None:
        return refuse(o.NOT_FOUND)
    is_queue = known.spec.overlap == s.OVERLAP_QUEUE
    before = known.last_job
    overlap = s.OVERLAP_QUEUE if is_queue else s.OVERLAP_ALLOW
    made = [make(world, known, slot, overlap) for slot in command.slots]
    if not is_queue:
        known.last_job = before
    jobs = [job_id for job_id in made if job_id is not None]
    return o.ScheduleChanged("backfilled", known.next_ms, jobs, len(made) - len(jobs))
