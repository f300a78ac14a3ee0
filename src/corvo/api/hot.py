"""Handlers of the hot routes: one each, used by both lanes.

A handler is synchronous: it decodes, submits, and returns; the answer is written by a callback when
the group commit that holds the command is on disk. Refusals are answered at once.

Cost: what runs per request here is on the path every figure of the bench measures; hence bound
methods and `partial` instead of futures, and bytes instead of dictionaries.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Final

from corvo.api import errors, render, tracing, translate, wire, work
from corvo.api.decode import Reader
from corvo.api.principal import principal_of
from corvo.api.tracing import TRACE_PARENT
from corvo.api.values import check_text
from corvo.errors import CorvoError
from corvo.model import limits
from corvo.model.ids import JOB, parse_id
from corvo.model.outcome import (
    BatchEnqueued,
    Claim,
    Duplicate,
    Ended,
    Enqueued,
    Fetched,
    Outcome,
    Rejected,
    Replayed,
)

if TYPE_CHECKING:
    from corvo.api.http.exchange import Exchange
    from corvo.engine import Engine

Method = Callable[["HotRoutes", "Exchange"], None]
FetchAnswer = Callable[["Exchange", Fetched, int], None]
EndedRenderer = Callable[[Ended, int], bytes]

_REPLAYED: Final = b"idempotent-replayed: true\r\n"

_ENQUEUE: Final = Reader(wire.EnqueueRequest)
_ENQUEUE_BATCH: Final = Reader(wire.EnqueueBatchRequest)
_FETCH: Final = Reader(wire.FetchRequest)
_ACK: Final = Reader(wire.AckRequest)
_ACK_BATCH: Final = Reader(wire.AckBatchRequest)
_FAIL: Final = Reader(wire.FailRequest)
_RELEASE: Final = Reader(wire.ReleaseRequest)
_SNOOZE: Final = Reader(wire.SnoozeRequest)
_HEARTBEAT: Final = Reader(wire.HeartbeatRequest)


def _refusing(method: Method) -> Method:
    """Answer a refusal of the edge or the engine in the envelope of errors."""

    @wraps(method)
    def guarded(self: "HotRoutes", exchange: "Exchange") -> None:
        try:
            method(self, exchange)
        except CorvoError as error:
            status, body, extra = errors.of_error(error)
            exchange.reply(status, body, extra + render.index_header(self.index()))

    return guarded


class HotRoutes:
    """The handlers, bound to one engine."""

    def __init__(self, engine: "Engine", payload_bytes_max: int = limits.PAYLOAD_BYTES_MAX) -> None:
        self._engine = engine
        self._payload_bytes_max = payload_bytes_max
        self._context = translate.Context(engine.new_id, payload_bytes_max, lambda: engine.now_ms)
        self._plain = translate.PlainReader(self._context)

    def index(self) -> int:
        """Last applied index: what answers that wrote nothing carry."""
        return self._engine.index

    @_refusing
    def enqueue(self, exchange: "Exchange") -> None:
        """`POST /enqueue`."""
        body = exchange.body
        key = exchange.header(b"idempotency-key")
        parent = exchange.header(TRACE_PARENT)
        ns = principal_of(exchange).ns
        command = None
        if key is None and parent is None and not exchange.query:
            command = self._plain.read(body, ns)
        if command is None:
            request = _ENQUEUE.read(body, exchange.query)
            if parent is not None:
                tracing.adopt([request], exchange, parent)
            idempotency = translate.idempotency_of(key, request.idempotency_key, body)
            command = translate.enqueue(request, ns, self._context, idempotency)
        self._engine.submit(command, partial(_answer_enqueue, exchange))

    @_refusing
    def enqueue_batch(self, exchange: "Exchange") -> None:
        """`POST /enqueue/batch`."""
        body = exchange.body
        request = _ENQUEUE_BATCH.read(body, exchange.query)
        parent = exchange.header(TRACE_PARENT)
        if parent is not None:
            tracing.adopt(request.jobs, exchange, parent)
        idempotency = translate.idempotency_of(
            exchange.header(b"idempotency-key"), request.idempotency_key, body
        )
        ns = principal_of(exchange).ns
        command = translate.enqueue_batch(request, ns, self._context, idempotency)
        self._engine.submit(command, partial(_answer_enqueue, exchange))

    @_refusing
    def fetch(self, exchange: "Exchange") -> None:
        """`POST /fetch`: one job, or 204 when the time-out passes without one."""
        self._fetch(exchange, _FETCH.read(exchange.body, exchange.query), 1, _answer_fetch)

    @_refusing
    def fetch_batch(self, exchange: "Exchange") -> None:
        """`POST /fetch/batch`: up to `count` jobs as soon as there is one."""
        request = _FETCH.read(exchange.body, exchange.query)
        self._fetch(exchange, request, request.count or 1, _answer_fetch_batch)

    def _fetch(
        self,
        exchange: "Exchange",
        request: wire.FetchRequest,
        count: int,
        answer: FetchAnswer,
    ) -> None:
        ns = principal_of(exchange).ns
        command, timeout_ms = work.fetch(request, ns, count)
        self._engine.workers.observe_fetch(
            command,
            request.version or "",
            request.concurrency or 0,
            draining=request.draining or False,
        )
        ticket = self._engine.fetch(command, timeout_ms, partial(self._hand_out, exchange, answer))
        # A gone client: a parked fetch leaves the queue, a claimed job is released.
        if exchange.is_gone:
            ticket.drop()
        elif not exchange.is_replied:
            exchange.on_gone = ticket.drop

    def _hand_out(
        self, exchange: "Exchange", answer: FetchAnswer, outcome: Fetched, index: int
    ) -> None:
        claims = outcome.claims
        if exchange.is_gone and claims:
            # Nobody reads the answer any more, so nobody would work on these.
            self._engine.give_back(principal_of(exchange).ns, claims)
            return
        if len(claims) > 1:
            count = _fitting_count(claims)
            if count < len(claims):
                # More than one answer should hold: the rest is pending again, no attempt burnt.
                self._engine.give_back(principal_of(exchange).ns, claims[count:])
                outcome = Fetched(claims[:count])
        answer(exchange, outcome, index)

    @_refusing
    def ack(self, exchange: "Exchange") -> None:
        """`POST /ack/{id}`."""
        request = _ACK.read(exchange.body, exchange.query)
        identifier = parse_id(JOB, exchange.argument)
        if identifier is None:
            return self._no_such_job(exchange)
        command = work.ack(request, principal_of(exchange).ns, identifier, self._payload_bytes_max)
        self._engine.submit(command, partial(_answer_ended, exchange, render.ended))
        return None

    @_refusing
    def ack_batch(self, exchange: "Exchange") -> None:
        """`POST /ack/batch`: a result per item; one that is refused does not stop the others."""
        request = _ACK_BATCH.read(exchange.body, exchange.query)
        ns = principal_of(exchange).ns
        commands = work.ack_batch(request, ns, self._payload_bytes_max)
        names = [item.job_id for item in request.acks]
        self._engine.submit_many(list(commands), partial(_answer_ack_batch, exchange, names))

    @_refusing
    def fail(self, exchange: "Exchange") -> None:
        """`POST /fail/{id}`."""
        request = _FAIL.read(exchange.body, exchange.query)
        identifier = parse_id(JOB, exchange.argument)
        if identifier is None:
            return self._no_such_job(exchange)
        command = work.fail(request, principal_of(exchange).ns, identifier, self._payload_bytes_max)
        self._engine.submit(command, partial(_answer_ended, exchange, render.failed))
        return None

    @_refusing
    def release(self, exchange: "Exchange") -> None:
        """`POST /release/{id}`."""
        request = _RELEASE.read(exchange.body, exchange.query)
        identifier = parse_id(JOB, exchange.argument)
        if identifier is None:
            return self._no_such_job(exchange)
        ns = principal_of(exchange).ns
        command = work.release(request, ns, identifier, self._payload_bytes_max)
        self._engine.submit(command, partial(_answer_ended, exchange, render.ended))
        return None

    @_refusing
    def snooze(self, exchange: "Exchange") -> None:
        """`POST /snooze/{id}`."""
        request = _SNOOZE.read(exchange.body, exchange.query)
        identifier = parse_id(JOB, exchange.argument)
        if identifier is None:
            return self._no_such_job(exchange)
        ns = principal_of(exchange).ns
        command = work.snooze(request, ns, identifier, self._payload_bytes_max)
        self._engine.submit(command, partial(_answer_ended, exchange, render.snoozed))
        return None

    @_refusing
    def heartbeat(self, exchange: "Exchange") -> None:
        """`POST /heartbeat`: all jobs of a worker in one call."""
        request = _HEARTBEAT.read(exchange.body, exchange.query)
        ns = principal_of(exchange).ns
        names, commands, unknown = work.heartbeat(request, ns, self._payload_bytes_max)
        if request.worker_id:
            worker = check_text(request.worker_id, "worker_id", limits.WORKER_ID_BYTES_MAX)
            self._engine.workers.observe_heartbeat(ns, worker, len(commands))
        if commands:
            answer = partial(_answer_heartbeat, exchange, names, unknown)
            self._engine.submit_many(list(commands), answer)
        else:
            _answer_heartbeat(exchange, names, unknown, [], self._engine.index)

    def _no_such_job(self, exchange: "Exchange") -> None:
        """A text that is no identifier names no job."""
        body = errors.envelope("NOT_FOUND", "there is no such job")
        exchange.reply(404, body, render.index_header(self._engine.index))


def _refuse(exchange: "Exchange", rejected: Rejected, index: int) -> None:
    status, body = errors.of_rejection(rejected)
    exchange.reply(status, body, render.index_header(index))


def _answer_enqueue(exchange: "Exchange", outcome: Outcome, index: int) -> None:
    extra = render.index_header(index)
    if type(outcome) is Rejected:
        return _refuse(exchange, outcome, index)
    if type(outcome) is Replayed:
        extra += _REPLAYED
        outcome = outcome.answer
    if type(outcome) is BatchEnqueued:
        return exchange.reply(201, render.batch_enqueued(outcome, index), extra)
    assert isinstance(outcome, Enqueued | Duplicate)
    status, body = render.enqueued(outcome, index)
    return exchange.reply(status, body, extra)


def _fitting_count(claims: list[Claim]) -> int:
    """How many of these fit into one answer; at least one."""
    size = 0
    for count, claim in enumerate(claims):
        size += len(claim.spec.payload) + len(claim.checkpoint or b"")
        if size > limits.BATCH_BODY_BYTES_MAX and count:
            return count
    return len(claims)


def _answer_fetch(exchange: "Exchange", outcome: Fetched, index: int) -> None:
    extra = render.index_header(index)
    if not outcome.claims:
        return exchange.reply(204, b"", extra)
    assert len(outcome.claims) == 1
    return exchange.reply(200, render.claim(outcome.claims[0], b',"index":%d' % index), extra)


def _answer_fetch_batch(exchange: "Exchange", outcome: Fetched, index: int) -> None:
    jobs = b",".join([render.claim(item) for item in outcome.claims])
    body = b'{"jobs":[%b],"index":%d}' % (jobs, index)
    exchange.reply(200, body, render.index_header(index))


def _answer_ended(
    exchange: "Exchange", renderer: EndedRenderer, outcome: Outcome, index: int
) -> None:
    if type(outcome) is not Ended:
        assert isinstance(outcome, Rejected)
        return _refuse(exchange, outcome, index)
    return exchange.reply(200, renderer(outcome, index), render.index_header(index))


def _answer_ack_batch(
    exchange: "Exchange", names: list[str], outcomes: list[Outcome], index: int
) -> None:
    exchange.reply(200, render.acked(names, outcomes, index), render.index_header(index))


def _answer_heartbeat(
    exchange: "Exchange",
    names: list[str],
    unknown: list[str],
    outcomes: list[Outcome],
    index: int,
) -> None:
    body = render.beaten(names, outcomes, unknown, index)
    exchange.reply(200, body, render.index_header(index))
