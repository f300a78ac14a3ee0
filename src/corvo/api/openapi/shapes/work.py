"""Answers to producers and workers."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from corvo.api import wire
from corvo.api.openapi.shapes.scalars import Count, Document, Instant, State


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
