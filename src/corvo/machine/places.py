"""Where a job is: into and out of the one index entry it sits under, and the counters that follow.

Invariant: a live job is in exactly one of ready, waiting, due, active, held, and `Job.at` names it
(audit.locations). Every transition is `leave` then one of the `enter_*`; nothing else moves jobs.
"""

from corvo.keys import space
from corvo.keys.order import pack_u64
from corvo.machine import lanes
from corvo.machine.state import Queue, State
from corvo.model import job as jb
from corvo.model.job import Job, Rare


def rare(job: Job) -> Rare:
    """Return the rarely used half of a job, creating it."""
    found = job.rare
    if found is None:
        found = job.rare = Rare()
    return found


def rank_of(state: State, queue: Queue, job: Job) -> bytes:
    """Rank of a ready job within its lane: by tier and arrival, or by age in aging mode."""
    aging_ms = queue.record.settings.aging_ms
    if not aging_ms:
        return pack_u64(job.tier << space.NO_TIER_SHIFT | job.order)
    ready_ms = max(job.created_ms, state.spec(job).scheduled_ms)
    return pack_u64(ready_ms + job.tier * aging_ms)


def enter_pending(state: State, queue: Queue, job: Job) -> None:
    """The job may run: ready, or waiting while dependencies are open."""
    job.state = jb.PENDING
    record = queue.record
    record.counts[jb.PENDING] += 1
    state.dirty[job.id] = job
    state.touch(queue)
    if job.rare is not None and job.rare.waiting:
        record.waiting += 1
        job.at = space.waiting_key(record.ns, record.space, job.id)
        state.put_index(job.at)
    else:
        _enter_ready(state, queue, job)


def _enter_ready(state: State, queue: Queue, job: Job) -> None:
    if job.flags & jb.FLAG_LANED or queue.record.laned:
        spec = state.spec(job) if job.flags & jb.FLAG_LANED else None
        # The new job is already counted, the lane's conversion counts what was there before.
        queue.record.counts[jb.PENDING] -= 1
        job.at = lanes.insert(state, queue, job, spec, rank_of(state, queue, job))
        queue.record.counts[jb.PENDING] += 1
        return
    key = queue.prefix + rank_of(state, queue, job) + job.id
    job.at = key
    state.put_index(key)
    queue.ready.insert(key)


def enter_ready_from_waiting(state: State, queue: Queue, job: Job) -> None:
    """The last dependency settled: the job is ready."""
    state.delete_index(job.at)
    queue.record.waiting -= 1
    state.dirty[job.id] = job
    state.touch(queue)
    _enter_ready(state, queue, job)


def enter_due(state: State, queue: Queue, job: Job, new_state: int, due_ms: int) -> None:
    """The job becomes pending at a time: scheduled or retrying."""
    assert new_state in (jb.SCHEDULED, jb.RETRYING)
    job.state = new_state
    job.due_ms = due_ms
    record = queue.record
    record.counts[new_state] += 1
    job.at = space.due_key(due_ms, record.ns, record.space, job.id)
    state.put_index(job.at)
    state.due.added(job.at)
    state.dirty[job.id] = job
    state.touch(queue)


def enter_held(state: State, queue: Queue, job: Job) -> None:
    """The job waits for a person."""
    job.state = jb.HELD
    record = queue.record
    record.counts[jb.HELD] += 1
    job.at = space.held_key(record.ns, record.id, job.id)
    state.put_index(job.at)
    state.dirty[job.id] = job
    state.touch(queue)


def leave(state: State, queue: Queue, job: Job) -> None:
    """Take a live job out of its place; an active one gives its slots back."""
    assert job.at, "a settled job has no place to leave"
    record = queue.record
    record.counts[job.state] -= 1
    state.touch(queue)
    family = job.at[:1]
    if family == space.READY:
        if record.laned:
            lanes.remove(state, queue, job)
        else:
            state.delete_index(job.at)
            queue.ready.remove(job.at)
    else:
        state.delete_index(job.at)
        if family == space.WAITING:
            record.waiting -= 1
        elif family == space.ACTIVE and job.flags & jb.FLAG_GATED:
            job.flags &= ~jb.FLAG_GATED
            lanes.free(state, queue, state.spec(job))
    job.at = b""


def leave_doomed(state: State, job: Job) -> None:
    """Take a job out of a place whose counters and caches are already gone with a clear."""
    if job.at:
        state.delete_index(job.at)
        if job.at[:1] == space.ACTIVE and job.flags & jb.FLAG_GATED:
            job.flags &= ~jb.FLAG_GATED
            lanes.free(state, state.queue_of(job), state.spec(job))
        job.at = b""


def arm_expiry(state: State, job: Job, expire_ms: int) -> None:
    """Set the end of a job's time to live."""
    rare(job).expire_ms = expire_ms
    job.flags |= jb.FLAG_DEADLINE
    state.add_deadline(expire_ms, space.DEADLINE_EXPIRE, job.ns, job.id)


def arm_hold(state: State, job: Job, until_ms: int) -> None:
    """Set the time at which a hold is decided by itself."""
    rare(job).hold_until_ms = until_ms
    job.flags |= jb.FLAG_DEADLINE
    state.add_deadline(until_ms, space.DEADLINE_HOLD, job.ns, job.id)


def disarm_hold(state: State, job: Job) -> None:
    """The hold is over, however it ended."""
    found = job.rare
    if found is not None and found.hold_until_ms:
        state.drop_deadline(found.hold_until_ms, space.DEADLINE_HOLD, job.ns, job.id)
        found.hold_until_ms = 0


def disarm(state: State, job: Job) -> None:
    """A settled job has no deadlines; the record keeps when it would have expired."""
    if not job.flags & jb.FLAG_DEADLINE:
        return
    disarm_hold(state, job)
    found = job.rare
    if found is not None and found.expire_ms:
        state.drop_deadline(found.expire_ms, space.DEADLINE_EXPIRE, job.ns, job.id)
    job.flags &= ~jb.FLAG_DEADLINE


def is_expired(state: State, job: Job) -> bool:
    """Say whether the job's time to live is over."""
    found = job.rare
    return found is not None and 0 < found.expire_ms <= state.now_ms
