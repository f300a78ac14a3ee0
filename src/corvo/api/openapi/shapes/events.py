"""What happened, and how often."""

from msgspec import UNSET, Struct, UnsetType

from corvo.api.openapi.shapes.scalars import Count, Instant, Members


class Event(Struct, kw_only=True):
    """Something that happened."""

    seq: Count
    type: str
    at: Instant
    job_id: str | None
    queue: str | None
    data: Members


class EventsPage(Struct, kw_only=True):
    """Events after a sequence number, oldest first."""

    events: list[Event]
    next_after_seq: Count
    oldest_seq: Count
    last_seq: Count
    reset: bool


class JobEvent(Struct, kw_only=True):
    """Something that happened to a job."""

    seq: Count
    type: str
    at: Instant
    queue: str | None
    attempt: Count | None
    data: Members | None


class Timeline(Struct, kw_only=True):
    """What happened to a job, oldest first."""

    job_id: str
    events: list[JobEvent]
    next_after_seq: Count | None
    complete: bool | UnsetType = UNSET


class Minute(Struct, kw_only=True):
    """What happened within a minute."""

    minute: Instant
    enqueued: Count
    started: Count
    completed: Count
    failed: Count
    dead: Count


class Throughput(Struct, kw_only=True):
    """The last sixty minutes, the current one last."""

    queue: str | None
    minutes: list[Minute]
