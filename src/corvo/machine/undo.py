"""Tombstones: how a job was before a bulk action, and bringing it back.

    observe ─▶ the action ─▶ bury          while the operation runs
    restore                                while it is undone, the last tombstone first

A job is brought back as it was unless somebody touched it since, or its ending already set others
in motion: a chain's handler, a batch's callback, a dependant. Those are facts; they are left alone
and so is the job, which is then counted under the reason.

Safety: the last job changed is the first brought back, so that a dependant deleted before its
parent finds the parent there again.
"""

from msgspec.structs import replace

from corvo.keys import codec, space
from corvo.keys.order import successor
from corvo.machine import batches, depends, documents, operate, places, unique
from corvo.machine.enqueue import find
from corvo.machine.read import blocked_by
from corvo.machine.state import Queue, State
from corvo.model import bulk as bk
from corvo.model import event as ev
from corvo.model import job as jb
from corvo.model.bulk import Bulk, Tombstone
from corvo.model.job import Job, Spec

_BLOBS = (
    (jb.FLAG_CHECKPOINT_BLOB, space.BLOB_CHECKPOINT),
    (jb.FLAG_RESULT_BLOB, space.BLOB_RESULT),
    (jb.FLAG_PROGRESS_BLOB, space.BLOB_PROGRESS),
    (jb.FLAG_USAGE_BLOB, space.BLOB_USAGE),
)


def load_bulk(state: State, ns: int, bulk_id: bytes) -> Bulk | None:
    """Read a bulk operation."""
    raw = state.get(space.bulk_key(ns, bulk_id))
    return codec.decode_bulk(raw) if raw is not None else None


def save_bulk(state: State, bulk: Bulk) -> None:
    """Write a bulk operation."""
    bulk.updated_ms = state.now_ms
    state.writes[space.bulk_key(bulk.ns, bulk.id)] = codec.encode(bulk)


def count_reason(counts: dict[str, int], reason: str) -> None:
    """Count one more job under a reason."""
    counts[reason] = counts.get(reason, 0) + 1


def mark_of(job: Job) -> tuple[int, ...]:
    """What differs as soon as anybody touches a job."""
    found = job.rare
    return (
        job.state,
        job.queue_id,
        job.tier,
        job.order,
        job.attempt,
        job.run,
        job.token,
        job.settled_index,
        found.cancel_ms if found is not None else 0,
    )


# --- writing tombstones --------------------------------------------------------------------------


def observe(state: State, job: Job, *, is_removed: bool) -> Tombstone:
    """Take down a job as it is, before an action; with all its documents when it will be gone."""
    # Safety: records are edited in place, and the action is about to edit this one.
    copy = codec.decode_job(codec.encode(job))
    spec = state.spec(job)
    is_live = bool(job.at)
    found = Tombstone(
        copy,
        mark_of(job),
        has_effects=is_live and _will_tell(state, job, spec),
        waits_for=tuple(blocked_by(state, job)),
        lock=unique.lock_of(state, state.queue_of(job), job),
    )
    if not is_removed:
        return found
    raw = state.get(space.spec_key(job.ns, job.id))
    assert raw is not None, "a job without its spec"
    return replace(
        found,
        mark=(),
        spec=raw,
        documents=tuple(
            (kind, state.get(space.blob_key(job.ns, job.id, kind)) or b"")
            for flag, kind in _BLOBS
            if job.flags & flag
        ),
        errors=tuple(
            (number, raw)
            for number in documents.error_numbers(job)
            if (raw := state.get(space.error_key(job.ns, job.id, number))) is not None
        ),
    )


def _will_tell(state: State, job: Job, spec: Spec) -> bool:
    """Whether the end of a live job sets others in motion. Its batch is looked at later."""
    chain = spec.chain
    if chain is not None and chain.step >= 0 and chain.on_failure is not None:
        return True
    prefix = space.dependant_prefix(job.ns, job.id)
    return bool(job.flags & jb.FLAG_PARENT and state.scan(prefix, successor(prefix), 1))


def bury(state: State, bulk: Bulk, found: Tombstone, after: Job | None) -> int:
    """Keep what was observed, once the action has succeeded; returns how many bytes that took."""
    if after is not None:
        mark = mark_of(after)
        if mark == found.mark:
            return 0  # nothing changed: there is nothing to take back
        found = replace(found, mark=mark)
    raw = codec.encode(found)
    state.writes[space.tombstone_key(bulk.id, bulk.buried)] = raw
    bulk.buried += 1
    bulk.tombstones += 1
    return len(raw)


def bury_cleared(state: State, job: Job) -> None:
    """A job of a cleared queue is about to be removed: keep it, if the clear can be undone."""
    if job.at[:1] not in (space.READY, space.WAITING, space.DUE):
        return
    raw = state.get(space.cleared_space_key(job.ns, space.space_of(job.at)))
    bulk = load_bulk(state, job.ns, raw) if raw is not None else None
    if bulk is None:
        return
    state.buried_bytes += bury(state, bulk, observe(state, job, is_removed=True), None)
    bulk.processed += 1
    bulk.affected += 1
    save_bulk(state, bulk)


# --- bringing back -------------------------------------------------------------------------------


def restore(state: State, bulk: Bulk, found: Tombstone) -> str:
    """Bring one job back; returns the reason when it stays as it is."""
    if found.mark:
        job = find(state, bulk.ns, found.job.id)
        if job is None:
            return bk.NOT_FOUND
        if mark_of(job) != found.mark:
            return bk.CHANGED
        if bulk.task.action == bk.MOVE:
            return _move_back(state, job, found)
        if bulk.task.action == bk.PRIORITY:
            operate.set_tier(state, state.queue_of(job), job, found.job.tier)
            return ""
        if job.state == jb.ACTIVE:
            return _stop_cancelling(state, job)
    elif state.job(bulk.ns, found.job.id) is not None:
        return bk.CHANGED
    return _revive(state, found)


def _move_back(state: State, job: Job, found: Tombstone) -> str:
    before = found.job
    queue, source = state.queue_of(job), state.queues.get(before.queue_id)
    if source is None or source.record.deleted:
        return bk.QUEUE_DELETED
    if source is queue:
        job.attempt = before.attempt
        state.dirty[job.id] = job
        state.touch(queue)
        operate.set_tier(state, queue, job, before.tier)
        return ""
    spec = state.spec(job)
    if job.flags & jb.FLAG_UNIQUE and spec.unique is not None:
        if unique.holder(state, source, spec.unique.key) is not None:
            return bk.UNIQUE_CONFLICT
        unique.transfer(state, queue, source, job, spec.unique)
    operate.relocate(
        state, queue, source, job, order=before.order, tier=before.tier, attempt=before.attempt
    )
    state.emit(ev.MOVED, job, source.record.name, {"from": queue.record.name})
    return ""


def _stop_cancelling(state: State, job: Job) -> str:
    """The worker has not noticed yet: the request is withdrawn."""
    places.rare(job).cancel_ms = 0
    state.dirty[job.id] = job
    queue = state.queue_of(job)
    state.touch(queue)
    _emit(state, queue, job)
    return ""


def _revive(state: State, found: Tombstone) -> str:
    """Put a cancelled or removed job back into the state it had."""
    job = found.job
    queue = state.queues.get(job.queue_id)
    if queue is None or queue.record.deleted:
        return bk.QUEUE_DELETED
    spec = codec.decode_spec(found.spec) if found.spec else state.spec(job)
    is_live = job.state not in jb.SETTLED
    if is_live:
        refusal = _refusal(state, queue, found, spec)
        if refusal:
            return refusal
    if found.spec:
        _rewrite(state, found, spec)
    else:
        # It was cancelled and is listed as settled; that mention is void from now on.
        queue.record.counts[jb.CANCELLED] -= 1
        state.touch(queue)
    state.jobs[job.id] = job
    if is_live:
        _reconnect(state, queue, found, spec)
    else:
        _resettle(state, queue, found, spec)
    _emit(state, queue, job)
    return ""


def _refusal(state: State, queue: Queue, found: Tombstone, spec: Spec) -> str:
    """Why a job that was live can not live again."""
    job = found.job
    if found.has_effects:
        return bk.EFFECTS_FIRED
    if job.flags & jb.FLAG_MEMBER:
        assert spec.batch_id is not None
        batch = batches.load(state, job.ns, spec.batch_id)
        if batch is None or batch.finished_ms:
            return bk.EFFECTS_FIRED
    if _needs_lock(job, spec) and spec.unique is not None:
        taken = unique.holder(state, queue, spec.unique.key)
        if taken is not None and taken[1].id != job.id:
            return bk.UNIQUE_CONFLICT
    for parent_id in spec.depends_on if not job.attempt and not job.run else ():
        parent = find(state, job.ns, parent_id)
        if parent is None:
            if parent_id in found.waits_for:
                return bk.DEPENDENCY_CHANGED
        elif (
            parent.state in jb.SETTLED
            and parent.state != jb.COMPLETED
            and spec.on_dependency_failure != jb.DEPENDENCY_RUN
        ):
            return bk.DEPENDENCY_CHANGED
    return ""


def _needs_lock(job: Job, spec: Spec) -> bool:
    """Whether a live job must own its key; only an attempt in mode until_start gives it up."""
    if spec.unique is None:
        return False
    is_first = not job.attempt and not job.run
    return bool(job.flags & jb.FLAG_UNIQUE or spec.unique.mode != jb.UNIQUE_UNTIL_START or is_first)


def _rewrite(state: State, found: Tombstone, spec: Spec) -> None:
    """Write everything but the record of a job that was removed."""
    job = found.job
    state.writes[space.spec_key(job.ns, job.id)] = found.spec
    state.remember_spec(spec)
    for kind, value in found.documents:
        state.writes[space.blob_key(job.ns, job.id, kind)] = value
    for number, raw in found.errors:
        state.writes[space.error_key(job.ns, job.id, number)] = raw


def _reconnect(state: State, queue: Queue, found: Tombstone, spec: Spec) -> None:
    """Give a live job back its lock, batch, dependencies, deadlines and place."""
    job = found.job
    job.at = b""
    job.lane = 0
    is_member = bool(job.flags & jb.FLAG_MEMBER)
    job.flags &= ~(jb.FLAG_UNIQUE | jb.FLAG_PARENT | jb.FLAG_GATED | jb.FLAG_DEADLINE)
    if _needs_lock(found.job, spec) or found.lock is not None:
        assert spec.unique is not None
        unique.regain(state, queue, job, spec.unique, found.lock)
    if is_member:
        assert spec.batch_id is not None
        batches.readmit(state, job.ns, spec.batch_id)
    _relink(state, found)
    _rearm(state, job)
    _place(state, queue, job)


def _relink(state: State, found: Tombstone) -> None:
    job = found.job
    waiting = 0
    for parent_id in found.waits_for:
        parent = find(state, job.ns, parent_id)
        if parent is not None and parent.state not in jb.SETTLED:
            depends.link(state, job.ns, parent, job.id)
            waiting += 1
    if job.rare is not None or waiting:
        places.rare(job).waiting = waiting


def _rearm(state: State, job: Job) -> None:
    found = job.rare
    if found is None:
        return
    if found.expire_ms:
        places.arm_expiry(state, job, found.expire_ms)
    if found.hold_until_ms:
        places.arm_hold(state, job, found.hold_until_ms)


def _place(state: State, queue: Queue, job: Job) -> None:
    was = job.state
    if was == jb.HELD:
        places.enter_held(state, queue, job)
    elif was in (jb.SCHEDULED, jb.RETRYING):
        places.enter_due(state, queue, job, was, job.due_ms)
    else:
        if was == jb.ACTIVE:
            # The worker was told that it lost the job: the attempt does not count.
            job.attempt -= 1
            job.ended = jb.END_TAKEN
            places.rare(job).cancel_ms = 0
        places.enter_pending(state, queue, job)


def _resettle(state: State, queue: Queue, found: Tombstone, spec: Spec) -> None:
    """Put a settled job back; its retention starts anew."""
    job = found.job
    job.flags &= ~jb.FLAG_UNIQUE
    lock = found.lock
    if lock is not None and lock.expires_ms > state.now_ms:
        assert spec.unique is not None
        if unique.holder(state, queue, spec.unique.key) is None:
            unique.regain(state, queue, job, spec.unique, lock)
    queue.record.counts[job.state] += 1
    queue.settled.append(job.id)
    job.settled_index = state.index
    state.dirty[job.id] = job
    state.touch(queue)


def _emit(state: State, queue: Queue, job: Job) -> None:
    data: dict[str, object] = {"state": jb.STATE_NAMES[job.state]}
    if job.state in (jb.SCHEDULED, jb.RETRYING):
        data["due_ms"] = job.due_ms
    state.emit(ev.RESTORED, job, queue.record.name, data)
