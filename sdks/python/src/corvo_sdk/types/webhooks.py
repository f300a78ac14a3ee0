"""Webhooks and their deliveries."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict

from msgspec import Struct

from corvo_sdk.values import Duration


class WebhookOptions(TypedDict, total=False):
    """What can be said about a webhook besides its address."""

    events: Sequence[str]
    queues: Sequence[str]
    secret: str | None
    enabled: bool
    retry_limit: int
    timeout: Duration


class Webhook(Struct, kw_only=True):
    """An endpoint that gets events."""

    id: str
    url: str
    events: list[str] = []
    queues: list[str] = []
    enabled: bool = True
    has_secret: bool = False
    retry_limit: int = 0
    timeout: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    status: str = ""
    suspended_until: datetime | None = None
    disabled_reason: str | None = None
    waiting: int = 0
    delivered: int = 0
    failed: int = 0
    skipped: int = 0
    dead_letters: int = 0
    failures_in_a_row: int = 0
    last_delivery_at: datetime | None = None
    last_status_code: int | None = None
    last_error: str | None = None
    cursor: int = 0
    index: int = 0


class WebhookRemoval(Struct, kw_only=True):
    """The webhook is gone."""

    id: str
    status: str
    index: int = 0


class DeliveryEvent(Struct, kw_only=True):
    """What a delivery tells."""

    seq: int
    type: str
    at: datetime | None = None
    job_id: str | None = None
    queue: str | None = None


class Delivery(Struct, kw_only=True):
    """One event for one webhook, and how its delivery went."""

    id: str
    status: str
    event: DeliveryEvent
    attempts: int = 0
    tried_at: datetime | None = None
    next_try_at: datetime | None = None
    status_code: int | None = None
    error: str | None = None
    duration_ms: int | None = None
    response: str | None = None


class Deliveries(Struct, kw_only=True):
    """The latest deliveries, newest first."""

    deliveries: list[Delivery]


class DeadLetters(Struct, kw_only=True):
    """What was given up, oldest first."""

    dead_letters: list[Delivery]
