"""Operations on many jobs."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from corvo.api import wire
from corvo.api.openapi.shapes.scalars import Count, Counts, Document, Instant, State

BulkStatus = Literal["collecting", "running", "completed", "aborted", "failed", "undoing", "undone"]


class BulkSample(Struct, kw_only=True):
    """A job that an operation would change."""

    job_id: str
    queue: str
    state: State
    payload: Document


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
    sample: list[BulkSample] | UnsetType = UNSET


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
