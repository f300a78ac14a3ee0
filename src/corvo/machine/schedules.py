"""Schedules: slots become jobs, each at most one, whoever fires them and however often.

The machine decides what may be decided from integers: whether a slot is still to be fired, whether
the job before it stands in the way, which id its job has. Which instants are slots comes in with
the command. Three things keep a slot from being fired twice: a firing names the slot the schedule
stood at and is void elsewhere, slots up to `last_slot_ms` are decided, and the id of a slot's job
is derived from it.
"""

from msgspec.structs import replace

from corvo.keys import codec, space
from corvo.keys.order import pack_u16, successor
from corvo.machine import enqueue, operate
from corvo.machine.state import State
from corvo.model import event as ev
from corvo.model import ids, limits, outcome
from corvo.model import job as jb
from corvo.model import schedule as sc
from corvo.model.command import (
    BackfillSchedule,
    CancelJob,
    DeleteSchedule,
    FireSchedule,
    PauseSchedule,
    ResumeSchedule,
    RunSchedule,
    SetSchedule,
)
from corvo.model.event import Event
from corvo.model.job import Spec
from corvo.model.outcome import Enqueued, Rejected, ScheduleChanged, Swept
from corvo.model.schedule import Schedule, ScheduleSpec
from corvo.model.view import ScheduleView

# --- records -----------------------------------------------------------------------------------


def load(state: State, ns: int, schedule_id: bytes) -> Schedule | None:
    """Read how far a schedule has come; None when there is none."""
    raw = state.get(space.schedule_key(ns, schedule_id))
    return codec.decode_schedule(raw) if raw is not None else None


def load_spec(state: State, ns: int, schedule_id: bytes) -> ScheduleSpec:
    """Read what a schedule that exists asks for."""
    raw = state.get(space.schedule_spec_key(ns, schedule_id))
    assert raw is not None, "a schedule without its spec"
    return codec.decode_schedule_spec(raw)


def _save(state: State, record: Schedule) -> None:
    state.writes[space.schedule_key(record.ns, record.id)] = codec.encode(record)


def _stand_at(state: State, record: Schedule, spec: ScheduleSpec, next_ms: int) -> None:
    """Let a schedule stand at a slot (0: at none), in its record and in the index."""
    assert next_ms == 0 or not record.paused_ms, "a paused schedule stands at no slot"
    record.next_ms = next_ms
    if next_ms:
        due_ms = sc.due_ms(record.id, spec, next_ms)
        key = space.schedule_due_key(due_ms, record.ns, record.id)
        state.put_index(key)
        state.schedules.added(key)


def _leave(state: State, record: Schedule, spec: ScheduleSpec) -> None:
    """Take a schedule out of the index; `spec` is the one it was put there with."""
    if record.next_ms:
        due_ms = sc.due_ms(record.id, spec, record.next_ms)
        state.delete_index(space.schedule_due_key(due_ms, record.ns, record.id))
        record.next_ms = 0


def _note(
    state: State,
    kind: int,
    record: Schedule,
    spec: ScheduleSpec,
    data: dict[str, object] | None = None,
    job: bytes = b"",
) -> None:
    about: dict[str, object] = {
        "schedule_id": ids.render_id(sc.SCHEDULE, record.id),
        "name": spec.name,
    }
    if data:
        about |= data
    state.events.append(Event(kind, job, spec.template.queue, 0, about, record.ns))


def _unknown(schedule_id: bytes) -> Rejected:
    name = ids.render_id(sc.SCHEDULE, schedule_id)
    return Rejected(outcome.NOT_FOUND, f"there is no schedule {name}")


# --- what operators do -------------------------------------------------------------------------


def set_schedule(state: State, command: SetSchedule) -> ScheduleChanged | Rejected:
    """Create a schedule, or replace what was asked for."""
    record = load(state, command.ns, command.id)
    if record is None and not command.is_new:
        return _unknown(command.id)
    spec = command.spec
    name_key = space.schedule_name_key(command.ns, spec.name)
    owner = state.get(name_key)
    if owner not in (None, command.id):
        return Rejected(
            outcome.NAME_TAKEN,
            f"there is already a schedule named {spec.name}",
            field="name",
            hint="choose another name, or PUT the existing one",
        )
    if record is None:
        if _count(state) >= limits.SCHEDULES_MAX:
            return Rejected(
                outcome.TOO_MANY_SCHEDULES, f"there are already {limits.SCHEDULES_MAX} schedules"
            )
        state.schedules_count += 1
        record = Schedule(command.id, command.ns, state.now_ms, state.now_ms)
        kind = ev.SCHEDULE_CREATED
    else:
        old = load_spec(state, command.ns, command.id)
        _leave(state, record, old)
        if old.name != spec.name:
            state.writes[space.schedule_name_key(command.ns, old.name)] = None
        record.updated_ms = state.now_ms
        record.revision += 1
        kind = ev.SCHEDULE_UPDATED
    if command.paused is not None:
        record.paused_reason = ""
        record.paused_ms = (record.paused_ms or state.now_ms) if command.paused else 0
    state.writes[name_key] = command.id
    state.writes[space.schedule_spec_key(command.ns, command.id)] = codec.encode(spec)
    _stand_at(state, record, spec, 0 if record.paused_ms else command.next_ms)
    _save(state, record)
    _note(state, kind, record, spec)
    return ScheduleChanged("created" if kind == ev.SCHEDULE_CREATED else "updated", record.next_ms)


def _count(state: State) -> int:
    if state.schedules_count < 0:
        prefix = space.SCHEDULE_NAME
        found = state.scan(prefix, successor(prefix), limits.SCHEDULES_MAX)
        state.schedules_count = len(found)
    return state.schedules_count


def delete_schedule(state: State, command: DeleteSchedule) -> ScheduleChanged | Rejected:
    """Forget a schedule; its jobs stay."""
    record = load(state, command.ns, command.id)
    if record is None:
        return _unknown(command.id)
    spec = load_spec(state, command.ns, command.id)
    _count(state)
    _leave(state, record, spec)
    state.schedules_count -= 1
    state.writes[space.schedule_name_key(command.ns, spec.name)] = None
    state.writes[space.schedule_spec_key(command.ns, command.id)] = None
    state.writes[space.schedule_key(command.ns, command.id)] = None
    _note(state, ev.SCHEDULE_DELETED, record, spec)
    return ScheduleChanged("deleted")


def pause_schedule(state: State, command: PauseSchedule) -> ScheduleChanged | Rejected:
    """Fire no slot until it is resumed."""
    record = load(state, command.ns, command.id)
    if record is None:
        return _unknown(command.id)
    if not record.paused_ms:
        spec = load_spec(state, command.ns, command.id)
        _leave(state, record, spec)
        record.paused_ms = state.now_ms
        record.paused_reason = command.reason
        record.revision += 1
        _save(state, record)
        data: dict[str, object] | None = {"reason": command.reason} if command.reason else None
        _note(state, ev.SCHEDULE_PAUSED, record, spec, data)
    return ScheduleChanged("paused")


def resume_schedule(state: State, command: ResumeSchedule) -> ScheduleChanged | Rejected:
    """Go on with the slots from now on."""
    record = load(state, command.ns, command.id)
    if record is None:
        return _unknown(command.id)
    if record.paused_ms and record.revision != command.revision:
        return Rejected(
            outcome.INVALID_STATE,
            "the schedule was changed at the same time",
            hint="try again",
        )
    if record.paused_ms:
        spec = load_spec(state, command.ns, command.id)
        record.paused_ms = record.backlog = 0
        record.paused_reason = ""
        record.revision += 1
        _stand_at(state, record, spec, command.next_ms)
        _save(state, record)
        _note(state, ev.SCHEDULE_RESUMED, record, spec)
    return ScheduleChanged("resumed", record.next_ms)


# --- slots -------------------------------------------------------------------------------------


def fire_schedule(state: State, command: FireSchedule) -> Swept:
    """Make the jobs of slots that are due and go on to the slot after them."""
    record = load(state, command.ns, command.id)
    if (
        record is None
        or record.next_ms != command.from_ms
        or record.revision != command.revision
        or not record.next_ms
    ):
        return Swept(0)
    spec = load_spec(state, command.ns, command.id)
    if not _is_sound(state, record, spec, command):
        return Swept(0)
    _leave(state, record, spec)
    first_ms = command.slots[0] if command.slots else command.next_ms
    if first_ms != command.from_ms:
        data: dict[str, object] = {"from_ms": command.from_ms, "until_ms": first_ms}
        _note(state, ev.SCHEDULE_MISSED, record, spec, data)
    for slot_ms in command.slots:
        # A slot may come round again when the schedule was replaced at that very moment.
        if slot_ms > record.last_slot_ms:
            _decide(state, record, spec, slot_ms)
        else:
            # Whoever keeps a picture of schedules learns of every change from an event.
            about: dict[str, object] = {"slot_ms": slot_ms, "reason": "decided"}
            _note(state, ev.SCHEDULE_SKIPPED, record, spec, about)
    _stand_at(state, record, spec, command.next_ms)
    _save(state, record)
    return Swept(max(1, len(command.slots)))


def _is_sound(state: State, record: Schedule, spec: ScheduleSpec, command: FireSchedule) -> bool:
    """Whether the slots of a firing rise, are due, and lie before the slot that follows."""
    last_ms = command.from_ms - 1
    for slot_ms in command.slots:
        if slot_ms <= last_ms or sc.due_ms(record.id, spec, slot_ms) > state.now_ms:
            return False
        last_ms = slot_ms
    is_moving = command.next_ms > max(last_ms, command.from_ms) or not command.next_ms
    return is_moving and sc.due_ms(record.id, spec, command.from_ms) <= state.now_ms


def _decide(state: State, record: Schedule, spec: ScheduleSpec, slot_ms: int) -> None:
    record.last_slot_ms = slot_ms
    is_late = state.now_ms - sc.due_ms(record.id, spec, slot_ms) > limits.SCHEDULE_GRACE_MS
    record.backlog = record.backlog + 1 if is_late else 0
    made = _make(state, record, spec, slot_ms, spec.overlap)
    if isinstance(made, str):
        record.skipped += 1
        data: dict[str, object] = {"slot_ms": slot_ms, "reason": made}
        _note(state, ev.SCHEDULE_SKIPPED, record, spec, data)


def _make(
    state: State, record: Schedule, spec: ScheduleSpec, slot_ms: int, overlap: int
) -> bytes | str:
    """Make the job of a slot (0: by hand); returns its id, or why there is none."""
    job_id = (
        sc.slot_job_id(record.id, slot_ms)
        if slot_ms
        else sc.manual_job_id(record.id, state.now_ms, record.runs)
    )
    # Safety: also by hand. Only a schedule that was deleted and made again under its old id, within
    # a millisecond, has such a job; an import could do that.
    if state.job(record.ns, job_id) is not None:
        return "exists"
    before = _live_job(state, record)
    if before is not None and overlap == sc.OVERLAP_SKIP:
        return "overlap"
    job = _dress(record, spec.template, job_id, slot_ms)
    if before is not None and overlap == sc.OVERLAP_QUEUE:
        job = replace(job, depends_on=(before,), on_dependency_failure=jb.DEPENDENCY_RUN)
    refusal = enqueue.check(state, job, ())
    if refusal is not None:
        return refusal.code.lower()
    if before is not None and overlap == sc.OVERLAP_CANCEL:
        operate.cancel_job(state, CancelJob(record.ns, before))
    if not isinstance(enqueue.accept(state, job), Enqueued):
        return "unique"
    record.last_job = job_id
    record.last_fired_ms = state.now_ms
    record.fired += 1
    data: dict[str, object] = {"job_id": ids.render_id(ids.JOB, job_id)}
    if slot_ms:
        data["slot_ms"] = slot_ms
    _note(state, ev.SCHEDULE_FIRED, record, spec, data, job_id)
    return job_id


def _dress(record: Schedule, template: Spec, job_id: bytes, slot_ms: int) -> Spec:
    return replace(template, id=job_id, ns=record.ns, scheduled_ms=slot_ms, schedule_id=record.id)


def _live_job(state: State, record: Schedule) -> bytes | None:
    """The last job of the schedule, unless it has ended or is gone."""
    if not record.last_job:
        return None
    job = enqueue.find(state, record.ns, record.last_job)
    return None if job is None or job.state in jb.SETTLED else job.id


def run_schedule(state: State, command: RunSchedule) -> ScheduleChanged | Rejected:
    """Make a job of the schedule now, by hand; overlap holds for it, too."""
    record = load(state, command.ns, command.id)
    if record is None:
        return _unknown(command.id)
    spec = load_spec(state, command.ns, command.id)
    made = _make(state, record, spec, 0, spec.overlap)
    if isinstance(made, str):
        return _refuse_run(made)
    record.runs += 1
    _save(state, record)
    return ScheduleChanged("started", record.next_ms, [made])


def _refuse_run(reason: str) -> Rejected:
    if reason == "overlap":
        return Rejected(
            outcome.INVALID_STATE,
            "the last job of the schedule has not ended, and its overlap is skip",
            hint="wait for it or cancel it",
        )
    if reason in ("unique", "exists"):
        return Rejected(outcome.UNIQUE_CONFLICT, "another job holds the unique key")
    return Rejected(reason.upper(), "the job of the schedule was refused")


def backfill_schedule(state: State, command: BackfillSchedule) -> ScheduleChanged | Rejected:
    """Make the jobs of past slots that have none.

    Every slot asked for gets its job: overlap `skip` and `cancel` would leave one of them. With
    `queue` they run one after the other, as always.
    """
    record = load(state, command.ns, command.id)
    if record is None:
        return _unknown(command.id)
    spec = load_spec(state, command.ns, command.id)
    is_queue = spec.overlap == sc.OVERLAP_QUEUE
    overlap = sc.OVERLAP_QUEUE if is_queue else sc.OVERLAP_ALLOW
    last_job = record.last_job
    made = [_make(state, record, spec, slot_ms, overlap) for slot_ms in command.slots]
    if not is_queue:
        # The job overlap looks at is still that of the newest slot.
        record.last_job = last_job
    _save(state, record)
    jobs = [job for job in made if isinstance(job, bytes)]
    return ScheduleChanged("backfilled", record.next_ms, jobs, len(made) - len(jobs))


# --- looking -----------------------------------------------------------------------------------


def read_schedule(state: State, ns: int, schedule_id: bytes) -> ScheduleView | None:
    """Return a schedule."""
    record = load(state, ns, schedule_id)
    return ScheduleView(load_spec(state, ns, schedule_id), record) if record is not None else None


def find_schedule(state: State, ns: int, name: str) -> ScheduleView | None:
    """Return a schedule by its name."""
    schedule_id = state.get(space.schedule_name_key(ns, name))
    return read_schedule(state, ns, schedule_id) if schedule_id is not None else None


def read_schedules(state: State, ns: int, after: str, limit: int) -> list[ScheduleView]:
    """Return schedules of a namespace by name, those after a name."""
    start = space.schedule_name_key(ns, after) + (b"\x00" if after else b"")
    until = successor(space.SCHEDULE_NAME + pack_u16(ns))
    views = [read_schedule(state, ns, found) for _, found in state.scan(start, until, limit)]
    return [view for view in views if view is not None]


def due_schedules(state: State, now_ms: int, limit: int) -> list[ScheduleView]:
    """Return schedules whose next slot is to be fired now, the longest due first."""
    views: list[ScheduleView] = []
    for key, _ in state.schedules.first(state, limit):
        if space.due_of(key) > now_ms:
            break
        view = read_schedule(state, int.from_bytes(key[9:11], "big"), key[11:])
        assert view is not None, "the index names a schedule that does not exist"
        views.append(view)
    return views


def next_schedule_ms(state: State, now_ms: int) -> int:
    """Earliest instant at which a slot is to be fired; 0: none known."""
    low = state.schedules.low
    if low == state.schedules.until:
        return 0
    if len(low) > 9 and space.due_of(low) > now_ms:
        return space.due_of(low)
    found = state.schedules.first(state, 1)
    return space.due_of(found[0][0]) if found else 0
