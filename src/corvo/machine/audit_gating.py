"""Invariants of gating: slots, lanes, groups. `audit` runs them with the rest."""

from collections import Counter

from corvo.keys import codec, space
from corvo.keys.order import successor, unpack_u32
from corvo.machine.picture import Picture, pairs
from corvo.model import job as jb
from corvo.model.job import Job
from corvo.model.queue import Lane

Place = tuple[int, int]  # (space, lane)


def _gates(picture: Picture, job: Job) -> list[bytes]:
    spec = picture.specs[job.id]
    own = [space.queue_gate(job.ns, job.queue_id, spec.limit_key)] if spec.limit_key else []
    return own + [space.limit_gate(job.ns, name) for name in spec.limits]


def slots(picture: Picture) -> list[str]:
    """Slots in use at every gate equal its active jobs; waiting lanes equal the waiting list."""
    used: Counter[bytes] = Counter()
    for job in picture.jobs.values():
        if job.state == jb.ACTIVE and job.flags & jb.FLAG_GATED:
            used.update(_gates(picture, job))
    behind: Counter[bytes] = Counter(
        key[1:-19] for key, _ in pairs(picture.store, space.SLOT_WAITER)
    )
    found: list[str] = []
    seen: list[bytes] = []
    for key, value in pairs(picture.store, space.GATE):
        gate = codec.decode_gate(value)
        seen.append(key[1:])
        if gate.used != used[key[1:]]:
            found.append(f"gate {key!r} counts {gate.used} slots, {used[key[1:]]} are in use")
        if gate.lanes != behind[key[1:]]:
            found.append(f"gate {key!r} counts {gate.lanes} lanes, {behind[key[1:]]} wait")
        if any(picture.store.get(timer) is None for timer in gate.timers.values()):
            found.append(f"gate {key!r} has a timer that is not armed")
    found += [f"gate {gate!r} is in use but not stored" for gate in used if gate not in seen]
    return found


def lanes(picture: Picture) -> list[str]:
    """A lane is where its record says and nowhere else; its count equals its ready jobs."""
    found: list[str] = []
    ready: Counter[Place] = Counter()
    for key, _ in pairs(picture.store, space.READY):
        ready[unpack_u32(key, 3)[0], unpack_u32(key, 7)[0]] += 1
    keys = _lane_keys(picture)
    current = {queue.space: queue for queue in picture.queues.values() if not queue.deleted}
    runnable: Counter[int] = Counter()
    for place, lane in picture.lanes.items():
        if place[0] in current:
            found += _lane(picture, place, lane, ready[place], keys.get(place, []))
            runnable[place[0]] += lane.count * (lane.at[:1] == space.RUNNABLE_LANE)
    for number, queue in current.items():
        if queue.laned and runnable[number] != queue.runnable:
            found.append(
                f"queue {queue.name} says {queue.runnable} runnable, {runnable[number]} are"
            )
        strays = [k for k in ready if k[0] == number and queue.laned and k not in picture.lanes]
        found += [f"ready jobs of lane {stray} without a lane record" for stray in strays]
    return found


def _lane_keys(picture: Picture) -> dict[Place, list[bytes]]:
    """Every index entry of every lane."""
    keys: dict[Place, list[bytes]] = {}
    for family in (space.RUNNABLE_LANE, space.TOKEN_WAITER):
        for key, _ in pairs(picture.store, family):
            keys.setdefault((unpack_u32(key, 3)[0], space.lane_of(key)), []).append(key)
    for key, _ in pairs(picture.store, space.SLOT_WAITER):
        place = (unpack_u32(key, len(key) - 16)[0], space.lane_of(key))
        keys.setdefault(place, []).append(key)
    return keys


def _lane(picture: Picture, place: Place, lane: Lane, ready: int, keys: list[bytes]) -> list[str]:
    found: list[str] = []
    if lane.count != ready or not lane.count:
        found.append(f"lane {place} counts {lane.count}, {ready} are ready")
    if keys != [lane.at]:
        found.append(f"lane {place} is at {keys}, its record says {lane.at!r}")
    if lane.at[:1] == space.RUNNABLE_LANE:
        heads = picture.store.scan(*_lane_range(lane, picture), 1)
        if heads and heads[0][0][11:19] != lane.at[11:19]:
            found.append(f"lane {place} is ranked by a job that is not its head")
    return found


def _lane_range(lane: Lane, picture: Picture) -> tuple[bytes, bytes]:
    ns = picture.queues[lane.queue_id].ns
    prefix = space.ready_prefix(ns, lane.space, lane.number)
    return prefix, successor(prefix)


def groups(picture: Picture) -> list[str]:
    """A group with a runnable lane is in the index of runnable groups exactly once."""
    found: list[str] = []
    current = {queue.space for queue in picture.queues.values() if not queue.deleted}
    indexed: dict[tuple[int, int], list[bytes]] = {}
    for key, _ in pairs(picture.store, space.RUNNABLE_GROUP):
        place = (unpack_u32(key, 3)[0], unpack_u32(key, len(key) - 4)[0])
        indexed.setdefault(place, []).append(key)
    has_lane = {
        (unpack_u32(key, 3)[0], unpack_u32(key, 7)[0])
        for key, _ in pairs(picture.store, space.RUNNABLE_LANE)
    }
    members: Counter[tuple[int, str]] = Counter(
        (number, lane.group) for (number, _), lane in picture.lanes.items()
    )
    for key, value in pairs(picture.store, space.GROUP):
        number = unpack_u32(key, 3)[0]
        group = codec.decode_group(value)
        if number not in current:
            continue
        expected = [group.at] if group.at else []
        if indexed.get((number, group.number), []) != expected:
            found.append(f"group {group.name!r} of space {number} is not where it says")
        if ((number, group.number) in has_lane) != bool(group.at):
            found.append(f"group {group.name!r} of space {number} runnable: {bool(group.at)}")
        if group.lanes != members[number, group.name]:
            found.append(
                f"group {group.name!r} counts {group.lanes} lanes, "
                f"there are {members[number, group.name]}"
            )
    return found
