"""What the search index answers, and operations on many jobs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from msgspec import Struct, field

from corvo_sdk.types.jobs import Batch, Priority
from corvo_sdk.values import Duration, Instant

Order = Literal["asc", "desc"]
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


class SearchFilter(TypedDict, total=False):
    """Conditions; all given ones must hold."""

    queue: str
    state: str | Sequence[str]
    priority: Priority
    tags: Mapping[str, str]
    payload_contains: str
    payload_jq: str
    error_contains: str
    error_fingerprint: str
    has_errors: bool
    worker_id: str
    batch_id: str
    parent_id: str
    chain_id: str
    unique_key: str
    group: str
    job_id_prefix: str
    attempt_min: int
    attempt_max: int
    created_after: Instant
    created_before: Instant
    scheduled_after: Instant
    scheduled_before: Instant
    started_after: Instant
    started_before: Instant
    completed_after: Instant
    completed_before: Instant
    expire_after: Instant
    expire_before: Instant


class BulkOptions(TypedDict, total=False):
    """What an action on many jobs needs to know."""

    move_to_queue: str
    reset_attempts: bool
    keep_priority: bool
    priority: Priority
    reason: str
    timeout: Duration
    timeout_action: str
    by: str
    note: str


class JobSummary(Struct, kw_only=True):
    """A job as a search shows it."""

    id: str
    queue: str
    state: str
    payload: Any = None
    priority: str = "normal"
    attempt: int = 0
    max_retries: int = 0
    run: int = 0
    created_at: datetime | None = None
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    failed_at: datetime | None = None
    finished_at: datetime | None = None
    expire_at: datetime | None = None
    worker_id: str | None = None
    tags: dict[str, str] = {}
    unique_key: str | None = None
    batch_id: str | None = None
    parent_id: str | None = None
    chain_id: str | None = None
    chain_step: int | None = None
    group: str | None = None
    last_error: str | None = None
    error_count: int = 0
    error_fingerprint: str | None = None
    hold_reason: str | None = None
    dead_reason: str | None = None
    progress: Any = None


class JobsPage(Struct, kw_only=True):
    """Jobs that match; `cursor` gives the next page."""

    jobs: list[JobSummary]
    cursor: str | None = None
    has_more: bool = False
    total: int = 0
    total_is_estimate: bool = False
    partial: bool = False  # it ran out of time and says what it found; `cursor` goes on
    hint: str | None = None
    duration_ms: int = 0


class FoundJob(JobSummary, kw_only=True):
    """A job found by words."""

    score: float = 0.0
    snippet: str | None = None
    snippet_field: str | None = None
    highlights: list[tuple[int, int]] = []


class Fulltext(Struct, kw_only=True):
    """Jobs by words, the best first."""

    q: str
    results: list[FoundJob]
    has_more: bool = False
    partial: bool = False
    duration_ms: int = 0


class DeadGroup(Struct, kw_only=True):
    """Dead jobs with one kind of error."""

    error_fingerprint: str | None = None
    dead_reason: str | None = None
    count: int = 0
    error: str | None = None
    queues: list[str] = []
    queues_count: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    job_id: str | None = None


class DeadGroups(Struct, kw_only=True):
    """Dead jobs by kind of error, the largest group first."""

    groups: list[DeadGroup]
    has_more: bool = False
    partial: bool = False


class GraphJob(Struct, kw_only=True):
    """A job in a graph."""

    id: str
    queue: str
    state: str
    attempt: int = 0
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    chain_id: str | None = None
    chain_step: int | None = None
    batch_id: str | None = None
    parent_id: str | None = None
    cloned_from: str | None = None
    depends_on: list[str] = []


class GraphEdge(Struct, kw_only=True, rename={"source": "from", "target": "to"}):
    """One job came before another: dependency, parent, clone or chain."""

    source: str
    target: str
    type: str


class Graph(Struct, kw_only=True):
    """What a job is tied to."""

    job_id: str
    chain_id: str | None = None
    batch_id: str | None = None
    jobs: list[GraphJob] = []
    edges: list[GraphEdge] = []
    truncated: bool = False
    partial: bool = False


class BatchesPage(Struct, kw_only=True):
    """Batches, the newest first."""

    batches: list[Batch]
    cursor: str | None = None
    has_more: bool = False


class StorageTotals(Struct, kw_only=True):
    """How many jobs there are, and the space of their documents."""

    jobs: int = 0
    payload_bytes: int = 0
    result_bytes: int = 0
    checkpoint_bytes: int = 0
    errors: int = 0


class QueueStorage(StorageTotals, kw_only=True):
    """The same of one queue."""

    queue: str


class Storage(Struct, kw_only=True):
    """What takes how much space."""

    queues: list[QueueStorage] = []
    totals: StorageTotals = field(default_factory=StorageTotals)
    view_bytes: int = 0
    partial: bool = False


class BulkResult(Struct, kw_only=True):
    """What was done; of a dry run, what would be; `is_accepted` when it goes on by itself."""

    affected: int = 0
    skipped: int = 0
    skipped_reasons: dict[str, int] = {}
    errors: int = 0
    duration_ms: int = 0
    bulk_operation_id: str | None = None
    status: str | None = None
    undo_until: datetime | None = None
    index: int = 0
    dry_run: bool = False
    action: str | None = None
    matched: int | None = None
    sample: list[dict[str, Any]] = []
    estimated_total: int | None = None
    progress_url: str | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether it goes on by itself; `bulk_progress` follows it."""
        return self.progress_url is not None


class Bulk(Struct, kw_only=True):
    """An operation on many jobs."""

    id: str
    status: str
    bulk_operation_id: str = ""
    action: str = ""
    queue: str | None = None
    filter: Any = None
    total: int = 0
    processed: int = 0
    percent: int = 0
    affected: int = 0
    skipped: int = 0
    skipped_reasons: dict[str, int] = {}
    errors: int = 0
    error: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    finished_at: datetime | None = None
    undo_until: datetime | None = None
    undone_at: datetime | None = None
    restored: int = 0
    not_restored: int = 0
    not_restored_reasons: dict[str, int] = {}
    index: int = 0

    @property
    def is_finished(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.status in {"completed", "aborted", "failed", "undone"}


class BulkPage(Struct, kw_only=True):
    """Operations on many jobs, the newest first."""

    operations: list[Bulk]
    cursor: str | None = None
    has_more: bool = False
