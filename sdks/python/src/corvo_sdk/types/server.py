"""Events, workers, figures, and the server itself."""

from datetime import datetime
from typing import Any

from msgspec import Struct


class Event(Struct, kw_only=True):
    """Something that happened. `reset` tells that events before `data["oldest_seq"]` are gone."""

    seq: int
    type: str
    at: datetime | None = None
    job_id: str | None = None
    queue: str | None = None
    data: dict[str, Any] = {}


class EventsPage(Struct, kw_only=True):
    """Events after a sequence number, oldest first."""

    events: list[Event]
    next_after_seq: int = 0
    oldest_seq: int = 0
    last_seq: int = 0
    reset: bool = False


class JobEvent(Struct, kw_only=True):
    """Something that happened to a job."""

    seq: int
    type: str
    at: datetime | None = None
    queue: str | None = None
    attempt: int | None = None
    data: dict[str, Any] | None = None


class Timeline(Struct, kw_only=True):
    """What happened to a job, oldest first."""

    job_id: str
    events: list[JobEvent]
    next_after_seq: int | None = None
    complete: bool = True


class Minute(Struct, kw_only=True):
    """What happened within a minute."""

    minute: datetime
    enqueued: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    dead: int = 0


class Throughput(Struct, kw_only=True):
    """The last sixty minutes, the current one last."""

    minutes: list[Minute]
    queue: str | None = None


class Health(Struct, kw_only=True):
    """Whether the server takes work: ok, starting, draining or stopped."""

    status: str
    view: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether the server takes work."""
        return self.status == "ok"


class Alive(Struct, kw_only=True):
    """The process answers."""

    status: str


class Info(Struct, kw_only=True):
    """Which server this is and what it can do."""

    server_version: str
    api_version: str
    features: list[str] = []


class WorkerInfo(Struct, kw_only=True):
    """Somebody who fetched or sent a heartbeat lately: healthy, stale or draining."""

    id: str
    status: str
    hostname: str | None = None
    version: str | None = None
    queues: list[str] = []
    slots: int | None = None
    jobs: int = 0
    last_fetch_at: datetime | None = None
    last_heartbeat_at: datetime | None = None
    started_at: datetime | None = None


class ImportRefusal(Struct, kw_only=True):
    """A record that was not taken, by the number of its line."""

    line: int
    code: str
    error: str = ""
    unique_job_id: str | None = None


class Imported(Struct, kw_only=True):
    """How many records of each kind were taken, and which were not."""

    queues: int = 0
    limits: int = 0
    jobs: int = 0
    batches: int = 0
    schedules: int = 0
    webhooks: int = 0
    refused: list[ImportRefusal] = []
    index: int = 0


class ViewPosition(Struct, kw_only=True):
    """What the search index has reached."""

    position: int
    seq: int = 0
    floor_seq: int = 0


class Rebuild(Struct, kw_only=True):
    """How far the last rebuild of the search index is: none, running or done."""

    status: str
    step: str | None = None
    reason: str | None = None
    done: int = 0
    rebuilds: int = 0
    view: str = ""
    lag: int = 0
