"""How a job ends in the reference queue, and what follows: lock, chain, batch, dependants."""

import json
from typing import Any

from corvo.model import ids, limits
from corvo.model.job import (
    CANCELLED,
    COMPLETED,
    DEAD,
    DEPENDENCY_FAIL,
    DEPENDENCY_HOLD,
    HELD,
    ON_EXIT,
    ON_FAILURE,
    PENDING,
    SCHEDULED,
    UNIQUE_UNTIL_START,
    UNIQUE_WINDOW,
    Spec,
    Step,
)
from corvo.model.queue import TOTAL_COMPLETED, TOTAL_DEAD, TOTAL_ENQUEUED
from corvo.model.retry import DEFAULT_RETRY
from tests.model.oracle_state import ReferenceJob, ReferenceLock, World

DELETED = 100  # an ending, not a state: counts as cancelled in a batch and as failure elsewhere


def admit(world: World, spec: Spec, *, is_member: bool) -> ReferenceJob:
    """Put a new job into the world, in the state its fields ask for."""
    queue = world.queue(spec.queue)
    queue.totals[TOTAL_ENQUEUED] += 1
    starts_ms = max(world.now_ms, spec.scheduled_ms)
    job = ReferenceJob(
        spec=spec,
        queue=spec.queue,
        tier=spec.tier,
        order=world.draw_order(),
        created_ms=world.now_ms,
        max_attempts=max(1, spec.retry.max_attempts),
        checkpoint=spec.checkpoint,
        expire_ms=starts_ms + spec.expire_after_ms if spec.expire_after_ms else 0,
        is_member=is_member,
    )
    if spec.hold is not None:
        job.state = HELD
        set_hold(world, job, spec.hold.reason, spec.hold.timeout_ms, spec.hold.timeout_action)
    elif spec.scheduled_ms > world.now_ms:
        job.state, job.due_ms = SCHEDULED, spec.scheduled_ms
    world.jobs[spec.id] = job
    take_lock(world, job)
    failed = False
    for parent_id in dict.fromkeys(spec.depends_on):
        parent = world.jobs[parent_id]
        if not parent.is_settled:
            job.waiting.append(parent_id)
        elif parent.state != COMPLETED:
            failed = True
    if failed:
        dependency_failed(world, job)
    return job


def set_hold(world: World, job: ReferenceJob, reason: str, timeout_ms: int, action: int) -> None:
    """Set a job aside; the clock of its time-out starts now."""
    job.state, job.due_ms = HELD, 0
    job.hold_reason, job.hold_action = reason, action
    job.hold_until_ms = world.now_ms + timeout_ms if timeout_ms else 0


def dependency_failed(world: World, job: ReferenceJob) -> None:
    """Do to a dependant what it asked for in case a parent fails."""
    if job.spec.on_dependency_failure == DEPENDENCY_FAIL:
        settle(world, job, DEAD, reason="dependency_failed")
    elif job.spec.on_dependency_failure == DEPENDENCY_HOLD and job.state != HELD:
        job.state, job.due_ms, job.hold_reason = HELD, 0, "dependency_failed"


def settle(
    world: World, job: ReferenceJob, ending: int, *, reason: str = "", is_exit: bool = False
) -> None:
    """End a job, whatever the way: nothing else in the oracle may do it."""
    assert not job.is_settled
    queue = world.queues.get(job.queue)
    job.state = CANCELLED if ending == DELETED else ending
    job.finished_ms, job.due_ms, job.hold_until_ms = world.now_ms, 0, 0
    job.settled_order, job.settled_ms = world.draw_order(), world.now_ms
    if ending == DEAD:
        job.dead_reason = reason
    if queue is not None and ending in (COMPLETED, DEAD):
        queue.totals[TOTAL_COMPLETED if ending == COMPLETED else TOTAL_DEAD] += 1
    release_lock(world, job, ending)
    if job.spec.chain is not None:
        follow_chain(world, job, ending, is_exit=is_exit)
    if job.is_member:
        job.is_member, job.is_counted = False, True
        count_member(world, job, ending)
    job.waiting.clear()
    world.cascade.append((job.id, ending == COMPLETED))


# --- unique -----------------------------------------------------------------------------------


def lock_key(job: ReferenceJob) -> tuple[str, str]:
    """Name the lock a job with a unique key asks for."""
    assert job.spec.unique is not None
    return job.queue, job.spec.unique.key


def owned_lock(world: World, job: ReferenceJob) -> ReferenceLock | None:
    """Return the lock when this job owns it."""
    if job.spec.unique is None:
        return None
    lock = world.locks.get(lock_key(job))
    return lock if lock is not None and lock.owner == job.id else None


def live_lock(world: World, queue: str, key: str) -> ReferenceLock | None:
    """Return a lock that still counts now."""
    lock = world.locks.get((queue, key))
    if lock is None:
        return None
    owner = world.jobs[lock.owner]
    if owner.is_doomed or (owner.is_settled and lock.expires_ms <= world.now_ms):
        return None
    return lock


def take_lock(world: World, job: ReferenceJob) -> None:
    """Make a job the owner of its key."""
    if job.spec.unique is not None and owned_lock(world, job) is None:
        unique = job.spec.unique
        expires_ms = world.now_ms + unique.period_ms
        world.locks[lock_key(job)] = ReferenceLock(job.id, unique.mode, expires_ms)


def release_lock(world: World, job: ReferenceJob, ending: int) -> None:
    """Give the key back; in mode window a finished owner still counts until the period ends."""
    lock = owned_lock(world, job)
    if lock is None:
        return
    if lock.mode == UNIQUE_WINDOW and ending == COMPLETED and lock.expires_ms > world.now_ms:
        return
    del world.locks[lock_key(job)]


def release_lock_at_start(world: World, job: ReferenceJob) -> None:
    """Mode until_start ends when a worker has the job."""
    lock = owned_lock(world, job)
    if lock is not None and lock.mode == UNIQUE_UNTIL_START:
        del world.locks[lock_key(job)]


# --- chains -----------------------------------------------------------------------------------


def merge(payload: bytes | None, added: dict[str, Any]) -> bytes:
    """Add members to a JSON document; one that is not an object goes under `payload`."""
    base: Any = {} if payload is None else json.loads(payload)
    if not isinstance(base, dict):
        base = {"payload": base}
    return json.dumps(base | added).encode()


def follow_chain(world: World, job: ReferenceJob, ending: int, *, is_exit: bool) -> None:
    """Start what comes after this step, if anything."""
    chain = job.spec.chain
    assert chain is not None
    if chain.step < 0:
        return
    if ending != COMPLETED:
        error = job.errors[-1][2] if job.errors else ""
        context = {
            "failed_job_id": ids.render_id(ids.JOB, job.id),
            "failed_step": chain.step,
            "error": error,
            "reason": ANY,
        }
        start_step(world, job, chain.on_failure, ON_FAILURE, context)
        return
    context = {
        "previous_job_id": ids.render_id(ids.JOB, job.id),
        "previous_result": None if job.result is None else json.loads(job.result),
    }
    position = chain.step + 1
    if is_exit or position == len(chain.steps):
        start_step(world, job, chain.on_exit, ON_EXIT, context)
    else:
        start_step(world, job, chain.steps[position], position, context)


ANY = "<any>"  # a text the specification does not fix


def document(payload: bytes) -> object:
    """Parse a document for comparison, blind to texts the specification does not fix."""
    parsed = json.loads(payload)
    if isinstance(parsed, dict) and "reason" in parsed:
        parsed["reason"] = ANY
    return parsed


def start_step(
    world: World, job: ReferenceJob, step: Step | None, position: int, added: dict[str, Any]
) -> None:
    """Create the job of a step or handler; it inherits what the step leaves open."""
    if step is None:
        return
    old, chain = job.spec, job.spec.chain
    assert chain is not None
    first = world.chains.setdefault(chain.id, old)
    spec = Spec(
        id=ids.derive_id(job.id, job.run, *step_purpose(position)),
        ns=old.ns,
        queue=step.queue,
        payload=merge(step.payload, added),
        tier=first.tier if step.tier is None else step.tier,
        retry=first.retry if step.retry is None else step.retry,
        tags=first.tags if step.tags is None else step.tags,
        group=first.group if step.group is None else step.group,
        limit_key=first.limit_key if step.limit_key is None else step.limit_key,
        limits=first.limits if step.limits is None else step.limits,
        cost=first.cost if step.cost is None else step.cost,
        chain=type(chain)(chain.id, chain.steps, chain.on_failure, chain.on_exit, position),
        batch_id=old.batch_id if job.is_member and position >= 0 else None,
        trace=old.trace,
    )
    is_member = job.is_member and position >= 0
    if is_member:
        job.is_member = False  # the chain is one member of its batch; the next step stands for it
    admit(world, spec, is_member=is_member)


def step_purpose(position: int) -> tuple[str, int]:
    """Name purpose and ordinal of the identifier of a step."""
    return ("step", position) if position >= 0 else ("handler", -position)


# --- batches ----------------------------------------------------------------------------------


def count_member(world: World, job: ReferenceJob, ending: int) -> None:
    """Count the ending of a member, and fire the callback when it was the last one."""
    assert job.spec.batch_id is not None
    batch = world.batches[job.spec.batch_id]
    if ending == COMPLETED:
        batch.succeeded += 1
    elif ending == DEAD:
        batch.failed += 1
    else:
        batch.cancelled += 1
    maybe_finish_batch(world, job.spec.batch_id)


def maybe_finish_batch(world: World, batch_id: bytes) -> None:
    """Close a batch without unsettled members and enqueue its callback, once."""
    batch = world.batches[batch_id]
    if batch.finished_ms or batch.is_filling or world.pending_members(batch_id):
        return
    batch.finished_ms = world.now_ms
    if not batch.callback_queue:
        return
    figures = {
        "id": ids.render_id(ids.BATCH, batch_id),
        "total": batch.total,
        "succeeded": batch.succeeded,
        "failed": batch.failed,
        "cancelled": batch.cancelled,
    }
    spec = Spec(
        id=ids.derive_id(batch_id, 0, "callback", 0),
        ns=world.ns,
        queue=batch.callback_queue,
        payload=merge(batch.callback_payload, {"batch": figures}),
        retry=DEFAULT_RETRY,
    )
    batch.callback_id = spec.id
    admit(world, spec, is_member=False)


# --- dependencies -----------------------------------------------------------------------------


def spread(world: World) -> None:
    """Tell the dependants of every job that ended in this command, nearest first."""
    while world.cascade:
        parent_id, is_success = world.cascade.pop(0)
        waiting = [job for job in world.jobs.values() if parent_id in job.waiting]
        assert len(waiting) <= limits.CASCADE_INLINE_MAX
        for job in sorted(waiting, key=lambda job: job.id):
            job.waiting.remove(parent_id)
            if not is_success and not job.is_doomed:
                dependency_failed(world, job)


def make_pending(job: ReferenceJob) -> None:
    """Put a job back in line, at the place it had."""
    job.state, job.due_ms, job.hold_until_ms = PENDING, 0, 0
