"""Queues and named limits."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypedDict

from msgspec import Struct, field

from corvo_sdk.values import Duration


class RateOptions(TypedDict, total=False):
    """A token bucket: `rate` per `period`, at most `burst` saved up."""

    rate: int
    period: Duration
    burst: int


class QueueOptions(TypedDict, total=False):
    """Settings of a queue to change; None removes, what is left out stays."""

    max_concurrency: int | None
    key_concurrency: int | None
    rate: RateOptions | None
    key_rate: RateOptions | None
    weights: Mapping[str, int] | None
    priority_mode: Literal["strict", "aging"] | None
    aging_step: Duration | None
    lease_duration: Duration | None
    retention: Duration | None
    retention_count: int | None
    require_token: bool | None
    max_payload: int | None
    webhook_secret: str | None


class Rate(Struct, kw_only=True):
    """A token bucket."""

    rate: int
    period: str
    burst: int


class QueueSettings(Struct, kw_only=True):
    """Settings of a queue; None is no limit, or the server's default."""

    max_concurrency: int | None = None
    key_concurrency: int | None = None
    rate: Rate | None = None
    key_rate: Rate | None = None
    weights: dict[str, int] = {}
    priority_mode: str = "strict"
    aging_step: str | None = None
    lease_duration: str | None = None
    retention: str | None = None
    retention_count: int | None = None
    require_token: bool = False
    max_payload: int | None = None
    has_webhook_secret: bool = False


class Totals(Struct, kw_only=True):
    """Counters that only rise."""

    enqueued: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    dead: int = 0


class Queue(Struct, kw_only=True):
    """A queue: what it is, and how many jobs are in which state."""

    name: str
    paused: bool = False
    draining: bool = False
    created_at: datetime | None = None
    scheduled: int = 0
    pending: int = 0
    active: int = 0
    retrying: int = 0
    held: int = 0
    completed: int = 0
    dead: int = 0
    cancelled: int = 0
    blocked: int = 0  # of the pending ones
    oldest_pending_at: datetime | None = None
    unique_locks: int = 0
    workers_waiting: int = 0
    totals: Totals = field(default_factory=Totals)
    settings: QueueSettings = field(default_factory=QueueSettings)


class QueueChange(Struct, kw_only=True):
    """What a change did to a queue."""

    status: str
    index: int = 0


class Drained(QueueChange, kw_only=True):
    """How many jobs are still active."""

    active: int = 0


class Removal(QueueChange, kw_only=True):
    """How many jobs are gone, and the operation that tidies up after them."""

    removed: int = 0
    operation_id: str | None = None
    bulk_operation_id: str | None = None


class SettingsChange(QueueChange, kw_only=True):
    """The settings in force."""

    settings: QueueSettings = field(default_factory=QueueSettings)


class Limit(Struct, kw_only=True):
    """A named limit and how much of it is in use."""

    name: str
    max: int | None = None
    rate: int | None = None
    period: str | None = None
    burst: int | None = None
    used: int = 0
    created_at: datetime | None = None


class LimitChange(Struct, kw_only=True):
    """What a change did to a limit."""

    name: str
    status: str
    index: int = 0
