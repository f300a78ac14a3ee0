"""A job, a batch, and what changes to them answer."""

from msgspec import Struct

from corvo.api import wire
from corvo.api.openapi.shapes.scalars import Count, Document, Duration, Instant, State


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
    schedule_id: str | None
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
