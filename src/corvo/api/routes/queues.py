"""Routes of queues: list, read, pause, resume, drain, clear, configure, delete."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, UnsetType

from corvo.api import views, wire
from corvo.api.decode import Reader, under
from corvo.api.render import encode
from corvo.api.routing import Answer, Call, Operation, Table, answer, not_found, refusal, written
from corvo.api.values import check_name, check_note, parse_duration
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.command import (
    ClearQueue,
    Command,
    ConfigureQueue,
    DeleteQueue,
    DrainQueue,
    PauseQueue,
    ResumeQueue,
)
from corvo.model.ids import BULK, OPERATION, render_id
from corvo.model.outcome import QueueChanged, Rejected
from corvo.model.queue import Rate, SettingsPatch

if TYPE_CHECKING:
    from corvo.engine import Engine

_PREFIX: Final = "/api/v1/queues"
SLICE_QUEUES: Final = 64  # listed before others get a turn
# Names may hold a slash, hence the path converter; the routes with an action come first.
_QUEUE: Final = f"{_PREFIX}/{{name:path}}"

_NOTHING: Final = Reader(wire.Nothing)
_CONCURRENCY: Final = Reader(wire.ConcurrencyRequest)
_THROTTLE: Final = Reader(wire.RateFields)
_SETTINGS: Final = Reader(wire.SettingsRequest)

_ALLOWED_SECRET_BYTES: Final = limits.REASON_BYTES_MAX


class QueueRoutes:
    """The operations on queues, bound to one engine."""

    def __init__(self, engine: "Engine", undo_ms: int = limits.UNDO_MS_DEFAULT) -> None:
        self._engine = engine
        self._undo_ms = undo_ms

    def table(self) -> Table:
        """Paths, methods and operations; actions before the queue itself."""
        return {
            _PREFIX: {"GET": self.list},
            f"{_QUEUE}/pause": {"POST": self._simple(PauseQueue)},
            f"{_QUEUE}/resume": {"POST": self._simple(ResumeQueue)},
            f"{_QUEUE}/drain": {"POST": self._simple(DrainQueue)},
            f"{_QUEUE}/clear": {"POST": self.clear},
            f"{_QUEUE}/concurrency": {"POST": self.concurrency},
            f"{_QUEUE}/throttle": {"POST": self.throttle, "DELETE": self.unthrottle},
            _QUEUE: {"GET": self.get, "PATCH": self.configure, "DELETE": self.delete},
        }

    async def list(self, call: Call) -> Answer:
        """`GET /queues`: every queue with its counters, by name."""
        ns = call.principal.ns
        read, waiting = self._engine.read, self._engine.waiting
        pieces: list[bytes] = []
        for place, name in enumerate(read.queue_names(ns)):
            view = read.queue(ns, name)
            if view is not None:
                pieces.append(encode(views.queue_members(view, waiting(ns, name))))
            # Cost: 60 µs a queue; somebody with thousands of them must not hold up the writers.
            if place % SLICE_QUEUES == SLICE_QUEUES - 1:
                await asyncio.sleep(0)
        return Answer(200, b"[" + b",".join(pieces) + b"]")

    async def get(self, call: Call) -> Answer:
        """`GET /queues/{name}`."""
        ns, name = call.principal.ns, call.argument
        view = self._engine.read.queue(ns, name)
        if view is None:
            raise not_found("queue")
        return answer(views.queue_members(view, self._engine.waiting(ns, name)))

    def _simple(self, command: Callable[[int, str], Command]) -> Operation:
        """Make the operation of a change that needs only the name."""

        async def change(call: Call) -> Answer:
            call.read(_NOTHING)
            return await self._change(command(call.principal.ns, _name(call)))

        return change

    async def clear(self, call: Call) -> Answer:
        """`POST /queues/{name}/clear`: removes what waits; held and active jobs stay."""
        call.read(_NOTHING)
        identifier = self._engine.new_id()
        command = ClearQueue(call.principal.ns, _name(call), identifier, self._undo_ms)
        return await self._change(command)

    async def delete(self, call: Call) -> Answer:
        """`DELETE /queues/{name}?confirm=true`: removes the queue and every job in it."""
        call.read(_NOTHING)
        name = _name(call)
        if call.query("confirm") not in ("true", "1"):
            raise RequestError(
                f"this deletes the queue {name} and all its jobs", code="CONFIRMATION_REQUIRED"
            )
        return await self._change(DeleteQueue(call.principal.ns, name, self._engine.new_id()))

    async def concurrency(self, call: Call) -> Answer:
        """`POST /queues/{name}/concurrency`: null or 0 removes the limit."""
        request = call.read(_CONCURRENCY)
        return await self._configure(call, SettingsPatch(max_concurrency=request.max or None))

    async def throttle(self, call: Call) -> Answer:
        """`POST /queues/{name}/throttle`: a rate of null or 0 removes it."""
        request = call.read(_THROTTLE)
        return await self._configure(call, SettingsPatch(rate=rate_of(request)))

    async def unthrottle(self, call: Call) -> Answer:
        """`DELETE /queues/{name}/throttle`."""
        call.read(_NOTHING)
        return await self._configure(call, SettingsPatch(rate=None))

    async def configure(self, call: Call) -> Answer:
        """`PATCH /queues/{name}`: absent fields stay, null or 0 removes."""
        return await self._configure(call, patch_of(call.read(_SETTINGS)))

    async def _configure(self, call: Call, patch: SettingsPatch) -> Answer:
        command = ConfigureQueue(call.principal.ns, _name(call), patch, self._engine.new_id())
        return await self._change(command)

    async def _change(self, command: Any) -> Answer:
        outcome, index = await self._engine.perform(command)
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        assert isinstance(outcome, QueueChanged)
        members: dict[str, Any] = {"status": outcome.status}
        if isinstance(command, DrainQueue):
            members["active"] = outcome.active
        if isinstance(command, ClearQueue | DeleteQueue):
            members["removed"] = outcome.removed
            identifier = outcome.operation_id
            members["operation_id"] = render_id(OPERATION, identifier) if identifier else None
        if isinstance(command, ClearQueue):
            has_undo = bool(outcome.removed and command.undo_ms)
            name = render_id(BULK, command.operation_id) if has_undo else None
            members["bulk_operation_id"] = name
        if isinstance(command, ConfigureQueue):
            view = self._engine.read.queue(command.ns, command.queue)
            if view is not None:
                members["settings"] = views.settings_members(view.record.settings)
        return written(members, index)


def _name(call: Call) -> str:
    return check_name(call.argument, "name")


def rate_of(fields: wire.RateFields) -> Rate | None:
    """Read a token bucket; a rate of null or 0 is none."""
    if not fields.rate:
        return None
    if fields.period is not None and fields.window_ms is not None:
        raise RequestError("send one of period and window_ms", field="window_ms")
    if fields.period is not None:
        period_ms = parse_duration(fields.period, "period", least_ms=1)
    elif fields.window_ms is not None:
        period_ms = fields.window_ms
    else:
        raise RequestError("a rate needs a period", field="period", hint='such as "1m"')
    return Rate(fields.rate, period_ms, fields.burst or fields.rate)


def patch_of(request: wire.SettingsRequest) -> SettingsPatch:
    """Read a change of settings."""
    weights, secret = request.weights, request.webhook_secret
    if isinstance(weights, dict):
        if len(weights) > limits.WEIGHTS_COUNT_MAX:
            message = f"more than {limits.WEIGHTS_COUNT_MAX} weights"
            raise RequestError(message, field="weights")
        for group in weights:
            check_name(group, "weights")
    if isinstance(secret, str):
        check_note(secret, "webhook_secret", _ALLOWED_SECRET_BYTES)
    count = request.retention_count
    return SettingsPatch(
        max_concurrency=_or_none(request.max_concurrency),
        key_concurrency=_or_none(request.key_concurrency),
        rate=_maybe_rate(request.rate, "rate"),
        key_rate=_maybe_rate(request.key_rate, "key_rate"),
        weights=_or_none(weights),
        aging_ms=_aging_ms(request),
        lease_ms=_maybe_duration(
            request.lease_duration,
            "lease_duration",
            least_ms=limits.LEASE_MS_MIN,
            most_ms=limits.LEASE_MS_MAX,
        ),
        retention_ms=_maybe_duration(request.retention, "retention"),
        retention_count=_or_none(count),
        require_token=_or_none(request.require_token),
        max_payload=_or_none(request.max_payload),
        webhook_secret=_or_none(secret),
    )


def _or_none(value: Any) -> Any:
    """Keep absent as absent; null, 0 and empty all mean: remove."""
    return value if value is UNSET else value or None


def _maybe_duration(
    value: wire.Duration | UnsetType | None, field: str, *, least_ms: int = 0, **bounds: int
) -> int | UnsetType | None:
    if isinstance(value, UnsetType):
        return UNSET
    if value is None or value in (0, "0s"):
        return None
    return parse_duration(value, field, least_ms=least_ms, **bounds)


def _maybe_rate(fields: wire.RateFields | UnsetType | None, path: str) -> Rate | UnsetType | None:
    if isinstance(fields, UnsetType) or fields is None:
        return fields
    try:
        return rate_of(fields)
    except RequestError as error:
        raise under(path, error) from error


def _aging_ms(request: wire.SettingsRequest) -> int | UnsetType | None:
    """The mode says whether tiers age, the step how fast; a step alone implies the mode."""
    mode, step = request.priority_mode, request.aging_step
    step_ms = _maybe_duration(step, "aging_step", least_ms=1)
    if mode == "aging":
        is_given = isinstance(step_ms, int)
        return step_ms if is_given else limits.AGING_STEP_MS_DEFAULT
    if mode is None or mode == "strict":
        if isinstance(step_ms, int):
            message = "a step of aging has no meaning with strict priorities"
            raise RequestError(message, field="aging_step")
        return None
    return step_ms
