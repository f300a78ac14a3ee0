"""Batches: counts of members, and one callback when the last of them has ended, whatever way."""

from msgspec import Raw
from msgspec.json import encode as encode_json

from corvo.keys import codec, space
from corvo.machine import merging
from corvo.machine.admit import admit
from corvo.machine.state import State
from corvo.model import event as ev
from corvo.model import ids, limits
from corvo.model import job as jb
from corvo.model.event import Event
from corvo.model.job import Batch, BatchSpec, Job, Spec


def load(state: State, ns: int, batch_id: bytes) -> Batch | None:
    """Read a batch."""
    raw = state.get(space.batch_key(ns, batch_id))
    return codec.decode_batch(raw) if raw is not None else None


def _save(state: State, batch: Batch) -> None:
    state.writes[space.batch_key(batch.ns, batch.id)] = codec.encode(batch)


def create(state: State, ns: int, spec: BatchSpec, members: int) -> None:
    """Open a batch for the jobs of a call; `seal` follows once they are accepted."""
    batch = Batch(
        spec.id,
        ns,
        members,
        members + 1,  # the call itself counts until it is sealed
        callback_queue=spec.callback_queue,
        callback_payload=spec.callback_payload,
        created_ms=state.now_ms,
    )
    _save(state, batch)


def seal(state: State, ns: int, batch_id: bytes, duplicates: int) -> None:
    """All jobs of the call are accepted: duplicates are not members; none left fires at once.

    Safety: until here `pending` counts every job of the call and the call itself, so that members
    which end while it is still being accepted (a dependency failed already) cannot fire the
    callback, not even when they are all of them.
    """
    batch = load(state, ns, batch_id)
    assert batch is not None
    batch.total -= duplicates
    batch.pending -= duplicates + 1
    data = {"batch_id": ids.render_id(ids.BATCH, batch.id), "total": batch.total}
    state.events.append(Event(ev.BATCH_CREATED, b"", batch.callback_queue, 0, data, ns))
    if not batch.pending:
        _finish(state, batch)
    _save(state, batch)


def member_ended(state: State, job: Job, batch_id: bytes, ended: int) -> None:
    """Count the ending of a member; the last one fires the callback."""
    job.flags = job.flags & ~jb.FLAG_MEMBER | jb.FLAG_COUNTED
    batch = load(state, job.ns, batch_id)
    assert batch is not None
    assert batch.pending > 0, "a member of a batch that is not open"
    batch.pending -= 1
    count(batch, ended)
    if not batch.pending:
        _finish(state, batch)
    _save(state, batch)


def note_of(state: State, job: Job) -> dict[str, object] | None:
    """Name the batch a job is counted in, for the event that says the job is gone.

    Whoever follows the events can read a job's batch from its record, but not of one that is gone.
    """
    if not job.flags & (jb.FLAG_MEMBER | jb.FLAG_COUNTED):
        return None
    batch_id = state.spec(job).batch_id
    return {"batch_id": ids.render_id(ids.BATCH, batch_id)} if batch_id is not None else None


def count(batch: Batch, ended: int, by: int = 1) -> None:
    """Count an ending, or take one back."""
    if ended == jb.COMPLETED:
        batch.succeeded += by
    elif ended == jb.DEAD:
        batch.failed += by
    else:
        batch.cancelled += by


def rejoin(state: State, job: Job, batch_id: bytes) -> None:
    """A counted member runs again: it rejoins while the batch is open, else it runs detached."""
    if not job.flags & jb.FLAG_COUNTED:
        return
    job.flags &= ~jb.FLAG_COUNTED
    batch = load(state, job.ns, batch_id)
    if batch is None or batch.finished_ms:
        return
    batch.pending += 1
    count(batch, job.state, -1)
    job.flags |= jb.FLAG_MEMBER
    _save(state, batch)


def readmit(state: State, ns: int, batch_id: bytes) -> None:
    """A member that was cancelled or deleted is brought back, and the batch is still open."""
    batch = load(state, ns, batch_id)
    assert batch is not None
    assert batch.pending > 0, "a member comes back to a batch that is not open"
    batch.pending += 1
    count(batch, jb.CANCELLED, -1)
    _save(state, batch)


def restore(state: State, batch: Batch) -> None:
    """Keep an imported batch; when all its members ended meanwhile, it ends here."""
    if not batch.pending and not batch.finished_ms:
        _finish(state, batch)
    _save(state, batch)


def _finish(state: State, batch: Batch) -> None:
    batch.finished_ms = state.now_ms
    purge_ms = state.now_ms + limits.RETENTION_MS_DEFAULT
    state.add_deadline(purge_ms, space.DEADLINE_BATCH, batch.ns, batch.id)
    counts = {
        "total": batch.total,
        "succeeded": batch.succeeded,
        "failed": batch.failed,
        "cancelled": batch.cancelled,
    }
    name = ids.render_id(ids.BATCH, batch.id)
    data: dict[str, object] = {"batch_id": name, **counts}
    if batch.callback_queue:
        batch.callback_id = ids.derive_id(batch.id, 0, "callback", 0)
        summary = Raw(encode_json({"id": name, **counts}))
        payload = merging.merge(batch.callback_payload, {"batch": summary})
        queue = state.open_queue(batch.ns, batch.callback_queue)
        admit(state, queue, Spec(batch.callback_id, batch.ns, batch.callback_queue, payload))
        data["callback_job_id"] = ids.render_id(ids.JOB, batch.callback_id)
    state.events.append(Event(ev.BATCH_COMPLETED, b"", batch.callback_queue, 0, data, batch.ns))


def purge(state: State, ns: int, batch_id: bytes) -> None:
    """The retention of a finished batch is over."""
    if load(state, ns, batch_id) is not None:
        state.writes[space.batch_key(ns, batch_id)] = None
        data = {"batch_id": ids.render_id(ids.BATCH, batch_id)}
        state.events.append(Event(ev.BATCH_PURGED, b"", "", 0, data, ns))
