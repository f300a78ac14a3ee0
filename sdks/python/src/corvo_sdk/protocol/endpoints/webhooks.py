"""Webhooks."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from corvo_sdk.protocol.call import Call, Repeat, Request
from corvo_sdk.protocol.endpoints.making import command, read, reader, rendered, write
from corvo_sdk.types.jobs import Enqueued
from corvo_sdk.types.webhooks import DeadLetters, Deliveries, Delivery, Webhook, WebhookRemoval
from corvo_sdk.values import API, Instant, maybe_instant, segment, with_query

_DELIVERY_S: Final = 30.0  # how long one try may take
_WEBHOOKS: Final = reader(list[Webhook])
_WEBHOOK: Final = reader(Webhook)
_REMOVAL: Final = reader(WebhookRemoval)
_DELIVERY: Final = reader(Delivery)
_DELIVERIES: Final = reader(Deliveries)
_DEAD_LETTERS: Final = reader(DeadLetters)
_ENQUEUED: Final = reader(Enqueued)


def webhooks() -> Call[list[Webhook]]:
    """`GET /webhooks`."""
    return read("/webhooks", _WEBHOOKS)


def webhook(webhook_id: str) -> Call[Webhook]:
    """`GET /webhooks/{id}`."""
    return read(f"/webhooks/{segment(webhook_id)}", _WEBHOOK)


def create_webhook(url: str, options: Mapping[str, Any]) -> Call[Webhook]:
    """`POST /webhooks`."""
    return write("POST", "/webhooks", {"url": url, **rendered(options)}, _WEBHOOK)


def replace_webhook(webhook_id: str, url: str, options: Mapping[str, Any]) -> Call[Webhook]:
    """`PUT /webhooks/{id}`."""
    body = {"url": url, **rendered(options)}
    path = f"/webhooks/{segment(webhook_id)}"
    return write("PUT", path, body, _WEBHOOK, repeat=Repeat.ALWAYS)


def delete_webhook(webhook_id: str) -> Call[WebhookRemoval]:
    """`DELETE /webhooks/{id}`."""
    return command("DELETE", f"/webhooks/{segment(webhook_id)}", _REMOVAL)


def test_webhook(webhook_id: str) -> Call[Delivery]:
    """`POST /webhooks/{id}/test`."""
    path = f"/webhooks/{segment(webhook_id)}/test"
    return command("POST", path, _DELIVERY, wait_s=_DELIVERY_S)


def deliveries(webhook_id: str) -> Call[Deliveries]:
    """`GET /webhooks/{id}/deliveries`."""
    return read(f"/webhooks/{segment(webhook_id)}/deliveries", _DELIVERIES)


def redeliver(webhook_id: str, delivery_id: str) -> Call[Delivery]:
    """`POST /webhooks/{id}/deliveries/{delivery}/redeliver`."""
    path = f"/webhooks/{segment(webhook_id)}/deliveries/{segment(delivery_id)}/redeliver"
    return command("POST", path, _DELIVERY, wait_s=_DELIVERY_S)


def dead_letters(webhook_id: str) -> Call[DeadLetters]:
    """`GET /webhooks/{id}/dead-letters`."""
    return read(f"/webhooks/{segment(webhook_id)}/dead-letters", _DEAD_LETTERS)


def post_webhook(
    queue: str,
    body: object,
    *,
    key: str,
    priority: str | None,
    unique_key: str | None,
    max_retries: int | None,
    scheduled_at: Instant | None,
    tags: Mapping[str, str] | None,
    headers: Mapping[str, str] | None,
) -> Call[Enqueued]:
    """`POST /webhooks/{name}`: what another service would send; bytes are sent as they are."""
    query = {
        "priority": priority,
        "unique_key": unique_key,
        "max_retries": max_retries,
        "scheduled_at": maybe_instant(scheduled_at),
        "tags": ",".join(f"{name}:{value}" for name, value in tags.items()) if tags else None,
    }
    encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
    sent = {"content-type": "application/json", "idempotency-key": key, **(headers or {})}
    target = with_query(f"{API}/webhooks/{segment(queue)}", query)
    return Call(Request("POST", target, sent, encoded), _ENQUEUED, Repeat.ALWAYS)
