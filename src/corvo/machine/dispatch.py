"""Dispatch: which job a worker gets next.

Gates in order: paused, queue concurrency, the lane's gates (key concurrency, key rate, named
limits), queue rate. A gated queue or lane is skipped, never allowed to block the worker's other
queues. Across the listed queues tiers are compared first; among equal tiers the rotation decides.

    claimable(queue) ─ O(1) upper bound, for parking; only `fetch_jobs` decides
"""

from typing import NamedTuple

from corvo.keys import space
from corvo.keys.order import pack_u16, pack_u64
from corvo.machine import buckets, documents, gates, lanes, settle, unique
from corvo.machine.places import is_expired
from corvo.machine.state import Queue, State
from corvo.model import event as ev
from corvo.model import job as jb
from corvo.model import limits
from corvo.model.command import FetchJobs
from corvo.model.event import Event
from corvo.model.job import Job, Spec
from corvo.model.outcome import Claim, Fetched
from corvo.model.queue import TOTAL_STARTED, Lane


class Head(NamedTuple):
    """The job a queue would hand out now."""

    queue: Queue
    job: Job
    spec: Spec
    lane: Lane | None  # None in a queue without lanes


def fetch_jobs(state: State, command: FetchJobs) -> Fetched:
    """Claim up to `count` jobs of the named queues."""
    names = state.names
    claims: list[Claim] = []
    state.has_more = False
    if len(command.queues) == 1:
        queue = names.get((command.ns, command.queues[0]))
        while queue is not None and len(claims) < command.count:
            head = first_of(state, queue)
            if head is None:
                break
            claims.append(claim(state, head, command))
        return Fetched(claims, state.has_more)
    queues = [q for name in command.queues if (q := names.get((command.ns, name))) is not None]
    rotation = command.rotation
    while len(claims) < command.count:
        head = _best(state, queues, rotation)
        rotation += 1
        if head is None:
            break
        claims.append(claim(state, head, command))
    return Fetched(claims, state.has_more)


def _best(state: State, queues: list[Queue], rotation: int) -> Head | None:
    """Pick the smallest tier over the queues, the first in rotation among equals."""
    while True:
        seen = len(state.events)
        best = _compare(state, queues, rotation)
        # Safety: looking at a queue ends its expired jobs, and what follows from that (the handler
        # of a chain, the callback of a batch) may change a queue looked at before. A head counts
        # only when nothing has happened since.
        if len(state.events) == seen or best is None:
            return best
        if state.has_more:
            return first_of(state, best.queue)


def _compare(state: State, queues: list[Queue], rotation: int) -> Head | None:
    best: Head | None = None
    for step in range(len(queues)):
        head = first_of(state, queues[(rotation + step) % len(queues)])
        if head is not None and (best is None or head.job.tier < best.job.tier):
            best = head
            if head.job.tier == 0:
                break
    return best


def first_of(state: State, queue: Queue) -> Head | None:
    """Return the job a queue would hand out now; None when a gate or emptiness says no."""
    record = queue.record
    settings = record.settings
    if record.paused:
        return None
    if settings.max_concurrency and record.counts[jb.ACTIVE] >= settings.max_concurrency:
        return None
    if record.laned:
        return _first_of_lanes(state, queue)
    for _ in range(limits.LANE_MOVES_MAX):
        key = queue.ready.first(state)
        if key is None:
            return None
        job = state.jobs.get(key[-16:]) or state.job(record.ns, key[-16:])
        assert job is not None, "the ready index names a job that does not exist"
        if job.rare is not None and is_expired(state, job):
            _expire(state, queue, job)
            continue
        spec = state.specs.get(job.id) or state.spec(job)
        if settings.rate is not None and not _has_tokens(state, queue, spec.cost):
            return None
        return Head(queue, job, spec, None)
    state.has_more = True
    return None


def _first_of_lanes(state: State, queue: Queue) -> Head | None:
    lanes.wake_due(state, queue)
    for _ in range(limits.LANE_MOVES_MAX):
        lane = lanes.first_lane(state, queue)
        if lane is None:
            return None
        key = queue.lanes.ready_of(lane.number).first(state)
        assert key is not None, "a runnable lane without a ready job"
        job = state.job(queue.record.ns, space.job_of(key))
        assert job is not None, "the ready index names a job that does not exist"
        if is_expired(state, job):
            _expire(state, queue, job)
            continue
        spec = state.spec(job)
        if _park_if_gated(state, queue, lane, spec.cost):
            continue
        if queue.record.settings.rate is not None and not _has_tokens(state, queue, spec.cost):
            return None
        return Head(queue, job, spec, lane)
    state.has_more = True
    return None


def _expire(state: State, queue: Queue, job: Job) -> None:
    state.emit(ev.EXPIRED, job, queue.record.name)
    settle.settle(state, queue, job, jb.DEAD, reason="expired")


def _park_if_gated(state: State, queue: Queue, lane: Lane, cost: int) -> bool:
    for gate in lane.gates:
        bound = gates.bound_of(state, gate)
        until_ms = gates.blocked_until(state, bound, gates.load(state, gate), cost)
        if until_ms is not None:
            lanes.park(state, queue, lane, gate, until_ms)
            return True
    return False


def _has_tokens(state: State, queue: Queue, cost: int) -> bool:
    record = queue.record
    rate = record.settings.rate
    assert rate is not None
    have = buckets.available(rate, record.tokens, record.tokens_ms, state.now_ms)
    return have >= buckets.needed(rate, cost)


def claim(state: State, head: Head, command: FetchJobs) -> Claim:
    """Hand a job to a worker under a lease."""
    queue, job, spec, lane = head
    record = queue.record
    now_ms = state.now_ms
    if lane is not None:
        lanes.claimed(state, queue, lane, job, spec.cost)
        if lane.gates:
            job.flags |= jb.FLAG_GATED
    else:
        queue.ready.pop()
        state.delete_index(job.at)
    rate = record.settings.rate
    if rate is not None:
        have = buckets.available(rate, record.tokens, record.tokens_ms, now_ms)
        record.tokens = have - spec.cost * buckets.TOKEN
        record.tokens_ms = now_ms
    lease_ms = command.lease_ms or record.settings.lease_ms or limits.LEASE_MS_DEFAULT
    job.state = jb.ACTIVE
    job.attempt += 1
    job.token = token = state.position()
    job.ended = jb.END_OPEN
    job.lease_ms = lease_ms
    job.lease_until_ms = until_ms = now_ms + lease_ms
    job.started_ms = now_ms
    job.worker = command.worker
    job.host = command.host
    job.at = key = b"A" + pack_u64(until_ms) + pack_u16(record.ns) + job.id
    state.put_index(key)
    active = state.active
    active.low = min(active.low, key)
    counts = record.counts
    counts[jb.PENDING] -= 1
    counts[jb.ACTIVE] += 1
    record.totals[TOTAL_STARTED] += 1
    state.dirty[job.id] = job
    if not queue.is_dirty:
        state.touch(queue)
    if spec.unique is not None and spec.unique.mode == jb.UNIQUE_UNTIL_START:
        unique.release(state, queue, job)
    state.events.append(
        Event(ev.STARTED, job.id, record.name, job.attempt, {"worker": command.worker}, job.ns)
    )
    checkpoint = job.checkpoint
    if job.flags & jb.FLAG_CHECKPOINT_BLOB:
        checkpoint = documents.checkpoint(state, job)
    return Claim(
        spec,
        record.name,
        job.tier,
        job.attempt,
        job.run,
        job.max_attempts,
        token,
        lease_ms,
        job.created_ms,
        checkpoint,
    )


def claimable(state: State, queue: Queue, now_ms: int) -> tuple[int, int]:
    """Upper bound of jobs a fetch could claim now, and when that may rise (0: unknown)."""
    record = queue.record
    settings = record.settings
    if record.paused or record.deleted:
        return 0, 0
    next_ms = 0
    if record.laned:
        bound = record.runnable
        next_ms = lanes.next_token_ms(state, queue)
        if 0 < next_ms <= now_ms:
            bound += 1
            next_ms = 0
    else:
        bound = record.counts[jb.PENDING] - record.waiting
    if settings.max_concurrency:
        bound = min(bound, max(0, settings.max_concurrency - record.counts[jb.ACTIVE]))
    rate = settings.rate
    if rate is not None and bound:
        have = buckets.available(rate, record.tokens, record.tokens_ms, now_ms)
        if have < buckets.TOKEN:
            bound = 0
            next_ms = buckets.ready_ms(rate, record.tokens, record.tokens_ms, buckets.TOKEN)
        else:
            bound = min(bound, have // buckets.TOKEN)
    return bound, next_ms
