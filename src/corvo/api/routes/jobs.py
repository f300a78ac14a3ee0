"""Routes of jobs: read, change, clone, explain."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from corvo.api import views, wire
from corvo.api.decode import Reader
from corvo.api.render import enqueued, raw
from corvo.api.routing import Answer, Call, Operation, Table, answer, not_found, refusal, written
from corvo.api.translate import TIERS, Context, hold_terms, idempotency_of, spec_of
from corvo.api.values import check_name, check_note, maybe_document
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.command import (
    ApproveJob,
    CancelJob,
    ChangePriority,
    Command,
    DeleteJob,
    EnqueueJob,
    HoldJob,
    MoveJob,
    RejectJob,
    RequeueJob,
    RetryJob,
)
from corvo.model.ids import BATCH, JOB, parse_id, render_id
from corvo.model.job import STATE_NAMES, TIER_NAMES, Spec
from corvo.model.outcome import Duplicate, Enqueued, JobChanged, Rejected, Replayed
from corvo.model.retry import BACKOFF_NAMES
from corvo.model.view import JobView

if TYPE_CHECKING:
    from corvo.engine import Engine

_PREFIX: Final = "/api/v1/jobs"

_NOTHING: Final = Reader(wire.Nothing)
_MOVE: Final = Reader(wire.MoveRequest)
_PRIORITY: Final = Reader(wire.PriorityRequest)
_HOLD: Final = Reader(wire.HoldRequest)
_APPROVE: Final = Reader(wire.ApproveRequest)
_REJECT: Final = Reader(wire.RejectRequest)
_CLONE: Final = Reader(wire.CloneRequest)
_BULK_GET: Final = Reader(wire.BulkGetRequest)

Builder = Callable[[Call, int, bytes], Command]


def _retry(call: Call, ns: int, identifier: bytes) -> Command:
    call.read(_NOTHING)
    return RetryJob(ns, identifier)


def _requeue(call: Call, ns: int, identifier: bytes) -> Command:
    call.read(_NOTHING)
    return RequeueJob(ns, identifier)


def _cancel(call: Call, ns: int, identifier: bytes) -> Command:
    call.read(_NOTHING)
    return CancelJob(ns, identifier)


def _delete(call: Call, ns: int, identifier: bytes) -> Command:
    call.read(_NOTHING)
    return DeleteJob(ns, identifier)


def _move(call: Call, ns: int, identifier: bytes) -> Command:
    request = call.read(_MOVE)
    queue = check_name(request.queue, "queue")
    keeps = request.keep_priority is not False
    return MoveJob(ns, identifier, queue, request.reset_attempts or False, keeps)


def _priority(call: Call, ns: int, identifier: bytes) -> Command:
    return ChangePriority(ns, identifier, TIERS[call.read(_PRIORITY).priority])


def _approve(call: Call, ns: int, identifier: bytes) -> Command:
    request = call.read(_APPROVE)
    by = check_note(request.by, "by", limits.NAME_BYTES_MAX)
    return ApproveJob(ns, identifier, by, check_note(request.note, "note"))


def _reject(call: Call, ns: int, identifier: bytes) -> Command:
    request = call.read(_REJECT)
    by = check_note(request.by, "by", limits.NAME_BYTES_MAX)
    field, text = ("reason", request.reason) if request.reason else ("note", request.note)
    return RejectJob(ns, identifier, by, check_note(text, field))


_ACTIONS: Final[dict[str, Builder]] = {
    "retry": _retry,
    "requeue": _requeue,
    "cancel": _cancel,
    "move": _move,
    "approve": _approve,
    "reject": _reject,
}


class JobRoutes:
    """The operations on jobs, bound to one engine."""

    def __init__(self, engine: "Engine", context: Context) -> None:
        self._engine = engine
        self._context = context

    def table(self) -> Table:
        """Paths, methods and operations; literal paths before those with a parameter."""
        table: dict[str, dict[str, Operation]] = {
            f"{_PREFIX}/bulk-get": {"POST": self.bulk_get},
            "/api/v1/batches/{id}": {"GET": self.get_batch},
        }
        for name, builder in (_ACTIONS | {"hold": self._hold}).items():
            table[f"{_PREFIX}/{{id}}/{name}"] = {"POST": self._changing(builder)}
        change_priority = self._changing(_priority)
        table[f"{_PREFIX}/{{id}}/priority"] = {"PUT": change_priority, "POST": change_priority}
        table[f"{_PREFIX}/{{id}}/clone"] = {"POST": self.clone}
        table[f"{_PREFIX}/{{id}}/why"] = {"GET": self.why}
        table[f"{_PREFIX}/{{id}}"] = {"GET": self.get, "DELETE": self._changing(_delete)}
        return table

    async def get(self, call: Call) -> Answer:
        """`GET /jobs/{id}`."""
        return answer(views.job_members(self._find(call)))

    async def bulk_get(self, call: Call) -> Answer:
        """`POST /jobs/bulk-get`: those that exist in the order asked for, and who is missing."""
        request = call.read(_BULK_GET)
        jobs: list[Any] = []
        missing: list[str] = []
        size = 0
        for text in dict.fromkeys(request.job_ids):
            identifier = parse_id(JOB, text)
            view = None
            if identifier is not None:
                view = self._engine.read.job(call.principal.ns, identifier)
            if view is None:
                missing.append(text)
                continue
            documents = (view.spec.payload, view.checkpoint, view.result)
            size += sum(len(document) for document in documents if document)
            if size > limits.BATCH_BODY_BYTES_MAX:
                message = f"these jobs hold more than {limits.BATCH_BODY_BYTES_MAX} bytes together"
                hint = "ask for fewer jobs at once"
                raise RequestError(message, code="PAYLOAD_TOO_LARGE", status=413, hint=hint)
            jobs.append(views.job_members(view))
        return answer({"jobs": jobs, "missing": missing})

    async def get_batch(self, call: Call) -> Answer:
        """`GET /batches/{id}`."""
        identifier = parse_id(BATCH, call.argument)
        view = None
        if identifier is not None:
            view = self._engine.read.batch(call.principal.ns, identifier)
        if view is None:
            raise not_found("batch")
        return answer(views.batch_members(view))

    async def why(self, call: Call) -> Answer:
        """`GET /jobs/{id}/why`: each gate a job must pass, and how it stands."""
        ns = call.principal.ns
        view = self._engine.read.why(ns, self._identifier(call))
        if view is None:
            raise not_found("job")
        waiting = self._engine.waiting(ns, view.queue)
        listening = sum(
            1
            for worker in self._engine.workers.list(ns)
            if view.queue in worker.queues and worker.status != "stale"
        )
        return answer(views.why_members(view, waiting, listening))

    async def clone(self, call: Call) -> Answer:
        """`POST /jobs/{id}/clone`: a new job like an existing one, but for what is overridden."""
        request = call.read(_CLONE)
        original = self._find(call)
        fields = request.overrides if request.overrides is not None else request
        idempotency = idempotency_of(None, fields.idempotency_key, call.body)
        spec = _cloned_spec(original, fields, self._context)
        outcome, index = await self._engine.perform(EnqueueJob(spec, idempotency))
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        if isinstance(outcome, Replayed):
            outcome = outcome.answer
        assert isinstance(outcome, Enqueued | Duplicate)
        status, body = enqueued(outcome, index)
        return Answer(status, body, index=index)

    def _hold(self, call: Call, ns: int, identifier: bytes) -> Command:
        request = call.read(_HOLD)
        reason, timeout_ms, action = hold_terms(request)
        most_bytes = self._context.payload_bytes_max
        checkpoint = maybe_document(request.checkpoint, "checkpoint", most_bytes)
        token = request.lease_token or 0
        return HoldJob(ns, identifier, token, reason, timeout_ms, action, checkpoint)

    def _changing(self, builder: Builder) -> Operation:
        """Make the operation of a change to one job."""

        async def change(call: Call) -> Answer:
            identifier = self._identifier(call)
            command = builder(call, call.principal.ns, identifier)
            outcome, index = await self._engine.perform(command)
            if isinstance(outcome, Rejected):
                return refusal(outcome, index)
            assert isinstance(outcome, JobChanged)
            members = {
                "job_id": render_id(JOB, identifier),
                "status": outcome.status,
                "state": STATE_NAMES[outcome.state],
            }
            return written(members, index)

        return change

    def _identifier(self, call: Call) -> bytes:
        identifier = parse_id(JOB, call.argument)
        if identifier is None:
            raise not_found("job")
        return identifier

    def _find(self, call: Call) -> JobView:
        view = self._engine.read.job(call.principal.ns, self._identifier(call))
        if view is None:
            raise not_found("job")
        return view


def _cloned_spec(original: JobView, fields: wire.CloneFields, context: Context) -> Spec:
    """Make the specification of a clone.

    Kept: queue, payload, priority, retry policy, tags, group, limits, cost, expiry, trace, and the
    chain of a job that is its first step. Not kept, since they belong to the original alone: unique
    key, schedule, checkpoint, dependencies, batch, parent, hold.
    """
    source = original.spec
    retry = source.retry
    # Absent fields are filled in as if the client had sent those of the original.
    filled: dict[str, Any] = {
        "queue": original.queue,
        "payload": raw(source.payload),
        "priority": TIER_NAMES[original.job.tier],
        "max_retries": retry.max_attempts,
        "retry_backoff": BACKOFF_NAMES[retry.backoff],
        "retry_jitter": retry.jitter_percent / 100,
        "tags": source.tags,
        "group": source.group or None,
        "limit_key": source.limit_key or None,
        "limits": list(source.limits),
        "cost": source.cost,
    }
    for name in wire.CloneFields.__struct_fields__:
        value = getattr(fields, name)
        if value is not None and value is not wire.ABSENT:
            filled[name] = value
    identifier = context.new_id()
    spec = spec_of(wire.EnqueueRequest(**filled), original.job.ns, context, identifier)
    changes: dict[str, Any] = {"cloned_from": source.id}
    changes["retry"] = replace(
        spec.retry,
        base_ms=spec.retry.base_ms if fields.retry_base_delay is not None else retry.base_ms,
        max_ms=spec.retry.max_ms if fields.retry_max_delay is not None else retry.max_ms,
    )
    if fields.expire_after is None:
        changes["expire_after_ms"] = source.expire_after_ms
    if spec.trace is None:
        changes["trace"] = source.trace
    is_first = source.chain is not None and source.chain.step == 0
    if fields.chain is None and source.chain is not None and is_first:
        if spec.queue != source.chain.steps[0].queue:
            raise RequestError("a chain starts in the queue of its first step", field="queue")
        changes["chain"] = replace(source.chain, id=identifier)
    return replace(spec, **changes)
