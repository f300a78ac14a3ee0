"""Queues and named limits."""

from msgspec import UNSET, Struct, UnsetType

from corvo.api import wire
from corvo.api.openapi.shapes.scalars import Count, Duration, Instant


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
