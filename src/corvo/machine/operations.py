"""Work too large for one command: clear, delete, re-index, resolve; one bounded step at a time.

Each step does up to `limit` units and saves where it stands in the same write, so a restart goes on
exactly there. Phases of clear and delete run through the indexes a job can be in.
"""

from collections.abc import Callable

from corvo.keys import codec, space
from corvo.keys.order import pack_u16, pack_u32, successor
from corvo.machine import depends, lanes, places
from corvo.machine.settle import erase
from corvo.machine.state import Queue, State, is_doomed
from corvo.model import event as ev
from corvo.model import job as jb
from corvo.model.command import StepOperations
from corvo.model.outcome import Swept
from corvo.model.queue import CLEAR, DELETE, REINDEX, RESOLVE, Operation

Step = Callable[[State, Operation, int], int]


def step_operations(state: State, command: StepOperations) -> Swept:
    """Go on with the oldest operations until the bound is reached."""
    left = command.limit
    while left > 0:
        found = state.operations.first(state, 1)
        if not found:
            return Swept(command.limit - left)
        key, raw = found[0]
        operation = codec.decode_operation(raw)
        left -= max(1, _STEPS[operation.kind](state, operation, left))
        if operation.phase < 0:
            state.writes[key] = None
        else:
            state.writes[key] = codec.encode(operation)
    return Swept(command.limit, more=bool(state.operations.first(state, 1)))


def _advance(operation: Operation, phases: int) -> None:
    """Go to the next phase; after the last one the operation is over (phase -1)."""
    operation.cursor = b""
    operation.phase = operation.phase + 1 if operation.phase + 1 < phases else -1


# --- clear and delete --------------------------------------------------------------------------


def _ranges(operation: Operation) -> list[bytes]:
    """Prefixes a clear (and, with more, a delete) walks through, one a phase."""
    ns, number = pack_u16(operation.ns), pack_u32(operation.space)
    prefixes = [
        space.READY + ns + number,
        space.WAITING + ns + number,
        space.DUE,
        space.LANE + ns + number,
        space.GROUP + ns + number,
    ]
    if operation.kind == DELETE:
        queue = pack_u32(operation.queue_id)
        prefixes += [space.HELD + ns + queue, space.ACTIVE, space.SETTLED + ns + queue]
    return prefixes


def _remove(state: State, operation: Operation, limit: int) -> int:
    state.expose_records()
    prefixes = _ranges(operation)
    prefix = prefixes[operation.phase]
    start = operation.cursor or prefix
    found = state.scan(start, successor(prefix), limit)
    for key, value in found:
        operation.done += _remove_one(state, operation, key, value)
    if len(found) < limit:
        _advance(operation, len(prefixes))
        if operation.phase < 0:
            _finish_removal(state, operation)
    else:
        operation.cursor = found[-1][0] + b"\x00"
    return len(found)


def _remove_one(state: State, operation: Operation, key: bytes, value: bytes) -> int:
    family = key[:1]
    if family == space.LANE:
        lanes.drop_space_lane(state, operation.ns, codec.decode_lane(value))
        return 0
    if family == space.GROUP:
        state.writes[key] = None
        return 0
    if family == space.SETTLED:
        for job_id in codec.decode_settled(value).ids:
            _erase_doomed(state, operation, job_id)
        state.writes[key] = None
        return 1
    if family == space.DUE and space.space_of(key) != operation.space:
        return 0
    return _erase_doomed(state, operation, space.job_of(key))


def _erase_doomed(state: State, operation: Operation, job_id: bytes) -> int:
    job = state.job(operation.ns, job_id)
    if job is None or job.queue_id != operation.queue_id:
        return 0
    queue = state.queue_of(job)
    if not is_doomed(queue, job):
        return 0
    state.emit(ev.DELETED, job, queue.record.name)
    erase(state, queue, job, is_doomed=True)
    depends.drain(state)
    return 1


def _finish_removal(state: State, operation: Operation) -> None:
    ns, number = operation.ns, operation.space
    for prefix in (
        space.RUNNABLE_LANE + pack_u16(ns) + pack_u32(number),
        space.runnable_group_prefix(ns, number),
        space.token_waiter_prefix(ns, number),
    ):
        # Nobody reads these ranges any more: their space is gone.
        state.cleared.append((prefix, successor(prefix)))
    if operation.kind == DELETE:
        queue = state.queues[operation.queue_id]
        # What this very entry settled is not in a retention block yet.
        for job_id in queue.settled:
            operation.done += _erase_doomed(state, operation, job_id)
        queue.settled = []
        del state.queues[operation.queue_id]
        state.touch(queue)
        state.writes[queue.key] = None


# --- re-index ----------------------------------------------------------------------------------


def _reindex(state: State, operation: Operation, limit: int) -> int:
    """Settings changed: ranks are computed anew, lanes behind changed gates try again."""
    queue = state.queues.get(operation.queue_id)
    if queue is None or queue.record.deleted or queue.record.space != operation.space:
        operation.phase = -1
        return 0
    state.expose_records()
    ns, number = pack_u16(operation.ns), pack_u32(operation.space)
    prefix = (space.READY, space.LANE)[operation.phase] + ns + number
    found = state.scan(operation.cursor or prefix, successor(prefix), limit)
    for key, value in found:
        if operation.phase == 0:
            _rerank(state, queue, space.job_of(key))
        else:
            lane = codec.decode_lane(value)
            lanes.retry_gate(state, queue, queue.lanes.lane(state, lane.number))
    if len(found) < limit:
        _advance(operation, 2)
    else:
        operation.cursor = found[-1][0] + b"\x00"
    operation.done += len(found)
    return len(found)


def _rerank(state: State, queue: Queue, job_id: bytes) -> None:
    # Safety: a job moved ahead of the cursor is met again; its rank is then right and stays.
    job = state.job(queue.record.ns, job_id)
    assert job is not None, "the ready index names a job that does not exist"
    if job.state == jb.PENDING and job.at[11:19] != places.rank_of(state, queue, job):
        places.leave(state, queue, job)
        places.enter_pending(state, queue, job)


# --- resolve -----------------------------------------------------------------------------------


def _resolve(state: State, operation: Operation, limit: int) -> int:
    told, is_done = depends.tell(
        state, operation.ns, operation.job_id, succeeded=operation.succeeded, limit=limit
    )
    depends.drain(state)
    operation.done += told
    if is_done:
        operation.phase = -1
    return told


_STEPS: dict[int, Step] = {CLEAR: _remove, DELETE: _remove, REINDEX: _reindex, RESOLVE: _resolve}
