"""Routes of schedules: create, read, replace, delete, pause, resume, run, backfill, preview.

The calendar is asked here and the instants go into the command, since the machine has none.
"""

import asyncio
from typing import TYPE_CHECKING, Any, Final

from corvo.api import translate, views, wire
from corvo.api.decode import Reader
from corvo.api.render import encode
from corvo.api.routing import Answer, Call, Table, answer, not_found, refusal, written
from corvo.api.translate import Context
from corvo.api.values import check_name, parse_duration, parse_instant, render_instant
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model import schedule as sc
from corvo.model.command import (
    BackfillSchedule,
    Command,
    DeleteSchedule,
    PauseSchedule,
    ResumeSchedule,
    RunSchedule,
    SetSchedule,
)
from corvo.model.ids import JOB, parse_id, render_id
from corvo.model.outcome import Rejected, ScheduleChanged
from corvo.model.schedule import SCHEDULE, ScheduleSpec
from corvo.model.view import ScheduleView
from corvo.scheduler import cron
from corvo.scheduler.cron import Timing
from corvo.scheduler.slots import first_slot

if TYPE_CHECKING:
    from corvo.engine import Engine

_PREFIX: Final = "/api/v1/schedules"
_ONE: Final = f"{_PREFIX}/{{id}}"
_NOTHING: Final = Reader(wire.Nothing)
_SCHEDULE: Final = Reader(wire.ScheduleRequest)
_PREVIEW: Final = Reader(wire.PreviewRequest)
_BACKFILL: Final = Reader(wire.BackfillRequest)

OVERLAPS: Final = {name: number for number, name in enumerate(sc.OVERLAP_NAMES)}
CATCH_UPS: Final = {name: number for number, name in enumerate(sc.CATCH_UP_NAMES)}
PREVIEW_COUNT_DEFAULT: Final = 5
TIMEZONE_DEFAULT: Final = "UTC"
# Slots looked up before others get their turn: the calendar takes up to two milliseconds each.
_SLOTS_AT_ONCE: Final = 16

# What a schedule and a job have in common.
_JOB_FIELDS: Final = tuple(
    name
    for name in wire.ScheduleRequest.__struct_fields__
    if name in wire.EnqueueRequest.__struct_fields__
)


class ScheduleRoutes:
    """The operations on schedules, bound to one engine."""

    def __init__(self, engine: "Engine", context: Context) -> None:
        self._engine = engine
        self._context = context

    def table(self) -> Table:
        """Paths, methods and operations; the preview without a schedule before the schedules."""
        return {
            _PREFIX: {"GET": self.list, "POST": self.create},
            f"{_PREFIX}/preview": {"POST": self.preview_unsaved},
            f"{_ONE}/pause": {"POST": self.pause},
            f"{_ONE}/resume": {"POST": self.resume},
            f"{_ONE}/run": {"POST": self.run},
            f"{_ONE}/backfill": {"POST": self.backfill},
            f"{_ONE}/preview": {"GET": self.preview},
            _ONE: {"GET": self.get, "PUT": self.replace, "DELETE": self.delete},
        }

    # --- reading ------------------------------------------------------------------------------

    async def list(self, call: Call) -> Answer:
        """`GET /schedules`: by name, without payloads; `after` and `limit` page through them."""
        most = limits.SCHEDULE_LIST_MAX
        limit = _count(call, "limit", most, most)
        after = call.query("after") or ""
        if not after.isascii():
            raise RequestError("this cannot be the name of a schedule", field="after")
        found = self._engine.read.schedules(call.principal.ns, after, limit)
        listed = [views.schedule_members(view) for view in found]
        for members in listed:
            del members["payload"]
        return answer(listed)

    async def get(self, call: Call) -> Answer:
        """`GET /schedules/{id}`; the name will do, too."""
        return answer(views.schedule_members(self._find(call)))

    async def preview(self, call: Call) -> Answer:
        """`GET /schedules/{id}/preview?count=5`: the slots to come, also of a paused schedule."""
        view = self._find(call)
        count = _count(call, "count", PREVIEW_COUNT_DEFAULT, limits.SCHEDULE_PREVIEW_MAX)
        timing = cron.parse(view.spec.cron, view.spec.timezone)
        return await self._runs(timing, view.spec, view.schedule.last_slot_ms, count)

    async def preview_unsaved(self, call: Call) -> Answer:
        """`POST /schedules/preview`: the slots of an expression that is not saved."""
        request = call.read(_PREVIEW)
        timing = cron.parse(request.cron, request.timezone or TIMEZONE_DEFAULT)
        start_ms, until_ms = _bounds_of(request)
        nothing = translate.spec_of(
            wire.EnqueueRequest(queue="preview"), call.principal.ns, self._context, bytes(16)
        )
        spec = ScheduleSpec("", "", "", nothing, start_ms=start_ms, until_ms=until_ms)
        return await self._runs(timing, spec, 0, request.count or PREVIEW_COUNT_DEFAULT)

    async def _runs(self, timing: Timing, spec: ScheduleSpec, after_ms: int, count: int) -> Answer:
        found: list[int] = []
        slot_ms = max(self._engine.now_ms, after_ms)
        while len(found) < count and (slot_ms := first_slot(timing, spec, slot_ms)):
            found.append(slot_ms)
            if len(found) % _SLOTS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return answer({"runs": [render_instant(slot) for slot in found]})

    def _find(self, call: Call) -> ScheduleView:
        text, read = call.argument, self._engine.read
        identifier = parse_id(SCHEDULE, text)
        view = None
        if identifier is not None:
            view = read.schedule(call.principal.ns, identifier)
        elif text.isascii():
            view = read.schedule_named(call.principal.ns, text)
        if view is None:
            raise not_found("schedule")
        return view

    # --- writing ------------------------------------------------------------------------------

    async def create(self, call: Call) -> Answer:
        """`POST /schedules`: 201 with the object; a name that is taken is 409."""
        request = call.read(_SCHEDULE)
        return await self._set(call, request, self._engine.new_id(), is_new=True)

    async def replace(self, call: Call) -> Answer:
        """`PUT /schedules/{id}`: what it asks for is replaced; how far it has come stays."""
        request = call.read(_SCHEDULE)
        return await self._set(call, request, self._find(call).schedule.id, is_new=False)

    async def _set(
        self, call: Call, request: wire.ScheduleRequest, identifier: bytes, *, is_new: bool
    ) -> Answer:
        ns = call.principal.ns
        spec = schedule_spec(request, ns, self._context, identifier)
        timing = cron.parse(spec.cron, spec.timezone)
        next_ms = first_slot(timing, spec, self._engine.now_ms)
        if not next_ms:
            field = "end_at" if spec.until_ms else "cron"
            raise RequestError("this schedule would never fire", field=field)
        outcome, index = await self._engine.perform(
            SetSchedule(ns, identifier, spec, next_ms, is_new, request.paused)
        )
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        view = self._engine.read.schedule(ns, identifier)
        if view is None:
            raise not_found("schedule")
        body = encode(views.schedule_members(view) | {"index": index})
        return Answer(201 if is_new else 200, body, index=index)

    async def delete(self, call: Call) -> Answer:
        """`DELETE /schedules/{id}`: its jobs stay."""
        call.read(_NOTHING)
        view = self._find(call)
        return await self._change(view, DeleteSchedule(call.principal.ns, view.schedule.id))

    async def pause(self, call: Call) -> Answer:
        """`POST /schedules/{id}/pause`."""
        call.read(_NOTHING)
        view = self._find(call)
        return await self._change(view, PauseSchedule(call.principal.ns, view.schedule.id))

    async def resume(self, call: Call) -> Answer:
        """`POST /schedules/{id}/resume`: slots of the pause are not made up for."""
        call.read(_NOTHING)
        view = self._find(call)
        record, spec = view.schedule, view.spec
        next_ms = first_slot(cron.parse(spec.cron, spec.timezone), spec, self._engine.now_ms)
        command = ResumeSchedule(call.principal.ns, record.id, record.revision, next_ms)
        return await self._change(view, command)

    async def run(self, call: Call) -> Answer:
        """`POST /schedules/{id}/run`: a job now, whatever the calendar says."""
        call.read(_NOTHING)
        view = self._find(call)
        outcome, index = await self._engine.perform(
            RunSchedule(call.principal.ns, view.schedule.id)
        )
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        assert isinstance(outcome, ScheduleChanged)
        members = {"job_id": render_id(JOB, outcome.jobs[0]), "status": outcome.status}
        return Answer(201, encode(members | {"index": index}), index=index)

    async def backfill(self, call: Call) -> Answer:
        """`POST /schedules/{id}/backfill`: jobs for past slots that have none."""
        request = call.read(_BACKFILL)
        view = self._find(call)
        start_ms = parse_instant(request.start, "from")
        until_ms = parse_instant(request.until, "to")
        if start_ms >= until_ms:
            raise RequestError("`from` is not before `to`", field="from")
        if until_ms > self._engine.now_ms + 1:
            raise RequestError("the future comes by itself", field="to", hint="at most now")
        found = await self._slots_between(view.spec, start_ms, until_ms)
        if len(found) * len(view.spec.template.payload) > limits.BATCH_BODY_BYTES_MAX:
            message = f"the payloads of {len(found)} slots are more than one call may add"
            raise RequestError(message, field="to", hint="ask for fewer slots at once")
        command = BackfillSchedule(call.principal.ns, view.schedule.id, tuple(found))
        outcome, index = await self._engine.perform(command)
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        assert isinstance(outcome, ScheduleChanged)
        members: dict[str, Any] = {
            "status": outcome.status,
            "slots": len(found),
            "skipped": outcome.skipped,
            "job_ids": [render_id(JOB, job) for job in outcome.jobs],
        }
        return written(members, index)

    async def _slots_between(self, spec: ScheduleSpec, start_ms: int, until_ms: int) -> "list[int]":
        timing = cron.parse(spec.cron, spec.timezone)
        found: list[int] = []
        slot_ms = first_slot(timing, spec, start_ms - 1)
        while 0 < slot_ms < until_ms:
            found.append(slot_ms)
            if len(found) > limits.SCHEDULE_BACKFILL_MAX:
                most = limits.SCHEDULE_BACKFILL_MAX
                raise RequestError(
                    f"there are more than {most} slots between `from` and `to`",
                    field="to",
                    hint=f"ask for less at once; the slot number {most} is at "
                    f"{render_instant(found[-2])}",
                )
            if len(found) % _SLOTS_AT_ONCE == 0:
                await asyncio.sleep(0)
            slot_ms = first_slot(timing, spec, slot_ms)
        return found

    async def _change(self, view: ScheduleView, command: Command) -> Answer:
        outcome, index = await self._engine.perform(command)
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        assert isinstance(outcome, ScheduleChanged)
        members: dict[str, Any] = {
            "id": render_id(SCHEDULE, view.schedule.id),
            "name": view.spec.name,
            "status": outcome.status,
            "next_run_at": render_instant(outcome.next_ms) if outcome.next_ms else None,
        }
        return written(members, index)


def schedule_spec(
    request: wire.ScheduleRequest, ns: int, context: Context, identifier: bytes
) -> ScheduleSpec:
    """Read what a schedule asks for, but for the calendar. Raises `RequestError`."""
    name = check_name(request.name, "name")
    if parse_id(SCHEDULE, name) is not None:
        raise RequestError("a name cannot look like an identifier", field="name")
    job = wire.EnqueueRequest(**{field: getattr(request, field) for field in _JOB_FIELDS})
    template = translate.spec_of(job, ns, context, identifier)
    start_ms, until_ms = _bounds_of(request)
    jitter = request.jitter
    jitter_most_ms = limits.SCHEDULE_JITTER_MS_MAX
    return ScheduleSpec(
        name,
        " ".join(request.cron.split()),
        request.timezone or TIMEZONE_DEFAULT,
        template,
        sc.OVERLAP_ALLOW if request.overlap is None else OVERLAPS[request.overlap],
        sc.CATCH_UP_LAST if request.catch_up is None else CATCH_UPS[request.catch_up],
        0 if jitter is None else parse_duration(jitter, "jitter", most_ms=jitter_most_ms),
        start_ms,
        until_ms,
    )


def _bounds_of(request: wire.TimingFields) -> tuple[int, int]:
    start_ms = 0 if request.start_at is None else parse_instant(request.start_at, "start_at")
    until_ms = 0 if request.end_at is None else parse_instant(request.end_at, "end_at")
    if until_ms and until_ms <= start_ms:
        raise RequestError("the end is not after the start", field="end_at")
    return start_ms, until_ms


def _count(call: Call, name: str, default: int, most: int) -> int:
    text = call.query(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and 1 <= int(text) <= most):
        raise RequestError(f"this is not a number from 1 to {most}", field=name)
    return int(text)
