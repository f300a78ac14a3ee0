"""Schedules."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from msgspec import Struct

from corvo_sdk.types.jobs import Backoff, Priority, UniqueMode
from corvo_sdk.values import Duration, Instant


class ScheduleOptions(TypedDict, total=False):
    """What can be said about a schedule besides name, cron, queue and payload."""

    timezone: str
    start_at: Instant
    end_at: Instant
    priority: Priority
    unique_key: str
    unique_period: Duration
    unique_mode: UniqueMode
    max_retries: int
    retry_backoff: Backoff
    retry_base_delay: Duration
    retry_max_delay: Duration
    retry_jitter: float
    expire_after: Duration
    tags: Mapping[str, str]
    group: str
    limit_key: str
    limits: Sequence[str]
    cost: int
    overlap: Literal["allow", "skip", "queue", "cancel"]
    catch_up: Literal["skip", "last", "all"]
    jitter: Duration
    paused: bool


class Schedule(Struct, kw_only=True):
    """A schedule; a list leaves the payload out."""

    id: str
    name: str
    cron: str
    queue: str
    timezone: str = "UTC"
    status: str = "active"
    paused: bool = False
    paused_at: datetime | None = None
    paused_reason: str | None = None
    next_run_at: datetime | None = None
    last_run_at: datetime | None = None
    last_slot_at: datetime | None = None
    last_job_id: str | None = None
    fired: int = 0
    skipped: int = 0
    overlap: str = "allow"
    catch_up: str = "last"
    jitter: str = "0s"
    start_at: datetime | None = None
    end_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    payload: Any = None
    priority: str = "normal"
    max_retries: int = 0
    retry_backoff: str = ""
    retry_base_delay: str = ""
    retry_max_delay: str = ""
    retry_jitter: float = 0.0
    expire_after: str | None = None
    unique_key: str | None = None
    unique_period: int | str | None = None
    unique_mode: str | None = None
    tags: dict[str, str] = {}
    group: str | None = None
    limit_key: str | None = None
    limits: list[str] = []
    cost: int = 1
    index: int = 0


class ScheduleChange(Struct, kw_only=True):
    """What a change did to a schedule."""

    id: str
    name: str
    status: str
    next_run_at: datetime | None = None
    index: int = 0


class ScheduleRun(Struct, kw_only=True):
    """The job that was made."""

    job_id: str
    status: str
    index: int = 0


class Backfill(Struct, kw_only=True):
    """The jobs that were made for past slots."""

    status: str
    slots: int = 0
    skipped: int = 0
    job_ids: list[str] = []
    index: int = 0


class Runs(Struct, kw_only=True):
    """Slots to come."""

    runs: list[datetime]
