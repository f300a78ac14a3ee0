"""Unique locks: one live job per (queue, key).

A lock belongs to its owner and is released by every settlement of that owner, or at its start in
mode `until_start`. In mode `window` a completed owner keeps deduplicating to the end of the period
and its result is returned. Mode `replace` swaps the payload of an owner that has not started.
"""

from msgspec.structs import replace

from corvo.keys import codec, space
from corvo.keys.order import pack_u32
from corvo.machine.state import Queue, State, is_doomed
from corvo.model import event as ev
from corvo.model import job as jb
from corvo.model.job import Job, Spec, UniqueLock
from corvo.model.outcome import Duplicate


def _load(state: State, queue: Queue, key: str) -> UniqueLock | None:
    raw = state.get(space.unique_key(queue.record.ns, queue.record.id, key))
    return codec.decode_unique(raw) if raw is not None else None


def holder(state: State, queue: Queue, key: str) -> tuple[UniqueLock, Job] | None:
    """Return the lock on a key and the job that owns it, if it is held."""
    lock = _load(state, queue, key)
    if lock is None:
        return None
    owner = state.job(queue.record.ns, lock.owner)
    if owner is None or is_doomed(state.queue_of(owner), owner):
        return None
    if owner.state in jb.SETTLED and lock.expires_ms <= state.now_ms:
        return None
    return lock, owner


def duplicate_of(state: State, queue: Queue, spec: Spec) -> Duplicate | None:
    """Answer an enqueue whose key is taken; None when it is free."""
    assert spec.unique is not None
    found = holder(state, queue, spec.unique.key)
    if found is None:
        return None
    lock, owner = found
    if (
        spec.unique.mode == jb.UNIQUE_REPLACE
        and owner.state in (jb.PENDING, jb.SCHEDULED, jb.HELD)
        and owner.attempt == 0
        and owner.run == 0
    ):
        _swap_payload(state, queue, owner, spec)
        return Duplicate(owner.id, owner.state, None, is_replaced=True)
    result = None
    if lock.mode == jb.UNIQUE_WINDOW and owner.state == jb.COMPLETED:
        result = owner.result
        if owner.flags & jb.FLAG_RESULT_BLOB:
            result = state.get(space.blob_key(owner.ns, owner.id, space.BLOB_RESULT))
    return Duplicate(owner.id, owner.state, result)


def _swap_payload(state: State, queue: Queue, owner: Job, spec: Spec) -> None:
    swapped = replace(state.spec(owner), payload=spec.payload)
    state.writes[space.spec_key(owner.ns, owner.id)] = codec.encode(swapped)
    state.specs_old.pop(owner.id, None)
    state.remember_spec(swapped)
    state.emit(ev.REPLACED, owner, queue.record.name)


def acquire(state: State, queue: Queue, job: Job, unique: jb.Unique) -> None:
    """Make a job the owner of a key that is free."""
    lock = UniqueLock(job.id, unique.mode, state.now_ms + unique.period_ms)
    _write(state, queue, job, unique.key, lock)


def restore(state: State, queue: Queue, job: Job, lock: UniqueLock, *, is_settled: bool) -> None:
    """Give an imported job the lock it owned, with the end it had."""
    assert job.queue_id == queue.record.id
    unique = state.spec(job).unique
    assert unique is not None
    _write(state, queue, job, unique.key, lock)
    if is_settled:
        rest = pack_u32(queue.record.id) + unique.key.encode()
        state.add_deadline(lock.expires_ms, space.DEADLINE_UNIQUE, job.ns, rest)


def _write(state: State, queue: Queue, job: Job, key: str, lock: UniqueLock) -> None:
    record = queue.record
    old = _load(state, queue, key)
    if old is not None:
        _evict(state, queue, key, old)
    state.writes[space.unique_key(record.ns, record.id, key)] = codec.encode(lock)
    record.locks += 1
    state.touch(queue)
    job.flags |= jb.FLAG_UNIQUE
    state.dirty[job.id] = job


def lock_of(state: State, queue: Queue, job: Job) -> UniqueLock | None:
    """Return the lock a job owns."""
    if not job.flags & jb.FLAG_UNIQUE:
        return None
    unique = state.spec(job).unique
    assert unique is not None
    lock = _load(state, queue, unique.key)
    return lock if lock is not None and lock.owner == job.id else None


def regain(
    state: State, queue: Queue, job: Job, unique: jb.Unique, lock: UniqueLock | None
) -> None:
    """Make a job that is brought back the owner of its key again; the key is free."""
    if lock is None:
        acquire(state, queue, job, unique)
        return
    _write(state, queue, job, unique.key, lock)
    if job.state in jb.SETTLED:
        rest = pack_u32(queue.record.id) + unique.key.encode()
        state.add_deadline(lock.expires_ms, space.DEADLINE_UNIQUE, job.ns, rest)


def _evict(state: State, queue: Queue, key: str, lock: UniqueLock) -> None:
    """Take a lock from an owner whose window ran out, or whose queue was cleared."""
    record = queue.record
    rest = pack_u32(record.id) + key.encode()
    state.drop_deadline(lock.expires_ms, space.DEADLINE_UNIQUE, record.ns, rest)
    record.locks -= 1
    owner = state.job(record.ns, lock.owner)
    if owner is not None:
        owner.flags &= ~jb.FLAG_UNIQUE
        state.dirty[owner.id] = owner


def release(state: State, queue: Queue, job: Job, *, completed: bool = False) -> None:
    """The owner settled (or started, in mode until_start): free the key, or keep the window."""
    if not job.flags & jb.FLAG_UNIQUE:
        return
    unique = state.spec(job).unique
    assert unique is not None
    lock = _load(state, queue, unique.key)
    assert lock is not None
    assert lock.owner == job.id, "a lock somebody else owns"
    if completed and lock.mode == jb.UNIQUE_WINDOW and lock.expires_ms > state.now_ms:
        rest = pack_u32(queue.record.id) + unique.key.encode()
        state.add_deadline(lock.expires_ms, space.DEADLINE_UNIQUE, job.ns, rest)
        return
    _forget(state, queue, job, unique.key)


def _forget(state: State, queue: Queue, job: Job, key: str) -> None:
    record = queue.record
    state.writes[space.unique_key(record.ns, record.id, key)] = None
    record.locks -= 1
    state.touch(queue)
    job.flags &= ~jb.FLAG_UNIQUE
    state.dirty[job.id] = job


def abandon(state: State, queue: Queue, job: Job) -> None:
    """The owner is being removed altogether: the key is free whatever the mode."""
    if not job.flags & jb.FLAG_UNIQUE:
        return
    unique = state.spec(job).unique
    assert unique is not None
    lock = _load(state, queue, unique.key)
    if lock is not None and lock.owner == job.id:
        if job.state in jb.SETTLED:
            rest = pack_u32(queue.record.id) + unique.key.encode()
            state.drop_deadline(lock.expires_ms, space.DEADLINE_UNIQUE, job.ns, rest)
        _forget(state, queue, job, unique.key)


def expire_window(state: State, queue: Queue, key: str) -> None:
    """The window of a finished owner is over: free the key."""
    lock = _load(state, queue, key)
    if lock is None or lock.expires_ms > state.now_ms:
        return
    owner = state.job(queue.record.ns, lock.owner)
    if owner is not None and owner.state in jb.SETTLED:
        _forget(state, queue, owner, key)


def transfer(state: State, source: Queue, target: Queue, job: Job, unique: jb.Unique) -> None:
    """The owner moves to another queue: its lock moves along, with its period unchanged."""
    lock = _load(state, source, unique.key)
    assert lock is not None
    assert lock.owner == job.id, "a lock somebody else owns"
    is_window = job.state in jb.SETTLED
    if is_window:
        rest = pack_u32(source.record.id) + unique.key.encode()
        state.drop_deadline(lock.expires_ms, space.DEADLINE_UNIQUE, job.ns, rest)
    _forget(state, source, job, unique.key)
    _write(state, target, job, unique.key, lock)
    if is_window:
        rest = pack_u32(target.record.id) + unique.key.encode()
        state.add_deadline(lock.expires_ms, space.DEADLINE_UNIQUE, job.ns, rest)
