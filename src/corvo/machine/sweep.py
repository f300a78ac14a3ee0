"""Time passed: promote, reclaim, deadlines, purge, trim. Each costs what is due.

Nothing happens in the machine because a clock moved: the scheduler looks whether something is due
(`due_commands`, a cheap read) and submits these as ordinary commands.
"""

from msgspec import Struct

from corvo.keys import codec, space
from corvo.keys.order import successor, unpack_u16, unpack_u32
from corvo.machine import batches, bulk, gates, groups, places, undo, unique
from corvo.machine.operate import release_hold
from corvo.machine.report import lose_lease
from corvo.machine.settle import erase, settle
from corvo.machine.state import Queue, State, is_doomed
from corvo.machine.window import Ordered
from corvo.model import event as ev
from corvo.model import job as jb
from corvo.model import limits
from corvo.model.command import (
    Command,
    FireDeadlines,
    PromoteJobs,
    PurgeSettled,
    ReclaimLeases,
    StepOperations,
    TrimEvents,
)
from corvo.model.outcome import Swept


class SweepPolicy(Struct, frozen=True):
    """Retention in force on this server; it travels inside the commands."""

    retention_ms: int = limits.RETENTION_MS_DEFAULT
    events_keep_ms: int = limits.EVENTS_MS_DEFAULT
    events_keep_count: int = limits.EVENTS_COUNT_DEFAULT


def promote_jobs(state: State, command: PromoteJobs) -> Swept:
    """Scheduled and retrying jobs that are due become pending."""
    found = state.due.first(state, command.limit)
    count = 0
    for key, _ in found:
        if space.due_of(key) > state.now_ms:
            return Swept(count)
        count += 1
        job = state.job(unpack_u16(key, 9)[0], space.job_of(key))
        assert job is not None, "the due index names a job that does not exist"
        queue = state.queue_of(job)
        if is_doomed(queue, job):
            _erase_doomed(state, queue, job)
            continue
        if places.is_expired(state, job):
            state.emit(ev.EXPIRED, job, queue.record.name)
            settle(state, queue, job, jb.DEAD, reason="expired")
            continue
        places.leave(state, queue, job)
        places.enter_pending(state, queue, job)
        state.emit(ev.PROMOTED, job, queue.record.name)
    return Swept(count, more=len(found) == command.limit)


def reclaim_leases(state: State, command: ReclaimLeases) -> Swept:
    """Jobs whose lease ran out come back, counted as a failed attempt."""
    found = state.active.first(state, command.limit)
    count = 0
    for key, _ in found:
        if space.due_of(key) > state.now_ms:
            return Swept(count)
        count += 1
        job = state.job(unpack_u16(key, 9)[0], space.job_of(key))
        assert job is not None, "the active index names a job that does not exist"
        queue = state.queue_of(job)
        if job.lease_until_ms > state.now_ms:
            _rekey(state, job)
        elif is_doomed(queue, job):
            _erase_doomed(state, queue, job)
        else:
            lose_lease(state, queue, job)
    return Swept(count, more=len(found) == command.limit)


def _erase_doomed(state: State, queue: Queue, job: jb.Job) -> None:
    """A sweep met a job of a cleared or deleted queue before the operation did."""
    undo.bury_cleared(state, job)
    state.emit(ev.DELETED, job, queue.record.name)
    erase(state, queue, job, is_doomed=True)


def _rekey(state: State, job: jb.Job) -> None:
    """Heartbeats extended the lease: the index entry catches up now."""
    state.delete_index(job.at)
    job.at = space.active_key(job.lease_until_ms, job.ns, job.id)
    state.put_index(job.at)
    state.active.added(job.at)
    state.dirty[job.id] = job


def fire_deadlines(state: State, command: FireDeadlines) -> Swept:
    """Expiries, hold time-outs, unique windows, idempotency keys, idle gates, batches."""
    found = state.deadlines.first(state, command.limit)
    count = 0
    for key, _ in found:
        if space.due_of(key) > state.now_ms:
            return Swept(count)
        count += 1
        state.writes[key] = None
        _fire(state, key[9], unpack_u16(key, 10)[0], key[12:])
    return Swept(count, more=len(found) == command.limit)


def _fire(state: State, kind: int, ns: int, rest: bytes) -> None:
    if kind in (space.DEADLINE_EXPIRE, space.DEADLINE_HOLD):
        job = state.job(ns, rest)
        if job is not None and job.state not in jb.SETTLED:
            _fire_job(state, kind, job)
    elif kind == space.DEADLINE_UNIQUE:
        queue = state.queues.get(unpack_u32(rest)[0])
        if queue is not None:
            unique.expire_window(state, queue, rest[4:].decode())
    elif kind == space.DEADLINE_IDEMPOTENCY:
        key = space.IDEMPOTENCY + ns.to_bytes(2, "big") + rest
        raw = state.get(key)
        if raw is not None and codec.decode_remembered(raw).expires_ms <= state.now_ms:
            state.writes[key] = None
    elif kind == space.DEADLINE_GATE:
        gates.cleanup(state, ns.to_bytes(2, "big") + rest)
    elif kind == space.DEADLINE_BATCH:
        batches.purge(state, ns, rest)
    elif kind == space.DEADLINE_BULK:
        bulk.expire(state, ns, rest)
    else:
        assert kind == space.DEADLINE_GROUP, kind
        queue = state.queues.get(unpack_u32(rest)[0])
        if queue is not None and queue.record.space == unpack_u32(rest, 4)[0]:
            groups.forget_idle(state, queue, rest[8:].decode())


def _fire_job(state: State, kind: int, job: jb.Job) -> None:
    queue = state.queue_of(job)
    found = job.rare
    if found is None or is_doomed(queue, job):
        return
    name = queue.record.name
    if kind == space.DEADLINE_EXPIRE:
        # An active job keeps its lease and may complete; any other return ends it as expired.
        if job.state != jb.ACTIVE and 0 < found.expire_ms <= state.now_ms:
            state.emit(ev.EXPIRED, job, name)
            settle(state, queue, job, jb.DEAD, reason="expired")
        return
    if job.state != jb.HELD or not 0 < found.hold_until_ms <= state.now_ms:
        return
    action, found.hold_until_ms = found.hold_action, 0
    state.dirty[job.id] = job
    if action == jb.HOLD_APPROVE:
        release_hold(state, queue, job, "", "timeout")
    elif action == jb.HOLD_CANCEL:
        settle(state, queue, job, jb.CANCELLED, reason="hold_timeout")


def purge_settled(state: State, command: PurgeSettled) -> Swept:
    """Remove settled jobs past the retention of their queue, by age and by count."""
    left = command.limit
    for queue in list(state.queues.values()):
        while left > 0 and _is_overdue(state, queue, command.retention_ms):
            left -= max(1, _purge_block(state, queue, command.retention_ms, left))
        if left <= 0:
            return Swept(command.limit, more=True)
    return Swept(command.limit - left)


def _keeps(queue: Queue, retention_ms: int) -> tuple[int, int | None]:
    """Age and count a queue keeps settled jobs for."""
    settings = queue.record.settings
    age_ms = retention_ms if settings.retention_ms is None else settings.retention_ms
    return age_ms, settings.retention_count


def _excess(queue: Queue, keep_count: int | None) -> int:
    settled = sum(queue.record.counts[s] for s in jb.SETTLED)
    return max(0, settled - keep_count) if keep_count is not None else 0


def _is_overdue(state: State, queue: Queue, retention_ms: int) -> bool:
    if queue.record.deleted or not any(queue.record.counts[s] for s in jb.SETTLED):
        return False
    age_ms, keep_count = _keeps(queue, retention_ms)
    if _excess(queue, keep_count):
        return True
    if not queue.oldest_settled_ms:
        found = queue.settled_index.first(state, 1)
        if not found:
            return bool(queue.settled) and age_ms <= 0
        queue.oldest_settled_ms = codec.decode_settled(found[0][1]).at_ms
    return queue.oldest_settled_ms + age_ms <= state.now_ms


def _purge_block(state: State, queue: Queue, retention_ms: int, limit: int) -> int:
    """Purge from the oldest block; returns how many ids were looked at."""
    found = queue.settled_index.first(state, 1)
    queue.oldest_settled_ms = 0
    keeps = _keeps(queue, retention_ms)
    if not found:
        # Only what this very entry settled is left; its block is written when the entry is.
        block = codec.SettledBlock(state.now_ms, queue.settled)
        seen = _purge_ids(state, queue, block, state.index, keeps, limit)
        queue.settled = queue.settled[seen:]
        return seen
    key, raw = found[0]
    block = codec.decode_settled(raw)
    index = int.from_bytes(key[-8:], "big")
    seen = _purge_ids(state, queue, block, index, keeps, limit)
    block.ids = block.ids[seen:]
    state.writes[key] = codec.encode(block) if block.ids else None
    return seen


def _purge_ids(
    state: State,
    queue: Queue,
    block: codec.SettledBlock,
    index: int,
    keeps: tuple[int, int | None],
    limit: int,
) -> int:
    """Purge jobs of one block, oldest first, as far as retention says."""
    age_ms, keep_count = keeps
    is_old = block.at_ms + age_ms <= state.now_ms
    seen = 0
    for job_id in block.ids:
        if seen >= limit or not (is_old or _excess(queue, keep_count)):
            break
        seen += 1
        job = state.job(queue.record.ns, job_id)
        # A job retried or moved since is listed elsewhere; this mention is void.
        if job is not None and job.settled_index == index and job.queue_id == queue.record.id:
            state.emit(ev.PURGED, job, queue.record.name)
            erase(state, queue, job)
    return seen


def trim_events(state: State, command: TrimEvents) -> Swept:
    """Forget events past their retention, by age and by count."""
    floor, floor_seq = state.event_floor, state.event_floor_seq
    oldest_ms = state.now_ms - command.keep_ms
    oldest_seq = state.seq - command.keep_count + 1
    start = space.event_key(floor)
    found = state.scan(start, space.event_key(state.index), 1_000)
    for key, raw in found:
        block = codec.decode_events(raw)
        if block.at_ms >= oldest_ms and block.first_seq + len(block.events) > oldest_seq:
            break
        floor = int.from_bytes(key[1:], "big") + 1
        floor_seq = block.first_seq + len(block.events)
    count = floor_seq - state.event_floor_seq
    if floor != state.event_floor:
        state.clear_range(start, space.event_key(floor))
        state.event_floor, state.event_floor_seq = floor, floor_seq
    return Swept(count, more=len(found) == 1_000 and count > 0)


def due_commands(state: State, now_ms: int) -> list[Command]:
    """Sweeps that would find work now; empty when nothing is due."""
    commands: list[Command] = []
    if _head_ms(state, state.due, now_ms) <= now_ms:
        commands.append(PromoteJobs())
    if _head_ms(state, state.active, now_ms) <= now_ms:
        commands.append(ReclaimLeases())
    if _head_ms(state, state.deadlines, now_ms) <= now_ms:
        commands.append(FireDeadlines())
    if state.operations.first(state, 1):
        commands.append(StepOperations())
    return commands


def due_upkeep(state: State, now_ms: int, policy: SweepPolicy) -> list[Command]:
    """Retention sweeps that would find work now; looked at less often."""
    commands: list[Command] = []
    before, state.now_ms = state.now_ms, max(state.now_ms, now_ms)
    try:
        if any(_is_overdue(state, queue, policy.retention_ms) for queue in state.queues.values()):
            commands.append(PurgeSettled(policy.retention_ms))
        if _has_old_events(state, policy):
            commands.append(TrimEvents(policy.events_keep_ms, policy.events_keep_count))
    finally:
        state.now_ms = before
    return commands


def _has_old_events(state: State, policy: SweepPolicy) -> bool:
    if state.seq - state.event_floor_seq + 1 > policy.events_keep_count:
        return True
    start = space.event_key(state.event_floor)
    found = state.scan(start, successor(space.EVENT), 1)
    if not found or found[0][0] == space.event_key(state.index):
        return False
    return codec.decode_events(found[0][1]).at_ms < state.now_ms - policy.events_keep_ms


_NEVER = 1 << 62


def _head_ms(state: State, ordered: Ordered, now_ms: int) -> int:
    """Time of the first entry of a time-ordered index; far future when it is empty."""
    low = ordered.low
    if low == ordered.until:
        return _NEVER
    if len(low) > 9 and space.due_of(low) > now_ms:
        # Cost: the mark is a lower bound; while it lies ahead nobody needs to look further.
        return space.due_of(low)
    found = ordered.first(state, 1)
    return space.due_of(found[0][0]) if found else _NEVER


def next_due_ms(state: State, now_ms: int) -> int:
    """Earliest instant at which promote, reclaim or deadlines may find work; 0: none known."""
    ordered = (state.due, state.active, state.deadlines)
    first = min(_head_ms(state, each, now_ms) for each in ordered)
    return first if first < _NEVER else 0
