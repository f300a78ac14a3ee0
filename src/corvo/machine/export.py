"""Export: what a namespace holds, as records that an import takes back.

Read from a copy of the store at rest. Jobs are decoded straight from the scan: the caches of the
machine are bounded by entries being applied, and none are applied to a copy.
"""

from corvo.keys import codec, space
from corvo.keys.order import pack_u16, successor
from corvo.machine import documents
from corvo.machine.state import State, is_doomed
from corvo.model import job as jb
from corvo.model.job import Batch, Job, Rare, Spec
from corvo.model.queue import DEFAULT_SETTINGS, QueueRecord
from corvo.model.record import BatchImport, JobImport, LimitImport, QueueImport

_NOTHING_RARE = Rare()


def queues(state: State, ns: int) -> list[QueueImport]:
    """All queues of a namespace, by name. Secrets stay inside."""
    records = [queue.record for (of, _), queue in sorted(state.names.items()) if of == ns]
    return [_queue(record) for record in records]


def _queue(record: QueueRecord) -> QueueImport:
    return QueueImport(
        record.name,
        record.created_ms,
        record.paused,
        record.draining,
        record.settings or DEFAULT_SETTINGS,
        list(record.totals),
    )


def limits(state: State, ns: int, after: str, limit: int) -> list[LimitImport]:
    """Named limits that follow a name."""
    prefix = space.LIMIT + pack_u16(ns)
    start = prefix + after.encode() + b"\x00" if after else prefix
    found = [codec.decode_limit(raw) for _, raw in state.scan(start, successor(prefix), limit)]
    return [LimitImport(each.name, each.max, each.rate, each.created_ms) for each in found]


def jobs(
    state: State, ns: int, after: bytes, limit: int, *, is_waiting: bool
) -> tuple[list[JobImport], list[tuple[bytes, bytes]], bytes]:
    """Jobs whose id follows; the (batch, job) pairs of open membership among them; the last id.

    The last id is empty when there are no more. Jobs that wait for dependencies come in a second
    pass: an import wants parents before children, and an id that was derived (a chain step) may
    sort behind the id of a job that waits for it. A derived job never waits itself.
    """
    prefix = space.JOB + pack_u16(ns)
    start = prefix + after + b"\x00" if after else prefix
    found = state.scan(start, successor(prefix), limit)
    records: list[JobImport] = []
    members: list[tuple[bytes, bytes]] = []
    for key, raw in found:
        job = codec.decode_job(raw)
        has_parents = job.rare is not None and job.rare.waiting > 0
        if has_parents != is_waiting or is_doomed(state.queues[job.queue_id], job):
            continue
        encoded = state.get(space.spec_key(ns, job.id))
        assert encoded is not None, "a job without its spec"
        spec = codec.decode_spec(encoded)
        records.append(_job(state, job, spec))
        if job.flags & jb.FLAG_MEMBER and spec.batch_id is not None:
            members.append((spec.batch_id, job.id))
        assert key[-16:] == job.id
    return records, members, found[-1][0][-16:] if len(found) == limit else b""


def _job(state: State, job: Job, spec: Spec) -> JobImport:
    rare = job.rare or _NOTHING_RARE
    waiting_for, has_failed_parent = _parents(state, job, spec)
    is_held = job.state == jb.HELD
    return JobImport(
        spec,
        state.queue_of(job).record.name,
        job.state,
        job.tier,
        job.created_ms,
        job.max_attempts,
        job.attempt,
        job.run,
        job.due_ms if job.state in (jb.SCHEDULED, jb.RETRYING) else 0,
        job.started_ms,
        job.finished_ms if job.state in jb.SETTLED else 0,
        job.worker,
        job.host,
        documents.checkpoint(state, job),
        documents.result(state, job),
        documents.progress(state, job),
        documents.usage(state, job),
        documents.errors(state, job),
        rare.errors,
        waiting_for,
        _lock_until_ms(state, job, spec),
        rare.expire_ms,
        rare.failed_ms,
        rare.cancel_ms,
        rare.hold_until_ms if is_held else 0,
        rare.hold_action,
        rare.hold_reason,
        rare.dead_reason,
        rare.decided_by,
        rare.decided_note,
        rare.extra_attempts,
        bool(job.flags & jb.FLAG_COUNTED),
        has_failed_parent,
    )


def _parents(state: State, job: Job, spec: Spec) -> tuple[tuple[bytes, ...], bool]:
    """Dependencies that have not settled, and whether one is being removed with its queue."""
    if job.rare is None or not job.rare.waiting:
        return (), False
    waiting_for: list[bytes] = []
    has_failed = False
    for parent_id in dict.fromkeys(spec.depends_on):
        if state.get(space.dependant_prefix(job.ns, parent_id) + job.id) is None:
            continue
        raw = state.get(space.job_key(job.ns, parent_id))
        parent = codec.decode_job(raw) if raw is not None else None
        if parent is None or is_doomed(state.queues[parent.queue_id], parent):
            has_failed = True
        else:
            waiting_for.append(parent_id)
    return tuple(waiting_for), has_failed


def _lock_until_ms(state: State, job: Job, spec: Spec) -> int:
    if not job.flags & jb.FLAG_UNIQUE or spec.unique is None:
        return 0
    raw = state.get(space.unique_key(job.ns, job.queue_id, spec.unique.key))
    return codec.decode_unique(raw).expires_ms if raw is not None else 0


def batches(state: State, ns: int, after: bytes, limit: int) -> list[Batch]:
    """Batches whose id follows."""
    prefix = space.BATCH + pack_u16(ns)
    start = prefix + after + b"\x00" if after else prefix
    return [codec.decode_batch(raw) for _, raw in state.scan(start, successor(prefix), limit)]


def batch_record(batch: Batch, members: list[bytes]) -> BatchImport:
    """A batch with those of its members that have not ended."""
    return BatchImport(
        batch.id,
        batch.total,
        batch.succeeded,
        batch.failed,
        batch.cancelled,
        members,
        batch.callback_queue,
        batch.callback_payload,
        batch.callback_id,
        batch.created_ms,
        batch.finished_ms,
    )
