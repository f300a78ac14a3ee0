"""What operators do to one job: cancel, retry, requeue, move, delete, hold, approve, reject.

The states each is allowed from are in `transitions`; everything else answers INVALID_STATE.
"""

from collections.abc import Callable
from typing import Protocol

from corvo.keys import space
from corvo.machine import batches, documents, places, unique
from corvo.machine.enqueue import find
from corvo.machine.report import end_early, not_found
from corvo.machine.settle import erase, settle
from corvo.machine.state import Queue, State
from corvo.machine.transitions import ALLOWED
from corvo.model import event as ev
from corvo.model import job as jb
from corvo.model import outcome
from corvo.model.command import (
    ANY_STATE,
    ApproveJob,
    CancelJob,
    ChangePriority,
    DeleteJob,
    HoldJob,
    MoveJob,
    RejectJob,
    RequeueJob,
    RetryJob,
)
from corvo.model.ids import JOB, render_id
from corvo.model.job import STATE_NAMES, TIER_NAMES, TIER_NORMAL, Job
from corvo.model.outcome import JobChanged, Rejected

Change = Callable[[Queue, Job], JobChanged | Rejected]


class OnJob(Protocol):
    """What every command about one job says."""

    @property
    def ns(self) -> int: ...
    @property
    def id(self) -> bytes: ...
    @property
    def expected_state(self) -> int: ...


def _change(state: State, command: OnJob, verb: str, change: Change) -> JobChanged | Rejected:
    """Find a job, check that the verb is allowed in its state, and run the change."""
    job = find(state, command.ns, command.id)
    if job is None:
        return not_found(command.id)
    if command.expected_state not in (ANY_STATE, job.state):
        return _changed(job, command.expected_state)
    if job.state not in ALLOWED[verb]:
        allowed = ", ".join(STATE_NAMES[allowed] for allowed in ALLOWED[verb])
        return Rejected(
            outcome.INVALID_STATE,
            f"a job that is {STATE_NAMES[job.state]} cannot be changed by {verb}",
            hint=f"allowed from: {allowed}",
            state=job.state,
        )
    return change(state.queue_of(job), job)


def _changed(job: Job, expected: int) -> Rejected:
    return Rejected(
        outcome.STATE_CHANGED,
        f"the job is {STATE_NAMES[job.state]}, no longer {STATE_NAMES[expected]}",
        state=job.state,
    )


def cancel_job(state: State, command: CancelJob) -> JobChanged | Rejected:
    """Cancel: at once when nobody works on it, cooperatively when somebody does."""

    def change(queue: Queue, job: Job) -> JobChanged:
        if job.state != jb.ACTIVE:
            settle(state, queue, job, jb.CANCELLED, reason="cancelled")
            return JobChanged("cancelled", job.state)
        found = places.rare(job)
        if not found.cancel_ms:
            found.cancel_ms = state.now_ms
            state.dirty[job.id] = job
            state.emit(ev.CANCELLING, job, queue.record.name)
        return JobChanged("cancelling", job.state)

    return _change(state, command, "cancel", change)


def retry_job(state: State, command: RetryJob) -> JobChanged | Rejected:
    """Run again with attempts reset; scheduled and retrying jobs run now."""

    def change(queue: Queue, job: Job) -> JobChanged | Rejected:
        if job.state in (jb.SCHEDULED, jb.RETRYING):
            places.leave(state, queue, job)
            places.enter_pending(state, queue, job)
            state.emit(ev.RETRIED, job, queue.record.name)
            return JobChanged("retried", job.state)
        refusal = _revive(state, queue, job)
        if refusal is not None:
            return refusal
        job.attempt = 0
        job.max_attempts = state.spec(job).retry.max_attempts or 1
        places.enter_pending(state, queue, job)
        state.emit(ev.RETRIED, job, queue.record.name, {"run": job.run})
        return JobChanged("retried", job.state)

    return _change(state, command, "retry", change)


def requeue_job(state: State, command: RequeueJob) -> JobChanged | Rejected:
    """Run a dead job again, keeping its history; it may try as often again."""

    def change(queue: Queue, job: Job) -> JobChanged | Rejected:
        refusal = _revive(state, queue, job)
        if refusal is not None:
            return refusal
        job.max_attempts += state.spec(job).retry.max_attempts or 1
        places.enter_pending(state, queue, job)
        state.emit(ev.REQUEUED, job, queue.record.name, {"run": job.run})
        return JobChanged("requeued", job.state)

    return _change(state, command, "requeue", change)


def _revive(state: State, queue: Queue, job: Job) -> Rejected | None:
    """Take a settled job out of the settled: a new run, its lock, its batch, its time to live."""
    spec = state.spec(job)
    if spec.unique is not None and not job.flags & jb.FLAG_UNIQUE:
        taken = unique.holder(state, queue, spec.unique.key)
        if taken is not None:
            return _conflict(taken[1])
        unique.acquire(state, queue, job, spec.unique)
    if spec.batch_id is not None:
        batches.rejoin(state, job, spec.batch_id)
    queue.record.counts[job.state] -= 1
    state.touch(queue)
    job.run += 1
    job.finished_ms = 0
    job.settled_index = 0
    documents.set_result(state, job, None)
    found = job.rare
    if found is not None:
        found.cancel_ms = 0
        found.waiting = 0
        found.dead_reason = ""
        found.hold_reason = ""
    if spec.expire_after_ms:
        places.arm_expiry(state, job, state.now_ms + spec.expire_after_ms)
    return None


def _conflict(holder: Job) -> Rejected:
    name = render_id(JOB, holder.id)
    return Rejected(
        outcome.UNIQUE_CONFLICT,
        f"the unique key is held by {name}",
        hint="wait for it to finish, or cancel it",
        state=holder.state,
        holder=holder.id,
    )


def move_job(state: State, command: MoveJob) -> JobChanged | Rejected:
    """Put a job into another queue."""

    def change(queue: Queue, job: Job) -> JobChanged | Rejected:
        target = state.open_queue(command.ns, command.queue)
        if target is queue:
            return _move_within(state, queue, job, command)
        spec = state.spec(job)
        if job.flags & jb.FLAG_UNIQUE and spec.unique is not None:
            taken = unique.holder(state, target, spec.unique.key)
            if taken is not None:
                return _conflict(taken[1])
            unique.transfer(state, queue, target, job, spec.unique)
        relocate(
            state,
            queue,
            target,
            job,
            order=state.position(),
            tier=job.tier if command.keep_priority else TIER_NORMAL,
            attempt=0 if command.reset_attempts else job.attempt,
        )
        data = {"from": queue.record.name}
        state.emit(ev.MOVED, job, target.record.name, data)
        return JobChanged("moved", job.state)

    return _change(state, command, "move", change)


def _move_within(state: State, queue: Queue, job: Job, command: MoveJob) -> JobChanged:
    """The job is there already: it keeps its place, but what else was asked for still counts."""
    if command.reset_attempts and job.attempt:
        job.attempt = 0
        state.dirty[job.id] = job
        state.touch(queue)
        # Whoever keeps a picture of jobs learns of every change from an event.
        state.emit(ev.MOVED, job, queue.record.name, {"from": queue.record.name})
    if not command.keep_priority:
        set_tier(state, queue, job, TIER_NORMAL)
    return JobChanged("moved", job.state)


def relocate(
    state: State, queue: Queue, target: Queue, job: Job, *, order: int, tier: int, attempt: int
) -> None:
    """Take a job from one queue to another, in the state it is in."""
    was = job.state
    if job.at:
        places.leave(state, queue, job)
    else:
        queue.record.counts[was] -= 1
        state.touch(queue)
    job.queue_id = target.record.id
    job.order = order
    job.lane = 0
    job.attempt = attempt
    job.tier = tier
    if was == jb.PENDING:
        places.enter_pending(state, target, job)
    elif was in (jb.SCHEDULED, jb.RETRYING):
        places.enter_due(state, target, job, was, job.due_ms)
    elif was == jb.HELD:
        places.enter_held(state, target, job)
    else:
        target.record.counts[was] += 1
        target.settled.append(job.id)
        job.settled_index = state.index
        state.dirty[job.id] = job
        state.touch(target)


def delete_job(state: State, command: DeleteJob) -> JobChanged | Rejected:
    """Remove a job and all it left behind."""
    job = find(state, command.ns, command.id)
    if job is None:
        return not_found(command.id)
    if command.expected_state not in (ANY_STATE, job.state):
        return _changed(job, command.expected_state)
    queue = state.queue_of(job)
    was = job.state
    state.emit(ev.DELETED, job, queue.record.name, batches.note_of(state, job))
    erase(state, queue, job)
    return JobChanged("deleted", was)


def change_priority(state: State, command: ChangePriority) -> JobChanged | Rejected:
    """Put a job into another tier."""

    def change(queue: Queue, job: Job) -> JobChanged:
        set_tier(state, queue, job, command.tier)
        return JobChanged("priority_changed", job.state)

    return _change(state, command, "priority", change)


def set_tier(state: State, queue: Queue, job: Job, tier: int) -> None:
    """Put a job into a tier, and in line with it when it waits in one."""
    if job.tier == tier:
        return
    data = {"from": TIER_NAMES[job.tier], "to": TIER_NAMES[tier]}
    if job.at[:1] == space.READY:
        places.leave(state, queue, job)
        job.tier = tier
        places.enter_pending(state, queue, job)
    else:
        job.tier = tier
        state.dirty[job.id] = job
        state.touch(queue)
    state.emit(ev.PRIORITY_CHANGED, job, queue.record.name, data)


def hold_job(state: State, command: HoldJob) -> JobChanged | Rejected:
    """Set a job aside until somebody approves or rejects it; an active one loses its lease."""

    def change(queue: Queue, job: Job) -> JobChanged | Rejected:
        if job.state == jb.ACTIVE:
            if command.token and command.token != job.token:
                return Rejected(
                    outcome.LEASE_LOST,
                    "the lease has ended; the job is no longer this worker's",
                    state=job.state,
                )
        elif command.token:
            return Rejected(outcome.LEASE_LOST, "the job is no longer active", state=job.state)
        if command.checkpoint is not None:
            documents.set_checkpoint(state, job, command.checkpoint)
        if job.state == jb.ACTIVE:
            job.ended = jb.END_TAKEN
            if end_early(state, queue, job):
                return JobChanged(STATE_NAMES[job.state], job.state)
        places.leave(state, queue, job)
        found = places.rare(job)
        found.hold_reason = command.reason
        found.hold_action = command.timeout_action
        if command.timeout_ms:
            places.arm_hold(state, job, state.now_ms + command.timeout_ms)
        places.enter_held(state, queue, job)
        state.emit(ev.HELD, job, queue.record.name, {"reason": command.reason})
        return JobChanged("held", job.state)

    return _change(state, command, "hold", change)


def approve_job(state: State, command: ApproveJob) -> JobChanged | Rejected:
    """Let a held job run."""

    def change(queue: Queue, job: Job) -> JobChanged:
        release_hold(state, queue, job, command.by, command.note)
        return JobChanged("approved", job.state)

    return _change(state, command, "approve", change)


def release_hold(state: State, queue: Queue, job: Job, by: str, note: str) -> None:
    """End a hold in favour of the job."""
    found = places.rare(job)
    found.decided_by, found.decided_note = by, note
    found.hold_reason = ""
    places.disarm_hold(state, job)
    places.leave(state, queue, job)
    state.emit(ev.APPROVED, job, queue.record.name, {"by": by} if by else None)
    places.enter_pending(state, queue, job)


def reject_job(state: State, command: RejectJob) -> JobChanged | Rejected:
    """Refuse a held job: it is dead, with the reason kept."""

    def change(queue: Queue, job: Job) -> JobChanged:
        found = places.rare(job)
        found.decided_by, found.decided_note = command.by, command.reason
        state.emit(
            ev.REJECTED, job, queue.record.name, {"by": command.by, "reason": command.reason}
        )
        settle(
            state,
            queue,
            job,
            jb.DEAD,
            reason=f"rejected: {command.reason}" if command.reason else "rejected",
        )
        return JobChanged("rejected", job.state)

    return _change(state, command, "reject", change)
