"""Lanes: jobs of a queue with equal group and gates, so that a gated head stops exactly its lane.

    enqueue ──▶ lane ──▶ runnable (M, by rank) ──claim──▶ active
                 ▲          │ a gate says no
                 │          ▼
                 └── waiting for a slot (B) or for tokens (D)

A lane with ready jobs is in exactly one of M, B and D; its record names the key. Which group's
lanes come first is decided by `groups`.

Queues without groups and limit keys have one lane, number 0, and none of this; the first laned job
turns the queue's plain backlog into an ordinary lane.
"""

from hashlib import blake2b

from corvo.keys import codec, space
from corvo.keys.order import pack_u16, pack_u32, pack_u64, successor, unpack_u32, unpack_u64
from corvo.machine import gates, groups
from corvo.machine.state import Queue, State
from corvo.model import limits
from corvo.model.job import Job, Spec
from corvo.model.queue import Lane


def gates_of(queue: Queue, spec: Spec) -> tuple[bytes, ...]:
    """Name the gates a job must pass in this queue."""
    record = queue.record
    own = (space.queue_gate(record.ns, record.id, spec.limit_key),) if spec.limit_key else ()
    return own + tuple(space.limit_gate(record.ns, name) for name in spec.limits)


def _digest(group: str, lane_gates: tuple[bytes, ...]) -> bytes:
    return blake2b(codec.encode((group, lane_gates)), digest_size=16).digest()


def lane_for(state: State, queue: Queue, spec: Spec | None) -> Lane:
    """Return the lane of a job, creating lane and group when they are new."""
    group = spec.group if spec else ""
    lane_gates = gates_of(queue, spec) if spec else ()
    lanes = queue.lanes
    lane = lanes.by_pair.get((group, lane_gates))
    if lane is not None:
        return lane
    digest = _digest(group, lane_gates)
    lane = lanes.find(state, digest)
    if lane is None:
        record = queue.record
        number = 0
        if group or lane_gates:
            record.lanes += 1
            number = record.lanes
        lane = Lane(number, record.space, record.id, group, lane_gates)
        lanes.lanes[number] = lane
        lanes.by_pair[group, lane_gates] = lane
        lanes.ready_of(number, is_new=number != 0)
        key = space.lane_identity_key(record.ns, record.space, digest)
        state.writes[key] = pack_u32(number)
    return lane


def convert(state: State, queue: Queue) -> None:
    """Turn a plain queue into a laned one: its backlog becomes lane 0."""
    record = queue.record
    ready = record.counts[1] - record.waiting
    record.laned = True
    record.runnable = 0
    state.touch(queue)
    if ready:
        lane = lane_for(state, queue, None)
        lane.count = ready
        make_runnable(state, queue, lane, joins=True)


def _save(state: State, queue: Queue, lane: Lane) -> None:
    state.dirty_records[space.lane_key(queue.record.ns, lane.space, lane.number)] = lane


def _head_rank(state: State, queue: Queue, lane: Lane) -> bytes:
    window = queue.lanes.ready_of(lane.number)
    key = window.first(state)
    assert key is not None, "a counted lane without a ready job"
    return key[11:19]


# --- ready jobs ------------------------------------------------------------------------------


def insert(state: State, queue: Queue, job: Job, spec: Spec | None, rank: bytes) -> bytes:
    """Put a ready job into its lane; returns its key."""
    if not queue.record.laned:
        convert(state, queue)
    lane = lane_for(state, queue, spec)
    window = queue.lanes.ready_of(lane.number)
    key = window.prefix + rank + job.id
    job.lane = lane.number
    state.put_index(key)
    window.insert(key)
    lane.count += 1
    if lane.count == 1:
        make_runnable(state, queue, lane, joins=True)
    elif lane.at[:1] == space.RUNNABLE_LANE:
        queue.record.runnable += 1
        if rank < lane.at[11:19]:
            _rerank(state, queue, lane)
        else:
            _save(state, queue, lane)
    else:
        _rerank_waiting(state, queue, lane)
    return key


def remove(state: State, queue: Queue, job: Job) -> None:
    """Take a job that is not claimed out of its lane."""
    lane = queue.lanes.lane(state, job.lane)
    queue.lanes.ready_of(lane.number).remove(job.at)
    state.delete_index(job.at)
    _shrink(state, queue, lane)


def _shrink(state: State, queue: Queue, lane: Lane) -> None:
    lane.count -= 1
    is_runnable = lane.at[:1] == space.RUNNABLE_LANE
    if is_runnable:
        queue.record.runnable -= 1
    if not lane.count:
        _leave(state, queue, lane)
        _drop(state, queue, lane)
        for gate in lane.gates:
            wake_one(state, gate)
    elif is_runnable:
        _rerank(state, queue, lane)
    else:
        _rerank_waiting(state, queue, lane)


def _drop(state: State, queue: Queue, lane: Lane) -> None:
    ns = queue.record.ns
    digest = _digest(lane.group, lane.gates)
    key = space.lane_key(ns, lane.space, lane.number)
    state.dirty_records.pop(key, None)
    state.writes[key] = None
    state.writes[space.lane_identity_key(ns, lane.space, digest)] = None
    queue.lanes.forget_lane(lane)
    if lane.number == 0:
        queue.lanes.ready[0] = queue.ready


# --- where a lane is -------------------------------------------------------------------------


def make_runnable(state: State, queue: Queue, lane: Lane, *, joins: bool = False) -> None:
    """Put a lane among those a fetch may take from; `joins` when it was empty before."""
    queue.record.runnable += lane.count
    state.touch(queue)
    group = groups.group_of(state, queue, lane, joins=joins)
    key = queue.lanes.runnable_key(
        groups.number_of(group), _head_rank(state, queue, lane), lane.number
    )
    lane.at, lane.gate = key, b""
    state.put_index(key)
    queue.lanes.runnable_of(groups.number_of(group)).insert(key)
    _save(state, queue, lane)
    if group is not None:
        groups.place(state, queue, group)


def _rerank(state: State, queue: Queue, lane: Lane) -> None:
    group = groups.group_of(state, queue, lane)
    key = queue.lanes.runnable_key(
        groups.number_of(group), _head_rank(state, queue, lane), lane.number
    )
    if key != lane.at:
        window = queue.lanes.runnable_of(groups.number_of(group))
        window.remove(lane.at)
        state.delete_index(lane.at)
        window.insert(key)
        state.put_index(key)
        lane.at = key
    _save(state, queue, lane)
    if group is not None:
        groups.place(state, queue, group)


def _leave(state: State, queue: Queue, lane: Lane) -> None:
    """Take a lane out of whichever index it is in; the runnable count is the caller's."""
    key = lane.at
    family = key[:1]
    state.delete_index(key)
    if family == space.RUNNABLE_LANE:
        group = groups.group_of(state, queue, lane)
        queue.lanes.runnable_of(groups.number_of(group)).remove(key)
        if group is not None:
            groups.place(state, queue, group)
    else:
        record = gates.load(state, lane.gate)
        if family == space.TOKEN_WAITER:
            queue.lanes.token_waiters.remove(key)
            del record.timers[lane.space]
        else:
            record.lanes -= 1
        gates.save(state, lane.gate, record)
    lane.at, lane.gate = b"", b""
    if not lane.count:
        groups.part(state, queue, lane)


def park(state: State, queue: Queue, lane: Lane, gate: bytes, due_ms: int) -> None:
    """A gate stops this lane: wait for a slot (due 0) or until tokens are there.

    Of the lanes of a queue that wait for tokens of a gate the one that needs them first has the
    timer; the others wait in line and are woken when that one has had its turn.
    """
    queue.record.runnable -= lane.count
    state.touch(queue)
    _leave(state, queue, lane)
    if due_ms:
        _yield_timer(state, queue, gate, due_ms)
    record = gates.load(state, gate)
    lane.gate = gate
    if due_ms and lane.space not in record.timers:
        lane.at = queue.lanes.token_waiters.prefix + pack_u64(due_ms) + pack_u32(lane.number)
        record.timers[lane.space] = lane.at
        queue.lanes.token_waiters.insert(lane.at)
    else:
        lane.at = _slot_key(state, queue, lane)
        record.lanes += 1
    state.put_index(lane.at)
    gates.save(state, gate, record)
    _save(state, queue, lane)
    # A wake-up this lane could not use belongs to the next one behind its other gates.
    for other in lane.gates:
        if other != gate:
            wake_one(state, other)


def _yield_timer(state: State, queue: Queue, gate: bytes, due_ms: int) -> None:
    """Move the lane that has the timer of this queue into line when it would fire later."""
    timer = gates.load(state, gate).timers.get(queue.record.space, b"")
    if not timer or unpack_u64(timer, 7)[0] <= due_ms:
        return
    lane = queue.lanes.lane(state, space.lane_of(timer))
    _leave(state, queue, lane)
    lane.gate = gate
    lane.at = _slot_key(state, queue, lane)
    state.put_index(lane.at)
    record = gates.load(state, gate)
    record.lanes += 1
    gates.save(state, gate, record)
    _save(state, queue, lane)


def _slot_key(state: State, queue: Queue, lane: Lane) -> bytes:
    prefix = space.slot_waiter_prefix(lane.gate) + pack_u16(queue.record.ns)
    return prefix + pack_u32(lane.space) + _head_rank(state, queue, lane) + pack_u32(lane.number)


def _rerank_waiting(state: State, queue: Queue, lane: Lane) -> None:
    """The head of a lane behind a gate may have changed."""
    if lane.at[:1] == space.TOKEN_WAITER:
        # Another head may need fewer tokens: let it ask, and with it who waits behind its timer.
        gate = lane.gate
        retry_gate(state, queue, lane)
        wake_one(state, gate)
        return
    key = _slot_key(state, queue, lane)
    if key < lane.at:
        # More urgent than it was: a lane it would now pass may have been woken before it.
        retry_gate(state, queue, lane)
        return
    if key != lane.at:
        state.delete_index(lane.at)
        state.put_index(key)
        lane.at = key
    _save(state, queue, lane)


def wake_one(state: State, gate: bytes) -> None:
    """A gate may have room: let the first lane of every queue behind it try.

    Of every queue, since a queue may be paused, full or without workers: a room kept for it would
    be lost to the others. Cost: one seek for each queue that waits; a lane woken in vain goes back
    when it is looked at, so wake-ups never outnumber what fetches have parked.
    """
    record = gates.load(state, gate)
    if not record.lanes:
        return
    bound = gates.bound_of(state, gate)
    if bound.max and record.used >= bound.max:
        return
    prefix = space.slot_waiter_prefix(gate)
    start, until = prefix, successor(prefix)
    while found := state.scan(start, until, 1):
        key = found[0][0]
        start = successor(key[:-12])
        queue = state.spaces.get(unpack_u32(key, len(key) - 16)[0])
        if queue is not None:  # else of a cleared space: the clear takes it out of line
            lane = queue.lanes.lane(state, space.lane_of(key))
            _leave(state, queue, lane)
            make_runnable(state, queue, lane)


def drop_space_lane(state: State, ns: int, lane: Lane) -> None:
    """Remove a lane of a cleared space from every index but the runnable ones (cleared whole)."""
    if lane.gate and state.get(lane.at) is not None:
        state.delete_index(lane.at)
        record = gates.load(state, lane.gate)
        if lane.at[:1] == space.TOKEN_WAITER:
            del record.timers[lane.space]
        else:
            record.lanes -= 1
        gates.save(state, lane.gate, record)
    for gate in lane.gates:
        wake_one(state, gate)
    key = space.lane_key(ns, lane.space, lane.number)
    state.dirty_records.pop(key, None)
    state.writes[key] = None
    digest = _digest(lane.group, lane.gates)
    state.writes[space.lane_identity_key(ns, lane.space, digest)] = None


def retry_gate(state: State, queue: Queue, lane: Lane) -> None:
    """Limits changed: let a waiting lane try again."""
    if lane.gate:
        _leave(state, queue, lane)
        make_runnable(state, queue, lane)


def wake_timer(state: State, gate: bytes) -> None:
    """The rate of a gate changed: the lanes waiting for its tokens try again at once."""
    for number, timer in list(gates.load(state, gate).timers.items()):
        queue = state.spaces.get(number)
        if queue is not None:  # else of a cleared space: the clear takes it out
            retry_gate(state, queue, queue.lanes.lane(state, space.lane_of(timer)))


def wake_due(state: State, queue: Queue) -> None:
    """Let lanes whose tokens are there try again."""
    window = queue.lanes.token_waiters
    for _ in range(limits.LANE_MOVES_MAX):
        key = window.first(state)
        if key is None or unpack_u64(key, 7)[0] > state.now_ms:
            return
        lane = queue.lanes.lane(state, space.lane_of(key))
        gate = lane.gate
        _leave(state, queue, lane)
        make_runnable(state, queue, lane)
        # The best lane in line may be more urgent than the one that had the timer.
        wake_one(state, gate)


def next_token_ms(state: State, queue: Queue) -> int:
    """When the next lane waiting for tokens may try; 0 when none waits."""
    key = queue.lanes.token_waiters.first(state)
    return unpack_u64(key, 7)[0] if key is not None else 0


def first_lane(state: State, queue: Queue) -> Lane | None:
    """Return the runnable lane whose turn it is."""
    number = 0
    if queue.record.grouped:
        key = queue.lanes.runnable_groups.first(state)
        if key is None:
            return None
        number = unpack_u32(key, len(key) - 4)[0]
    key = queue.lanes.runnable_of(number).first(state)
    return queue.lanes.lane(state, space.lane_of(key)) if key is not None else None


def claimed(state: State, queue: Queue, lane: Lane, job: Job, cost: int) -> None:
    """A job of this lane was claimed: take its slots and tokens, let the next one move up."""
    queue.lanes.ready_of(lane.number).remove(job.at)
    state.delete_index(job.at)
    if queue.record.grouped:
        groups.charge(state, queue, lane.group, cost)
    for gate in lane.gates:
        gates.take(state, gate, cost)
    _shrink(state, queue, lane)
    if lane.count:
        for gate in lane.gates:
            wake_one(state, gate)


def free(state: State, queue: Queue, spec: Spec) -> None:
    """A job that held slots is active no longer: give them back and wake who waits."""
    for gate in gates_of(queue, spec):
        record = gates.load(state, gate)
        record.used -= 1
        assert record.used >= 0
        gates.save(state, gate, record)
        wake_one(state, gate)
