"""Lines of an export about standing orders: schedules and webhooks. Part of `records`.

{"kind": "schedule", "id": "sched_…", "spec": {…as in POST /schedules…}, …}
{"kind": "webhook", "id": "wh_…", "url": …, "has_secret": true, …}
"""

from typing import Any, Final

from msgspec import Struct

from corvo.api import views, wire
from corvo.api.decode import under
from corvo.api.routes.schedules import schedule_spec
from corvo.api.routes.webhooks import patterns_of, queues_of, target_of, timeout_of
from corvo.api.translate import Context
from corvo.api.values import (
    check_id,
    check_note,
    maybe_instant,
    parse_instant,
    render_duration,
    render_instant,
)
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.ids import JOB, WEBHOOK, render_id
from corvo.model.record import ScheduleImport, WebhookImport
from corvo.model.schedule import SCHEDULE, Schedule
from corvo.model.view import ScheduleView
from corvo.scheduler import cron
from corvo.scheduler.slots import first_slot

Count = wire.Count

_SPEC_FIELDS: Final = frozenset(wire.ScheduleRequest.__struct_fields__) - {"paused"}


class ScheduleLine(Struct, kw_only=True, gc=False, tag_field="kind", tag="schedule"):
    """A schedule: what was asked for under `spec`, and how far it has come."""

    id: str
    spec: wire.ScheduleRequest
    created_at: str
    updated_at: str
    paused_at: str | None = None
    paused_reason: str | None = None
    last_slot_at: str | None = None
    last_run_at: str | None = None
    last_job_id: str | None = None
    fired: Count = 0
    skipped: Count = 0
    runs: Count = 0


class WebhookLine(wire.WebhookRequest, kw_only=True, gc=False, tag_field="kind", tag="webhook"):
    """A webhook without its secret."""

    id: str
    created_at: str
    has_secret: bool = False
    delivered: Count = 0
    failed: Count = 0
    skipped: Count = 0
    disabled_reason: str | None = None


# --- writing ----------------------------------------------------------------------------------


def schedule_members(record: ScheduleImport) -> dict[str, Any]:
    """A schedule as a line."""
    spec = record.spec
    identifier = spec.template.id
    blank = Schedule(identifier, spec.template.ns, record.created_ms, record.updated_ms)
    shown = views.schedule_members(ScheduleView(spec, blank))
    asked = {
        name: value for name, value in shown.items() if name in _SPEC_FIELDS and value is not None
    }
    return {
        "kind": "schedule",
        "id": render_id(SCHEDULE, identifier),
        "spec": asked,
        "created_at": render_instant(record.created_ms),
        "updated_at": render_instant(record.updated_ms),
        "paused_at": maybe_instant(record.paused_ms),
        "paused_reason": record.paused_reason or None,
        "last_slot_at": maybe_instant(record.last_slot_ms),
        "last_run_at": maybe_instant(record.last_fired_ms),
        "last_job_id": render_id(JOB, record.last_job) if record.last_job else None,
        "fired": record.fired,
        "skipped": record.skipped,
        "runs": record.runs or None,
    }


def webhook_members(record: WebhookImport) -> dict[str, Any]:
    """A webhook as a line."""
    return {
        "kind": "webhook",
        "id": render_id(WEBHOOK, record.id),
        "url": record.url,
        "events": record.events,
        "queues": record.queues,
        "enabled": record.is_enabled,
        "has_secret": record.has_secret,
        "retry_limit": record.retry_limit,
        "timeout": render_duration(record.timeout_ms),
        "created_at": render_instant(record.created_ms),
        "delivered": record.delivered,
        "failed": record.failed,
        "skipped": record.skipped,
        "disabled_reason": record.disabled_reason or None,
    }


# --- reading ----------------------------------------------------------------------------------


def schedule_of(line: ScheduleLine, ns: int, context: Context, now_ms: int) -> ScheduleImport:
    """Read a schedule; it goes on with the first slot that neither server has decided on."""
    identifier = check_id(SCHEDULE, line.id, "id")
    try:
        spec = schedule_spec(line.spec, ns, context, identifier)
        timing = cron.parse(spec.cron, spec.timezone)
    except RequestError as error:
        raise under("spec", error) from error
    last_slot_ms = _instant(line.last_slot_at, "last_slot_at")
    paused_ms = _instant(line.paused_at, "paused_at")
    next_ms = 0 if paused_ms else first_slot(timing, spec, max(now_ms, last_slot_ms))
    last_job = b"" if line.last_job_id is None else check_id(JOB, line.last_job_id, "last_job_id")
    return ScheduleImport(
        spec,
        parse_instant(line.created_at, "created_at"),
        parse_instant(line.updated_at, "updated_at"),
        next_ms,
        paused_ms,
        check_note(line.paused_reason, "paused_reason"),
        last_slot_ms,
        _instant(line.last_run_at, "last_run_at"),
        last_job,
        line.fired,
        line.skipped,
        line.runs,
    )


def webhook_of(line: WebhookLine) -> WebhookImport:
    """Read a webhook. The guard looks at its address whenever something is sent."""
    if isinstance(line.secret, str):
        raise RequestError("an import takes no secrets", field="secret", hint="set it afterwards")
    target_of(line.url)
    retries = line.retry_limit
    return WebhookImport(
        check_id(WEBHOOK, line.id, "id"),
        line.url,
        patterns_of(line.events),
        queues_of(line.queues),
        line.enabled is not False,
        line.has_secret,
        limits.WEBHOOK_RETRIES_DEFAULT if retries is None else retries,
        timeout_of(line.timeout),
        parse_instant(line.created_at, "created_at"),
        line.delivered,
        line.failed,
        line.skipped,
        check_note(line.disabled_reason, "disabled_reason"),
    )


def _instant(text: str | None, name: str) -> int:
    return 0 if text is None else parse_instant(text, name)
