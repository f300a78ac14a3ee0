"""One way to end. Complete, dead, cancel, expire, reject, delete, clear: all pass through here.

`conclude` does what every ending owes the rest of the state: it disarms deadlines, frees the unique
lock, advances or fails the chain, counts the batch, and queues the news for dependants. `settle`
keeps the job as a settled record until retention; `erase` leaves nothing.
"""

from corvo.keys import space
from corvo.machine import batches, chains, documents, places, unique
from corvo.machine.state import Queue, State
from corvo.model import event as ev
from corvo.model import job as jb
from corvo.model.event import Event
from corvo.model.job import Job
from corvo.model.queue import TOTAL_COMPLETED, TOTAL_DEAD

_EVENTS = {jb.COMPLETED: ev.COMPLETED, jb.DEAD: ev.DEAD, jb.CANCELLED: ev.CANCELLED}


def settle(
    state: State,
    queue: Queue,
    job: Job,
    ended: int,
    *,
    reason: str = "",
    is_exit: bool = False,
) -> None:
    """End a live job as completed, dead or cancelled."""
    places.leave(state, queue, job)
    record = queue.record
    record.counts[ended] += 1
    job.state = ended
    job.finished_ms = state.now_ms
    job.settled_index = state.index
    queue.settled.append(job.id)
    state.dirty[job.id] = job
    if ended == jb.COMPLETED:
        record.totals[TOTAL_COMPLETED] += 1
        state.emit(ev.COMPLETED, job, record.name)
    else:
        if ended == jb.DEAD:
            record.totals[TOTAL_DEAD] += 1
            places.rare(job).dead_reason = reason
        state.emit(_EVENTS[ended], job, record.name, {"reason": reason} if reason else None)
    if job.flags or job.rare is not None:
        conclude(state, queue, job, ended, reason, is_exit=is_exit)


def complete_plain(state: State, queue: Queue, job: Job) -> None:
    """Complete an active job that nothing else waits for.

    Cost: what `settle` does for a job without flags and rare fields, without its questions: a
    microsecond for every job there is.
    """
    assert not job.flags
    assert job.rare is None
    record = queue.record
    counts = record.counts
    counts[jb.ACTIVE] -= 1
    counts[jb.COMPLETED] += 1
    record.totals[TOTAL_COMPLETED] += 1
    state.delete_index(job.at)
    job.at = b""
    job.state = jb.COMPLETED
    job.finished_ms = state.now_ms
    job.settled_index = state.index
    job_id = job.id
    queue.settled.append(job_id)
    state.dirty[job_id] = job
    if not queue.is_dirty:
        state.touch(queue)
    state.events.append(Event(ev.COMPLETED, job_id, record.name, job.attempt))


def conclude(
    state: State, queue: Queue, job: Job, ended: int, reason: str, *, is_exit: bool = False
) -> None:
    """Tell everything that waited for the end of this job."""
    places.disarm(state, job)
    unique.release(state, queue, job, completed=ended == jb.COMPLETED)
    flags = job.flags
    if flags & (jb.FLAG_CHAIN | jb.FLAG_MEMBER):
        spec = state.spec(job)
        goes_on = bool(flags & jb.FLAG_CHAIN) and chains.job_ended(
            state, queue, job, spec, ended, reason, is_exit=is_exit
        )
        if flags & jb.FLAG_MEMBER:
            assert spec.batch_id is not None
            if goes_on:
                job.flags &= ~jb.FLAG_MEMBER
            else:
                batches.member_ended(state, job, spec.batch_id, ended)
    if flags & jb.FLAG_CHILD and job.rare is not None and job.rare.waiting:
        _forget_parents(state, job)
    if flags & jb.FLAG_PARENT:
        job.flags &= ~jb.FLAG_PARENT
        state.cascade.append((job.ns, job.id, ended == jb.COMPLETED))


def _forget_parents(state: State, job: Job) -> None:
    """The job waits for nobody any more: it must not be told about parents that end later."""
    assert job.rare is not None
    job.rare.waiting = 0
    for parent in state.spec(job).depends_on:
        key = space.dependant_prefix(job.ns, parent) + job.id
        if state.get(key) is not None:
            state.writes[key] = None


def erase(state: State, queue: Queue, job: Job, *, is_doomed: bool = False) -> None:
    """Remove a job and all it left behind; a live one ends as cancelled first.

    A doomed job (its queue was cleared or deleted) is already out of all counters.
    """
    if job.at:
        if is_doomed:
            places.leave_doomed(state, job)
        else:
            places.leave(state, queue, job)
        unique.abandon(state, queue, job)
        conclude(state, queue, job, jb.CANCELLED, "deleted")
    else:
        if not is_doomed:
            queue.record.counts[job.state] -= 1
            state.touch(queue)
        unique.abandon(state, queue, job)
    documents.erase(state, job)
    state.drop_job(job)
