"""What the screens know: the parts of the server's answers that are shown, decoded tolerantly.

Every field but a name has a default and unknown fields are ignored, so that a screen of one
version reads a server of another.
"""

from typing import Any

from msgspec import Struct


class Totals(Struct, frozen=True):
    """Counters of a queue; they only rise."""

    enqueued: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    dead: int = 0


class Queue(Struct, frozen=True):
    """A queue as `GET /queues` tells it."""

    name: str
    paused: bool = False
    draining: bool = False
    pending: int = 0
    blocked: int = 0
    active: int = 0
    scheduled: int = 0
    retrying: int = 0
    held: int = 0
    completed: int = 0
    dead: int = 0
    cancelled: int = 0
    oldest_pending_at: str | None = None
    workers_waiting: int = 0
    totals: Totals = Totals()


class Job(Struct, frozen=True):
    """A job as a search summarises it."""

    id: str
    queue: str = ""
    state: str = ""
    payload: Any = None
    priority: str = ""
    attempt: int = 0
    max_retries: int = 0
    created_at: str | None = None
    scheduled_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    failed_at: str | None = None
    worker_id: str | None = None
    last_error: str | None = None
    error_count: int = 0
    dead_reason: str | None = None
    hold_reason: str | None = None


class JobsPage(Struct, frozen=True):
    """One page of a search."""

    jobs: list[Job] = []
    total: int = 0
    total_is_estimate: bool = False
    cursor: str | None = None
    has_more: bool = False
    partial: bool = False


class Group(Struct, frozen=True):
    """Dead jobs with the same kind of error."""

    error_fingerprint: str | None = None
    dead_reason: str | None = None
    count: int = 0
    error: str | None = None
    queues: list[str] = []
    queues_count: int = 0
    first_at: str | None = None
    last_at: str | None = None

    @property
    def key(self) -> str:
        """What tells this group from others."""
        return self.error_fingerprint or f"reason:{self.dead_reason}"


class Groups(Struct, frozen=True):
    """The largest groups of dead jobs."""

    groups: list[Group] = []
    has_more: bool = False
    partial: bool = False


class Worker(Struct, frozen=True):
    """A worker the server has heard of lately."""

    id: str
    hostname: str | None = None
    version: str | None = None
    queues: list[str] = []
    slots: int | None = None
    jobs: int = 0
    last_fetch_at: str | None = None
    last_heartbeat_at: str | None = None
    started_at: str | None = None
    status: str = ""

    @property
    def seen_at(self) -> str | None:
        """When it was last heard of."""
        return max(self.last_fetch_at or "", self.last_heartbeat_at or "") or None


class Timing(Struct, frozen=True):
    """A histogram of the server, in short."""

    count: int = 0
    p50_us: int = 0
    p99_us: int = 0


class View(Struct, frozen=True):
    """How far the search index has come."""

    state: str = "off"
    index: int = 0
    lag: int = 0


class Status(Struct, frozen=True):
    """Where the server stands."""

    mode: str = ""
    phase: str = ""
    index: int = 0
    fsync: str = ""
    workers_count: int = 0
    sync_time: Timing = Timing()
    apply_time: Timing = Timing()
    queue_time: Timing = Timing()
    view: View = View()


class Info(Struct, frozen=True):
    """Who answers."""

    server_version: str = ""


class Minute(Struct, frozen=True):
    """What happened in one minute."""

    enqueued: int = 0
    completed: int = 0
    failed: int = 0


class Throughput(Struct, frozen=True):
    """The last sixty minutes."""

    minutes: list[Minute] = []


class Gate(Struct, frozen=True):
    """One condition a job must meet to be handed out."""

    gate: str
    ok: bool = False
    value: Any = None
    limit: Any = None
    changes_at: str | None = None
    detail: str | None = None


class Why(Struct, frozen=True):
    """Why a job is not running."""

    state: str = ""
    runnable: bool = False
    gates: list[Gate] = []
    workers_waiting: int = 0


class Event(Struct, frozen=True):
    """Something that happened to a job."""

    seq: int
    type: str = ""
    at: str = ""
    attempt: int | None = None
    data: dict[str, Any] | None = None


class Timeline(Struct, frozen=True):
    """What happened to a job, oldest first."""

    events: list[Event] = []
    next_after_seq: int | None = None


class BulkResult(Struct, frozen=True):
    """What an operation on many jobs did, would do, or has done so far."""

    bulk_operation_id: str = ""
    status: str = ""
    affected: int = 0
    skipped: int = 0
    skipped_reasons: dict[str, int] = {}
    errors: int = 0
    matched: int = 0
    estimated_total: int = 0
    percent: int = 0
    undo_until: str | None = None
    restored: int = 0
    not_restored: int = 0
