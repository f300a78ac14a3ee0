"""Schedules: what an operator wrote (`ScheduleSpec`) and how far it has come (`Schedule`).

The machine knows instants only. Which instants an expression means is worked out above it, where
there are calendars and time zones, and comes in with the commands: the next slot is an integer.

A **slot** is one instant a schedule names. The id of its job is derived from (schedule, slot), so
however often and by whomever a slot is fired, there is one job.
"""

from hashlib import blake2b

from msgspec import Struct

from corvo.model.ids import derive_id
from corvo.model.job import Spec

OVERLAP_ALLOW, OVERLAP_SKIP, OVERLAP_QUEUE, OVERLAP_CANCEL = range(4)
OVERLAP_NAMES = ("allow", "skip", "queue", "cancel")

CATCH_UP_SKIP, CATCH_UP_LAST, CATCH_UP_ALL = range(3)
CATCH_UP_NAMES = ("skip", "last", "all")

SCHEDULE = "sched_"


class ScheduleSpec(Struct, frozen=True, array_like=True, gc=False):
    """What an operator asked for; replaced as a whole."""

    name: str  # unique within the namespace
    cron: str  # as written; the machine never reads it
    timezone: str  # IANA name; the machine never reads it
    template: Spec  # the job of each slot; its id is that of the schedule
    overlap: int = OVERLAP_ALLOW
    catch_up: int = CATCH_UP_LAST
    jitter_ms: int = 0  # a slot is fired up to this much later, by a stable hash
    start_ms: int = 0  # first instant that may be a slot; 0: no bound
    until_ms: int = 0  # first instant that may not; 0: no bound


class Schedule(Struct, array_like=True, gc=False):
    """How far a schedule has come; small, rewritten by every firing."""

    id: bytes
    ns: int
    created_ms: int
    updated_ms: int
    revision: int = 1  # raised by every change: a firing worked out for an older one is void
    next_ms: int = 0  # the slot that is fired next; 0: paused, or there is none any more
    paused_ms: int = 0  # 0: not paused
    paused_reason: str = ""  # why the server itself paused it
    last_slot_ms: int = 0  # newest slot decided on, fired or not
    last_fired_ms: int = 0  # when a job was last made, whatever for
    last_job: bytes = b""  # the job overlap looks at; may be gone by now
    fired: int = 0  # jobs made
    skipped: int = 0  # slots decided against: overlap, unique key, a refused job
    runs: int = 0  # jobs made by hand; the ordinal of the next one's id
    backlog: int = 0  # late slots fired in a row: bounds what catch_up `all` may do


def slot_job_id(schedule_id: bytes, slot_ms: int) -> bytes:
    """Name the job of a slot. It carries the slot's time, so jobs sort as slots do."""
    slot_s = slot_ms // 1_000
    derived = derive_id(schedule_id, slot_s >> 32, "slot", slot_s & 0xFFFF_FFFF)
    return slot_ms.to_bytes(6, "big") + derived[6:]


def manual_job_id(schedule_id: bytes, at_ms: int, ordinal: int) -> bytes:
    """Name the n-th job that somebody asked for by hand."""
    return at_ms.to_bytes(6, "big") + derive_id(schedule_id, 0, "manual", ordinal)[6:]


def due_ms(schedule_id: bytes, spec: ScheduleSpec, slot_ms: int) -> int:
    """When a slot is fired: at its time, or later by a jitter that is the same everywhere."""
    if not spec.jitter_ms:
        return slot_ms
    digest = blake2b(schedule_id + slot_ms.to_bytes(8, "big"), digest_size=8).digest()
    return slot_ms + int.from_bytes(digest, "big") % (spec.jitter_ms + 1)
