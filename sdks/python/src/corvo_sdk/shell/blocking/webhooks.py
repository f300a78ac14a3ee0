"""Webhooks."""

from collections.abc import Mapping
from os import urandom
from typing import Unpack

from corvo_sdk.protocol.endpoints import webhooks
from corvo_sdk.shell.blocking.running import Runner
from corvo_sdk.types.jobs import Enqueued, Priority
from corvo_sdk.types.webhooks import Delivery, Webhook, WebhookOptions, WebhookRemoval
from corvo_sdk.values import Instant


class Webhooks(Runner):
    """Calls about endpoints that get events, and about incoming requests."""

    def webhooks(self) -> list[Webhook]:
        """List webhooks, the oldest first."""
        return self._run(webhooks.webhooks())

    def webhook(self, webhook_id: str) -> Webhook:
        """Read a webhook."""
        return self._run(webhooks.webhook(webhook_id))

    def create_webhook(self, url: str, **options: Unpack[WebhookOptions]) -> Webhook:
        """Create a webhook; it gets what happens from now on."""
        return self._run(webhooks.create_webhook(url, options))

    def replace_webhook(
        self, webhook_id: str, url: str, **options: Unpack[WebhookOptions]
    ) -> Webhook:
        """Replace a webhook; a secret left out stays."""
        return self._run(webhooks.replace_webhook(webhook_id, url, options))

    def delete_webhook(self, webhook_id: str) -> WebhookRemoval:
        """Remove a webhook and its dead letters."""
        return self._run(webhooks.delete_webhook(webhook_id))

    def test_webhook(self, webhook_id: str) -> Delivery:
        """Send a test event now; the answer tells how it went."""
        return self._run(webhooks.test_webhook(webhook_id))

    def deliveries(self, webhook_id: str) -> list[Delivery]:
        """The latest deliveries, newest first."""
        return (self._run(webhooks.deliveries(webhook_id))).deliveries

    def redeliver(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Try a delivery once more, now."""
        return self._run(webhooks.redeliver(webhook_id, delivery_id))

    def dead_letters(self, webhook_id: str) -> list[Delivery]:
        """What was given up, oldest first."""
        return (self._run(webhooks.dead_letters(webhook_id))).dead_letters

    def post_webhook(
        self,
        queue: str,
        body: object,
        *,
        priority: Priority | None = None,
        unique_key: str | None = None,
        max_retries: int | None = None,
        scheduled_at: Instant | None = None,
        tags: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Enqueued:
        """Send what another service would send: the body becomes the payload of a job."""
        call = webhooks.post_webhook(
            queue,
            body,
            key=idempotency_key or urandom(16).hex(),
            priority=priority,
            unique_key=unique_key,
            max_retries=max_retries,
            scheduled_at=scheduled_at,
            tags=tags,
            headers=headers,
        )
        return self._run(call)
