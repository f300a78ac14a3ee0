"""What operators do to queues and named limits.

Clearing gives the queue a new space and deleting takes it out of the name registry: at once
nothing older is fetchable and the counters hide it. The jobs left behind are ended one by one, in
bounded steps that survive a restart (`operations`), so that batches, chains, locks and dependants
hear of it.
"""

from msgspec import UNSET
from msgspec.structs import asdict

from corvo.keys import codec, space
from corvo.machine import gates, lanes
from corvo.machine.state import Queue, State
from corvo.model import event as ev
from corvo.model import job as jb
from corvo.model import limits, outcome
from corvo.model.command import (
    ClearQueue,
    ConfigureQueue,
    DeleteLimit,
    DeleteQueue,
    DrainQueue,
    PauseQueue,
    ResumeQueue,
    SetLimit,
)
from corvo.model.event import Event
from corvo.model.outcome import LimitChanged, QueueChanged, Rejected
from corvo.model.queue import CLEAR, DELETE, REINDEX, Limit, Operation, Settings


def _unknown(name: str) -> Rejected:
    return Rejected(outcome.NOT_FOUND, f"there is no queue {name}")


def _note(state: State, kind: int, queue: Queue, data: dict[str, object] | None = None) -> None:
    state.touch(queue)
    state.events.append(Event(kind, b"", queue.record.name, 0, data))


def _open(state: State, ns: int, name: str) -> Queue | Rejected:
    if (ns, name) not in state.names and len(state.names) >= limits.QUEUES_MAX:
        return Rejected(outcome.TOO_MANY_QUEUES, f"there are already {limits.QUEUES_MAX} queues")
    return state.open_queue(ns, name)


def pause_queue(state: State, command: PauseQueue) -> QueueChanged | Rejected:
    """Stop handing out jobs."""
    queue = _open(state, command.ns, command.queue)
    if isinstance(queue, Rejected):
        return queue
    record = queue.record
    if not record.paused:
        record.paused = True
        _note(state, ev.QUEUE_PAUSED, queue)
    return QueueChanged("paused", record.counts[jb.ACTIVE])


def resume_queue(state: State, command: ResumeQueue) -> QueueChanged | Rejected:
    """Hand out jobs again."""
    queue = _open(state, command.ns, command.queue)
    if isinstance(queue, Rejected):
        return queue
    record = queue.record
    if record.paused:
        record.paused = record.draining = False
        _note(state, ev.QUEUE_RESUMED, queue)
    return QueueChanged("resumed", record.counts[jb.ACTIVE])


def drain_queue(state: State, command: DrainQueue) -> QueueChanged | Rejected:
    """Pause, and say how many jobs are still active."""
    queue = state.names.get((command.ns, command.queue))
    if queue is None:
        return _unknown(command.queue)
    record = queue.record
    if not record.draining:
        record.paused = record.draining = True
        _note(state, ev.QUEUE_DRAINING, queue, {"active": record.counts[jb.ACTIVE]})
    return QueueChanged("draining", record.counts[jb.ACTIVE])


def clear_queue(state: State, command: ClearQueue) -> QueueChanged | Rejected:
    """Remove pending, blocked, scheduled and retrying jobs."""
    queue = state.names.get((command.ns, command.queue))
    if queue is None:
        return _unknown(command.queue)
    record = queue.record
    removed = sum(record.counts[s] for s in (jb.PENDING, jb.SCHEDULED, jb.RETRYING))
    if removed:
        old_space = record.space
        _leave_space(state, queue)
        _start(state, Operation(command.operation_id, CLEAR, record.ns, record.id, old_space))
    _note(state, ev.QUEUE_CLEARED, queue, {"removed": removed})
    return QueueChanged("cleared", record.counts[jb.ACTIVE], removed, command.operation_id)


def _leave_space(state: State, queue: Queue) -> None:
    record = queue.record
    del state.spaces[record.space]
    record.space = state.number()
    state.spaces[record.space] = queue
    for hidden in (jb.PENDING, jb.SCHEDULED, jb.RETRYING):
        record.counts[hidden] = 0
    record.waiting = record.runnable = record.lanes = record.clock = 0
    record.laned = record.grouped = False
    queue.enter_space(is_new=True)


def _start(state: State, operation: Operation) -> None:
    key = space.OPERATION + operation.id
    state.writes[key] = codec.encode(operation)
    state.operations.added(key)


def delete_queue(state: State, command: DeleteQueue) -> QueueChanged | Rejected:
    """Remove a queue and every job in it."""
    queue = state.names.pop((command.ns, command.queue), None)
    if queue is None:
        return _unknown(command.queue)
    record = queue.record
    removed = sum(record.counts)
    record.deleted = True
    del state.spaces[record.space]
    operation = Operation(command.operation_id, DELETE, record.ns, record.id, record.space)
    _start(state, operation)
    _note(state, ev.QUEUE_DELETED, queue, {"removed": removed})
    active = record.counts[jb.ACTIVE]
    return QueueChanged("deleted", active, removed, command.operation_id)


def configure_queue(state: State, command: ConfigureQueue) -> QueueChanged | Rejected:
    """Change settings; absent fields stay, null removes."""
    queue = _open(state, command.ns, command.queue)
    if isinstance(queue, Rejected):
        return queue
    record = queue.record
    old = record.settings
    fields = asdict(old)
    defaults = asdict(Settings())
    changed: list[str] = []
    for name, value in asdict(command.patch).items():
        if value is not UNSET:
            fields[name] = defaults[name] if value is None else value
            changed.append(name)
    record.settings = new = Settings(**fields)
    if new.rate != old.rate:
        record.tokens = record.tokens_ms = 0
    has_new_gates = (new.key_concurrency, new.key_rate) != (old.key_concurrency, old.key_rate)
    if record.counts[jb.PENDING] and (new.aging_ms != old.aging_ms or has_new_gates):
        reindex = Operation(command.operation_id, REINDEX, record.ns, record.id, record.space)
        _start(state, reindex)
    _note(state, ev.QUEUE_CONFIGURED, queue, {"fields": changed})
    return QueueChanged("ok", record.counts[jb.ACTIVE])


def set_limit(state: State, command: SetLimit) -> LimitChanged:
    """Create or replace a named limit."""
    limit = Limit(command.name, command.max, command.rate, state.now_ms)
    old = gates.named(state, command.ns, command.name)
    if old is not None:
        limit = Limit(command.name, command.max, command.rate, old.created_ms)
    key = space.LIMIT + command.ns.to_bytes(2, "big") + command.name.encode()
    state.writes[key] = codec.encode(limit)
    _wake(state, command.ns, command.name)
    state.events.append(Event(ev.LIMIT_SET, b"", "", 0, {"limit": command.name}))
    return LimitChanged("ok")


def delete_limit(state: State, command: DeleteLimit) -> LimitChanged | Rejected:
    """Remove a named limit; jobs that name it are no longer held back by it."""
    if gates.named(state, command.ns, command.name) is None:
        return Rejected(outcome.NOT_FOUND, f"there is no limit {command.name}")
    state.writes[space.LIMIT + command.ns.to_bytes(2, "big") + command.name.encode()] = None
    _wake(state, command.ns, command.name)
    state.events.append(Event(ev.LIMIT_DELETED, b"", "", 0, {"limit": command.name}))
    return LimitChanged("deleted")


def _wake(state: State, ns: int, name: str) -> None:
    """One lane is enough: every claim lets the next lane behind the gate try."""
    gate = space.limit_gate(ns, name)
    record = gates.load(state, gate)
    if record.tokens_ms:
        # The old bucket says nothing about the new rate; it starts full.
        record.tokens = record.tokens_ms = 0
        gates.save(state, gate, record)
    lanes.wake_timer(state, gate)
    lanes.wake_one(state, gate)
