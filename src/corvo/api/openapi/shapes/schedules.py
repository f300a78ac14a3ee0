"""Schedules."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from corvo.api import wire
from corvo.api.openapi.shapes.scalars import Count, Document, Duration, Instant


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
