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
    bulk_operation_id: str | UnsetType | None = UNSET


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
    schedules: Count
    webhooks: Count
    refused: list[ImportRefusal]
    index: Count


Members = dict[str, Any]  # an object whose members docs/reference/http.md lists
Counts = dict[str, Count]


class JobsPage(Struct, kw_only=True):
    """Summaries of jobs that match; further members tell how many there are."""

    jobs: list[Members]
    cursor: str | None
    has_more: bool


class DeadGroups(Struct, kw_only=True):
    """Dead jobs by kind of error, the largest group first."""

    groups: list[Members]
    has_more: bool
    partial: bool


class FulltextAnswer(Struct, kw_only=True):
    """Jobs by words, the best first."""

    q: str
    results: list[Members]
    has_more: bool
    partial: bool
    duration_ms: Count


class Graph(Struct, kw_only=True):
    """What a job is tied to."""

    job_id: str
    chain_id: str | None
    batch_id: str | None
    jobs: list[Members]
    edges: list[Members]
    truncated: bool
    partial: bool


class BatchesPage(Struct, kw_only=True):
    """Batches, the newest first."""

    batches: list[Batch]
    cursor: str | None
    has_more: bool


class Storage(Struct, kw_only=True):
    """What takes how much space."""

    queues: list[Members]
    totals: Members
    view_bytes: Count
    partial: bool


BulkStatus = Literal["collecting", "running", "completed", "aborted", "failed", "undoing", "undone"]


class BulkAnswer(Struct, kw_only=True):
    """What was done; of a dry run, what would be."""

    affected: Count
    skipped: Count
    skipped_reasons: Counts
    errors: Count
    duration_ms: Count
    bulk_operation_id: str | UnsetType = UNSET
    status: BulkStatus | UnsetType = UNSET
    undo_until: Instant | UnsetType | None = UNSET
    index: Count | UnsetType = UNSET
    dry_run: bool | UnsetType = UNSET
    action: wire.BulkAction | UnsetType = UNSET
    matched: Count | UnsetType = UNSET
    sample: list[Members] | UnsetType = UNSET


class BulkAccepted(Struct, kw_only=True):
    """An operation that goes on by itself."""

    bulk_operation_id: str
    status: Literal["processing"] | BulkStatus
    estimated_total: Count
    progress_url: str
    index: Count


class Bulk(Struct, kw_only=True):
    """An operation on many jobs; `index` only in the answer to a change."""

    id: str
    bulk_operation_id: str
    status: BulkStatus
    action: wire.BulkAction
    queue: str | None
    filter: Document
    total: Count
    processed: Count
    percent: Count
    affected: Count
    skipped: Count
    skipped_reasons: Counts
    errors: Count
    error: str | None
    created_at: Instant
    updated_at: Instant
    finished_at: Instant | None
    undo_until: Instant | None
    undone_at: Instant | None
    restored: Count
    not_restored: Count
    not_restored_reasons: Counts
    index: Count | UnsetType = UNSET


class BulkPage(Struct, kw_only=True):
    """Operations, the newest first."""

    operations: list[Bulk]
    cursor: str | None
    has_more: bool


class Schedule(Struct, kw_only=True):
    """A schedule; a list leaves `payload` out, and only a change has `index`."""

    id: str
    name: str
    cron: str
    timezone: str
    status: Literal["active", "paused", "finished"]
    paused: bool
    paused_at: Instant | None
    paused_reason: str | None
    next_run_at: Instant | None
    last_run_at: Instant | None
    last_slot_at: Instant | None
    last_job_id: str | None
    fired: Count
    skipped: Count
    overlap: wire.Overlap
    catch_up: wire.CatchUp
    jitter: Duration
    start_at: Instant | None
    end_at: Instant | None
    created_at: Instant
    updated_at: Instant
    queue: str
    payload: Document = UNSET
    priority: wire.Priority
    max_retries: Count
    retry_backoff: wire.Backoff
    retry_base_delay: Duration
    retry_max_delay: Duration
    retry_jitter: float
    expire_after: Duration | None
    unique_key: str | None
    unique_period: Count | Duration | None
    unique_mode: wire.UniqueMode | None
    tags: dict[str, str]
    group: str | None
    limit_key: str | None
    limits: list[str]
    cost: Count
    index: Count | UnsetType = UNSET


class ScheduleChange(Struct, kw_only=True):
    """What a change did to a schedule."""

    id: str
    name: str
    status: str
    next_run_at: Instant | None
    index: Count


class ScheduleRun(Struct, kw_only=True):
    """The job that was made."""

    job_id: str
    status: str
    index: Count


class BackfillAnswer(Struct, kw_only=True):
    """The jobs that were made for past slots."""

    status: str
    slots: Count
    skipped: Count
    job_ids: list[str]
    index: Count


class Runs(Struct, kw_only=True):
    """Slots to come."""

    runs: list[Instant]


class Webhook(Struct, kw_only=True):
    """An endpoint that gets events; only the answer to a change has `index`."""

    id: str
    url: str
    events: list[str]
    queues: list[str]
    enabled: bool
    has_secret: bool
    retry_limit: Count
    timeout: Duration
    created_at: Instant | None
    updated_at: Instant | None
    status: Literal["active", "failing", "suspended", "disabled"]
    disabled_reason: str | None
    suspended_until: Instant | None
    waiting: Count
    delivered: Count
    failed: Count
    skipped: Count
    dead_letters: Count
    failures_in_a_row: Count
    last_delivery_at: Instant | None
    last_status_code: Count | None
    last_error: str | None
    cursor: Count
    index: Count | UnsetType = UNSET


class WebhookRemoval(Struct, kw_only=True):
    """The webhook is gone."""

    id: str
    status: Literal["deleted"]
    index: Count


class DeliveryEvent(Struct, kw_only=True):
    """What a delivery tells."""

    seq: Count
    type: str
    at: Instant | None
    job_id: str | None
    queue: str | None


class Delivery(Struct, kw_only=True):
    """One event for one webhook, and how its delivery went."""

    id: str
    status: str
    event: DeliveryEvent
    attempts: Count
    tried_at: Instant | None
    next_try_at: Instant | None
    status_code: Count | None
    error: str | None
    duration_ms: Count | None
    response: str | None


class Deliveries(Struct, kw_only=True):
    """The latest deliveries, newest first."""

    deliveries: list[Delivery]


class DeadLetters(Struct, kw_only=True):
    """What was given up, oldest first."""

    dead_letters: list[Delivery]


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


class ViewPosition(Struct, kw_only=True):
    """What the search index has reached."""

    position: Count
    seq: Count
    floor_seq: Count


class Rebuild(Struct, kw_only=True):
    """How far the last rebuild of the search index is."""

    status: Literal["none", "running", "done"]
    step: str | None
    reason: str | None
    done: Count
    rebuilds: Count


class RebuildProgress(Rebuild, kw_only=True):
    """How far the last rebuild is, and whether the search index is up."""

    view: str
    lag: Count


class OpenApi(Struct, kw_only=True):
    """This document."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]
    components: dict[str, Any]


# Shapes to which further members may be added without notice.
OPEN = frozenset({"ClusterStatus", "JobsPage", "OpenApi"})
