"""The unary calls of the worker service: the same requests, commands and refusals as over HTTP.

Used by gRPC and by Connect. A refusal is raised as `CorvoError`; `status` names what it is there.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from google.protobuf.message import Message
from msgspec import Raw
from msgspec.json import encode

from corvo import __version__
from corvo.api import translate, wire, work
from corvo.api.decode import Reader
from corvo.api.stream import items
from corvo.api.stream.generated import worker_pb2 as pb
from corvo.api.stream.items import Document
from corvo.api.stream.messages import batch_job, item_result, members, read, single_job
from corvo.api.values import check_text
from corvo.errors import CorvoError, RequestError
from corvo.model import limits
from corvo.model.command import Command
from corvo.model.ids import BATCH, JOB, parse_id, render_id
from corvo.model.outcome import (
    NOT_FOUND,
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
    from corvo.engine import Engine

API_VERSION: Final = "v1"
Result = TypeVar("Result")
Call = Callable[[Any, int], Awaitable[Message]]

_ENQUEUE: Final = Reader(wire.EnqueueRequest)
_ENQUEUE_BATCH: Final = Reader(wire.EnqueueBatchRequest)
_FETCH: Final = Reader(wire.FetchRequest)
_ACK: Final = Reader(wire.AckItem)
_ACK_BATCH: Final = Reader(wire.AckBatchRequest)
_FAIL: Final = Reader(wire.FailRequest)
_HEARTBEAT: Final = Reader(wire.HeartbeatRequest)
_raw: Final[Document] = Raw


class Calls:
    """The calls, bound to one engine. Each takes a message and a namespace."""

    def __init__(
        self, engine: "Engine", context: translate.Context, features: tuple[str, ...]
    ) -> None:
        self._engine = engine
        self._context = context
        self._most_bytes = context.payload_bytes_max
        self._features = features
        self.by_name: Final[dict[str, Call]] = {
            "Enqueue": self.enqueue,
            "EnqueueBatch": self.enqueue_batch,
            "Fetch": self.fetch,
            "FetchBatch": self.fetch_batch,
            "Ack": self.ack,
            "AckBatch": self.ack_batch,
            "Fail": self.fail,
            "Heartbeat": self.heartbeat,
            "GetServerInfo": self.server_info,
        }

    # --- producers ------------------------------------------------------------------------------

    async def enqueue(self, message: pb.EnqueueRequest, ns: int) -> pb.EnqueueResponse:
        """Accept one job."""
        request = read(_ENQUEUE, message)
        translator = items.Translator(ns, self._context)
        outcome, index = await self._engine.perform(translator.enqueue(request))
        return _enqueued(_accepted(outcome), index)

    async def enqueue_batch(
        self, message: pb.EnqueueBatchRequest, ns: int
    ) -> pb.EnqueueBatchResponse:
        """Accept many jobs, all or none."""
        fields = members(message)
        callback = {
            name: fields.pop(name)
            for name in ("callback_queue", "callback_payload")
            if name in fields
        }
        body = encode(fields | {"batch": callback if callback or message.batch else None})
        request = _ENQUEUE_BATCH.read(body, b"")
        idempotency = translate.idempotency_of(None, request.idempotency_key, body)
        command = translate.enqueue_batch(request, ns, self._context, idempotency)
        outcome, index = await self._engine.perform(command)
        outcome = _accepted(outcome)
        is_replayed = isinstance(outcome, Replayed)
        if isinstance(outcome, Replayed):
            outcome = outcome.answer
        assert isinstance(outcome, BatchEnqueued)
        results = [_enqueued(each, index) for each in outcome.results]
        for each in results:
            each.replayed = is_replayed
        batch_id = outcome.batch_id
        return pb.EnqueueBatchResponse(
            job_ids=[each.job_id for each in results],
            batch_id="" if batch_id is None else render_id(BATCH, batch_id),
            results=results,
            index=index,
        )

    # --- workers --------------------------------------------------------------------------------

    async def fetch(self, message: pb.FetchRequest, ns: int) -> pb.FetchResponse:
        """Wait for one job; `found` is false when the time passes without one."""
        claims = await self._claims(message, ns, 1)
        if not claims:
            return pb.FetchResponse()
        return single_job(items.job_of(claims[0], _raw))

    async def fetch_batch(self, message: pb.FetchBatchRequest, ns: int) -> pb.FetchBatchResponse:
        """Wait for up to `count` jobs, as soon as there is one."""
        claims = await self._claims(message, ns, max(1, message.count))
        return pb.FetchBatchResponse(jobs=[batch_job(items.job_of(each, _raw)) for each in claims])

    async def _claims(self, message: Message, ns: int, count: int) -> list[Claim]:
        request = read(_FETCH, message)
        command, timeout_ms = work.fetch(request, ns, count)
        self._engine.workers.observe_fetch(
            command, request.version or "", draining=request.draining or False
        )
        done: asyncio.Future[list[Claim]] = asyncio.get_running_loop().create_future()
        ticket = self._engine.fetch(command, timeout_ms, partial(self._deliver, done, ns))
        try:
            claims = await done
        except asyncio.CancelledError:
            # The client is gone: a parked fetch leaves, a claimed job is released.
            ticket.drop()
            if done.done() and not done.cancelled():
                self._engine.give_back(ns, done.result())
            raise
        return self._fitting(ns, claims)

    def _deliver(
        self, done: "asyncio.Future[list[Claim]]", ns: int, outcome: Fetched, _index: int
    ) -> None:
        if done.done():
            self._engine.give_back(ns, outcome.claims)
        else:
            done.set_result(outcome.claims)

    def _fitting(self, ns: int, claims: list[Claim]) -> list[Claim]:
        """Give back what one answer should not hold."""
        size = 0
        for count, claim in enumerate(claims):
            size += items.size_of(claim)
            if size > limits.STREAM_FRAME_BYTES_MAX and count:
                self._engine.give_back(ns, claims[count:])
                return claims[:count]
        return claims

    async def ack(self, message: pb.AckRequest, ns: int) -> pb.AckResponse:
        """The work is done."""
        if message.trace_json:
            message.ClearField("trace_json")  # nothing is kept of it
        request = read(_ACK, message)
        command = work.ack(request, ns, _identify(request.job_id), self._most_bytes)
        outcome, index = await self._engine.perform(command)
        result = items.result_of("acks", request.job_id, _accepted(outcome), _raw)
        return pb.AckResponse(status=result.status, index=index)

    async def ack_batch(self, message: pb.AckBatchRequest, ns: int) -> pb.AckBatchResponse:
        """Report several jobs done; one that is refused does not stop the others."""
        body = encode({"acks": members(message).get("items", [])})
        request = _ACK_BATCH.read(body, b"")
        commands = work.ack_batch(request, ns, self._most_bytes)
        outcomes, index = await self._perform_many(list(commands))
        results = [
            items.result_of("acks", item.job_id, outcome, _raw)
            for item, outcome in zip(request.acks, outcomes, strict=True)
        ]
        acked = sum(1 for result in results if result.code is None)
        return pb.AckBatchResponse(acked=acked, results=map(item_result, results), index=index)

    async def fail(self, message: pb.FailRequest, ns: int) -> pb.FailResponse:
        """The attempt failed."""
        request = read(_FAIL, message)
        command = work.fail(request, ns, _identify(message.job_id), self._most_bytes)
        outcome, index = await self._engine.perform(command)
        outcome = _accepted(outcome)
        assert isinstance(outcome, Ended)
        result = items.result_of("fails", message.job_id, outcome, _raw)
        response = pb.FailResponse(
            status=result.status, attempts_remaining=outcome.attempts_remaining, index=index
        )
        if outcome.next_ms:
            response.next_attempt_at.FromMilliseconds(outcome.next_ms)
        return response

    async def heartbeat(self, message: pb.HeartbeatRequest, ns: int) -> pb.HeartbeatResponse:
        """All jobs of a worker are alive."""
        request = read(_HEARTBEAT, message)
        names, commands, unknown = work.heartbeat(request, ns, self._most_bytes)
        if request.worker_id:
            worker = check_text(request.worker_id, "worker_id", limits.WORKER_ID_BYTES_MAX)
            self._engine.workers.observe_heartbeat(ns, worker, len(commands))
        outcomes, index = await self._perform_many(list(commands))
        response = pb.HeartbeatResponse(index=index)
        for name, outcome in zip(names, outcomes, strict=True):
            result = items.result_of("heartbeats", name, outcome, _raw)
            # As over HTTP: whoever may not report has lost the job.
            response.jobs[name].status = "lost" if result.code else result.status
            response.jobs[name].lease_expires_at = result.lease_expires_at or ""
        for name in unknown:
            response.jobs[name].status = "lost"
        return response

    async def server_info(
        self, _message: pb.GetServerInfoRequest, _ns: int
    ) -> pb.GetServerInfoResponse:
        """What this server is."""
        return pb.GetServerInfoResponse(
            server_version=__version__, api_version=API_VERSION, features=self._features
        )

    async def _perform_many(self, commands: list[Command]) -> tuple[list[Outcome], int]:
        done: asyncio.Future[tuple[list[Outcome], int]] = asyncio.get_running_loop().create_future()

        def settle(outcomes: list[Outcome], index: int) -> None:
            if not done.done():
                done.set_result((outcomes, index))

        self._engine.submit_many(commands, settle)
        return await done


def _accepted(outcome: Outcome) -> Outcome:
    """Raise what the machine refused."""
    if isinstance(outcome, Rejected):
        raise CorvoError(
            outcome.message,
            code=outcome.code,
            field=outcome.field or None,
            hint=outcome.hint or None,
        )
    return outcome


def _identify(name: str) -> bytes:
    identifier = parse_id(JOB, name)
    if identifier is None:
        raise RequestError("there is no such job", code=NOT_FOUND, status=404)
    return identifier


def _enqueued(outcome: Outcome, index: int) -> pb.EnqueueResponse:
    assert isinstance(outcome, Enqueued | Duplicate | Replayed)
    result = items.result_of("enqueues", "", outcome, _raw)
    response = pb.EnqueueResponse(
        job_id=result.job_id,
        status=result.status,
        unique_existing=result.unique_existing or False,
        index=index,
        state=result.state or "",
        replaced=result.replaced or False,
        replayed=result.replayed or False,
    )
    if result.result is not None:
        response.result_json = bytes(result.result).decode()
    return response
