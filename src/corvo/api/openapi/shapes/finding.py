"""Answers of the search index."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from corvo.api import wire
from corvo.api.openapi.shapes.jobs import Batch
from corvo.api.openapi.shapes.scalars import Count, Document, Instant, State


class JobSummary(Struct, kw_only=True):
    """A job as a list shows it; `GET /jobs/{id}` has the rest."""

    id: str
    queue: str
    state: State
    payload: Document
    priority: wire.Priority
    attempt: Count
    max_retries: Count
    run: Count
    created_at: Instant
    scheduled_at: Instant | None
    started_at: Instant | None
    completed_at: Instant | None
    failed_at: Instant | None
    finished_at: Instant | None
    expire_at: Instant | None
    worker_id: str | None
    tags: dict[str, str]
    unique_key: str | None
    batch_id: str | None
    parent_id: str | None
    chain_id: str | None
    chain_step: int | None
    group: str | None
    last_error: str | None
    error_count: Count
    error_fingerprint: str | None
    hold_reason: str | None
    dead_reason: str | None
    progress: Document


class JobsPage(Struct, kw_only=True):
    """Jobs that match, how many there are in all, and whether time ran out."""

    jobs: list[JobSummary]
    total: Count
    total_is_estimate: bool
    cursor: str | None
    has_more: bool
    partial: bool
    hint: str | UnsetType = UNSET  # a part without a cursor: what to ask instead
    duration_ms: Count


class DeadGroup(Struct, kw_only=True):
    """Dead jobs with one kind of error, or without one and for one reason."""

    error_fingerprint: str | None
    dead_reason: str | None
    count: Count
    error: str | None
    queues: list[str]
    queues_count: Count
    first_at: Instant | None
    last_at: Instant | None
    job_id: str


class DeadGroups(Struct, kw_only=True):
    """Dead jobs by kind of error, the largest group first."""

    groups: list[DeadGroup]
    has_more: bool
    partial: bool


class FulltextMatch(JobSummary, kw_only=True):
    """A job, how well it fits, and where; highlights are pairs of start and end."""

    score: float
    snippet: str
    snippet_field: Literal["payload", "error", "tags", "queue", "id"]
    highlights: list[list[Count]]


class FulltextAnswer(Struct, kw_only=True):
    """Jobs by words, the best first."""

    q: str
    results: list[FulltextMatch]
    has_more: bool
    partial: bool
    duration_ms: Count


class GraphJob(Struct, kw_only=True):
    """A job among those it is tied to."""

    id: str
    queue: str
    state: State
    attempt: Count
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    chain_id: str | None
    chain_step: int | None
    batch_id: str | None
    parent_id: str | None
    cloned_from: str | None
    depends_on: list[str]


class GraphEdge(Struct, kw_only=True, rename={"source": "from", "target": "to"}):
    """A tie between two jobs that are shown."""

    source: str
    target: str
    type: Literal["dependency", "parent", "clone", "chain"]


class Graph(Struct, kw_only=True):
    """What a job is tied to."""

    job_id: str
    chain_id: str | None
    batch_id: str | None
    jobs: list[GraphJob]
    edges: list[GraphEdge]
    truncated: bool
    partial: bool


class BatchesPage(Struct, kw_only=True):
    """Batches, the newest first."""

    batches: list[Batch]
    cursor: str | None
    has_more: bool


class StorageTotals(Struct, kw_only=True):
    """How many jobs, and bytes of what they carry."""

    jobs: Count
    payload_bytes: Count
    result_bytes: Count
    checkpoint_bytes: Count
    errors: Count


class QueueStorage(StorageTotals, kw_only=True):
    """What one queue takes."""

    queue: str


class Storage(Struct, kw_only=True):
    """What takes how much space."""

    queues: list[QueueStorage]
    totals: StorageTotals
    view_bytes: Count
    partial: bool
