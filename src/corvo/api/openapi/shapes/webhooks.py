"""Outgoing webhooks and their deliveries."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from corvo.api.openapi.shapes.scalars import Count, Duration, Instant


class Webhook(Struct, kw_only=True):
    """An endpoint that gets events; only the answer to a change has `index`."""

    id: str
    url: str
    events: list[str]
    queues: list[str]
    enabled: bool
    has_secret: bool
    retry_limit: Count
    timeout: Duration
    created_at: Instant | None
    updated_at: Instant | None
    status: Literal["active", "failing", "suspended", "disabled"]
    disabled_reason: str | None
    suspended_until: Instant | None
    waiting: Count
    delivered: Count
    failed: Count
    skipped: Count
    dead_letters: Count
    failures_in_a_row: Count
    last_delivery_at: Instant | None
    last_status_code: Count | None
    last_error: str | None
    cursor: Count
    index: Count | UnsetType = UNSET


class WebhookRemoval(Struct, kw_only=True):
    """The webhook is gone."""

    id: str
    status: Literal["deleted"]
    index: Count


class DeliveryEvent(Struct, kw_only=True):
    """What a delivery tells."""

    seq: Count
    type: str
    at: Instant | None
    job_id: str | None
    queue: str | None


class Delivery(Struct, kw_only=True):
    """One event for one webhook, and how its delivery went."""

    id: str
    status: str
    event: DeliveryEvent
    attempts: Count
    tried_at: Instant | None
    next_try_at: Instant | None
    status_code: Count | None
    error: str | None
    duration_ms: Count | None
    response: str | None


class Deliveries(Struct, kw_only=True):
    """The latest deliveries, newest first."""

    deliveries: list[Delivery]


class DeadLetters(Struct, kw_only=True):
    """What was given up, oldest first."""

    dead_letters: list[Delivery]
