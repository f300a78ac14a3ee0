"""Lines of an export as types: what an import decodes them into. Part of `records`."""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

from corvo.api import wire
from corvo.api.routes import standing
from corvo.model import limits

Count = wire.Count
State = Literal[
    "scheduled", "pending", "active", "retrying", "held", "completed", "dead", "cancelled"
]


class HeaderLine(Struct, kw_only=True, gc=False, tag_field="kind", tag="header"):
    """The first line of an export."""

    format: int
    index: Count = 0
    at: str | None = None
    server_version: str | None = None


class EndLine(Struct, kw_only=True, gc=False, tag_field="kind", tag="end"):
    """The last line: without it the export is not whole."""

    queues: Count
    limits: Count
    jobs: Count
    batches: Count
    schedules: Count = 0
    webhooks: Count = 0


class TotalsFields(Struct, kw_only=True, gc=False):
    """Counters that only rise."""

    enqueued: Count = 0
    started: Count = 0
    completed: Count = 0
    failed: Count = 0
    dead: Count = 0


class QueueLine(Struct, kw_only=True, gc=False, tag_field="kind", tag="queue"):
    """A queue."""

    name: str
    created_at: str
    paused: bool = False
    draining: bool = False
    settings: wire.SettingsRequest = field(default_factory=wire.SettingsRequest)
    totals: TotalsFields = field(default_factory=TotalsFields)


class LimitLine(wire.LimitRequest, kw_only=True, gc=False, tag_field="kind", tag="limit"):
    """A named limit."""

    name: str
    created_at: str | None = None


class ErrorLine(Struct, kw_only=True, gc=False):
    """One failed attempt."""

    attempt: Count
    run: Count
    error: str
    at: str
    backtrace: str | None = None
    started_at: str | None = None
    worker: str | None = None
    duration_ms: Count = 0


class ChainLine(wire.ChainFields, kw_only=True, gc=False):
    """A chain, and where in it the job stands: -1 is its on_exit handler, -2 its on_failure."""

    id: str
    step: Annotated[int, Meta(ge=-2, le=limits.CHAIN_STEPS_MAX)]


class JobLine(Struct, kw_only=True, gc=False, tag_field="kind", tag="job"):
    """A job: what was asked for under `spec`, and what became of it."""

    id: str
    queue: str
    state: State
    spec: wire.EnqueueRequest
    priority: wire.Priority
    created_at: str
    max_retries: Annotated[int, Meta(ge=1, le=limits.SAFE_INTEGER_MAX)]
    chain: ChainLine | None = None
    batch_id: str | None = None
    cloned_from: str | None = None
    schedule_id: str | None = None
    attempt: Count = 0
    run: Annotated[int, Meta(ge=0, le=2**31)] = 0
    due_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    worker: str | None = None
    hostname: str | None = None
    checkpoint: Raw = wire.ABSENT
    result: Raw = wire.ABSENT
    progress: Raw = wire.ABSENT
    usage: Raw = wire.ABSENT
    errors: Annotated[list[ErrorLine], Meta(max_length=limits.ERRORS_KEPT_LAST + 1)] = []
    errors_total: Count = 0
    blocked_by: Annotated[list[str], Meta(max_length=limits.DEPENDS_ON_MAX)] = []
    unique_until: str | None = None
    expire_at: str | None = None
    failed_at: str | None = None
    cancel_requested_at: str | None = None
    hold_until: str | None = None
    hold_action: wire.HoldAction | None = None
    hold_reason: str | None = None
    dead_reason: str | None = None
    decided_by: str | None = None
    decided_note: str | None = None
    extra_attempts: Count = 0
    counted: bool = False
    parent_failed: bool = False


class BatchLine(Struct, kw_only=True, gc=False, tag_field="kind", tag="batch"):
    """A batch and those of its members that have not ended."""

    id: str
    total: Count
    succeeded: Count
    failed: Count
    cancelled: Count
    members: Annotated[list[str], Meta(max_length=limits.ENQUEUE_BATCH_MAX)] = []
    callback_queue: str | None = None
    callback_payload: Raw = wire.ABSENT
    callback_job_id: str | None = None
    created_at: str | None = None
    finished_at: str | None = None


Line = (
    HeaderLine
    | QueueLine
    | LimitLine
    | JobLine
    | BatchLine
    | standing.ScheduleLine
    | standing.WebhookLine
    | EndLine
)
