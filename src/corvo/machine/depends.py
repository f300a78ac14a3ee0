"""Dependencies: a reverse index from parent to child, told when the parent ends.

The news spreads through a work list, never by recursion, and in bounded portions: what does not fit
into the settling command becomes an operation that later commands go on with.
"""

from corvo.keys import codec, space
from corvo.keys.order import successor
from corvo.machine import places, settle
from corvo.machine.state import Queue, State, is_doomed
from corvo.model import event as ev
from corvo.model import ids, limits
from corvo.model import job as jb
from corvo.model.job import Job
from corvo.model.queue import RESOLVE, Operation


def link(state: State, ns: int, parent: Job, child_id: bytes) -> None:
    """Note that a child waits for a live parent."""
    state.writes[space.dependant_prefix(ns, parent.id) + child_id] = b""
    parent.flags |= jb.FLAG_PARENT
    state.dirty[parent.id] = parent


def drain(state: State) -> None:
    """Spread the news of settled parents; run after every command that settled any."""
    budget = limits.CASCADE_INLINE_MAX
    while state.cascade:
        ns, parent, succeeded = state.cascade.pop(0)
        told, is_done = tell(state, ns, parent, succeeded=succeeded, limit=budget)
        budget -= told
        if not is_done:
            _defer(state, ns, parent, succeeded=succeeded)


def tell(state: State, ns: int, parent: bytes, *, succeeded: bool, limit: int) -> tuple[int, bool]:
    """Tell up to `limit` dependants of a parent; returns how many, and whether that was all."""
    prefix = space.dependant_prefix(ns, parent)
    found = state.scan(prefix, successor(prefix), limit + 1)
    for key, _ in found[:limit]:
        state.writes[key] = None
        _resolve(state, ns, space.job_of(key), succeeded=succeeded)
    return min(len(found), limit), len(found) <= limit


def _defer(state: State, ns: int, parent: bytes, *, succeeded: bool) -> None:
    ordinal = state.position() - state.base
    operation_id = ids.derive_id(parent, state.index & 0xFFFFFFFF, "resolve", ordinal)
    operation = Operation(operation_id, RESOLVE, ns, 0, job_id=parent, succeeded=succeeded)
    key = space.OPERATION + operation_id
    state.writes[key] = codec.encode(operation)
    state.operations.added(key)


def _resolve(state: State, ns: int, child_id: bytes, *, succeeded: bool) -> None:
    child = state.job(ns, child_id)
    if child is None or child.state in jb.SETTLED or child.rare is None or not child.rare.waiting:
        return
    queue = state.queue_of(child)
    child.rare.waiting -= 1
    state.dirty[child.id] = child
    if is_doomed(queue, child):
        return  # it stays where it is until the operation that removes it comes by
    if not succeeded and fail_child(state, queue, child):
        return
    if not child.rare.waiting and child.state == jb.PENDING:
        places.enter_ready_from_waiting(state, queue, child)
        state.emit(ev.UNBLOCKED, child, queue.record.name)


def fail_child(state: State, queue: Queue, child: Job) -> bool:
    """A parent failed: end or hold the child as it asked; False when it wants to run anyway."""
    policy = state.spec(child).on_dependency_failure
    if policy == jb.DEPENDENCY_FAIL:
        settle.settle(state, queue, child, jb.DEAD, reason="dependency_failed")
        return True
    if policy == jb.DEPENDENCY_HOLD and child.state != jb.HELD:
        places.leave(state, queue, child)
        places.rare(child).hold_reason = "dependency_failed"
        places.enter_held(state, queue, child)
        state.emit(ev.HELD, child, queue.record.name, {"reason": "dependency_failed"})
        return True
    return False
