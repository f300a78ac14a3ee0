"""What an operator may do to one job of the reference queue, from exactly the allowed states."""

from corvo.model import command as c
from corvo.model import job as j
from corvo.model import outcome as o
from tests.model import oracle_settle as ending
from tests.model.oracle_state import ReferenceJob, World, refuse
from tests.model.oracle_work import keep

UNSTARTED = (j.PENDING, j.SCHEDULED, j.RETRYING, j.HELD)


def find(world: World, job_id: bytes, allowed: tuple[int, ...]) -> ReferenceJob | o.Rejected:
    """Return the job when its state allows what is asked."""
    job = world.job(job_id)
    if job is None:
        return refuse(o.NOT_FOUND)
    return job if job.state in allowed else refuse(o.INVALID_STATE, job)


def cancel_job(world: World, command: c.CancelJob) -> o.Outcome:
    """Cancel at once, or ask the worker to."""
    job = find(world, command.id, (*UNSTARTED, j.ACTIVE))
    if isinstance(job, o.Rejected):
        return job
    if job.state == j.ACTIVE:
        job.cancel_ms = job.cancel_ms or world.now_ms
        return o.JobChanged("cancelling", j.ACTIVE)
    ending.settle(world, job, j.CANCELLED)
    return o.JobChanged("cancelled", j.CANCELLED)


def conflict(world: World, job: ReferenceJob, queue: str) -> o.Rejected | None:
    """Refuse when another job owns the unique key this one needs."""
    if job.spec.unique is None:
        return None
    lock = ending.live_lock(world, queue, job.spec.unique.key)
    if lock is None or lock.owner == job.id:
        return None
    return refuse(o.UNIQUE_CONFLICT, job, lock.owner)


def run_again(world: World, job: ReferenceJob) -> None:
    """Bring a settled job back: new run, its lock, its batch while that is open."""
    job.run += 1
    job.cancel_ms, job.finished_ms, job.settled_order = 0, 0, 0
    job.dead_reason, job.hold_reason, job.result = "", "", None
    if job.spec.expire_after_ms:
        job.expire_ms = world.now_ms + job.spec.expire_after_ms
    before = job.state
    ending.make_pending(job)
    ending.take_lock(world, job)
    rejoin(world, job, before)


def rejoin(world: World, job: ReferenceJob, before: int) -> None:
    """Count the job as unsettled member again while its batch is open."""
    batch = None if job.spec.batch_id is None else world.batches.get(job.spec.batch_id)
    if not job.is_counted:
        return
    job.is_counted = False
    if batch is None or batch.finished_ms:
        return
    job.is_member = True
    if before == j.COMPLETED:
        batch.succeeded -= 1
    elif before == j.DEAD:
        batch.failed -= 1
    else:
        batch.cancelled -= 1


def retry_job(world: World, command: c.RetryJob) -> o.Outcome:
    """Run again with attempts reset; what is only waiting for its time runs now."""
    job = find(world, command.id, (*j.SETTLED, j.SCHEDULED, j.RETRYING))
    if isinstance(job, o.Rejected):
        return job
    if job.is_settled:
        refused = conflict(world, job, job.queue)
        if refused is not None:
            return refused
        run_again(world, job)
        job.attempt, job.max_attempts = 0, max(1, job.spec.retry.max_attempts)
    else:
        ending.make_pending(job)
    return o.JobChanged("retried", job.state)


def requeue_job(world: World, command: c.RequeueJob) -> o.Outcome:
    """Run a dead job again; it may try as often again."""
    job = find(world, command.id, (j.DEAD,))
    if isinstance(job, o.Rejected):
        return job
    refused = conflict(world, job, job.queue)
    if refused is not None:
        return refused
    run_again(world, job)
    job.max_attempts += max(1, job.spec.retry.max_attempts)
    return o.JobChanged("requeued", job.state)


def move_job(world: World, command: c.MoveJob) -> o.Outcome:
    """Put a job into another queue, along with its unique lock."""
    job = find(world, command.id, (*UNSTARTED, *j.SETTLED))
    if isinstance(job, o.Rejected):
        return job
    lock = ending.owned_lock(world, job)
    if lock is not None and command.queue != job.queue:
        refused = conflict(world, job, command.queue)
        if refused is not None:
            return refused
        world.locks.pop(ending.lock_key(job))
    world.queue(command.queue)
    if job.queue != command.queue:
        job.queue, job.order = command.queue, world.draw_order()
        if job.is_settled:
            job.settled_order, job.settled_ms = world.draw_order(), world.now_ms
    if lock is not None:
        world.locks[ending.lock_key(job)] = lock
    if command.reset_attempts:
        job.attempt = 0
    if not command.keep_priority:
        job.tier = j.TIER_NORMAL
    return o.JobChanged("moved", job.state)


def delete_job(world: World, command: c.DeleteJob) -> o.Outcome:
    """Remove a job; an unsettled one ends by it."""
    job = world.job(command.id)
    if job is None:
        return refuse(o.NOT_FOUND)
    state = job.state
    remove(world, job)
    return o.JobChanged("deleted", state)


def remove(world: World, job: ReferenceJob) -> None:
    """End a job if need be, and forget it."""
    if not job.is_settled:
        ending.settle(world, job, ending.DELETED)
    else:
        lock = ending.owned_lock(world, job)
        if lock is not None:
            del world.locks[ending.lock_key(job)]
    del world.jobs[job.id]


def change_priority(world: World, command: c.ChangePriority) -> o.Outcome:
    """Put a job into another tier."""
    job = find(world, command.id, UNSTARTED)
    if isinstance(job, o.Rejected):
        return job
    job.tier = command.tier
    return o.JobChanged("priority_changed", job.state)


def hold_job(world: World, command: c.HoldJob) -> o.Outcome:
    """Set a job aside; an active one loses its lease."""
    job = find(world, command.id, (j.PENDING, j.SCHEDULED, j.RETRYING, j.ACTIVE))
    if isinstance(job, o.Rejected):
        return job
    if command.token and (job.state != j.ACTIVE or command.token != job.token):
        return refuse(o.LEASE_LOST, job)
    keep(job, command)
    if job.state == j.ACTIVE:
        job.ended = j.END_TAKEN
    ending.set_hold(world, job, command.reason, command.timeout_ms, command.timeout_action)
    return o.JobChanged("held", j.HELD)


def approve_job(world: World, command: c.ApproveJob) -> o.Outcome:
    """Let a held job run."""
    job = find(world, command.id, (j.HELD,))
    if isinstance(job, o.Rejected):
        return job
    release_hold(world, job)
    return o.JobChanged("approved", job.state)


def release_hold(world: World, job: ReferenceJob) -> None:
    """End a hold in favour of the job; one that was being cancelled when held is cancelled now."""
    job.hold_reason = ""
    if job.cancel_ms:
        ending.settle(world, job, j.CANCELLED)
    else:
        ending.make_pending(job)


def reject_job(world: World, command: c.RejectJob) -> o.Outcome:
    """Refuse a held job: dead, with the reason kept."""
    job = find(world, command.id, (j.HELD,))
    if isinstance(job, o.Rejected):
        return job
    reason = f"rejected: {command.reason}" if command.reason else "rejected"
    ending.settle(world, job, j.DEAD, reason=reason)
    return o.JobChanged("rejected", j.DEAD)
