"""Rows of schedules and webhooks: a few columns to find them by, the rest as one JSON document.

A document holds only what changes with an event. Figures that change without one (deliveries of a
webhook, how often it failed in a row) would be as old as its last event, so they are left to the
core, which knows them.
"""

from typing import Any

import msgspec
from msgspec import Raw

from corvo.model.copied import ScheduleCopy, WebhookCopy
from corvo.model.ids import JOB, WEBHOOK, render_id
from corvo.model.job import TIER_NAMES, UNIQUE_MODE_NAMES, Spec
from corvo.model.retry import BACKOFF_NAMES
from corvo.model.schedule import CATCH_UP_NAMES, OVERLAP_NAMES, SCHEDULE

Row = tuple[Any, ...]

_encode_json = msgspec.json.Encoder().encode


def schedule_row(copy: ScheduleCopy) -> Row:
    """Values of `schedules`."""
    spec, record = copy.spec, copy.schedule
    members: dict[str, Any] = {
        "name": spec.name,
        "cron": spec.cron,
        "timezone": spec.timezone,
        "overlap": OVERLAP_NAMES[spec.overlap],
        "catch_up": CATCH_UP_NAMES[spec.catch_up],
        "jitter_ms": spec.jitter_ms,
        "start_ms": spec.start_ms or None,
        "until_ms": spec.until_ms or None,
        "created_ms": record.created_ms,
        "updated_ms": record.updated_ms,
        "paused_ms": record.paused_ms or None,
        "paused_reason": record.paused_reason or None,
        "last_slot_ms": record.last_slot_ms or None,
        "last_fired_ms": record.last_fired_ms or None,
        "last_job_id": render_id(JOB, record.last_job) if record.last_job else None,
        "fired": record.fired,
        "skipped": record.skipped,
        "job": _job_members(spec.template),
    }
    identifier = render_id(SCHEDULE, record.id)
    place = (identifier, record.ns, spec.name, spec.template.queue, record.next_ms or None)
    return (*place, _encode_json(members).decode())


def _job_members(template: Spec) -> dict[str, Any]:
    """The job of each slot."""
    unique, retry = template.unique, template.retry
    return {
        "payload": Raw(template.payload),
        "priority": TIER_NAMES[template.tier],
        "tags": template.tags or {},
        "group": template.group or None,
        "max_retries": retry.max_attempts,
        "retry_backoff": BACKOFF_NAMES[retry.backoff],
        "expire_after_ms": template.expire_after_ms or None,
        "unique_key": unique.key if unique is not None else None,
        "unique_mode": UNIQUE_MODE_NAMES[unique.mode] if unique is not None else None,
    }


def webhook_row(copy: WebhookCopy) -> Row:
    """Values of `webhooks`."""
    webhook = copy.webhook
    # Safety: a secret in SQLite would end up in whatever copies the file. Extracting takes it out;
    # this is the last place that could notice one that was not.
    assert not webhook.secret, "a secret on its way into the view"
    members = {
        "events": webhook.events,
        "queues": webhook.queues,
        "has_secret": copy.has_secret,
        "suspended": copy.is_suspended,
        "retry_limit": webhook.retry_limit,
        "timeout_ms": webhook.timeout_ms,
        "created_ms": webhook.created_ms,
        "updated_ms": webhook.updated_ms,
    }
    place = (render_id(WEBHOOK, webhook.id), webhook.ns, webhook.url, webhook.is_enabled)
    return (*place, _encode_json(members).decode())
