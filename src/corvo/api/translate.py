"""From a decoded request to a command.

The common job says only queue and payload, so each optional field costs one test here and nothing
more. Fields are checked in the order of the struct; the first wrong one is the one that is named.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from corvo.api import wire
from corvo.api.decode import under
from corvo.api.values import (
    SHALLOW_BYTES,
    check_document,
    check_id,
    check_name,
    check_note,
    check_tags,
    check_text,
    is_known_name,
    is_too_deep,
    maybe_document,
    parse_duration,
    parse_instant,
)
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.command import EnqueueBatch, EnqueueJob, Idempotency
from corvo.model.ids import JOB
from corvo.model.job import (
    DEPENDENCY_FAIL,
    DEPENDENCY_POLICY_NAMES,
    HOLD_ACTION_NAMES,
    HOLD_NONE,
    TIER_NAMES,
    TIER_NORMAL,
    UNIQUE_MODE_NAMES,
    UNIQUE_UNTIL_DONE,
    BatchSpec,
    Chain,
    Hold,
    Spec,
    Step,
    Unique,
)
from corvo.model.retry import BACKOFF_NAMES, DEFAULT_RETRY, RetryPolicy

TIERS: Final = {name: tier for tier, name in enumerate(TIER_NAMES)}
BACKOFFS: Final = {name: number for number, name in enumerate(BACKOFF_NAMES)}
UNIQUE_MODES: Final = {name: number for number, name in enumerate(UNIQUE_MODE_NAMES)}
DEPENDENCY_POLICIES: Final = {name: number for number, name in enumerate(DEPENDENCY_POLICY_NAMES)}
HOLD_ACTIONS: Final = {name: number for number, name in enumerate(HOLD_ACTION_NAMES)}
PLAIN_LUCK_MAX: Final = 64
PLAIN_PAUSE: Final = 1_000  # calls that go the ordinary way before it is tried again
_NULL: Final = b"null"
_OBJECT: Final = b"{}"


class Context(Struct, frozen=True):
    """What translation needs beside the request."""

    new_id: Callable[[], bytes]
    payload_bytes_max: int
    now_ms: Callable[[], int]  # what a delay counts from


def enqueue(
    request: wire.EnqueueRequest, ns: int, context: Context, idempotency: Idempotency | None
) -> EnqueueJob:
    """Make the command of `POST /enqueue`."""
    return EnqueueJob(spec_of(request, ns, context, context.new_id()), idempotency)


class PlainReader:
    """Reads enqueues that name a queue and a payload and nothing else, without asking for more.

    Cost: saves a third of what the edge spends on such a call. A call it does not fit costs one
    refused decoding more; when most do not fit, it stops trying for a while.
    """

    __slots__ = ("_context", "_decode", "_luck", "_pause")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._decode = Decoder(wire.PlainEnqueue).decode
        self._luck = PLAIN_LUCK_MAX
        self._pause = 0

    def read(self, body: bytes, ns: int) -> EnqueueJob | None:
        """Make the command of a plain enqueue; None when the ordinary way must decide."""
        if self._pause:
            self._pause -= 1
            return None
        try:
            request = self._decode(body)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            self._luck -= 2
            if self._luck <= 0:
                self._luck, self._pause = PLAIN_LUCK_MAX // 4, PLAIN_PAUSE
            return None
        queue = request.queue
        payload = bytes(request.payload)
        context = self._context
        # Whatever is not obviously right is decided, and explained, by the ordinary way.
        if (
            len(payload) > context.payload_bytes_max
            or (len(payload) > SHALLOW_BYTES and is_too_deep(payload))
            or not body.isascii()
            or not is_known_name(queue)
        ):
            return None
        if self._luck < PLAIN_LUCK_MAX:
            self._luck += 1
        return EnqueueJob(Spec(context.new_id(), ns, queue, payload))


def enqueue_batch(
    request: wire.EnqueueBatchRequest, ns: int, context: Context, idempotency: Idempotency | None
) -> EnqueueBatch:
    """Make the command of `POST /enqueue/batch`; the first malformed job refuses the whole call."""
    batch = None
    if request.batch is not None:
        batch = _batch_of(request.batch, context)
    batch_id = batch.id if batch is not None else None
    siblings: list[bytes] = []
    specs: list[Spec] = []
    for position, job in enumerate(request.jobs):
        identifier = context.new_id()
        try:
            if job.idempotency_key is not None:
                _refuse_own_key()
            specs.append(spec_of(job, ns, context, identifier, siblings, batch_id))
        except RequestError as error:
            raise under(f"jobs[{position}]", error) from error
        siblings.append(identifier)
    return EnqueueBatch(specs, batch, idempotency)


def idempotency_of(header: bytes | None, field: str | None, body: bytes) -> Idempotency | None:
    """Read the idempotency key of a call; the fingerprint is that of the whole body."""
    if header is None and field is None:
        return None
    try:
        from_header = None if header is None else header.decode()
    except UnicodeDecodeError as error:
        raise RequestError("the header Idempotency-Key is not text") from error
    if from_header is not None and field is not None and from_header != field:
        message = "the header Idempotency-Key and this field differ"
        raise RequestError(message, field="idempotency_key")
    key = from_header if from_header is not None else field or ""
    check_text(key, "idempotency_key", limits.IDEMPOTENCY_KEY_BYTES_MAX)
    return Idempotency(key, blake2b(body, digest_size=16).digest())


def _refuse_own_key() -> None:
    raise RequestError(
        "a job of a batch has no idempotency key of its own",
        code="NOT_SUPPORTED",
        field="idempotency_key",
        hint="send one Idempotency-Key for the whole call",
    )


def refuse_unbuilt(raw: Raw, field: str) -> None:
    """Refuse a field of a feature that is not built yet; null asks for nothing and is fine."""
    if bytes(raw) not in (b"", _NULL):
        raise RequestError(
            "this server does not have the feature behind this field",
            code="NOT_SUPPORTED",
            field=field,
        )


def spec_of(
    job: wire.EnqueueRequest,
    ns: int,
    context: Context,
    identifier: bytes,
    siblings: list[bytes] | tuple[()] = (),
    batch_id: bytes | None = None,
) -> Spec:
    """Make the specification of a job; `siblings` are the earlier jobs of the same call."""
    payload = check_document(job.payload, "payload", context.payload_bytes_max) or _OBJECT
    queue = check_name(job.queue, "queue")
    retry = retry_of(job, DEFAULT_RETRY)
    tags = job.tags
    chain = None
    if job.chain is not None:
        chain = chain_of(job.chain, queue, identifier, retry, context.payload_bytes_max)
        payload = _first_payload(job, payload)
    if job.agent is not wire.ABSENT:
        refuse_unbuilt(job.agent, "agent")
    if job.routing is not wire.ABSENT:
        refuse_unbuilt(job.routing, "routing")
    if job.result_schema is not wire.ABSENT:
        refuse_unbuilt(job.result_schema, "result_schema")
    trace, checkpoint, hold = job.trace, job.checkpoint, job.hold
    return Spec(
        identifier,
        ns,
        queue,
        payload,
        TIER_NORMAL if job.priority is None else TIERS[job.priority],
        retry,
        check_tags(tags) if tags is not None else None,
        _unique_of(job),
        0 if job.scheduled_at is None and job.delay is None else _due_ms(job, context),
        0 if job.expire_after is None else _expiry_ms(job.expire_after),
        "" if job.group is None else check_name(job.group, "group"),
        "" if job.limit_key is None else _limit_key(job.limit_key),
        () if job.limits is None else _limits_of(job.limits),
        1 if job.cost is None else job.cost,
        None if checkpoint is wire.ABSENT else maybe_document(checkpoint, "checkpoint"),
        None if job.parent_id is None else check_id(JOB, job.parent_id, "parent_id"),
        () if not job.depends_on else _dependencies_of(job.depends_on, siblings),
        DEPENDENCY_FAIL
        if job.on_dependency_failure is None
        else DEPENDENCY_POLICIES[job.on_dependency_failure],
        chain,
        batch_id,
        None if not hold else _hold_of(hold),
        None if trace is wire.ABSENT else maybe_document(trace, "trace", limits.TRACE_BYTES_MAX),
    )


def _due_ms(job: wire.JobFields, context: Context) -> int:
    """When the job may start: an instant, or a delay by the clock of the server."""
    if job.delay is None:
        assert job.scheduled_at is not None
        return parse_instant(job.scheduled_at, "scheduled_at")
    if job.scheduled_at is not None:
        message = "scheduled_at and delay both say when; give one of them"
        raise RequestError(message, field="delay")
    return context.now_ms() + parse_duration(job.delay, "delay")


def retry_of(fields: wire.JobFields | wire.StepFields, inherited: RetryPolicy) -> RetryPolicy:
    """Make the retry policy; what is absent is inherited."""
    attempts, backoff = fields.max_retries, fields.retry_backoff
    base, most, jitter = fields.retry_base_delay, fields.retry_max_delay, fields.retry_jitter
    if attempts is None and backoff is None and base is None and most is None and jitter is None:
        return inherited
    return RetryPolicy(
        inherited.max_attempts if attempts is None else attempts,
        inherited.backoff if backoff is None else BACKOFFS[backoff],
        inherited.base_ms if base is None else parse_duration(base, "retry_base_delay"),
        inherited.max_ms if most is None else parse_duration(most, "retry_max_delay"),
        inherited.jitter_percent if jitter is None else round(jitter * 100),
    )


def chain_of(
    fields: wire.ChainFields, queue: str, identifier: bytes, retry: RetryPolicy, most_bytes: int
) -> Chain:
    """Make the pipeline of a job. It carries the identifier of its first job."""
    if not 1 <= len(fields.steps) <= limits.CHAIN_STEPS_MAX:
        message = f"a chain has 1 to {limits.CHAIN_STEPS_MAX} steps"
        raise RequestError(message, field="chain.steps")
    first = fields.steps[0]
    if first.queue != queue:
        raise RequestError(
            "the first step must name the queue of the job",
            field="chain.steps[0].queue",
            hint="the job itself is the first step of its chain",
        )
    if any(getattr(first, name) is not None for name in _STEP_OPTIONS):
        raise RequestError(
            "the first step takes its options from the job",
            field="chain.steps[0]",
            hint="set priority, retries, tags and limits on the job itself",
        )
    steps = tuple(
        step_of(step, f"chain.steps[{position}]", retry, most_bytes)
        for position, step in enumerate(fields.steps)
    )
    on_failure, on_exit = fields.on_failure, fields.on_exit
    return Chain(
        identifier,
        steps,
        None if on_failure is None else step_of(on_failure, "chain.on_failure", retry, most_bytes),
        None if on_exit is None else step_of(on_exit, "chain.on_exit", retry, most_bytes),
    )


_STEP_OPTIONS: Final = tuple(
    name for name in wire.StepFields.__struct_fields__ if name not in ("queue", "payload")
)


def _first_payload(job: wire.JobFields, payload: bytes) -> bytes:
    """The payload of the first step is that of the job; it may be written in either place."""
    assert job.chain is not None
    first = bytes(job.chain.steps[0].payload)
    if not first:
        return payload
    if bytes(job.payload):
        message = "the payload of the first step is that of the job; send one of the two"
        raise RequestError(message, field="chain.steps[0].payload")
    return first


def step_of(step: wire.StepFields, path: str, inherited: RetryPolicy, most_bytes: int) -> Step:
    """Make one step of a chain; what is absent stays open, to be inherited."""
    try:
        retry = retry_of(step, inherited)
        return Step(
            check_name(step.queue, "queue"),
            check_document(step.payload, "payload", most_bytes) or None,
            None if step.priority is None else TIERS[step.priority],
            None if retry is inherited else retry,
            None if step.tags is None else check_tags(step.tags) or {},
            None if step.group is None else check_name(step.group, "group"),
            None if step.limit_key is None else _limit_key(step.limit_key),
            None if step.limits is None else _limits_of(step.limits),
            step.cost,
        )
    except RequestError as error:
        raise under(path, error) from error


def _batch_of(fields: wire.BatchFields, context: Context) -> BatchSpec:
    most_bytes = context.payload_bytes_max
    try:
        queue = fields.callback_queue
        payload = check_document(fields.callback_payload, "callback_payload", most_bytes) or None
        queue = "" if queue is None else check_name(queue, "callback_queue")
    except RequestError as error:
        raise under("batch", error) from error
    if not queue and payload is not None:
        message = "a callback payload needs a callback queue"
        raise RequestError(message, field="batch.callback_queue")
    return BatchSpec(context.new_id(), queue, payload)


def _unique_of(job: wire.JobFields) -> Unique | None:
    key, period, mode = job.unique_key, job.unique_period, job.unique_mode
    if key is None:
        if period is None and mode is None:
            return None
        field = "unique_mode" if period is None else "unique_period"
        raise RequestError("this has no meaning without unique_key", field=field)
    check_text(key, "unique_key", limits.UNIQUE_KEY_BYTES_MAX)
    period_ms = limits.UNIQUE_PERIOD_MS_DEFAULT
    if period is not None:
        period_ms = parse_duration(period, "unique_period", least_ms=1)
    return Unique(key, period_ms, UNIQUE_UNTIL_DONE if mode is None else UNIQUE_MODES[mode])


def _hold_of(hold: wire.HoldFields | bool) -> Hold:  # noqa: FBT001 - a value of the wire
    if isinstance(hold, bool):
        return Hold()
    try:
        return Hold(*hold_terms(hold))
    except RequestError as error:
        raise under("hold", error) from error


def hold_terms(hold: wire.HoldFields) -> tuple[str, int, int]:
    """Read reason, time-out and what happens at the time-out."""
    reason = check_note(hold.reason, "reason")
    timeout_ms = 0 if hold.timeout is None else parse_duration(hold.timeout, "timeout")
    action = HOLD_NONE if hold.timeout_action is None else HOLD_ACTIONS[hold.timeout_action]
    if action != HOLD_NONE and timeout_ms == 0:
        raise RequestError("an action at the time-out needs a time-out", field="timeout")
    return reason, timeout_ms, action


def _expiry_ms(value: int | str) -> int:
    return parse_duration(value, "expire_after", least_ms=1)


def _limit_key(text: str) -> str:
    return check_text(text, "limit_key", limits.NAME_BYTES_MAX)


def _limits_of(names: list[str]) -> tuple[str, ...]:
    if len(names) > limits.JOB_LIMITS_MAX:
        message = f"a job names at most {limits.JOB_LIMITS_MAX} limits"
        raise RequestError(message, field="limits")
    for position, name in enumerate(names):
        check_name(name, f"limits[{position}]")
    # Naming a limit twice would take two slots of it; the order of names has no meaning.
    return tuple(dict.fromkeys(names))


def _dependencies_of(references: list[str], siblings: list[bytes] | tuple[()]) -> tuple[bytes, ...]:
    """Read dependencies: identifiers, or "#0" for the first job of the same call."""
    if len(references) > limits.DEPENDS_ON_MAX:
        message = f"a job depends on at most {limits.DEPENDS_ON_MAX} others"
        raise RequestError(message, field="depends_on")
    parents: list[bytes] = []
    for position, reference in enumerate(references):
        field = f"depends_on[{position}]"
        if not reference.startswith("#"):
            parents.append(check_id(JOB, reference, field))
            continue
        digits = reference[1:]
        # Only earlier jobs can be named, so that a call cannot hold a circle.
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= 6
        if not is_number or int(digits) >= len(siblings):
            hint = '"#0" is the first job of the same call; only earlier jobs can be named'
            raise RequestError("this names no earlier job of the call", field=field, hint=hint)
        parents.append(siblings[int(digits)])
    return tuple(dict.fromkeys(parents))
