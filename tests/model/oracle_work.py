"""What workers may say in the reference queue, and what becomes of the job."""

from typing import Any

from corvo.model import command as c
from corvo.model import job as j
from corvo.model import outcome as o
from corvo.model.queue import TOTAL_FAILED
from corvo.model.retry import backoff_ms
from tests.model import oracle_settle as ending
from tests.model.oracle_state import ReferenceJob, World, refuse

END_OF = {
    c.AckJob: j.END_ACK,
    c.FailJob: j.END_FAIL,
    c.ReleaseJob: j.END_RELEASE,
    c.SnoozeJob: j.END_SNOOZE,
}


def holder(world: World, command: Any) -> ReferenceJob | o.Outcome:
    """Return the job a worker speaks about, or the answer when it may not."""
    job = world.job(command.id)
    if job is None:
        return refuse(o.NOT_FOUND)
    if command.token and command.token == job.token and job.ended == END_OF[type(command)]:
        assert job.answer is not None
        return job.answer
    refused = stranger(world, job, command.token)
    return job if refused is None else refused


def stranger(world: World, job: ReferenceJob, token: int) -> o.Rejected | None:
    """Refuse who does not have the lease: a stale token, or none where one is needed."""
    if token:
        is_holder = job.state == j.ACTIVE and token == job.token
        return None if is_holder else refuse(o.LEASE_LOST, job)
    if job.state != j.ACTIVE:
        return refuse(o.NOT_ACTIVE, job)
    if world.queues[job.queue].settings.require_token:
        return refuse(o.VALIDATION_ERROR, job)
    return None if world.now_ms < job.lease_until_ms else refuse(o.LEASE_LOST, job)


def keep(job: ReferenceJob, command: Any) -> None:
    """Keep what the worker reported along with the end of its lease."""
    for name in ("checkpoint", "usage", "progress"):
        value = getattr(command, name, None)
        if value is not None:
            setattr(job, name, value)


def finish(job: ReferenceJob, how: int, next_ms: int = 0, remaining: int = 0) -> o.Ended:
    """End the lease and keep the answer for a repeated call."""
    job.ended = how
    job.answer = o.Ended(job.state, next_ms, remaining)
    return job.answer


def ack_job(world: World, command: c.AckJob) -> o.Outcome:
    """The work is done; a job asked to cancel is cancelled all the same, with its result."""
    job = holder(world, command)
    if not isinstance(job, ReferenceJob):
        return job
    keep(job, command)
    if command.result is not None:
        job.result = command.result
    state = j.CANCELLED if job.cancel_ms else j.COMPLETED
    ending.settle(world, job, state, is_exit=command.is_exit)
    return finish(job, j.END_ACK)


def fail_job(world: World, command: c.FailJob) -> o.Outcome:
    """The attempt failed."""
    job = holder(world, command)
    if not isinstance(job, ReferenceJob):
        return job
    keep(job, command)
    world.queues[job.queue].totals[TOTAL_FAILED] += 1
    job.errors.append((job.attempt, job.run, command.error))
    if end_early(world, job):
        return finish(job, j.END_FAIL)
    if not command.is_retryable or not job.remaining:
        reason = "max_attempts" if command.is_retryable else "not_retryable"
        ending.settle(world, job, j.DEAD, reason=reason)
        return finish(job, j.END_FAIL)
    delay_ms = command.retry_after_ms
    if delay_ms is None:
        delay_ms = backoff_ms(job.spec.retry, job.id, job.attempt)
    if delay_ms:
        job.state, job.due_ms = j.RETRYING, world.now_ms + delay_ms
    else:
        ending.make_pending(job)
    return finish(job, j.END_FAIL, world.now_ms + delay_ms, job.remaining)


def end_early(world: World, job: ReferenceJob) -> bool:
    """Settle a job that comes back from a worker but was cancelled or expired meanwhile."""
    if job.cancel_ms:
        ending.settle(world, job, j.CANCELLED)
        return True
    if job.is_expired(world.now_ms):
        ending.settle(world, job, j.DEAD, reason="expired")
        return True
    return False


def release_job(world: World, command: c.ReleaseJob) -> o.Outcome:
    """Back in line, as if it had not been fetched."""
    job = holder(world, command)
    if not isinstance(job, ReferenceJob):
        return job
    keep(job, command)
    if end_early(world, job):
        return finish(job, j.END_RELEASE)
    job.attempt -= 1
    ending.make_pending(job)
    return finish(job, j.END_RELEASE, world.now_ms, job.remaining)


def snooze_job(world: World, command: c.SnoozeJob) -> o.Outcome:
    """Scheduled, as if it had not been fetched."""
    job = holder(world, command)
    if not isinstance(job, ReferenceJob):
        return job
    keep(job, command)
    if end_early(world, job):
        return finish(job, j.END_SNOOZE)
    job.attempt -= 1
    due_ms = command.until_ms or world.now_ms + command.delay_ms
    if due_ms > world.now_ms:
        job.state, job.due_ms = j.SCHEDULED, due_ms
    else:
        ending.make_pending(job)
    return finish(job, j.END_SNOOZE, due_ms, job.remaining)


def heartbeat_job(world: World, command: c.HeartbeatJob) -> o.Outcome:
    """Extend the lease, say whether to stop."""
    job = world.job(command.id)
    if job is None:
        return o.Beaten(o.BEAT_LOST)
    refused = stranger(world, job, command.token)
    if refused is not None:
        return refused if refused.code == o.VALIDATION_ERROR else o.Beaten(o.BEAT_LOST)
    keep(job, command)
    job.lease_until_ms = world.now_ms + job.lease_ms
    return o.Beaten(o.BEAT_CANCEL if job.cancel_ms else o.BEAT_OK, job.lease_until_ms)
