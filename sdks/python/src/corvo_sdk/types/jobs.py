"""Jobs: as they are enqueued, and as they are read."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from msgspec import Struct

from corvo_sdk.values import Duration, Instant, duration_text, instant_text

Priority = Literal["critical", "high", "normal"]
Backoff = Literal["none", "fixed", "linear", "exponential"]
UniqueMode = Literal["until_done", "until_start", "window", "replace"]
DependencyPolicy = Literal["fail", "run", "hold"]
HoldAction = Literal["none", "cancel", "approve"]


class HoldOptions(TypedDict, total=False):
    """How a job waits for somebody's decision."""

    reason: str
    timeout: Duration
    timeout_action: HoldAction


class EnqueueOptions(TypedDict, total=False):
    """What can be said about a job besides queue and payload; docs/reference/http.md explains each.

    `idempotency_key` is made by the client when it is left out.
    """

    checkpoint: Any
    priority: Priority
    unique_key: str
    unique_period: Duration
    unique_mode: UniqueMode
    max_retries: int
    retry_backoff: Backoff
    retry_base_delay: Duration
    retry_max_delay: Duration
    retry_jitter: float
    scheduled_at: Instant
    expire_after: Duration
    tags: Mapping[str, str]
    group: str
    limit_key: str
    limits: Sequence[str]
    cost: int
    parent_id: str
    depends_on: Sequence[str]
    on_dependency_failure: DependencyPolicy
    chain: Mapping[str, Any]
    hold: bool | HoldOptions
    trace: Any
    idempotency_key: str


_DURATIONS = ("unique_period", "retry_base_delay", "retry_max_delay", "expire_after")


class NewJob(Struct, omit_defaults=True):
    """A job to enqueue. `payload` is any value with a JSON form, or `msgspec.Raw` as it is."""

    queue: str
    payload: Any = None
    checkpoint: Any = None
    priority: Priority | None = None
    unique_key: str | None = None
    unique_period: Duration | None = None
    unique_mode: UniqueMode | None = None
    max_retries: int | None = None
    retry_backoff: Backoff | None = None
    retry_base_delay: Duration | None = None
    retry_max_delay: Duration | None = None
    retry_jitter: float | None = None
    scheduled_at: Instant | None = None
    expire_after: Duration | None = None
    tags: Mapping[str, str] | None = None
    group: str | None = None
    limit_key: str | None = None
    limits: Sequence[str] | None = None
    cost: int | None = None
    parent_id: str | None = None
    depends_on: Sequence[str] | None = None
    on_dependency_failure: DependencyPolicy | None = None
    chain: Mapping[str, Any] | None = None
    hold: bool | HoldOptions | None = None
    trace: Any = None
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        for name in _DURATIONS:
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, duration_text(value))
        if self.scheduled_at is not None:
            self.scheduled_at = instant_text(self.scheduled_at)
        if isinstance(self.hold, dict) and "timeout" in self.hold:
            self.hold = {**self.hold, "timeout": duration_text(self.hold["timeout"])}


class EnqueueResult(Struct, kw_only=True):
    """A new job, or the one that holds the unique key."""

    job_id: str
    status: str  # pending, scheduled, held or duplicate
    unique_existing: bool = False
    state: str | None = None  # of the holder
    result: Any = None  # of the holder, in mode `window`
    replaced: bool = False  # the holder has the new payload

    @property
    def is_duplicate(self) -> bool:
        """Whether another job holds the unique key, and `job_id` names it."""
        return self.unique_existing


class Enqueued(EnqueueResult, kw_only=True):
    """The answer to one enqueue."""

    index: int = 0


class EnqueuedMany(Struct, kw_only=True):
    """The answer to an enqueue of many jobs, in their order."""

    job_ids: list[str]
    results: list[EnqueueResult]
    batch_id: str | None = None
    index: int = 0


class JobError(Struct, kw_only=True):
    """One failed attempt."""

    attempt: int
    error: str
    at: datetime
    run: int = 0
    backtrace: str | None = None
    started_at: datetime | None = None
    worker: str | None = None
    duration_ms: int = 0


class JobWorker(Struct, kw_only=True):
    """Who has or had the job."""

    id: str
    hostname: str | None = None


class ChainQueues(Struct, kw_only=True):
    """The queues of a chain."""

    steps: list[str] = []
    on_failure: str | None = None
    on_exit: str | None = None


class Job(Struct, kw_only=True):
    """A job with everything that is kept about it."""

    id: str
    queue: str
    state: str
    payload: Any = None
    priority: str = "normal"
    attempt: int = 0
    max_retries: int = 0
    retry_backoff: str = ""
    retry_base_delay: str = ""
    retry_max_delay: str = ""
    retry_jitter: float = 0.0
    run: int = 0
    created_at: datetime | None = None
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    failed_at: datetime | None = None
    finished_at: datetime | None = None
    lease_expires_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    expire_after: str | None = None
    expire_at: datetime | None = None
    unique_key: str | None = None
    unique_period: int | str | None = None
    unique_mode: str | None = None
    batch_id: str | None = None
    parent_id: str | None = None
    chain_id: str | None = None
    chain_step: int | None = None
    chain: ChainQueues | None = None
    depends_on: list[str] = []
    on_dependency_failure: str | None = None
    blocked_by: list[str] = []
    cloned_from: str | None = None
    schedule_id: str | None = None
    tags: dict[str, str] = {}
    group: str | None = None
    limit_key: str | None = None
    limits: list[str] = []
    cost: int = 1
    progress: Any = None
    checkpoint: Any = None
    result: Any = None
    usage: Any = None
    trace: Any = None
    hold_reason: str | None = None
    hold_until: datetime | None = None
    hold_action: str | None = None
    decided_by: str | None = None
    decided_note: str | None = None
    dead_reason: str | None = None
    errors: list[JobError] = []
    worker: JobWorker | None = None

    @property
    def is_settled(self) -> bool:
        """Whether it has ended: completed, dead or cancelled."""
        return self.state in {"completed", "dead", "cancelled"}


class JobChange(Struct, kw_only=True):
    """What a change did to a job."""

    job_id: str
    status: str
    state: str
    index: int = 0


class Jobs(Struct, kw_only=True):
    """Those that exist, and who is missing."""

    jobs: list[Job]
    missing: list[str] = []


class Gate(Struct, kw_only=True):
    """One condition a job must meet to be handed out."""

    gate: str
    ok: bool
    value: int | str | None = None
    limit: int | str | None = None
    changes_at: datetime | None = None
    detail: str | None = None


class Why(Struct, kw_only=True):
    """Why a job is not running."""

    job_id: str
    state: str
    runnable: bool
    gates: list[Gate] = []
    workers_waiting: int = 0


class Batch(Struct, kw_only=True):
    """A batch with its counts and its callback."""

    id: str
    total: int = 0
    pending: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    callback_queue: str | None = None
    callback_payload: Any = None
    callback_job_id: str | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None
