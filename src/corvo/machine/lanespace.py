"""Caches of the lanes and groups of one queue. Pure look-up; the rules are in `lanes`."""

from typing import Protocol

from corvo.keys import codec, space
from corvo.keys.order import pack_u32, successor
from corvo.machine.window import Scanner, Window
from corvo.model.queue import Group, Lane


class Source(Scanner, Protocol):
    """What lanes are loaded from: `State`, seen through the two calls needed here."""

    def get(self, key: bytes) -> bytes | None:
        """Read a value, the entry's own writes first."""
        ...


class LaneSpace:
    """Lanes, groups and their ordered indexes within one space, loaded as they are met."""

    __slots__ = (
        "by_number",
        "by_pair",
        "groups",
        "is_new",
        "lanes",
        "ns",
        "ready",
        "runnable",
        "runnable_groups",
        "space",
        "token_waiters",
    )

    def __init__(self, ns: int, number: int, *, is_new: bool) -> None:
        self.ns = ns
        self.space = number
        self.is_new = is_new  # nothing of it is in the store yet
        self.lanes: dict[int, Lane] = {}
        self.by_pair: dict[tuple[str, tuple[bytes, ...]], Lane] = {}  # by group and gates
        self.ready: dict[int, Window] = {}  # by lane
        self.groups: dict[str, Group] = {}
        self.by_number: dict[int, Group] = {}
        self.runnable: dict[int, Window] = {}  # lanes that may run, by group
        prefix = space.runnable_group_prefix(ns, number)
        self.runnable_groups = Window(prefix, successor(prefix), complete=is_new)
        prefix = space.token_waiter_prefix(ns, number)
        self.token_waiters = Window(prefix, successor(prefix), complete=is_new)

    def lane(self, source: Source, number: int) -> Lane:
        """Load a lane that exists."""
        lane = self.lanes.get(number)
        if lane is None:
            raw = source.get(space.lane_key(self.ns, self.space, number))
            assert raw is not None, "an index names a lane that does not exist"
            lane = self.lanes[number] = codec.decode_lane(raw)
        return lane

    def find(self, source: Source, digest: bytes) -> Lane | None:
        """Find a lane that is not in the cache by the digest of its identity."""
        if self.is_new:
            return None
        raw = source.get(space.lane_identity_key(self.ns, self.space, digest))
        if raw is None:
            return None
        lane = self.lane(source, int.from_bytes(raw, "big"))
        self.by_pair[lane.group, lane.gates] = lane
        return lane

    def ready_of(self, lane: int, *, is_new: bool = False) -> Window:
        """Return the window over the ready jobs of a lane."""
        window = self.ready.get(lane)
        if window is None:
            prefix = space.ready_prefix(self.ns, self.space, lane)
            window = self.ready[lane] = Window(prefix, successor(prefix), complete=is_new)
        return window

    def runnable_of(self, group: int, *, is_new: bool = False) -> Window:
        """Return the window over the runnable lanes of a group."""
        window = self.runnable.get(group)
        if window is None:
            prefix = space.runnable_lane_prefix(self.ns, self.space, group)
            window = self.runnable[group] = Window(prefix, successor(prefix), complete=is_new)
        return window

    def group(self, source: Source, name: str) -> Group | None:
        """Find a group by name."""
        group = self.groups.get(name)
        if group is None and not self.is_new:
            raw = source.get(space.group_key(self.ns, self.space, name))
            if raw is not None:
                group = self.groups[name] = codec.decode_group(raw)
                self.by_number[group.number] = group
        return group

    def forget_lane(self, lane: Lane) -> None:
        """Drop the caches of a lane that no longer exists."""
        self.lanes.pop(lane.number, None)
        self.by_pair.pop((lane.group, lane.gates), None)
        self.ready.pop(lane.number, None)

    def forget_group(self, group: Group) -> None:
        """Drop the caches of a group that no longer exists."""
        self.groups.pop(group.name, None)
        self.by_number.pop(group.number, None)
        self.runnable.pop(group.number, None)

    def runnable_key(self, group: int, rank: bytes, lane: int) -> bytes:
        """Key of a runnable lane."""
        return space.runnable_lane_prefix(self.ns, self.space, group) + rank + pack_u32(lane)
