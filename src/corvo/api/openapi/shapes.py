"""Answers as types: what the document says the server sends.

Nothing is encoded from these; the answers are put together in `render` and `views`. A fuzzer
compares the two over a real socket (tests/integration/api/test_openapi.py).
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from corvo.api import wire

Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Duration = Annotated[str, Meta(pattern=r"^(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$")]
Count = Annotated[int, Meta(ge=0)]
Document = Any  # any JSON, byte for byte as it was sent
State = Literal[
    "scheduled", "pending", "active", "retrying", "held", "completed", "dead", "cancelled"
]


class Error(Struct, kw_only=True):
    """What every refusal looks like. `code` is for programs and never renamed."""

    error: str
    code: str
    field: str | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    state: State | UnsetType = UNSET
    unique_job_id: str | UnsetType = UNSET
    retry_after_ms: Count | UnsetType = UNSET
    request_id: str | UnsetType = UNSET


class EnqueueResult(Struct, kw_only=True):
    """A new job, or the one that holds the unique key."""

    job_id: str
    status: Literal["pending", "scheduled", "held", "duplicate"]
    unique_existing: bool
    state: State | UnsetType = UNSET
    result: Document = UNSET
    replaced: bool | UnsetType = UNSET


class EnqueueAnswer(EnqueueResult, kw_only=True):
    """A job that was accepted (201), or its duplicate (200)."""

    index: Count


class EnqueueBatchAnswer(Struct, kw_only=True):
    """All jobs of a call, in its order."""

    job_ids: list[str]
    batch_id: str | None
    results: list[EnqueueResult]
    index: Count


class FetchedJob(Struct, kw_only=True):
    """A job under a lease."""

    job_id: str
    queue: str
    payload: Document
    attempt: Count
    max_retries: Count
    lease_duration: Count
    lease_token: Count
    priority: wire.Priority
    checkpoint: Document
    tags: dict[str, str]
    group: str | None
    created_at: Instant
    scheduled_at: Instant | None
    trace: Document


class FetchAnswer(FetchedJob, kw_only=True):
    """One job, and the index of the claim."""

    index: Count


class FetchBatchAnswer(Struct, kw_only=True):
    """Jobs; none when the time-out passed."""

    jobs: list[FetchedJob]
    index: Count


class EndedAnswer(Struct, kw_only=True):
    """The state the job is in now."""

    status: State
    index: Count


class SnoozedAnswer(EndedAnswer, kw_only=True):
    """The state the job is in now, and when it comes back."""

    scheduled_at: Instant | None


class FailedAnswer(EndedAnswer, kw_only=True):
    """What becomes of a failed attempt."""

    next_attempt_at: Instant | None
    attempts_remaining: Count


class AckResult(Struct, kw_only=True):
    """What became of one acknowledgement."""

    job_id: str
    status: Literal["completed", "cancelled", "rejected"] | State
    error: str | UnsetType = UNSET
    code: str | UnsetType = UNSET
    field: str | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    state: State | UnsetType = UNSET


class AckBatchAnswer(Struct, kw_only=True):
    """One result for each acknowledgement, in order."""

    acked: Count
    results: list[AckResult]
    index: Count


class Beat(Struct, kw_only=True):
    """Whether the worker still has the job."""

    status: Literal["ok", "cancel", "lost"]
    lease_expires_at: Instant | UnsetType = UNSET


class HeartbeatAnswer(Struct, kw_only=True):
    """One status for each job."""

    jobs: dict[str, Beat]
    index: Count


class JobError(Struct, kw_only=True):
    """One failed attempt."""

    attempt: Count
    run: Count
    error: str
    backtrace: str | None
    at: Instant
    started_at: Instant | None
    worker: str | None
    duration_ms: Count


class JobWorker(Struct, kw_only=True):
    """Who has or had the job."""

    id: str
    hostname: str | None


class ChainQueues(Struct, kw_only=True):
    """The queues of a chain."""

    steps: list[str]
    on_failure: str | None
    on_exit: str | None


class Job(Struct, kw_only=True):
    """A job with everything that is kept about it, but for the lease token."""

    id: str
    queue: str
    state: State
    payload: Document
    priority: wire.Priority
    attempt: Count
    max_retries: Count
    retry_backoff: wire.Backoff
    retry_base_delay: Duration
    retry_max_delay: Duration
    retry_jitter: float
    run: Count
    created_at: Instant
    scheduled_at: Instant | None
    started_at: Instant | None
    completed_at: Instant | None
    failed_at: Instant | None
    finished_at: Instant | None
    lease_expires_at: Instant | None
    cancel_requested_at: Instant | None
    expire_after: Duration | None
    expire_at: Instant | None
    unique_key: str | None
    unique_period: Count | Duration | None
    unique_mode: wire.UniqueMode | None
    batch_id: str | None
    parent_id: str | None
    chain_id: str | None
    chain_step: int | None
    chain: ChainQueues | None
    depends_on: list[str]
    on_dependency_failure: wire.DependencyPolicy | None
    blocked_by: list[str]
    cloned_from: str | None
    tags: dict[str, str]
    group: str | None
    limit_key: str | None
    limits: list[str]
    cost: Count
    progress: Document
    checkpoint: Document
    result: Document
    usage: Document
    trace: Document
    hold_reason: str | None
    hold_until: Instant | None
    hold_action: wire.HoldAction | None
    decided_by: str | None
    decided_note: str | None
    dead_reason: str | None
    errors: list[JobError]
    worker: JobWorker | None


class JobsAnswer(Struct, kw_only=True):
    """Those that exist, and who is missing."""

    jobs: list[Job]
    missing: list[str]


class JobChange(Struct, kw_only=True):
    """What a change did to a job."""

    job_id: str
    status: str
    state: State
    index: Count


class Gate(Struct, kw_only=True):
    """One condition a job must meet to be handed out."""

    gate: str
    ok: bool
    value: int | str | None
    limit: int | str | None
    changes_at: Instant | None
    detail: str | None


class Why(Struct, kw_only=True):
    """Why a job is not running."""

    job_id: str
    state: State
    runnable: bool
    gates: list[Gate]
    workers_waiting: Count


class Batch(Struct, kw_only=True):
    """A batch with its counts and its callback."""

    id: str
    total: Count
    pending: Count
    succeeded: Count
    failed: Count
    cancelled: Count
    callback_queue: str | None
    callback_payload: Document
    callback_job_id: str | None
    created_at: Instant | None
    finished_at: Instant | None


class Rate(Struct, kw_only=True):
    """A token bucket."""

    rate: Count
    period: Duration
    burst: Count


class QueueSettings(Struct, kw_only=True):
    """Settings of a queue; null is no limit, or the server's default."""

    max_concurrency: Count | None
    key_concurrency: Count | None
    rate: Rate | None
    key_rate: Rate | None
    weights: dict[str, int]
    priority_mode: wire.PriorityMode
    aging_step: Duration
    lease_duration: Duration | None
    retention: Duration | None
    retention_count: Count | None
    require_token: bool
    max_payload: Count | None
    has_webhook_secret: bool


class Totals(Struct, kw_only=True):
    """Counters that only rise."""

    enqueued: Count
    started: Count
    completed: Count
    failed: Count
    dead: Count


class Queue(Struct, kw_only=True):
    """A queue: what it is, and how many jobs are in which state."""

    name: str
    paused: bool
    draining: bool
    created_at: Instant
    scheduled: Count
    pending: Count
    active: Count
    retrying: Count
    held: Count
    completed: Count
    dead: Count
    cancelled: Count
    blocked: Count
    oldest_pending_at: Instant | None
    unique_locks: Count
    workers_waiting: Count
    totals: Totals
    settings: QueueSettings


class QueueChange(Struct, kw_only=True):
    """What a change did to a queue."""

    status: str
    index: Count


class DrainAnswer(QueueChange, kw_only=True):
    """How many jobs are still active."""

    active: Count


class RemovalAnswer(QueueChange, kw_only=True):
    """How many jobs are gone, and the operation that tidies up after them."""

    removed: Count
    operation_id: str | None


class SettingsAnswer(QueueChange, kw_only=True):
    """The settings in force."""

    settings: QueueSettings


class Limit(Struct, kw_only=True):
    """A named limit and how much of it is in use."""

    name: str
    max: Count | None
    rate: Count | None
    period: Duration | None
    burst: Count | None
    used: Count
    created_at: Instant | None


class LimitChange(Struct, kw_only=True):
    """What a change did to a limit."""

    name: str
    status: str
    index: Count


class Health(Struct, kw_only=True):
    """Whether the server takes work."""

    status: Literal["ok", "starting", "draining", "stopped"]
    view: str


class Alive(Struct, kw_only=True):
    """The process answers."""

    status: Literal["ok"]


class Info(Struct, kw_only=True):
    """Which server this is and what it can do."""

    server_version: str
    api_version: str
    features: list[str]


class Worker(Struct, kw_only=True):
    """Somebody who fetched or sent a heartbeat lately."""

    id: str
    hostname: str | None
    version: str | None
    queues: list[str]
    slots: Count | None
    jobs: Count
    last_fetch_at: Instant | None
    last_heartbeat_at: Instant | None
    started_at: Instant | None
    status: Literal["healthy", "stale", "draining"]


class ClusterStatus(Struct, kw_only=True):
    """Where the log stands, and figures of the pipeline; further members come and go."""

    mode: Literal["single"]
    phase: str
    index: Count
    chain: str
    epoch: str
    machine_version: Count


class ImportRefusal(Struct, kw_only=True):
    """A record that was not taken, by the number of its line."""

    line: Count
    code: str
    error: str
    unique_job_id: str | UnsetType = UNSET


class ImportAnswer(Struct, kw_only=True):
    """How many records of each kind were taken, and which were not."""

    queues: Count
    limits: Count
    jobs: Count
    batches: Count
    refused: list[ImportRefusal]
    index: Count


class OpenApi(Struct, kw_only=True):
    """This document."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]
    components: dict[str, Any]


# Shapes to which further members may be added without notice.
OPEN = frozenset({"ClusterStatus", "OpenApi"})
