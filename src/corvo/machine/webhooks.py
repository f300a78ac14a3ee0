"""Outgoing webhooks: who wants which events, how far their delivery has come, dead letters.

The machine sends nothing. It keeps what must survive: the endpoints, the cursor of each, and what
could not be delivered. The dispatcher outside reads the feed, sends, and reports here.
"""

from msgspec.structs import replace

from corvo.keys import codec, space
from corvo.keys.order import pack_u64, successor
from corvo.machine.state import State
from corvo.model import event as ev
from corvo.model import ids, limits, outcome
from corvo.model.command import CreateWebhook, DeleteWebhook, RecordDeliveries, ReplaceWebhook
from corvo.model.event import Event
from corvo.model.outcome import Rejected, Swept, WebhookChanged
from corvo.model.webhook import DeadLetter, Progress, Try, Webhook, WebhookView


def create_webhook(state: State, command: CreateWebhook) -> WebhookChanged | Rejected:
    """Set up an endpoint; it gets what happens after this command."""
    if state.get(space.webhook_key(command.ns, command.id)) is not None:
        return Rejected(outcome.VALIDATION_ERROR, "this id is taken", field="id")
    prefix = space.webhook_prefix(command.ns)
    if len(state.scan(prefix, successor(prefix), limits.WEBHOOKS_MAX)) >= limits.WEBHOOKS_MAX:
        return Rejected(
            outcome.TOO_MANY_WEBHOOKS, f"there are {limits.WEBHOOKS_MAX} webhooks already"
        )
    position = state.position()
    _note(state, ev.WEBHOOK_CREATED, command.ns, command.id)
    webhook = Webhook(
        command.id,
        command.ns,
        command.url,
        command.events,
        command.queues,
        command.secret,
        command.is_enabled,
        command.retry_limit,
        command.timeout_ms,
        state.now_ms,
        state.now_ms,
        position,
    )
    state.writes[space.webhook_key(command.ns, command.id)] = codec.encode(webhook)
    _save(state, command.ns, command.id, _from_now(state, position))
    return WebhookChanged("created")


def replace_webhook(state: State, command: ReplaceWebhook) -> WebhookChanged | Rejected:
    """Change an endpoint; somebody looked after it, so a suspension ends."""
    found = read_webhook(state, command.ns, command.id)
    if found is None:
        return _unknown()
    old, progress = found.webhook, found.progress
    position = state.position()
    _note(state, ev.WEBHOOK_UPDATED, command.ns, command.id)
    if command.is_enabled and not old.is_enabled:
        # What happened while it was switched off was not wanted.
        fresh = _from_now(state, position)
        progress.epoch, progress.index, progress.seq = fresh.epoch, fresh.index, fresh.seq
        progress.done = []
    progress.failures = progress.rounds = progress.suspended_ms = 0
    webhook = replace(
        old,
        url=command.url,
        events=command.events,
        queues=command.queues,
        secret=old.secret if command.secret is None else command.secret,
        is_enabled=command.is_enabled,
        retry_limit=command.retry_limit,
        timeout_ms=command.timeout_ms,
        updated_ms=state.now_ms,
        version=position,
        disabled_reason="",
    )
    state.writes[space.webhook_key(command.ns, command.id)] = codec.encode(webhook)
    _save(state, command.ns, command.id, progress)
    return WebhookChanged("updated")


def delete_webhook(state: State, command: DeleteWebhook) -> WebhookChanged | Rejected:
    """Remove an endpoint and everything kept for it."""
    ns, webhook_id = command.ns, command.id
    found = read_webhook(state, ns, webhook_id)
    if found is None:
        return _unknown()
    state.writes[space.webhook_key(ns, webhook_id)] = None
    state.writes[space.webhook_progress_key(ns, webhook_id)] = None
    for key in _letter_keys(state, ns, webhook_id, limits.WEBHOOK_LETTERS_MAX):
        state.writes[key] = None
    for number in range(min(found.progress.tries, limits.WEBHOOK_TRIES_KEPT)):
        state.writes[space.webhook_try_key(ns, webhook_id, number)] = None
    _note(state, ev.WEBHOOK_DELETED, ns, webhook_id)
    return WebhookChanged("deleted")


def record_deliveries(state: State, command: RecordDeliveries) -> Swept:
    """Take a report of the dispatcher. Emits nothing, unless an endpoint falls ill or recovers."""
    found = read_webhook(state, command.ns, command.id)
    if found is None:
        return Swept(0)
    progress = found.progress
    if command.epoch == progress.epoch and command.seq >= progress.seq:
        progress.index, progress.seq = max(progress.index, command.index), command.seq
        progress.done = command.done
    progress.delivered += command.delivered
    progress.failed += command.failed
    progress.skipped += command.skipped
    progress.failures, progress.rounds = command.failures, command.rounds
    _suspend(state, command, progress)
    if command.last_ms >= progress.last_ms:
        progress.last_ms, progress.last_status = command.last_ms, command.last_status
        progress.last_error = command.last_error
    _file_letters(state, command, progress)
    for line in command.tries[-limits.WEBHOOK_TRIES_KEPT :]:
        key = space.webhook_try_key(command.ns, command.id, progress.tries)
        state.writes[key] = codec.encode(line)
        progress.tries += 1
    _save(state, command.ns, command.id, progress)
    return Swept(command.delivered + command.failed)


def _suspend(state: State, command: RecordDeliveries, progress: Progress) -> None:
    if bool(command.suspended_ms) != bool(progress.suspended_ms):
        kind = ev.WEBHOOK_SUSPENDED if command.suspended_ms else ev.WEBHOOK_RESUMED
        _note(state, kind, command.ns, command.id)
    progress.suspended_ms = command.suspended_ms


def _file_letters(state: State, command: RecordDeliveries, progress: Progress) -> None:
    prefix = space.dead_letter_prefix(command.ns, command.id)
    for letter in command.letters:
        key = prefix + pack_u64(letter.seq)
        progress.letters += state.get(key) is None
        state.writes[key] = codec.encode(letter)
    for seq in command.revived:
        key = prefix + pack_u64(seq)
        progress.letters -= state.get(key) is not None
        state.writes[key] = None
    excess = progress.letters - limits.WEBHOOK_LETTERS_MAX
    if excess > 0:
        for key in _letter_keys(state, command.ns, command.id, excess):
            state.writes[key] = None
        progress.letters -= excess


def _letter_keys(state: State, ns: int, webhook_id: bytes, limit: int) -> list[bytes]:
    prefix = space.dead_letter_prefix(ns, webhook_id)
    return [key for key, _ in state.scan(prefix, successor(prefix), limit)]


def _from_now(state: State, position: int) -> Progress:
    """A cursor behind everything that has happened, this command's own event included."""
    return Progress(position, state.index - 1, state.seq + len(state.events))


def _save(state: State, ns: int, webhook_id: bytes, progress: Progress) -> None:
    state.writes[space.webhook_progress_key(ns, webhook_id)] = codec.encode(progress)


def _note(state: State, kind: int, ns: int, webhook_id: bytes) -> None:
    data = {"webhook_id": ids.render_id(ids.WEBHOOK, webhook_id)}
    state.events.append(Event(kind, b"", "", 0, data, ns))


def _unknown() -> Rejected:
    return Rejected(outcome.NOT_FOUND, "there is no such webhook")


# --- reads ------------------------------------------------------------------------------------


def read_webhooks(state: State, ns: int) -> list[WebhookView]:
    """Return all webhooks of a namespace, oldest first."""
    prefix = space.webhook_prefix(ns)
    found = state.scan(prefix, successor(prefix), limits.WEBHOOKS_MAX)
    return [_view(state, codec.decode_webhook(raw)) for _, raw in found]


def read_webhook(state: State, ns: int, webhook_id: bytes) -> WebhookView | None:
    """Return a webhook."""
    raw = state.get(space.webhook_key(ns, webhook_id))
    return _view(state, codec.decode_webhook(raw)) if raw is not None else None


def _view(state: State, webhook: Webhook) -> WebhookView:
    raw = state.get(space.webhook_progress_key(webhook.ns, webhook.id))
    assert raw is not None, "a webhook without its progress"
    return WebhookView(webhook, codec.decode_progress(raw))


def read_letters(state: State, ns: int, webhook_id: bytes, limit: int) -> list[DeadLetter]:
    """Return what could not be delivered, oldest first."""
    prefix = space.dead_letter_prefix(ns, webhook_id)
    found = state.scan(prefix, successor(prefix), limit)
    return [codec.decode_dead_letter(raw) for _, raw in found]


def read_tries(state: State, ns: int, webhook_id: bytes) -> list[Try]:
    """Return the delivery log, newest first."""
    raw = state.get(space.webhook_progress_key(ns, webhook_id))
    if raw is None:
        return []
    last = codec.decode_progress(raw).tries
    found: list[Try] = []
    for number in range(last - 1, max(0, last - limits.WEBHOOK_TRIES_KEPT) - 1, -1):
        line = state.get(space.webhook_try_key(ns, webhook_id, number))
        assert line is not None, "a line of the delivery log is missing"
        found.append(codec.decode_try(line))
    return found
