"""Export and import of standing orders: schedules make jobs, webhooks tell of them.

What stands here goes on by itself, so an import must not repeat what the other server has done: a
schedule goes on with the first slot after the import, a webhook with the events after it. A secret
is never exported. A webhook that had one comes back switched off and says so, since deliveries
without a signature are what its receiver must refuse.
"""

from msgspec.structs import replace

from corvo.keys import codec, space
from corvo.keys.order import pack_u16, successor
from corvo.machine import schedules, webhooks
from corvo.machine.state import State
from corvo.model import ids, outcome
from corvo.model import schedule as sc
from corvo.model.command import CreateWebhook, SetSchedule
from corvo.model.outcome import Rejected
from corvo.model.record import ScheduleImport, WebhookImport

SECRET_MISSING = "the secret is not part of an export: set it, then enable the webhook"  # noqa: S105 - a sentence


def export_schedules(state: State, ns: int, after: bytes, limit: int) -> list[ScheduleImport]:
    """Schedules whose id follows."""
    prefix = space.SCHEDULE + pack_u16(ns)
    start = prefix + after + b"\x00" if after else prefix
    found = [codec.decode_schedule(raw) for _, raw in state.scan(start, successor(prefix), limit)]
    return [
        ScheduleImport(
            schedules.load_spec(state, ns, record.id),
            record.created_ms,
            record.updated_ms,
            record.next_ms,
            record.paused_ms,
            record.paused_reason,
            record.last_slot_ms,
            record.last_fired_ms,
            record.last_job,
            record.fired,
            record.skipped,
            record.runs,
        )
        for record in found
    ]


def export_webhooks(state: State, ns: int) -> list[WebhookImport]:
    """All webhooks of a namespace; neither their secrets nor what waits for them."""
    return [
        WebhookImport(
            view.webhook.id,
            view.webhook.url,
            view.webhook.events,
            view.webhook.queues,
            view.webhook.is_enabled,
            bool(view.webhook.secret) or view.webhook.disabled_reason == SECRET_MISSING,
            view.webhook.retry_limit,
            view.webhook.timeout_ms,
            view.webhook.created_ms,
            view.progress.delivered,
            view.progress.failed,
            view.progress.skipped,
            view.webhook.disabled_reason,
        )
        for view in webhooks.read_webhooks(state, ns)
    ]


def take_schedule(state: State, ns: int, record: ScheduleImport) -> Rejected | None:
    """Set up a schedule with its history."""
    spec = record.spec
    identifier = spec.template.id
    if schedules.load(state, ns, identifier) is not None:
        name = ids.render_id(sc.SCHEDULE, identifier)
        return Rejected(outcome.ALREADY_EXISTS, f"the schedule {name} exists already")
    is_paused = record.paused_ms > 0
    command = SetSchedule(ns, identifier, spec, record.next_ms, True, is_paused)
    answer = schedules.set_schedule(state, command)
    if isinstance(answer, Rejected):
        return answer
    made = schedules.load(state, ns, identifier)
    assert made is not None, "it was set just now"
    made.created_ms, made.updated_ms = record.created_ms, record.updated_ms
    made.paused_ms, made.paused_reason = record.paused_ms, record.paused_reason
    made.last_slot_ms, made.last_fired_ms = record.last_slot_ms, record.last_fired_ms
    made.last_job, made.fired = record.last_job, record.fired
    made.skipped, made.runs = record.skipped, record.runs
    state.writes[space.schedule_key(ns, identifier)] = codec.encode(made)
    return None


def take_webhook(state: State, ns: int, record: WebhookImport) -> Rejected | None:
    """Set up a webhook; switched off when its secret is missing."""
    if webhooks.read_webhook(state, ns, record.id) is not None:
        name = ids.render_id(ids.WEBHOOK, record.id)
        return Rejected(outcome.ALREADY_EXISTS, f"the webhook {name} exists already")
    command = CreateWebhook(
        ns,
        record.id,
        record.url,
        record.events,
        record.queues,
        "",
        record.is_enabled and not record.has_secret,
        record.retry_limit,
        record.timeout_ms,
    )
    answer = webhooks.create_webhook(state, command)
    if isinstance(answer, Rejected):
        return answer
    found = webhooks.read_webhook(state, ns, record.id)
    assert found is not None, "it was created just now"
    reason = SECRET_MISSING if record.has_secret else record.disabled_reason
    made = replace(found.webhook, created_ms=record.created_ms, disabled_reason=reason)
    state.writes[space.webhook_key(ns, record.id)] = codec.encode(made)
    progress = found.progress
    progress.delivered, progress.failed = record.delivered, record.failed
    progress.skipped = record.skipped
    state.writes[space.webhook_progress_key(ns, record.id)] = codec.encode(progress)
    return None
