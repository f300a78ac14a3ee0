"""Reads of the machine's state, joined for one answer. Called between entries; changes nothing."""

from msgspec.structs import replace

from corvo.keys import codec, space
from corvo.keys.order import pack_u16, successor
from corvo.machine import batches, documents, gates
from corvo.machine.enqueue import find
from corvo.machine.state import Queue, State
from corvo.model import job as jb
from corvo.model.event import EventBlock
from corvo.model.job import Job
from corvo.model.queue import Gate, Limit
from corvo.model.view import BatchView, JobView, QueueView


def read_job(state: State, ns: int, job_id: bytes) -> JobView | None:
    """Return a job with everything that is kept about it."""
    job = find(state, ns, job_id)
    if job is None:
        return None
    spec = state.spec(job)
    return JobView(
        spec,
        _copy(job),
        state.queue_of(job).record.name,
        documents.errors(state, job),
        documents.progress(state, job),
        documents.checkpoint(state, job),
        documents.result(state, job),
        documents.usage(state, job),
        blocked_by(state, job),
    )


def _copy(job: Job) -> Job:
    return replace(job, rare=replace(job.rare) if job.rare is not None else None)


def blocked_by(state: State, job: Job) -> list[bytes]:
    """Return the dependencies that have not settled yet."""
    if job.rare is None or not job.rare.waiting:
        return []
    return [
        parent
        for parent in dict.fromkeys(state.spec(job).depends_on)
        if state.get(space.dependant_prefix(job.ns, parent) + job.id) is not None
    ]


def read_queue(state: State, ns: int, name: str) -> QueueView | None:
    """Return a queue with its counters."""
    queue = state.names.get((ns, name))
    return _view(state, queue) if queue is not None else None


def read_queue_names(state: State, ns: int) -> list[str]:
    """Return the names of all queues of a namespace, in order."""
    return sorted(name for (namespace, name) in state.names if namespace == ns)


def read_state_counts(state: State, ns: int) -> list[int]:
    """Return the jobs of a namespace by state. Cost: a look at every queue."""
    counts = [
        queue.record.counts for (namespace, _), queue in state.names.items() if namespace == ns
    ]
    return [sum(column) for column in zip([0] * len(jb.STATE_NAMES), *counts, strict=True)]


def read_queues(state: State, ns: int) -> list[QueueView]:
    """Return all queues of a namespace, by name."""
    found = sorted(name for (namespace, name) in state.names if namespace == ns)
    return [_view(state, state.names[ns, name]) for name in found]


def _view(state: State, queue: Queue) -> QueueView:
    record = queue.record
    ready = record.counts[jb.PENDING] - record.waiting
    stopped = ready - record.runnable if record.laned else 0
    copy = replace(record, counts=list(record.counts), totals=list(record.totals))
    return QueueView(copy, record.waiting + stopped, _oldest_pending_ms(state, queue))


def _oldest_pending_ms(state: State, queue: Queue) -> int:
    """Creation time of the oldest ready job at the head of any tier (of any lane looked at)."""
    record = queue.record
    if not record.counts[jb.PENDING] - record.waiting:
        return 0
    heads: list[bytes] = []
    if record.laned:
        # Cost: lanes may be many; the first of the space and the next to run stand for them.
        prefix = space.ready_space_prefix(record.ns, record.space)
        heads += [key for key, _ in state.scan(prefix, successor(prefix), 1)]
    else:
        for tier in range(3):
            start = queue.prefix + (tier << space.NO_TIER_SHIFT).to_bytes(8, "big")
            low = max(start, queue.ready.items[queue.ready.head]) if _has_head(queue) else start
            until = queue.prefix + (tier + 1 << space.NO_TIER_SHIFT).to_bytes(8, "big")
            heads += [key for key, _ in state.scan(low, until, 1)]
    jobs = [state.job(record.ns, space.job_of(key)) for key in heads]
    return min((job.created_ms for job in jobs if job is not None), default=0)


def _has_head(queue: Queue) -> bool:
    return queue.ready.head < len(queue.ready.items)


def read_limits(state: State, ns: int) -> list[tuple[Limit, Gate]]:
    """Return all named limits with how much of them is used."""
    prefix = space.LIMIT + pack_u16(ns)
    found = state.scan(prefix, successor(prefix), 10_000)
    limits = [codec.decode_limit(raw) for _, raw in found]
    return [(limit, _gate(state, ns, limit.name)) for limit in limits]


def read_limit(state: State, ns: int, name: str) -> tuple[Limit, Gate] | None:
    """Return a named limit with how much of it is used."""
    limit = gates.named(state, ns, name)
    if limit is None:
        return None
    return limit, _gate(state, ns, name)


def _gate(state: State, ns: int, name: str) -> Gate:
    found = gates.load(state, space.limit_gate(ns, name))
    return replace(found, timers=dict(found.timers))


def read_batch(state: State, ns: int, batch_id: bytes) -> BatchView | None:
    """Return a batch."""
    batch = batches.load(state, ns, batch_id)
    return BatchView(batch) if batch is not None else None


def read_events(state: State, after_index: int, limit: int) -> list[tuple[int, EventBlock]]:
    """Return event blocks after an index, oldest first; what retention removed is not there."""
    start = max(after_index + 1, state.event_floor)
    found = state.scan(space.event_key(start), successor(space.EVENT), limit)
    return [(int.from_bytes(key[1:], "big"), codec.decode_events(raw)) for key, raw in found]
