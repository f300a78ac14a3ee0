"""Gates: limits on concurrency and rate, per limit key of a queue or by name.

A gate counts its active jobs whether or not a limit is set, so that a limit set later is right at
once. Which limit applies is looked up when a lane asks: the queue's settings for a limit key, the
`Limit` record for a name. Nobody scans: a lane that a gate stops waits behind that gate, and a
freed slot or a due bucket wakes exactly one lane.
"""

from typing import NamedTuple

from corvo.keys import codec, space
from corvo.keys.order import unpack_u16, unpack_u32
from corvo.machine import buckets
from corvo.machine.state import State
from corvo.model.queue import Gate, Limit, Rate


class Bound(NamedTuple):
    """The limits in force at a gate; zero and None mean none."""

    max: int
    rate: Rate | None


NO_BOUND = Bound(0, None)


def load(state: State, gate: bytes) -> Gate:
    """Read a gate; an unknown one is idle. The record is shared: edit it, then `save`."""
    record = state.gates.get(gate)
    if record is None:
        raw = state.get(space.GATE + gate)
        record = state.gates[gate] = codec.decode_gate(raw) if raw is not None else Gate()
    return record


def save(state: State, gate: bytes, record: Gate) -> None:
    """Write a gate, or forget it when nothing is known about it that matters."""
    key = space.GATE + gate
    if record.used or record.lanes or record.timers:
        _disarm(state, gate, record)
        state.dirty_records[key] = record
        return
    rate = bound_of(state, gate).rate
    full_ms = buckets.full_ms(rate, record.tokens, record.tokens_ms) if rate else 0
    if full_ms <= state.now_ms:
        _disarm(state, gate, record)
        record.tokens = record.tokens_ms = 0
        state.dirty_records.pop(key, None)
        state.writes[key] = None
        return
    if record.cleanup_ms != full_ms:
        _disarm(state, gate, record)
        record.cleanup_ms = full_ms
        state.add_deadline(full_ms, space.DEADLINE_GATE, unpack_u16(gate)[0], gate[2:])
    state.dirty_records[key] = record


def _disarm(state: State, gate: bytes, record: Gate) -> None:
    if record.cleanup_ms:
        ns = unpack_u16(gate)[0]
        state.drop_deadline(record.cleanup_ms, space.DEADLINE_GATE, ns, gate[2:])
        record.cleanup_ms = 0


def cleanup(state: State, gate: bytes) -> None:
    """The deadline of an idle gate came: forget it when it is still idle."""
    record = load(state, gate)
    record.cleanup_ms = 0
    save(state, gate, record)


def bound_of(state: State, gate: bytes) -> Bound:
    """Look up the limits in force at a gate."""
    if gate[2:3] == b"q":
        queue = state.queues.get(unpack_u32(gate, 3)[0])
        if queue is None:
            return NO_BOUND
        settings = queue.record.settings
        return Bound(settings.key_concurrency, settings.key_rate)
    limit = named(state, unpack_u16(gate)[0], gate[3:].decode())
    return Bound(limit.max, limit.rate) if limit is not None else NO_BOUND


def named(state: State, ns: int, name: str) -> Limit | None:
    """Read a named limit."""
    raw = state.get(space.LIMIT + ns.to_bytes(2, "big") + name.encode())
    return codec.decode_limit(raw) if raw is not None else None


def blocked_until(state: State, bound: Bound, record: Gate, cost: int) -> int | None:
    """Say whether a gate stops a job now: None when it passes, 0 for a slot, else a time."""
    if bound.max and record.used >= bound.max:
        return 0
    rate = bound.rate
    if rate is None:
        return None
    need = buckets.needed(rate, cost)
    if buckets.available(rate, record.tokens, record.tokens_ms, state.now_ms) >= need:
        return None
    return buckets.ready_ms(rate, record.tokens, record.tokens_ms, need)


def take(state: State, gate: bytes, cost: int) -> None:
    """Use one slot and `cost` tokens."""
    record = load(state, gate)
    record.used += 1
    rate = bound_of(state, gate).rate
    if rate is not None:
        now_ms = state.now_ms
        left = buckets.available(rate, record.tokens, record.tokens_ms, now_ms)
        record.tokens = left - cost * buckets.TOKEN
        record.tokens_ms = now_ms
    save(state, gate, record)
