"""Groups: fair queueing between the groups of a queue, with weights.

Start-time fair queueing in integers: a group's next claim starts at max(clock, its last finish) and
finishes cost/weight later; the group with the smallest start goes first, tiers before that. The
clock of a queue is the start of its last claim.
"""

from corvo.keys import codec, space
from corvo.keys.order import pack_u32, pack_u64, successor, unpack_u64
from corvo.machine.state import Queue, State
from corvo.model.queue import Group, Lane

SHARE = 1 << 16  # virtual time of a claim of cost 1 by a group of weight 1
IDLE_MS = 600_000  # how long the finish time of an idle group is remembered


def number_of(group: Group | None) -> int:
    return group.number if group is not None else 0


def group_of(state: State, queue: Queue, lane: Lane, *, joins: bool = False) -> Group | None:
    """Return the group of a lane; None while the queue has never had a group."""
    record = queue.record
    if not record.grouped:
        if not lane.group:
            return None
        _start_grouping(state, queue)
    group = queue.lanes.group(state, lane.group)
    if group is None:
        assert joins, "a lane of a group that does not exist"
        number = 0
        if lane.group:
            record.lanes += 1
            number = record.lanes
        group = Group(lane.group, number, finish=record.clock)
        queue.lanes.groups[lane.group] = group
        queue.lanes.by_number[number] = group
    group.lanes += joins
    return group


def _start_grouping(state: State, queue: Queue) -> None:
    """The first grouped job: lanes so far become the unnamed group."""
    record = queue.record
    record.grouped = True
    state.touch(queue)
    state.expose_records()
    prefix = space.lane_key(record.ns, record.space, 0)[:7]
    start, until = prefix, successor(prefix)
    count = 0
    while found := state.scan(start, until, 1_000):
        count += sum(not codec.decode_lane(value).group for _, value in found)
        start = found[-1][0] + b"\x00"
    if not count:
        return
    group = Group("", 0, finish=record.clock, lanes=count)
    queue.lanes.groups[""] = group
    queue.lanes.by_number[0] = group
    place(state, queue, group)


def part(state: State, queue: Queue, lane: Lane) -> None:
    if not queue.record.grouped:
        return
    group = group_of(state, queue, lane)
    assert group is not None
    group.lanes -= 1
    if not group.lanes and not group.cleanup_ms:
        group.cleanup_ms = state.now_ms + IDLE_MS
        rest = pack_u32(queue.record.id) + pack_u32(queue.record.space) + group.name.encode()
        state.add_deadline(group.cleanup_ms, space.DEADLINE_GROUP, queue.record.ns, rest)
    _save(state, queue, group)


def _save(state: State, queue: Queue, group: Group) -> None:
    key = space.group_key(queue.record.ns, queue.record.space, group.name)
    state.dirty_records[key] = group


def place(state: State, queue: Queue, group: Group) -> None:
    """Rank a group by the tier of its best runnable lane and its virtual start."""
    best = queue.lanes.runnable_of(group.number).first(state)
    key = b""
    if best is not None:
        start = unpack_u64(group.at, 8)[0] if group.at else max(queue.record.clock, group.finish)
        tier = best[11] >> 4
        prefix = queue.lanes.runnable_groups.prefix
        key = prefix + bytes((tier,)) + pack_u64(start) + pack_u32(group.number)
    _move(state, queue, group, key)


def _move(state: State, queue: Queue, group: Group, key: bytes) -> None:
    if key != group.at:
        window = queue.lanes.runnable_groups
        if group.at:
            window.remove(group.at)
            state.delete_index(group.at)
        if key:
            window.insert(key)
            state.put_index(key)
        group.at = key
    _save(state, queue, group)


def charge(state: State, queue: Queue, group_name: str, cost: int) -> None:
    """A group was served: its next claim starts where this one finishes."""
    group = queue.lanes.group(state, group_name)
    assert group is not None
    assert group.at
    record = queue.record
    start = unpack_u64(group.at, 8)[0]
    weight = (record.settings.weights or {}).get(group_name, 1)
    record.clock = max(record.clock, start)
    group.finish = start + cost * SHARE // weight
    _move(state, queue, group, b"")


def forget_idle(state: State, queue: Queue, name: str) -> None:
    """The deadline of an idle group came: forget it, or note that it is alive again."""
    group = queue.lanes.group(state, name)
    if group is None:
        return
    group.cleanup_ms = 0
    if group.lanes:
        _save(state, queue, group)
        return
    key = space.group_key(queue.record.ns, queue.record.space, name)
    state.dirty_records.pop(key, None)
    state.writes[key] = None
    queue.lanes.forget_group(group)
