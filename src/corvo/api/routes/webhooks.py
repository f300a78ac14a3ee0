"""Routes of webhooks: outgoing ones by their id, and the way in for those of others.

    /webhooks                 list, create
    /webhooks/wh_…            one endpoint that gets events: read, change, delete, test, deliveries
    /webhooks/{queue}         POST: the raw body becomes a job of that queue

Identifiers begin with `wh_`, and no queue that does can be posted to here.
"""

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, DecodeError, Raw
from msgspec.json import decode, encode
from starlette.convertors import StringConvertor, register_url_convertor

from corvo.api import render, translate, wire
from corvo.api.decode import Reader, is_strict
from corvo.api.http.replies import is_json
from corvo.api.routing import (
    Answer,
    Call,
    Table,
    answer,
    not_found,
    refusal,
    takes_any_body,
    written,
)
from corvo.api.values import check_name, check_note, maybe_instant, parse_duration, render_duration
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.command import CreateWebhook, DeleteWebhook, ReplaceWebhook
from corvo.model.ids import DELIVERY, JOB, WEBHOOK, parse_id, render_id
from corvo.model.outcome import Duplicate, Enqueued, Rejected, Replayed, WebhookChanged
from corvo.model.webhook import WebhookView, event_types
from corvo.webhooks import Dispatcher, GuardError, Record, Target, parse_target, verify
from corvo.webhooks.delivery import type_name
from corvo.webhooks.dispatcher import of_letter

if TYPE_CHECKING:
    from corvo.engine import Engine

_PREFIX: Final = "/api/v1/webhooks"
_WEBHOOK: Final = f"{_PREFIX}/{{id:webhook}}"
_NOTHING: Final = Reader(wire.Nothing)
_REQUEST: Final = Reader(wire.WebhookRequest)
_FIELDS: Final = ("priority", "unique_key", "max_retries", "scheduled_at", "tags")
_REPLAYED: Final = b"idempotent-replayed: true\r\n"


class _WebhookConvertor(StringConvertor):
    regex = f"{WEBHOOK}[^/]*"


register_url_convertor("webhook", _WebhookConvertor())


class WebhookRoutes:
    """The operations on webhooks, bound to one engine and its dispatcher."""

    def __init__(
        self, engine: "Engine", context: translate.Context, dispatcher: Dispatcher
    ) -> None:
        self._engine = engine
        self._context = context
        self._dispatcher = dispatcher

    def table(self) -> Table:
        """Paths, methods and operations; what has an id before what has a queue."""
        return {
            _PREFIX: {"GET": self.list, "POST": self.create},
            f"{_WEBHOOK}/test": {"POST": self.test},
            f"{_WEBHOOK}/deliveries": {"GET": self.deliveries},
            f"{_WEBHOOK}/deliveries/{{delivery}}/redeliver": {"POST": self.redeliver},
            f"{_WEBHOOK}/dead-letters": {"GET": self.dead_letters},
            _WEBHOOK: {"GET": self.get, "PUT": self.replace, "DELETE": self.delete},
            f"{_PREFIX}/{{name:path}}": {"POST": self.receive},
        }

    # --- outgoing: set up ---------------------------------------------------------------------

    async def list(self, call: Call) -> Answer:
        """`GET /webhooks`: all of them, oldest first."""
        return answer([self._members(v) for v in self._engine.read.webhooks(call.principal.ns)])

    async def get(self, call: Call) -> Answer:
        """`GET /webhooks/{id}`."""
        return answer(self._members(self._view(call)))

    async def create(self, call: Call) -> Answer:
        """`POST /webhooks`: 201, the object; it gets what happens from now on."""
        request = call.read(_REQUEST)
        terms = self._terms(request)
        identifier = self._engine.new_id()
        secret = request.secret if isinstance(request.secret, str) else ""
        command = CreateWebhook(call.principal.ns, identifier, secret=secret, **terms)
        return await self._change(command, 201)

    async def replace(self, call: Call) -> Answer:
        """`PUT /webhooks/{id}`: what is left out gets its default, except the secret."""
        request = call.read(_REQUEST)
        terms = self._terms(request)
        secret = None if request.secret is UNSET else request.secret or ""
        command = ReplaceWebhook(call.principal.ns, _id(call), secret=secret, **terms)
        return await self._change(command, 200)

    async def delete(self, call: Call) -> Answer:
        """`DELETE /webhooks/{id}`: with its dead letters."""
        call.read(_NOTHING)
        command = DeleteWebhook(call.principal.ns, _id(call))
        outcome, index = await self._engine.perform(command)
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        self._dispatcher.poke()
        return written({"id": render_id(WEBHOOK, command.id), "status": "deleted"}, index)

    async def _change(self, command: CreateWebhook | ReplaceWebhook, status: int) -> Answer:
        outcome, index = await self._engine.perform(command)
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        assert isinstance(outcome, WebhookChanged)
        self._dispatcher.poke()
        view = self._engine.read.webhook(command.ns, command.id)
        if view is None:
            raise not_found("webhook")
        body = render.encode(self._members(view) | {"index": index})
        return Answer(status, body, index=index)

    def _terms(self, request: wire.WebhookRequest) -> dict[str, Any]:
        """Read everything but the secret."""
        target = target_of(request.url)
        try:
            self._dispatcher.guard.check_literal(target.host)
        except GuardError as error:
            hint = "the operator can allow networks with --webhook-allow"
            raise RequestError(str(error), field="url", hint=hint) from error
        if isinstance(request.secret, str):
            check_note(request.secret, "secret", limits.WEBHOOK_SECRET_BYTES_MAX)
        retries = request.retry_limit
        return {
            "url": request.url,
            "events": patterns_of(request.events),
            "queues": queues_of(request.queues),
            "is_enabled": request.enabled is not False,
            "retry_limit": limits.WEBHOOK_RETRIES_DEFAULT if retries is None else retries,
            "timeout_ms": timeout_of(request.timeout),
        }

    # --- outgoing: deliveries -----------------------------------------------------------------

    async def test(self, call: Call) -> Answer:
        """`POST /webhooks/{id}/test`: send a test event now and say how it went."""
        call.read(_NOTHING)
        record = await self._dispatcher.test(self._view(call))
        return answer(_record_members(record))

    async def deliveries(self, call: Call) -> Answer:
        """`GET /webhooks/{id}/deliveries`: the latest, newest first."""
        webhook = self._view(call).webhook
        log = self._dispatcher.log(webhook.ns, webhook.id)
        return answer({"deliveries": [_record_members(record) for record in log]})

    async def dead_letters(self, call: Call) -> Answer:
        """`GET /webhooks/{id}/dead-letters`: what was given up, oldest first."""
        webhook = self._view(call).webhook
        most = limits.WEBHOOK_LETTERS_MAX
        letters = self._engine.read.dead_letters(webhook.ns, webhook.id, most)
        records = [of_letter(webhook.id, letter) for letter in letters]
        return answer({"dead_letters": [_record_members(record) for record in records]})

    async def redeliver(self, call: Call) -> Answer:
        """`POST /webhooks/{id}/deliveries/{delivery}/redeliver`: once, now."""
        call.read(_NOTHING)
        view = self._view(call)
        identifier = parse_id(DELIVERY, call.arguments["delivery"])
        record = None
        if identifier is not None:
            record = await self._dispatcher.redeliver(view, identifier)
        if record is None:
            raise not_found("delivery in the log or among the dead letters")
        return answer(_record_members(record))

    def _view(self, call: Call) -> WebhookView:
        view = self._engine.read.webhook(call.principal.ns, _id(call))
        if view is None:
            raise not_found("webhook")
        return view

    def _members(self, view: WebhookView) -> dict[str, Any]:
        """The object. The secret is not part of it, and never will be."""
        webhook, progress = view.webhook, view.progress
        return {
            "id": render_id(WEBHOOK, webhook.id),
            "url": webhook.url,
            "events": webhook.events,
            "queues": webhook.queues,
            "enabled": webhook.is_enabled,
            "has_secret": bool(webhook.secret),
            "retry_limit": webhook.retry_limit,
            "timeout": render_duration(webhook.timeout_ms),
            "created_at": maybe_instant(webhook.created_ms),
            "updated_at": maybe_instant(webhook.updated_ms),
            "status": _status(view),
            "disabled_reason": webhook.disabled_reason or None,
            "suspended_until": maybe_instant(progress.suspended_ms),
            "waiting": self._dispatcher.waiting(webhook.ns, webhook.id),
            "delivered": progress.delivered,
            "failed": progress.failed,
            "skipped": progress.skipped,
            "dead_letters": progress.letters,
            "failures_in_a_row": progress.failures,
            "last_delivery_at": maybe_instant(progress.last_ms),
            "last_status_code": progress.last_status or None,
            "last_error": progress.last_error or None,
            "cursor": progress.seq,
        }

    # --- incoming -----------------------------------------------------------------------------

    @takes_any_body
    async def receive(self, call: Call) -> Answer:
        """`POST /webhooks/{queue}`: the body, whatever it is, becomes the payload of a job."""
        ns, queue = call.principal.ns, check_name(call.argument, "queue")
        if queue.startswith(WEBHOOK):
            message = f"names that begin with {WEBHOOK} belong to outgoing webhooks"
            raise RequestError(message, field="queue")
        _refuse_pages(call)
        self._check_signature(call, ns, queue)
        request = _enqueue_request(call, queue)
        key = call.header(b"idempotency-key")
        idempotency = translate.idempotency_of(key, None, call.body)
        command = translate.enqueue(request, ns, self._context, idempotency)
        outcome, index = await self._engine.perform(command)
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        extra = b""
        if isinstance(outcome, Replayed):
            extra = _REPLAYED
            assert isinstance(outcome.answer, Enqueued | Duplicate)
            outcome = outcome.answer
        assert isinstance(outcome, Enqueued | Duplicate)
        status, body = render.enqueued(outcome, index)
        return Answer(status, body, extra, index)

    def _check_signature(self, call: Call, ns: int, queue: str) -> None:
        view = self._engine.read.queue(ns, queue)
        secret = view.record.settings.webhook_secret if view is not None else ""
        if not secret:
            return
        timestamp = (call.header(b"x-corvo-timestamp") or b"").decode("latin-1")
        signature = (call.header(b"x-corvo-signature") or b"").decode("latin-1")
        problem = verify(secret, timestamp, signature, call.body, self._engine.clock.now_ms())
        if problem:
            raise RequestError(problem, code="SIGNATURE_INVALID", status=401)


def _refuse_pages(call: Call) -> None:
    """A page in somebody's browser must not be able to enqueue.

    Browsers send an Origin with every POST to another site, and ask before they send JSON there,
    which nobody answers. So it is enough to refuse the other content types with an Origin.
    """
    if call.header(b"origin") is None and call.header(b"sec-fetch-site") is None:
        return
    if not is_json(call.header(b"content-type") or b""):
        raise RequestError(
            "a web page may not post here", code="UNSUPPORTED_MEDIA_TYPE", status=415
        )


def _enqueue_request(call: Call, queue: str) -> wire.EnqueueRequest:
    queries = call.queries
    if is_strict(call.query_string):
        unknown = [name for name in queries if name not in (*_FIELDS, "strict")]
        if unknown:
            raise RequestError("this is not a parameter of this route", field=unknown[0])
    priority = queries.get("priority")
    if priority is not None and priority not in translate.TIERS:
        raise RequestError(
            "this is not a priority", field="priority", hint=f"one of: {', '.join(translate.TIERS)}"
        )
    return wire.EnqueueRequest(
        queue=queue,
        payload=_payload(call.body),
        priority=priority,  # type: ignore[arg-type] - checked above
        unique_key=queries.get("unique_key"),
        max_retries=_attempts(queries.get("max_retries")),
        scheduled_at=queries.get("scheduled_at"),
        tags=_tags(queries.get("tags")),
    )


def _payload(body: bytes) -> Raw:
    """JSON stays as it is, nothing is `{}`, anything else becomes a JSON string."""
    if not body.strip():
        return wire.EMPTY_OBJECT
    try:
        body.decode()
        decode(body, type=Raw)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return Raw(encode(body.decode(errors="replace")))
    return Raw(body.strip(b" \t\r\n"))


def _attempts(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 6) or (
        int(text) > limits.ATTEMPTS_MAX
    ):
        message = f"this must be a whole number from 0 to {limits.ATTEMPTS_MAX}"
        raise RequestError(message, field="max_retries")
    return int(text)


def _tags(text: str | None) -> dict[str, str] | None:
    if not text:
        return None
    tags: dict[str, str] = {}
    for part in text.split(","):
        key, colon, value = part.partition(":")
        if not colon or not key:
            raise RequestError("this must be key:value,key:value", field="tags")
        tags[key] = value
    return tags


def _id(call: Call) -> bytes:
    identifier = parse_id(WEBHOOK, call.arguments["id"])
    if identifier is None:
        raise not_found("webhook")
    return identifier


def target_of(url: str) -> Target:
    """Read where a webhook posts to."""
    try:
        return parse_target(url)
    except ValueError as error:
        raise RequestError(f"the URL {error}", field="url") from error


def timeout_of(text: int | str | None) -> int:
    """Read how long a webhook waits for an answer."""
    if text is None:
        return limits.WEBHOOK_TIMEOUT_MS_DEFAULT
    most_ms = limits.WEBHOOK_TIMEOUT_MS_MAX
    return parse_duration(text, "timeout", least_ms=100, most_ms=most_ms)


def patterns_of(patterns: list[str] | None) -> tuple[str, ...]:
    """Read which events a webhook wants."""
    if patterns is None:
        return ("*",)
    if not 1 <= len(patterns) <= limits.WEBHOOK_PATTERNS_MAX:
        message = f"a webhook has 1 to {limits.WEBHOOK_PATTERNS_MAX} patterns of events"
        raise RequestError(message, field="events")
    for position, pattern in enumerate(patterns):
        if not event_types(pattern):
            hint = 'such as "*", "job.*", "job.completed", "queue.*" or "queue.paused"'
            raise RequestError("no event matches this", field=f"events[{position}]", hint=hint)
    return tuple(dict.fromkeys(patterns))


def queues_of(names: list[str] | None) -> tuple[str, ...]:
    """Read which queues a webhook wants to hear of."""
    if names is None:
        return ()
    if len(names) > limits.WEBHOOK_PATTERNS_MAX:
        message = f"a webhook names at most {limits.WEBHOOK_PATTERNS_MAX} queues"
        raise RequestError(message, field="queues")
    for position, name in enumerate(names):
        # A star may stand at the end, and alone it is every queue.
        check_name(name.removesuffix("*") or "any", f"queues[{position}]")
        if not name:
            raise RequestError("this cannot be empty", field=f"queues[{position}]")
    return tuple(dict.fromkeys(names))


def _status(view: WebhookView) -> str:
    if not view.webhook.is_enabled:
        return "disabled"
    if view.progress.suspended_ms:
        return "suspended"
    return "failing" if view.progress.failures else "active"


def _record_members(record: Record) -> dict[str, Any]:
    happening, result = record.happening, record.result
    event = happening.event if happening is not None else None
    return {
        "id": render_id(DELIVERY, record.id),
        "status": record.status,
        "event": {
            "seq": happening.seq if happening is not None else 0,
            "type": type_name(happening),
            "at": maybe_instant(happening.at_ms if happening is not None else record.tried_ms),
            "job_id": render_id(JOB, event.job) if event is not None and event.job else None,
            "queue": event.queue or None if event is not None else None,
        },
        "attempts": record.attempts,
        "tried_at": maybe_instant(record.tried_ms),
        "next_try_at": maybe_instant(record.next_ms),
        "status_code": result.status or None if result is not None else None,
        "error": result.error or None if result is not None else None,
        "duration_ms": result.duration_ms if result is not None else None,
        "response": result.excerpt or None if result is not None else None,
    }
