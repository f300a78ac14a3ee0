"""What workers report: ack, fail, release, snooze, heartbeat. All fenced by the lease.

A token names one lease: strictly rising per job, from the position in the log. A stale one is
refused; the one that ended the lease gets the same answer again. Without a token a call works
while the lease is live, unless the queue requires one.
"""

from corvo.machine import documents, places
from corvo.machine.enqueue import find
from corvo.machine.settle import complete_plain, settle
from corvo.machine.state import Queue, State
from corvo.model import event as ev
from corvo.model import job as jb
from corvo.model import outcome
from corvo.model.command import AckJob, FailJob, HeartbeatJob, ReleaseJob, SnoozeJob
from corvo.model.ids import JOB, render_id
from corvo.model.job import STATE_NAMES, Job
from corvo.model.outcome import BEAT_CANCEL, BEAT_LOST, BEAT_OK, Beaten, Ended, Rejected
from corvo.model.queue import TOTAL_FAILED
from corvo.model.retry import backoff_ms

_COMPLETED = Ended(jb.COMPLETED)


def not_found(job_id: bytes) -> Rejected:
    """Answer for a job that does not exist."""
    return Rejected(outcome.NOT_FOUND, f"there is no job {render_id(JOB, job_id)}")


def _refusal(state: State, queue: Queue, job: Job, token: int) -> Rejected | None:
    """Refuse a report on a job by somebody who does not hold its lease."""
    if job.state == jb.ACTIVE:
        if token == job.token:
            return None
        if not token:
            if queue.record.settings.require_token:
                return Rejected(
                    outcome.VALIDATION_ERROR,
                    f"queue {queue.record.name} requires the lease token",
                    field="lease_token",
                    hint="send the lease_token the fetch returned",
                )
            if job.lease_until_ms > state.now_ms:
                return None
    elif not token:
        return Rejected(
            outcome.NOT_ACTIVE,
            f"the job is {STATE_NAMES[job.state]}, not active",
            state=job.state,
        )
    return Rejected(
        outcome.LEASE_LOST,
        "the lease has ended; the job is no longer this worker's",
        hint="stop working on the job; another worker may have it",
        state=job.state,
    )


def _repeated(job: Job, token: int, verb: int) -> Ended | None:
    """The token that ended the lease by this very call: give the same answer again."""
    if not token or token != job.token or job.ended != verb:
        return None
    answer = job.rare.answer if job.rare is not None else None
    return Ended(*answer) if answer is not None else Ended(jb.COMPLETED)


def _end(job: Job, verb: int, state: int, next_ms: int = 0, remaining: int = 0) -> Ended:
    """Close the lease and keep the answer for a repeated call."""
    job.ended = verb
    places.rare(job).answer = (state, next_ms, remaining)
    return Ended(state, next_ms, remaining)


def ack_job(state: State, command: AckJob) -> Ended | Rejected:
    """The work is done."""
    job = state.jobs.get(command.id)
    if job is None or job.ns != command.ns or job.state != jb.ACTIVE:
        job = find(state, command.ns, command.id)
        if job is None:
            return not_found(command.id)
    queue = state.queues[job.queue_id]
    if queue.record.deleted:
        return not_found(command.id)
    if job.state != jb.ACTIVE or job.token != command.token:
        repeated = _repeated(job, command.token, jb.END_ACK)
        if repeated is not None:
            return repeated
        refusal = _refusal(state, queue, job, command.token)
        if refusal is not None:
            return refusal
    job.ended = jb.END_ACK
    if command.result is not None:
        documents.set_result(state, job, command.result)
    if command.checkpoint is not None or command.usage is not None:
        _keep(state, queue, job, command.checkpoint, command.usage)
    found = job.rare
    if found is not None:
        found.answer = None
        if found.cancel_ms:
            settle(state, queue, job, jb.CANCELLED, reason="cancelled")
            return _end(job, jb.END_ACK, jb.CANCELLED)
    if found is None and not job.flags:
        complete_plain(state, queue, job)
    else:
        settle(state, queue, job, jb.COMPLETED, is_exit=command.is_exit)
    return _COMPLETED


def _keep(
    state: State, queue: Queue, job: Job, checkpoint: bytes | None, usage: bytes | None
) -> None:
    """Keep what a worker reported besides the outcome."""
    if checkpoint is not None:
        documents.set_checkpoint(state, job, checkpoint)
    if usage is not None:
        _keep_usage(state, queue, job, usage)


def _keep_usage(state: State, queue: Queue, job: Job, usage: bytes) -> None:
    """Keep the last report of usage; one that names an iteration is an event, too.

    The record holds the last report alone. What became of each iteration is told by the events.
    """
    documents.set_usage(state, job, usage)
    about = documents.iteration_of(usage)
    if about is not None:
        state.emit(ev.ITERATED, job, queue.record.name, about)


def _hold_of(
    state: State, ns: int, job_id: bytes, token: int, verb: int
) -> tuple[Queue, Job] | Ended | Rejected:
    """Find the job behind a report, or what to answer instead."""
    job = find(state, ns, job_id)
    if job is None:
        return not_found(job_id)
    queue = state.queue_of(job)
    return _repeated(job, token, verb) or _refusal(state, queue, job, token) or (queue, job)


def fail_job(state: State, command: FailJob) -> Ended | Rejected:
    """The attempt failed: try again later, or give up."""
    held = _hold_of(state, command.ns, command.id, command.token, jb.END_FAIL)
    if not isinstance(held, tuple):
        return held
    queue, job = held
    _keep(state, queue, job, command.checkpoint, command.usage)
    error = command.error or "failed"
    documents.add_error(state, job, error, command.backtrace)
    places.rare(job).failed_ms = state.now_ms
    queue.record.totals[TOTAL_FAILED] += 1
    state.emit(ev.FAILED, job, queue.record.name, {"error": error[:200]})
    reason = "" if command.is_retryable else "not_retryable"
    return _after_failure(state, queue, job, reason, command.retry_after_ms)


def _after_failure(
    state: State, queue: Queue, job: Job, reason: str, retry_after_ms: int | None
) -> Ended:
    """Decide what a failed attempt leads to."""
    settled = _settle_instead(state, queue, job, jb.END_FAIL)
    if settled is not None:
        return settled
    remaining = max(0, job.max_attempts - job.attempt)
    if reason or not remaining:
        settle(state, queue, job, jb.DEAD, reason=reason or "max_attempts")
        return _end(job, jb.END_FAIL, jb.DEAD)
    delay_ms = retry_after_ms
    if delay_ms is None:
        delay_ms = backoff_ms(state.spec(job).retry, job.id, job.attempt)
    places.leave(state, queue, job)
    if not delay_ms:
        places.enter_pending(state, queue, job)
        state.emit(ev.RETRYING, job, queue.record.name)
        return _end(job, jb.END_FAIL, jb.PENDING, state.now_ms, remaining)
    due_ms = state.now_ms + delay_ms
    places.enter_due(state, queue, job, jb.RETRYING, due_ms)
    state.emit(ev.RETRYING, job, queue.record.name, {"due_ms": due_ms})
    return _end(job, jb.END_FAIL, jb.RETRYING, due_ms, remaining)


def _settle_instead(state: State, queue: Queue, job: Job, verb: int) -> Ended | None:
    """A job that comes back may be over already: cancelled, or past its time to live."""
    return _end(job, verb, job.state) if end_early(state, queue, job) else None


def end_early(state: State, queue: Queue, job: Job) -> bool:
    """End a job that comes back from a worker but was cancelled or ran out of time meanwhile."""
    found = job.rare
    if found is None:
        return False
    if found.cancel_ms:
        settle(state, queue, job, jb.CANCELLED, reason="cancelled")
        return True
    if places.is_expired(state, job):
        state.emit(ev.EXPIRED, job, queue.record.name)
        settle(state, queue, job, jb.DEAD, reason="expired")
        return True
    return False


def release_job(state: State, command: ReleaseJob) -> Ended | Rejected:
    """Give a job back without burning an attempt; it keeps its place."""
    held = _hold_of(state, command.ns, command.id, command.token, jb.END_RELEASE)
    if not isinstance(held, tuple):
        return held
    queue, job = held
    if command.checkpoint is not None:
        documents.set_checkpoint(state, job, command.checkpoint)
    settled = _settle_instead(state, queue, job, jb.END_RELEASE)
    if settled is not None:
        return settled
    places.leave(state, queue, job)
    job.attempt -= 1
    places.enter_pending(state, queue, job)
    state.emit(ev.RELEASED, job, queue.record.name)
    remaining = job.max_attempts - job.attempt
    return _end(job, jb.END_RELEASE, jb.PENDING, state.now_ms, remaining)


def snooze_job(state: State, command: SnoozeJob) -> Ended | Rejected:
    """Give a job back and ask for it later, without burning an attempt."""
    held = _hold_of(state, command.ns, command.id, command.token, jb.END_SNOOZE)
    if not isinstance(held, tuple):
        return held
    queue, job = held
    if command.checkpoint is not None:
        documents.set_checkpoint(state, job, command.checkpoint)
    settled = _settle_instead(state, queue, job, jb.END_SNOOZE)
    if settled is not None:
        return settled
    until_ms = command.until_ms or state.now_ms + command.delay_ms
    places.leave(state, queue, job)
    job.attempt -= 1
    remaining = job.max_attempts - job.attempt
    if until_ms > state.now_ms:
        places.enter_due(state, queue, job, jb.SCHEDULED, until_ms)
    else:
        places.enter_pending(state, queue, job)
    state.emit(ev.SNOOZED, job, queue.record.name, {"due_ms": until_ms})
    return _end(job, jb.END_SNOOZE, job.state, until_ms, remaining)


def heartbeat_job(state: State, command: HeartbeatJob) -> Beaten | Rejected:
    """Extend the lease by the job's own length; keep what the worker reports."""
    job = find(state, command.ns, command.id)
    if job is None:
        return Beaten(BEAT_LOST)
    queue = state.queue_of(job)
    refusal = _refusal(state, queue, job, command.token)
    if refusal is not None:
        return refusal if refusal.code == outcome.VALIDATION_ERROR else Beaten(BEAT_LOST)
    # Cost: the lease index is left alone; the sweep re-keys an entry whose record says later.
    job.lease_until_ms = state.now_ms + job.lease_ms
    state.dirty[job.id] = job
    name = queue.record.name
    if command.progress is not None:
        documents.set_progress(state, job, command.progress)
    if command.progress is not None or command.usage is not None:
        state.emit(ev.PROGRESS, job, name)
    if command.checkpoint is not None:
        documents.set_checkpoint(state, job, command.checkpoint)
        state.emit(ev.CHECKPOINT, job, name)
    if command.usage is not None:
        _keep_usage(state, queue, job, command.usage)
    is_cancelled = job.rare is not None and job.rare.cancel_ms > 0
    return Beaten(BEAT_CANCEL if is_cancelled else BEAT_OK, job.lease_until_ms)


def lose_lease(state: State, queue: Queue, job: Job) -> None:
    """The lease ran out: a failed attempt, back to pending at once, dead when none is left."""
    documents.add_error(state, job, "lease_expired")
    found = places.rare(job)
    found.failed_ms = state.now_ms
    job.ended = jb.END_LOST
    queue.record.totals[TOTAL_FAILED] += 1
    state.emit(ev.RECLAIMED, job, queue.record.name, {"worker": job.worker})
    if found.cancel_ms:
        settle(state, queue, job, jb.CANCELLED, reason="cancelled")
    elif places.is_expired(state, job):
        state.emit(ev.EXPIRED, job, queue.record.name)
        settle(state, queue, job, jb.DEAD, reason="expired")
    elif job.attempt >= job.max_attempts:
        settle(state, queue, job, jb.DEAD, reason="lease_expired")
    else:
        places.leave(state, queue, job)
        places.enter_pending(state, queue, job)
