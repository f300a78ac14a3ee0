"""Admission of a job into the state: the one way a job record comes into being.

Producers' jobs, chain steps and batch callbacks all pass through `admit`. Whether a job may come in
at all (duplicates, dependencies, sizes) is decided by the callers.
"""

from corvo.keys import codec, space
from corvo.keys.order import pack_u16, pack_u64
from corvo.machine import documents, places, unique
from corvo.machine.state import SPEC_BYTES, Queue, State
from corvo.model import event as ev
from corvo.model import job as jb
from corvo.model.event import Event
from corvo.model.job import Job, Spec
from corvo.model.queue import TOTAL_ENQUEUED


def admit(state: State, queue: Queue, spec: Spec, *, waiting: int = 0) -> Job:
    """Create a job and put it where it belongs."""
    job_id = spec.id
    record = queue.record
    state.ordinal += 1
    order = state.base + state.ordinal
    job = Job(
        job_id,
        spec.ns,
        jb.PENDING,
        record.id,
        spec.tier,
        order,
        b"",
        state.now_ms,
        spec.retry.max_attempts or 1,
    )
    state.jobs[job_id] = job
    state.writes[b"j" + pack_u16(spec.ns) + job_id] = codec.encode(spec)
    state.specs[job_id] = spec
    state.specs_bytes += len(spec.payload) + SPEC_BYTES
    record.totals[TOTAL_ENQUEUED] += 1
    if waiting or record.laned or record.settings.aging_ms or not _is_plain(spec):
        _dress(state, queue, job, spec, waiting)
        _settle_in(state, queue, job, spec)
        return job
    # Cost: what `places.enter_pending` does, without its questions: two microseconds a job.
    job.at = key = queue.prefix + pack_u64(spec.tier << space.NO_TIER_SHIFT | order) + job_id
    state.writes[key] = b""
    queue.ready.insert(key)
    record.counts[jb.PENDING] += 1
    state.dirty[job_id] = job
    if not queue.is_dirty:
        state.touch(queue)
    state.events.append(Event(ev.ENQUEUED, job_id, spec.queue, ns=spec.ns))
    return job


def _is_plain(spec: Spec) -> bool:
    """Most jobs: nothing but a queue, a payload, a tier, a retry policy and tags."""
    return not (
        spec.unique
        or spec.scheduled_ms
        or spec.expire_after_ms
        or spec.group
        or spec.limit_key
        or spec.limits
        or spec.checkpoint
        or spec.depends_on
        or spec.chain
        or spec.batch_id
        or spec.hold
    )


def _dress(state: State, queue: Queue, job: Job, spec: Spec, waiting: int) -> None:
    """Give the record what its spec asks for, before it takes a place."""
    if spec.group or spec.limit_key or spec.limits:
        job.flags |= jb.FLAG_LANED
    if spec.chain is not None:
        job.flags |= jb.FLAG_CHAIN
    if spec.batch_id is not None:
        job.flags |= jb.FLAG_MEMBER
    if spec.depends_on:
        job.flags |= jb.FLAG_CHILD
    if waiting:
        places.rare(job).waiting = waiting
    if spec.checkpoint is not None:
        documents.set_checkpoint(state, job, spec.checkpoint)
    if spec.unique is not None:
        unique.acquire(state, queue, job, spec.unique)
    if spec.expire_after_ms:
        start_ms = max(state.now_ms, spec.scheduled_ms)
        places.arm_expiry(state, job, start_ms + spec.expire_after_ms)


def _settle_in(state: State, queue: Queue, job: Job, spec: Spec) -> None:
    name = queue.record.name
    if spec.hold is not None:
        found = places.rare(job)
        found.hold_reason = spec.hold.reason
        found.hold_action = spec.hold.timeout_action
        if spec.hold.timeout_ms:
            places.arm_hold(state, job, state.now_ms + spec.hold.timeout_ms)
        places.enter_held(state, queue, job)
        state.emit(ev.ENQUEUED, job, name)
        state.emit(ev.HELD, job, name, {"reason": spec.hold.reason})
    elif spec.scheduled_ms > state.now_ms:
        places.enter_due(state, queue, job, jb.SCHEDULED, spec.scheduled_ms)
        state.emit(ev.SCHEDULED, job, name, {"due_ms": spec.scheduled_ms})
    else:
        places.enter_pending(state, queue, job)
        state.emit(ev.ENQUEUED, job, name)
