"""Request bodies: the JSON a client may send, as structs.

Types and ranges are declared here, so that the decoder refuses a wrong one with its path before any
of our code runs. Rules between fields are in `translate`. Every optional field may also be null.
Documents (payload, result, checkpoint, ...) stay `Raw`: the bytes as they were sent.

A field of a feature that is not built yet is declared and refused by `translate`: were it ignored
as an unknown field, a guardrail the client relies on would be lost in silence.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from corvo.model import limits

ABSENT = Raw(b"")  # a document field that was not sent
EMPTY_OBJECT = Raw(b"{}")

# Integer seconds, or text such as "250ms", "5s", "1h30m"; `values.parse_duration` reads it.
Duration = int | str
# RFC 3339 with a zone; `values.parse_instant` reads it.
Instant = str

Token = Annotated[int, Meta(ge=1, le=limits.SAFE_INTEGER_MAX)]
Attempts = Annotated[int, Meta(ge=0, le=limits.ATTEMPTS_MAX)]
Cost = Annotated[int, Meta(ge=1, le=limits.COST_MAX)]
Jitter = Annotated[float, Meta(ge=0, le=1)]
Concurrency = Annotated[int, Meta(ge=0, le=limits.CONCURRENCY_MAX)]
RateCount = Annotated[int, Meta(ge=0, le=limits.RATE_MAX)]
Weight = Annotated[int, Meta(ge=1, le=limits.WEIGHT_MAX)]
Count = Annotated[int, Meta(ge=0, le=limits.SAFE_INTEGER_MAX)]

Priority = Literal["critical", "high", "normal"]
Backoff = Literal["none", "fixed", "linear", "exponential"]
UniqueMode = Literal["until_done", "until_start", "window", "replace"]
DependencyPolicy = Literal["fail", "run", "hold"]
HoldAction = Literal["none", "cancel", "approve"]
StepStatus = Literal["continue", "exit"]
PriorityMode = Literal["strict", "aging"]
Overlap = Literal["allow", "skip", "queue", "cancel"]
CatchUp = Literal["skip", "last", "all"]
BulkAction = Literal[
    "retry",
    "delete",
    "cancel",
    "move",
    "requeue",
    "change_priority",
    "hold",
    "approve",
    "reject",
]


class Nothing(Struct, kw_only=True, gc=False):
    """A body in which no field has a meaning."""


class HoldFields(Struct, kw_only=True, gc=False):
    """Enqueue held, or hold an existing job."""

    reason: str | None = None
    timeout: Duration | None = None
    timeout_action: HoldAction | None = None


class StepFields(Struct, kw_only=True, gc=False):
    """One step of a chain or one of its handlers; what is absent is inherited from the job."""

    queue: str
    payload: Raw = ABSENT
    priority: Priority | None = None
    max_retries: Attempts | None = None
    retry_backoff: Backoff | None = None
    retry_base_delay: Duration | None = None
    retry_max_delay: Duration | None = None
    retry_jitter: Jitter | None = None
    tags: dict[str, str] | None = None
    group: str | None = None
    limit_key: str | None = None
    limits: list[str] | None = None
    cost: Cost | None = None


class ChainFields(Struct, kw_only=True, gc=False):
    """A sequential pipeline; the job itself is its first step."""

    steps: list[StepFields]
    on_failure: StepFields | None = None
    on_exit: StepFields | None = None


class JobFields(Struct, kw_only=True, gc=False):
    """Everything but the queue that can be said about a job when it is enqueued or cloned."""

    payload: Raw = ABSENT
    checkpoint: Raw = ABSENT
    priority: Priority | None = None
    unique_key: str | None = None
    unique_period: Duration | None = None
    unique_mode: UniqueMode | None = None
    max_retries: Attempts | None = None
    retry_backoff: Backoff | None = None
    retry_base_delay: Duration | None = None
    retry_max_delay: Duration | None = None
    retry_jitter: Jitter | None = None
    scheduled_at: Instant | None = None
    delay: Duration | None = None
    expire_after: Duration | None = None
    tags: dict[str, str] | None = None
    group: str | None = None
    limit_key: str | None = None
    limits: list[str] | None = None
    cost: Cost | None = None
    parent_id: str | None = None
    depends_on: list[str] | None = None
    on_dependency_failure: DependencyPolicy | None = None
    chain: ChainFields | None = None
    hold: HoldFields | bool | None = None
    trace: Raw = ABSENT
    idempotency_key: str | None = None
    agent: Raw = ABSENT  # not built yet
    routing: Raw = ABSENT  # not built yet
    result_schema: Raw = ABSENT  # not built yet


class EnqueueRequest(JobFields, kw_only=True, gc=False):
    """`POST /enqueue`, and each of the jobs of `POST /enqueue/batch`."""

    queue: str


class PlainEnqueue(Struct, kw_only=True, gc=False, forbid_unknown_fields=True):
    """`POST /enqueue` with nothing but a queue and a payload, as most calls are."""

    queue: str
    payload: Raw


class BatchFields(Struct, kw_only=True, gc=False):
    """The group that the jobs of one call form, and what runs once all of them ended."""

    callback_queue: str | None = None
    callback_payload: Raw = ABSENT


class EnqueueBatchRequest(Struct, kw_only=True, gc=False):
    """`POST /enqueue/batch`."""

    jobs: Annotated[list[EnqueueRequest], Meta(min_length=1, max_length=limits.ENQUEUE_BATCH_MAX)]
    batch: BatchFields | None = None
    idempotency_key: str | None = None


class CloneFields(JobFields, kw_only=True, gc=False):
    """What a clone has different from its original."""

    queue: str | None = None


class CloneRequest(CloneFields, kw_only=True, gc=False):
    """`POST /jobs/{id}/clone`: what differs, at the top level or under `overrides`."""

    overrides: CloneFields | None = None


class FetchRequest(Struct, kw_only=True, gc=False):
    """`POST /fetch` and `POST /fetch/batch`."""

    queues: Annotated[list[str], Meta(min_length=1, max_length=limits.FETCH_QUEUES_MAX)]
    worker_id: str
    hostname: str | None = None
    timeout: Duration | None = None
    lease_duration: Duration | None = None
    count: Annotated[int, Meta(ge=1, le=limits.FETCH_COUNT_MAX)] | None = None
    concurrency: Count | None = None
    version: str | None = None
    draining: bool | None = None


class AckRequest(Struct, kw_only=True, gc=False):
    """`POST /ack/{id}`."""

    lease_token: Token | None = None
    result: Raw = ABSENT
    checkpoint: Raw = ABSENT
    step_status: StepStatus | None = None
    usage: Raw = ABSENT
    agent_status: Raw = ABSENT  # not built yet


class AckItem(AckRequest, kw_only=True, gc=False):
    """One of the acknowledgements of `POST /ack/batch`."""

    job_id: str


class AckBatchRequest(Struct, kw_only=True, gc=False):
    """`POST /ack/batch`."""

    acks: Annotated[list[AckItem], Meta(min_length=1, max_length=limits.ACK_BATCH_MAX)]


class FailRequest(Struct, kw_only=True, gc=False):
    """`POST /fail/{id}`."""

    lease_token: Token | None = None
    error: str | None = None
    backtrace: str | None = None
    retryable: bool | None = None
    retry_after: Duration | None = None
    checkpoint: Raw = ABSENT
    usage: Raw = ABSENT


class ReleaseRequest(Struct, kw_only=True, gc=False):
    """`POST /release/{id}`."""

    lease_token: Token | None = None
    checkpoint: Raw = ABSENT


class SnoozeRequest(Struct, kw_only=True, gc=False):
    """`POST /snooze/{id}`: exactly one of delay and until."""

    lease_token: Token | None = None
    delay: Duration | None = None
    until: Instant | None = None
    checkpoint: Raw = ABSENT


class HeartbeatItem(Struct, kw_only=True, gc=False):
    """What a worker reports about one of its jobs."""

    lease_token: Token | None = None
    progress: Raw = ABSENT
    checkpoint: Raw = ABSENT
    usage: Raw = ABSENT


class HeartbeatRequest(Struct, kw_only=True, gc=False):
    """`POST /heartbeat`: all jobs of a worker in one call."""

    jobs: Annotated[dict[str, HeartbeatItem], Meta(max_length=limits.HEARTBEAT_JOBS_MAX)] = {}
    worker_id: str | None = None


class MoveRequest(Struct, kw_only=True, gc=False):
    """`POST /jobs/{id}/move`."""

    queue: str
    reset_attempts: bool | None = None
    keep_priority: bool | None = None


class PriorityRequest(Struct, kw_only=True, gc=False):
    """`PUT /jobs/{id}/priority`."""

    priority: Priority


class HoldRequest(HoldFields, kw_only=True, gc=False):
    """`POST /jobs/{id}/hold`; a worker sends its token, an operator does not."""

    lease_token: Token | None = None
    checkpoint: Raw = ABSENT


class ApproveRequest(Struct, kw_only=True, gc=False):
    """`POST /jobs/{id}/approve`."""

    by: str | None = None
    note: str | None = None


class RejectRequest(Struct, kw_only=True, gc=False):
    """`POST /jobs/{id}/reject`."""

    by: str | None = None
    reason: str | None = None
    note: str | None = None


class BulkGetRequest(Struct, kw_only=True, gc=False):
    """`POST /jobs/bulk-get`."""

    job_ids: Annotated[list[str], Meta(min_length=1, max_length=limits.BULK_GET_MAX)]


class BulkRequest(HoldFields, kw_only=True, gc=False):
    """`POST /jobs/bulk`: an action, and the jobs by name or by filter."""

    action: BulkAction
    job_ids: Annotated[list[str], Meta(min_length=1, max_length=limits.BULK_IDS_MAX)] | None = None
    filter: Raw = ABSENT
    move_to_queue: str | None = None
    reset_attempts: bool | None = None
    keep_priority: bool | None = None
    priority: Priority | None = None
    by: str | None = None
    note: str | None = None
    dry_run: bool | None = None
    is_async: bool | None = field(default=None, name="async")


class RateFields(Struct, kw_only=True, gc=False):
    """A token bucket: `rate` per `period` (or `window_ms`), at most `burst` saved up."""

    rate: RateCount | None = None
    period: Duration | None = None
    window_ms: Annotated[int, Meta(ge=1, le=limits.DURATION_MS_MAX)] | None = None
    burst: RateCount | None = None


class ConcurrencyRequest(Struct, kw_only=True, gc=False):
    """`POST /queues/{name}/concurrency`; null or 0 removes."""

    max: Concurrency | None


class SettingsRequest(Struct, kw_only=True, gc=False):
    """`PATCH /queues/{name}`: absent fields stay, null or 0 removes."""

    max_concurrency: Concurrency | UnsetType | None = UNSET
    key_concurrency: Concurrency | UnsetType | None = UNSET
    rate: RateFields | UnsetType | None = UNSET
    key_rate: RateFields | UnsetType | None = UNSET
    weights: dict[str, Weight] | UnsetType | None = UNSET
    priority_mode: PriorityMode | UnsetType | None = UNSET
    aging_step: Duration | UnsetType | None = UNSET
    lease_duration: Duration | UnsetType | None = UNSET
    retention: Duration | UnsetType | None = UNSET
    retention_count: Count | UnsetType | None = UNSET
    require_token: bool | UnsetType | None = UNSET
    max_payload: Annotated[int, Meta(ge=0, le=limits.BODY_BYTES_MAX)] | UnsetType | None = UNSET
    webhook_secret: str | UnsetType | None = UNSET


class LimitRequest(RateFields, kw_only=True, gc=False):
    """`PUT /limits/{name}`."""

    max: Concurrency | None = None


class TimingFields(Struct, kw_only=True, gc=False):
    """When a schedule fires."""

    cron: str
    timezone: str | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None


class ScheduleRequest(TimingFields, kw_only=True, gc=False):
    """`POST /schedules` and `PUT /schedules/{id}`."""

    name: str
    queue: str
    payload: Raw = ABSENT
    priority: Priority | None = None
    unique_key: str | None = None
    unique_period: Duration | None = None
    unique_mode: UniqueMode | None = None
    max_retries: Attempts | None = None
    retry_backoff: Backoff | None = None
    retry_base_delay: Duration | None = None
    retry_max_delay: Duration | None = None
    retry_jitter: Jitter | None = None
    expire_after: Duration | None = None
    tags: dict[str, str] | None = None
    group: str | None = None
    limit_key: str | None = None
    limits: list[str] | None = None
    cost: Cost | None = None
    overlap: Overlap | None = None
    catch_up: CatchUp | None = None
    jitter: Duration | None = None
    paused: bool | None = None


class PreviewRequest(TimingFields, kw_only=True, gc=False):
    """`POST /schedules/preview`: the slots of an expression nobody has saved yet."""

    count: Annotated[int, Meta(ge=1, le=limits.SCHEDULE_PREVIEW_MAX)] | None = None


class BackfillRequest(Struct, kw_only=True, gc=False, rename={"start": "from", "until": "to"}):
    """`POST /schedules/{id}/backfill`: slots from `from` on and before `to`."""

    start: Instant
    until: Instant


class WebhookRequest(Struct, kw_only=True, gc=False):
    """`POST /webhooks` and `PUT /webhooks/{id}`; a secret left out of a PUT stays."""

    url: str
    events: list[str] | None = None
    queues: list[str] | None = None
    secret: str | UnsetType | None = UNSET
    enabled: bool | None = None
    retry_limit: Annotated[int, Meta(ge=0, le=limits.WEBHOOK_RETRIES_MAX)] | None = None
    timeout: Duration | None = None
