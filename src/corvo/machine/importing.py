"""Import: records from an export become jobs, queues, limits and batches again, history included.

Each record is taken or refused by itself; what exists already is never touched. A job keeps its id,
state, attempts, errors and times. What cannot be carried over is what belonged to the other server:
an active job comes back as pending with its attempt not burnt, since its lease means nothing here,
and places in line follow the order of import. Retention of settled jobs starts again.

A batch comes after its jobs and adopts those that have not ended, all at once: at no point does it
count members that are not there, and none of them can fire its callback early.
"""

from corvo.keys import codec, space
from corvo.keys.order import pack_u16
from corvo.machine import (
    batches,
    depends,
    documents,
    gates,
    places,
    queues,
    settle,
    standing,
    unique,
)
from corvo.machine.enqueue import find
from corvo.machine.state import Queue, State
from corvo.model import event as ev
from corvo.model import ids, limits, outcome
from corvo.model import job as jb
from corvo.model.command import ImportRecords, SetLimit
from corvo.model.event import Event
from corvo.model.job import Batch, Job, UniqueLock
from corvo.model.outcome import Imported, Rejected
from corvo.model.queue import Limit
from corvo.model.record import (
    BatchImport,
    JobImport,
    LimitImport,
    QueueImport,
    ScheduleImport,
    WebhookImport,
)


def import_records(state: State, command: ImportRecords) -> Imported:
    """Take what can be taken; say by position what was refused and why."""
    refused: list[tuple[int, Rejected]] = []
    ns = command.ns
    for position, record in enumerate(command.records):
        if isinstance(record, JobImport):
            refusal = _take_job(state, ns, record)
        elif isinstance(record, QueueImport):
            refusal = _take_queue(state, ns, record)
        elif isinstance(record, BatchImport):
            refusal = _take_batch(state, ns, record)
        elif isinstance(record, ScheduleImport):
            refusal = standing.take_schedule(state, ns, record)
        elif isinstance(record, WebhookImport):
            refusal = standing.take_webhook(state, ns, record)
        else:
            refusal = _take_limit(state, ns, record)
        if refusal is not None:
            refused.append((position, refusal))
    return Imported(len(command.records) - len(refused), refused)


def _exists(what: str) -> Rejected:
    return Rejected(outcome.ALREADY_EXISTS, f"{what} exists already")


def _take_queue(state: State, ns: int, record: QueueImport) -> Rejected | None:
    if (ns, record.name) in state.names:
        return _exists(f"the queue {record.name}")
    queue = queues.open_queue(state, ns, record.name)
    if isinstance(queue, Rejected):
        return queue
    made = queue.record
    made.created_ms = record.created_ms
    made.paused, made.draining = record.paused, record.draining
    made.settings = record.settings
    made.totals = list(record.totals)
    state.touch(queue)
    state.events.append(Event(ev.QUEUE_CONFIGURED, b"", record.name, ns=ns))
    return None


def _take_limit(state: State, ns: int, record: LimitImport) -> Rejected | None:
    if gates.named(state, ns, record.name) is not None:
        return _exists(f"the limit {record.name}")
    queues.set_limit(state, SetLimit(ns, record.name, record.max, record.rate))
    made = Limit(record.name, record.max, record.rate, record.created_ms)
    state.writes[space.LIMIT + pack_u16(ns) + record.name.encode()] = codec.encode(made)
    return None


def _take_job(state: State, ns: int, record: JobImport) -> Rejected | None:
    spec = record.spec
    if state.job(ns, spec.id) is not None:
        return _exists(f"the job {ids.render_id(ids.JOB, spec.id)}")
    known = state.names.get((ns, record.queue))
    refusal = _conflict(state, ns, record, known)
    if refusal is not None:
        return refusal
    queue = queues.open_queue(state, ns, record.queue)
    if isinstance(queue, Rejected):
        return queue
    job = _make(state, queue, record)
    _bring_documents(state, job, record)
    if record.lock_until_ms and spec.unique is not None:
        lock = UniqueLock(job.id, spec.unique.mode, record.lock_until_ms)
        unique.restore(state, queue, job, lock, is_settled=record.state in jb.SETTLED)
    _bring_history(job, record)
    has_failed = record.state not in jb.SETTLED and _link_parents(state, job, record)
    _place(state, queue, job, record)
    state.emit(ev.IMPORTED, job, queue.record.name, {"state": jb.STATE_NAMES[job.state]})
    if record.state == jb.ACTIVE and record.cancel_ms:
        # Somebody asked for its end and the worker cannot be told any more.
        settle.settle(state, queue, job, jb.CANCELLED)
    elif has_failed:
        depends.fail_child(state, queue, job)
    return None


def _conflict(state: State, ns: int, record: JobImport, queue: Queue | None) -> Rejected | None:
    """Refuse a job whose unique key is taken or whose dependencies are not here."""
    spec = record.spec
    if queue is not None and record.lock_until_ms and spec.unique is not None:
        found = unique.holder(state, queue, spec.unique.key)
        if found is not None:
            text = f"unique key {spec.unique.key!r} is taken"
            return Rejected(outcome.UNIQUE_CONFLICT, text, holder=found[1].id)
    for parent in record.waiting_for:
        if find(state, ns, parent) is None:
            text = f"there is no job {ids.render_id(ids.JOB, parent)} to depend on"
            return Rejected(outcome.DEPENDENCY_NOT_FOUND, text, field="blocked_by")
    return None


def _make(state: State, queue: Queue, record: JobImport) -> Job:
    spec = record.spec
    is_active = record.state == jb.ACTIVE
    job = Job(
        spec.id,
        spec.ns,
        jb.PENDING,
        queue.record.id,
        record.tier,
        state.position(),
        b"",
        record.created_ms,
        record.max_attempts,
        attempt=max(0, record.attempt - 1) if is_active else record.attempt,
        run=record.run,
        started_ms=record.started_ms,
        finished_ms=record.finished_ms,
        worker=record.worker,
        host=record.host,
    )
    if spec.group or spec.limit_key or spec.limits:
        job.flags |= jb.FLAG_LANED
    if spec.chain is not None:
        job.flags |= jb.FLAG_CHAIN
    if spec.depends_on:
        job.flags |= jb.FLAG_CHILD
    if record.is_counted:
        job.flags |= jb.FLAG_COUNTED
    state.jobs[job.id] = job
    state.writes[b"j" + pack_u16(spec.ns) + job.id] = codec.encode(spec)
    state.remember_spec(spec)
    return job


def _bring_documents(state: State, job: Job, record: JobImport) -> None:
    documents.set_checkpoint(state, job, record.checkpoint)
    documents.set_result(state, job, record.result)
    if record.progress is not None:
        documents.set_progress(state, job, record.progress)
    if record.usage is not None:
        documents.set_usage(state, job, record.usage)
    if record.errors:
        job.flags |= jb.FLAG_ERRORS
        rare = places.rare(job)
        rare.errors = record.errors_total
        if len(documents.error_numbers(job)) != len(record.errors):
            rare.errors = len(record.errors)
        for number, error in zip(documents.error_numbers(job), record.errors, strict=True):
            state.writes[space.error_key(job.ns, job.id, number)] = codec.encode(error)


def _bring_history(job: Job, record: JobImport) -> None:
    """Give the record the rarely used fields that the export has, if it has any."""
    for name in (
        "expire_ms",
        "failed_ms",
        "hold_action",
        "hold_reason",
        "dead_reason",
        "decided_by",
        "decided_note",
        "extra_attempts",
    ):
        value = getattr(record, name)
        if value:
            setattr(places.rare(job), name, value)


def _link_parents(state: State, job: Job, record: JobImport) -> bool:
    """Let the job wait for its parents; returns whether one of them has failed meanwhile."""
    has_failed = record.has_failed_parent
    waiting = 0
    for parent_id in dict.fromkeys(record.waiting_for):
        parent = find(state, job.ns, parent_id)
        assert parent is not None, "checked before"
        if parent.state not in jb.SETTLED:
            waiting += 1
            depends.link(state, job.ns, parent, job.id)
        elif parent.state != jb.COMPLETED:
            has_failed = True
    if waiting:
        places.rare(job).waiting = waiting
    return has_failed


def _place(state: State, queue: Queue, job: Job, record: JobImport) -> None:
    ended = record.state
    if ended in jb.SETTLED:
        queue.record.counts[ended] += 1
        job.state = ended
        job.settled_index = state.index
        queue.settled.append(job.id)
        state.dirty[job.id] = job
        state.touch(queue)
        return
    if record.expire_ms:
        places.arm_expiry(state, job, record.expire_ms)
    if ended == jb.HELD:
        if record.hold_until_ms:
            places.arm_hold(state, job, record.hold_until_ms)
        places.enter_held(state, queue, job)
    elif ended in (jb.SCHEDULED, jb.RETRYING):
        places.enter_due(state, queue, job, ended, record.due_ms)
    else:
        places.enter_pending(state, queue, job)


def _take_batch(state: State, ns: int, record: BatchImport) -> Rejected | None:
    if batches.load(state, ns, record.id) is not None:
        return _exists(f"the batch {ids.render_id(ids.BATCH, record.id)}")
    members = list(dict.fromkeys(record.members))
    ended = record.succeeded + record.failed + record.cancelled
    if ended + len(members) != record.total or bool(members) == bool(record.finished_ms):
        text = "the counts of the batch do not add up to its total"
        return Rejected(outcome.VALIDATION_ERROR, text, field="total")
    batch = Batch(
        record.id,
        ns,
        record.total,
        0,
        record.succeeded,
        record.failed,
        record.cancelled,
        record.callback_queue,
        record.callback_payload,
        record.callback_id,
        record.created_ms,
        record.finished_ms,
    )
    for member in members:
        _adopt(state, batch, member)
    batches.restore(state, batch)
    if record.finished_ms:
        purge_ms = state.now_ms + limits.RETENTION_MS_DEFAULT
        state.add_deadline(purge_ms, space.DEADLINE_BATCH, ns, batch.id)
    return None


def _adopt(state: State, batch: Batch, member: bytes) -> None:
    """Count a member: pending while it lives; as it ended, or as cancelled when it is gone."""
    job = state.job(batch.ns, member)
    is_ours = job is not None and state.spec(job).batch_id == batch.id
    if job is None or not is_ours or job.flags & jb.FLAG_MEMBER:
        batch.cancelled += 1
    elif job.state in jb.SETTLED:
        job.flags |= jb.FLAG_COUNTED
        state.dirty[job.id] = job
        batches.count(batch, job.state)
    else:
        job.flags |= jb.FLAG_MEMBER
        state.dirty[job.id] = job
        batch.pending += 1
