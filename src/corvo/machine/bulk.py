"""Bulk operations: one action on many jobs, in bounded steps, each job exactly once.

All jobs are written down in chunks before the first one is changed. A step changes jobs behind the
cursor and moves it in the same write: whatever happens between two steps, the next one goes on
where the last one ended. Jobs whose state is no longer the expected one are skipped.
"""

from corvo.keys import codec, space
from corvo.keys.order import successor
from corvo.machine import depends, undo
from corvo.machine.bulk_actions import VERBS, change_job
from corvo.machine.enqueue import find
from corvo.machine.state import State
from corvo.machine.transitions import ALLOWED
from corvo.machine.undo import count_reason, load_bulk, save_bulk
from corvo.model import bulk as bk
from corvo.model import command as cm
from corvo.model import event as ev
from corvo.model import limits, outcome
from corvo.model.bulk import Bulk, BulkChunk, BulkTask
from corvo.model.event import Event
from corvo.model.ids import BULK, render_id
from corvo.model.job import Job
from corvo.model.outcome import BulkChanged, Rejected

_TOMBSTONES_AT_ONCE = 16

_SKIPS = {
    outcome.NOT_FOUND: bk.NOT_FOUND,
    outcome.STATE_CHANGED: bk.CHANGED,
    outcome.INVALID_STATE: bk.INVALID_STATE,
    outcome.UNIQUE_CONFLICT: bk.UNIQUE_CONFLICT,
}


# --- commands ------------------------------------------------------------------------------------


def start_bulk(state: State, command: cm.StartBulk) -> BulkChanged | Rejected:
    """Open an operation; when all of its jobs come along, the first step is taken at once."""
    known = load_bulk(state, command.ns, command.id)
    if known is not None:
        return BulkChanged(known)
    bulk = Bulk(
        command.id,
        command.ns,
        command.task,
        bk.COLLECTING,
        state.now_ms,
        command.filter,
        undo_ms=command.undo_ms if command.task.action in bk.UNDOABLE else 0,
    )
    if command.unknown:
        bulk.total = bulk.processed = command.unknown
        bulk.skipped[bk.NOT_FOUND] = command.unknown
    _note(state, ev.BULK_STARTED, bulk)
    bulk.cursor = command.cursor
    _fill(state, bulk, command.ids, command.states, is_sealed=command.is_sealed)
    return _saved(state, bulk)


def fill_bulk(state: State, command: cm.FillBulk) -> BulkChanged | Rejected:
    """Add a chunk of jobs; one that came before is ignored, so that it can be sent again."""
    bulk = load_bulk(state, command.ns, command.id)
    if bulk is None:
        return unknown_bulk(command.id)
    if bulk.status != bk.COLLECTING or command.number != bulk.chunks:
        return BulkChanged(bulk)
    bulk.cursor = command.cursor
    _fill(state, bulk, command.ids, command.states, is_sealed=command.is_sealed)
    return _saved(state, bulk)


def _fill(state: State, bulk: Bulk, ids: bytes, states: bytes, *, is_sealed: bool) -> None:
    assert len(ids) == len(states) * bk.ID_BYTES, "every target has an id and a state"
    step = limits.BULK_CHUNK_TARGETS
    for start in range(0, len(states), step):
        part = states[start : start + step]
        first = start * bk.ID_BYTES
        chunk = BulkChunk(ids[first : first + len(part) * bk.ID_BYTES], part)
        state.writes[space.bulk_chunk_key(bulk.id, bulk.chunks)] = codec.encode(chunk)
        bulk.chunks += 1
        bulk.total += len(part)
    if is_sealed:
        bulk.status = bk.RUNNING
        _run(state, bulk, limits.BULK_STEP_JOBS)


def step_bulk(state: State, command: cm.StepBulk) -> BulkChanged | Rejected:
    """Go on with an operation, or with undoing it."""
    bulk = load_bulk(state, command.ns, command.id)
    if bulk is None:
        return unknown_bulk(command.id)
    if bulk.task.action == bk.CLEAR and bulk.status == bk.RUNNING:
        return BulkChanged(bulk)  # the queue's own operation takes these steps
    if bulk.status == bk.RUNNING:
        if command.is_skipping:
            _pass_over(state, bulk)
        else:
            _run(state, bulk, command.limit)
        if bulk.status == bk.RUNNING:
            _note(state, ev.BULK_PROGRESS, bulk)
    elif bulk.status == bk.UNDOING:
        _unwind(state, bulk, command.limit, is_skipping=command.is_skipping)
        if bulk.status == bk.UNDOING:
            _note(state, ev.BULK_PROGRESS, bulk)
    else:
        return BulkChanged(bulk)
    return _saved(state, bulk)


def abort_bulk(state: State, command: cm.AbortBulk) -> BulkChanged | Rejected:
    """Stop an operation where it stands."""
    bulk = load_bulk(state, command.ns, command.id)
    if bulk is None:
        return unknown_bulk(command.id)
    if bulk.task.action == bk.CLEAR or bulk.status not in (bk.COLLECTING, bk.RUNNING):
        return _wrong_status(bulk, "aborted")
    for number in range(bulk.chunk, bulk.chunks):
        state.writes[space.bulk_chunk_key(bulk.id, number)] = None
    bulk.error = command.error
    _finish(state, bulk, bk.FAILED if command.error else bk.ABORTED)
    return _saved(state, bulk)


def undo_bulk(state: State, command: cm.UndoBulk) -> BulkChanged | Rejected:
    """Begin to take an operation back."""
    bulk = load_bulk(state, command.ns, command.id)
    if bulk is None:
        return unknown_bulk(command.id)
    if bulk.status in (bk.UNDOING, bk.UNDONE):
        return BulkChanged(bulk)
    if bulk.status not in (bk.COMPLETED, bk.ABORTED, bk.FAILED):
        return _wrong_status(bulk, "undone")
    if bulk.task.action not in bk.UNDOABLE:
        return Rejected(
            outcome.INVALID_STATE,
            f"{bk.ACTION_NAMES[bulk.task.action]} can not be undone",
            hint="undo takes back delete, cancel, move, change_priority and clear",
        )
    if not bulk.tombstones or bulk.undo_until_ms <= state.now_ms:
        return Rejected(
            outcome.INVALID_STATE,
            "there is nothing left to undo",
            hint="it changed nothing, or the time in which it could be undone is over",
        )
    bulk.status = bk.UNDOING
    _unwind(state, bulk, limits.BULK_STEP_JOBS, is_skipping=False)
    return _saved(state, bulk)


def unknown_bulk(bulk_id: bytes) -> Rejected:
    """Answer for an operation that does not exist."""
    return Rejected(outcome.NOT_FOUND, f"there is no bulk operation {render_id(BULK, bulk_id)}")


def _wrong_status(bulk: Bulk, verb: str) -> Rejected:
    name = bk.STATUS_NAMES[bulk.status]
    hint = "wait until it is finished, or abort it" if verb == "undone" else ""
    return Rejected(
        outcome.INVALID_STATE, f"an operation that is {name} can not be {verb}", hint=hint
    )


def _saved(state: State, bulk: Bulk) -> BulkChanged:
    save_bulk(state, bulk)
    return BulkChanged(bulk)


# --- running -------------------------------------------------------------------------------------


def _run(state: State, bulk: Bulk, limit: int) -> None:
    """Change up to `limit` jobs behind the cursor."""
    room = limits.BULK_STEP_BYTES_MAX
    while limit > 0 and room > 0 and bulk.chunk < bulk.chunks:
        chunk = _chunk(state, bulk)
        count = len(chunk.states)
        while limit > 0 and room > 0 and bulk.offset < count:
            room -= _treat(state, bulk, *_target(chunk, bulk.offset))
            limit -= 1
            _advance(state, bulk, count)
            if not bulk.offset:
                break
    if bulk.chunk == bulk.chunks:
        _finish(state, bulk, bk.COMPLETED)


def _chunk(state: State, bulk: Bulk) -> BulkChunk:
    raw = state.get(space.bulk_chunk_key(bulk.id, bulk.chunk))
    assert raw is not None, "a chunk of a running operation is missing"
    return codec.decode_bulk_chunk(raw)


def _target(chunk: BulkChunk, offset: int) -> tuple[bytes, int]:
    start = offset * bk.ID_BYTES
    state = chunk.states[offset]
    expected = cm.ANY_STATE if state == bk.ANY_STATE_BYTE else state
    return chunk.ids[start : start + bk.ID_BYTES], expected


def _advance(state: State, bulk: Bulk, count: int) -> None:
    bulk.processed += 1
    bulk.offset += 1
    if bulk.offset == count:
        state.writes[space.bulk_chunk_key(bulk.id, bulk.chunk)] = None
        bulk.chunk += 1
        bulk.offset = 0


def _treat(state: State, bulk: Bulk, job_id: bytes, expected: int) -> int:
    """Change one job and keep what an undo needs; returns the bytes that took."""
    job = find(state, bulk.ns, job_id)
    action = bulk.task.action
    found = None
    if job is not None and bulk.undo_ms and _is_allowed(action, job, expected):
        found = undo.observe(state, job, is_removed=action == bk.DELETE)
    answer = change_job(state, bulk.ns, job_id, bulk.task, expected)
    depends.drain(state)
    if isinstance(answer, Rejected):
        reason = _SKIPS.get(answer.code)
        if reason is None:
            bulk.errors += 1
        else:
            count_reason(bulk.skipped, reason)
        return 0
    bulk.affected += 1
    if found is None:
        return 0
    return undo.bury(state, bulk, found, None if action == bk.DELETE else job)


def _is_allowed(action: int, job: Job, expected: int) -> bool:
    if expected not in (cm.ANY_STATE, job.state):
        return False
    return action == bk.DELETE or job.state in ALLOWED[VERBS[action]]


def _pass_over(state: State, bulk: Bulk) -> None:
    """The machine failed over the job at the cursor: it is an error, and the rest goes on."""
    bulk.errors += 1
    _advance(state, bulk, len(_chunk(state, bulk).states))
    if bulk.chunk == bulk.chunks:
        _finish(state, bulk, bk.COMPLETED)


def _finish(state: State, bulk: Bulk, status: int) -> None:
    bulk.status = status
    bulk.chunk = bulk.chunks
    bulk.offset = 0
    bulk.finished_ms = state.now_ms
    if bulk.tombstones:
        bulk.undo_until_ms = state.now_ms + bulk.undo_ms
    _arm(state, bulk)
    events = {bk.COMPLETED: ev.BULK_COMPLETED, bk.ABORTED: ev.BULK_ABORTED}
    _note(state, events.get(status, ev.BULK_FAILED), bulk)


def _note(state: State, kind: int, bulk: Bulk) -> None:
    data: dict[str, object] = {
        "bulk_operation_id": render_id(BULK, bulk.id),
        "action": bk.ACTION_NAMES[bulk.task.action],
        "status": bk.STATUS_NAMES[bulk.status],
        "total": bulk.total,
        "processed": bulk.processed,
        "affected": bulk.affected,
        "errors": bulk.errors,
    }
    if bulk.status in (bk.UNDOING, bk.UNDONE):
        data["restored"] = bulk.restored
    state.events.append(Event(kind, b"", bulk.task.queue, 0, data, bulk.ns))


# --- clearing a queue ----------------------------------------------------------------------------


def begin_clear(state: State, command: cm.ClearQueue, cleared: int, total: int) -> None:
    """A queue is being cleared and it shall be possible to undo that: open a record for it."""
    task = BulkTask(bk.CLEAR, command.queue)
    bulk = Bulk(command.operation_id, command.ns, task, bk.RUNNING, state.now_ms)
    bulk.total = total
    bulk.undo_ms = command.undo_ms
    state.writes[space.cleared_space_key(command.ns, cleared)] = bulk.id
    _note(state, ev.BULK_STARTED, bulk)
    save_bulk(state, bulk)


def end_clear(state: State, ns: int, cleared: int) -> None:
    """The last job of a cleared space is gone."""
    key = space.cleared_space_key(ns, cleared)
    raw = state.get(key)
    if raw is None:
        return
    state.writes[key] = None
    bulk = load_bulk(state, ns, raw)
    if bulk is not None:
        bulk.total = bulk.processed
        _finish(state, bulk, bk.COMPLETED)
        save_bulk(state, bulk)


# --- undoing -------------------------------------------------------------------------------------


def _unwind(state: State, bulk: Bulk, limit: int, *, is_skipping: bool) -> None:
    """Bring back up to `limit` jobs, the last one changed first."""
    prefix = space.TOMBSTONE + bulk.id
    start, until = prefix, successor(prefix)
    limit = 1 if is_skipping else limit
    room = limits.BULK_STEP_BYTES_MAX
    while limit > 0 and room > 0:
        # Cost: a tombstone may hold a large payload; not more than a few are in memory at a time.
        found = state.scan(start, until, min(limit, _TOMBSTONES_AT_ONCE))
        if not found:
            break
        for key, raw in found:
            reason = "error"
            if not is_skipping:
                reason = undo.restore(state, bulk, codec.decode_tombstone(raw))
                depends.drain(state)
            state.writes[key] = None
            bulk.tombstones -= 1
            if reason:
                count_reason(bulk.kept, reason)
            else:
                bulk.restored += 1
            room -= len(raw)
        limit -= len(found)
        start = found[-1][0] + b"\x00"
    if not bulk.tombstones:
        bulk.status = bk.UNDONE
        bulk.undone_ms = state.now_ms
        _disarm(state, bulk)
        bulk.undo_until_ms = 0
        _arm(state, bulk)
        _note(state, ev.BULK_UNDONE, bulk)


# --- forgetting ----------------------------------------------------------------------------------


def _due_ms(bulk: Bulk) -> int:
    """When the next thing is forgotten: first what an undo needs, then the record."""
    return bulk.undo_until_ms or bulk.finished_ms + limits.RETENTION_MS_DEFAULT


def _arm(state: State, bulk: Bulk) -> None:
    state.add_deadline(_due_ms(bulk), space.DEADLINE_BULK, bulk.ns, bulk.id)


def _disarm(state: State, bulk: Bulk) -> None:
    state.drop_deadline(_due_ms(bulk), space.DEADLINE_BULK, bulk.ns, bulk.id)


def expire(state: State, ns: int, bulk_id: bytes) -> None:
    """A deadline of an operation has come."""
    bulk = load_bulk(state, ns, bulk_id)
    if bulk is None or bulk.status in (bk.COLLECTING, bk.RUNNING):
        return
    if bulk.status == bk.UNDOING:
        # An undo that was begun in time is finished; it arms the deadline of the record itself.
        return
    if bulk.undo_until_ms:
        if bulk.undo_until_ms > state.now_ms:
            return
        # Nobody looks for them once the record says that there are none.
        prefix = space.TOMBSTONE + bulk.id
        state.clear_range(prefix, successor(prefix))
        bulk.tombstones = 0
        bulk.undo_until_ms = 0
        save_bulk(state, bulk)
        _arm(state, bulk)
        return
    if _due_ms(bulk) <= state.now_ms:
        state.writes[space.bulk_key(ns, bulk_id)] = None
        _note(state, ev.BULK_PURGED, bulk)


# --- reading -------------------------------------------------------------------------------------


def read_ids(state: State, ns: int, after: bytes, until: bytes, limit: int) -> list[bytes]:
    """Return ids of operations behind one id and before another (empty: no bound), oldest first."""
    prefix = space.bulk_key(ns, b"")
    start = prefix + after + b"\x00" if after else prefix
    end = prefix + until if until else successor(prefix)
    return [key[len(prefix) :] for key, _ in state.scan(start, end, limit)]


def read_unfinished(state: State) -> list[tuple[int, bytes]]:
    """Return namespace and id of every operation that has something left to do."""
    found: list[tuple[int, bytes]] = []
    start, until = space.BULK, successor(space.BULK)
    while part := state.scan(start, until, 1_000):
        for _, raw in part:
            bulk = codec.decode_bulk(raw)
            if bulk.status in bk.UNFINISHED:
                found.append((bulk.ns, bulk.id))
        start = part[-1][0] + b"\x00"
    return found


def preview(state: State, ns: int, job_id: bytes, action: int, expected: int) -> tuple[str, int]:
    """Say what a bulk action would do to a job now: a reason to skip it, or "", and its state."""
    job = find(state, ns, job_id)
    if job is None:
        return bk.NOT_FOUND, -1
    if expected not in (cm.ANY_STATE, job.state):
        return bk.CHANGED, job.state
    return ("" if _is_allowed(action, job, expected) else bk.INVALID_STATE), job.state
