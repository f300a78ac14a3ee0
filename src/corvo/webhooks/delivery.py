"""One delivery: what is sent, and the record of how it went."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.json import Encoder

from corvo import __version__
from corvo.model import limits
from corvo.model.event import EVENT_NAMES, Event
from corvo.model.ids import DELIVERY, JOB, WEBHOOK, derive_id, render_id
from corvo.model.webhook import DELIVERY_STATUS_NAMES, Try, Webhook
from corvo.runtime.clock import Clock
from corvo.webhooks import signature
from corvo.webhooks.guard import Guard, GuardError
from corvo.webhooks.post import PostError, post
from corvo.webhooks.target import parse_target

WAITING, DELIVERED, FAILED, DEAD = DELIVERY_STATUS_NAMES
TEST_EVENT: Final = "webhook.test"
_AGENT: Final = f"corvo/{__version__}"
_encode = Encoder().encode


class Happening(Struct, frozen=True, gc=False):
    """An event with its number and time."""

    seq: int
    at_ms: int
    event: Event


class Result(Struct, frozen=True, gc=False):
    """How one try went."""

    is_success: bool
    status: int  # 0: no answer
    error: str  # empty on success
    duration_ms: int
    excerpt: str = ""


class Record(Struct):
    """What the delivery log shows about one delivery."""

    id: bytes
    happening: Happening | None  # None: a test
    attempts: int = 0
    status: str = WAITING
    result: Result | None = None
    tried_ms: int = 0
    next_ms: int = 0  # when it is tried again; 0: not planned

    def line(self) -> Try:
        """How the delivery stands, as the stored log has it."""
        happening, result = self.happening, self.result
        assert result is not None, "what was not tried is not logged"
        return Try(
            self.id,
            happening.event if happening is not None else None,
            happening.seq if happening is not None else 0,
            happening.at_ms if happening is not None else 0,
            self.attempts,
            DELIVERY_STATUS_NAMES.index(self.status),
            result.status,
            result.error[: limits.WEBHOOK_ERROR_BYTES_MAX],
            result.duration_ms,
            result.excerpt[: limits.WEBHOOK_EXCERPT_BYTES_MAX],
            self.tried_ms,
            self.next_ms,
        )


def of_line(line: Try) -> Record:
    """A line of the stored log as it was in memory."""
    happening = Happening(line.seq, line.at_ms, line.event) if line.event is not None else None
    status = DELIVERY_STATUS_NAMES[line.status]
    result = Result(status == DELIVERED, line.code, line.error, line.duration_ms, line.excerpt)
    return Record(line.delivery, happening, line.tries, status, result, line.tried_ms, line.next_ms)


def lapse(record: Record) -> None:
    """What waited for a try that will not come: the webhook was switched off meanwhile."""
    if record.status == WAITING:
        record.status, record.next_ms = FAILED, 0


def delivery_id(webhook_id: bytes, seq: int) -> bytes:
    """Name a delivery: the same after any restart, so that a receiver can tell a repeat."""
    return derive_id(webhook_id, seq >> 32, "delivery", seq & 0xFFFF_FFFF)


def type_name(happening: Happening | None) -> str:
    """Name what a delivery is about."""
    return TEST_EVENT if happening is None else EVENT_NAMES[happening.event.type]


def render_event(happening: Happening | None, now_ms: int) -> dict[str, Any]:
    """The event as the receiver sees it; the same members as in the event stream."""
    if happening is None:
        return {"seq": 0, "type": TEST_EVENT, "at": render_instant(now_ms)} | _NOTHING
    event = happening.event
    return {
        "seq": happening.seq,
        "type": EVENT_NAMES[event.type],
        "at": render_instant(happening.at_ms),
        "job_id": render_id(JOB, event.job) if event.job else None,
        "queue": event.queue or None,
        "attempt": event.attempt or None,
        "data": event.data or {},
    }


_NOTHING: Final[dict[str, Any]] = {"job_id": None, "queue": None, "attempt": None, "data": {}}


def render_instant(at_ms: int) -> str:
    """Write milliseconds since 1970 as UTC with milliseconds."""
    seconds, fraction_ms = divmod(at_ms, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction_ms:03d}Z"


class Sender:
    """Makes one try: resolve, check, connect, post, judge the answer."""

    def __init__(self, guard: Guard, clock: Clock) -> None:
        self.guard = guard
        self._clock = clock

    async def send(self, webhook: Webhook, record: Record) -> Result:
        """Try once, within the time-out of the webhook. Failures are results, not exceptions."""
        started = asyncio.get_running_loop().time()

        def took_ms() -> int:
            return int((asyncio.get_running_loop().time() - started) * 1_000)

        body = self._body(webhook, record)
        try:
            async with asyncio.timeout(webhook.timeout_ms / 1_000):
                target = parse_target(webhook.url)
                addresses = await self.guard.resolve(target.host, target.port)
                answer = await post(target, addresses, self._head(webhook, record, body), body)
        except TimeoutError:
            return Result(False, 0, f"no answer within {webhook.timeout_ms} ms", took_ms())
        except (GuardError, PostError, OSError, ValueError) as error:
            return Result(False, 0, str(error)[: limits.WEBHOOK_ERROR_BYTES_MAX], took_ms())
        is_success = 200 <= answer.status < 300
        error = "" if is_success else f"the endpoint answered {answer.status}"
        return Result(is_success, answer.status, error, took_ms(), answer.excerpt)

    def _body(self, webhook: Webhook, record: Record) -> bytes:
        return _encode(
            {
                "webhook_id": render_id(WEBHOOK, webhook.id),
                "delivery_id": render_id(DELIVERY, record.id),
                "event": render_event(record.happening, self._clock.now_ms()),
            }
        )

    def _head(self, webhook: Webhook, record: Record, body: bytes) -> dict[str, str]:
        timestamp = str(self._clock.now_ms() // 1_000)
        head = {
            "User-Agent": _AGENT,
            "Content-Type": "application/json",
            "X-Corvo-Webhook-ID": render_id(WEBHOOK, webhook.id),
            "X-Corvo-Webhook-Event": type_name(record.happening),
            "X-Corvo-Delivery-ID": render_id(DELIVERY, record.id),
            signature.TIMESTAMP: timestamp,
        }
        if webhook.secret:
            head[signature.SIGNATURE] = signature.sign(webhook.secret, timestamp, body)
        return head
