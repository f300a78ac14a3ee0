"""Routes of bulk operations: start, watch, abort, undo."""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from corvo.api import errors, wire
from corvo.api.decode import Reader
from corvo.api.render import encode, raw
from corvo.api.routing import Answer, Call, Table, answer, not_found, refusal, send_answer
from corvo.api.translate import TIERS, hold_terms
from corvo.api.values import check_name, check_note, maybe_instant, render_instant
from corvo.errors import CorvoError, RequestError
from corvo.model import bulk as bk
from corvo.model import limits
from corvo.model.bulk import ACTION_NAMES, STATUS_NAMES, Bulk, BulkTask
from corvo.model.command import ANY_STATE
from corvo.model.ids import BULK, JOB, OPERATION, parse_id, render_id
from corvo.model.job import STATE_NAMES
from corvo.model.outcome import BulkChanged, Outcome, Rejected
from corvo.scheduler.bulk import FILL_TARGETS, BulkRunner, Plan

if TYPE_CHECKING:
    from corvo.engine import Engine

_PREFIX: Final = "/api/v1/bulk"
_NOTHING: Final = Reader(wire.Nothing)
_BULK: Final = Reader(wire.BulkRequest)
_ACTIONS: Final = {name: number for number, name in enumerate(ACTION_NAMES)}

ANSWER_S: Final = 25.0  # a call that takes longer is answered 202 and goes on by itself
SEAL_S: Final = 5.0  # how long an asynchronous call waits until the number of jobs is known
LOOK_S: Final = 1.0
HEARTBEAT_LOOKS: Final = 15
_SLICE: Final = 500  # jobs of a dry run looked at before others get a turn


class BulkRoutes:
    """The operations on many jobs, bound to one runner."""

    def __init__(self, engine: "Engine", runner: BulkRunner, undo_ms: int) -> None:
        self._engine = engine
        self._runner = runner
        self._undo_ms = undo_ms

    def table(self) -> Table:
        """Paths, methods and operations."""
        return {
            "/api/v1/jobs/bulk": {"POST": self.start},
            _PREFIX: {"GET": self.list},
            f"{_PREFIX}/{{id}}/abort": {"POST": self.abort},
            f"{_PREFIX}/{{id}}/undo": {"POST": self.undo},
            f"{_PREFIX}/{{id}}": {"GET": self.get},
        }

    # --- starting -------------------------------------------------------------------------------

    async def start(self, call: Call) -> Answer:
        """`POST /jobs/bulk`: one action on all jobs that are named or match."""
        began_s = asyncio.get_running_loop().time()
        request = call.read(_BULK)
        task = task_of(request)
        filter_text = _filter_of(request)
        ns = call.principal.ns
        if request.dry_run:
            return await self._preview(ns, task, request, filter_text, began_s)
        plan = await self._plan(ns, task, request, filter_text)
        outcome, index = await self._runner.start(plan)
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        is_large = len(plan.states) > limits.BULK_SYNC_MAX
        bulk = await self._wait(plan, is_async=bool(request.is_async) or is_large)
        if bulk.status == bk.FAILED:
            raise RequestError(bulk.error, field="filter")
        elapsed_ms = int((asyncio.get_running_loop().time() - began_s) * 1000)
        if request.is_async or is_large or bulk.status in bk.UNFINISHED:
            index = self._engine.index
            return Answer(202, encode(_accepted(bulk, index)), index=index)
        return _counts_answer(bulk, elapsed_ms, self._engine.index)

    async def _plan(
        self, ns: int, task: BulkTask, request: wire.BulkRequest, filter_text: bytes
    ) -> Plan:
        new_id = self._engine.new_id
        undo_ms = self._undo_ms if task.action in bk.UNDOABLE else 0
        if filter_text:
            page = await self._runner.find(ns, filter_text, b"", FILL_TARGETS)
            return Plan(
                ns,
                new_id(),
                task,
                undo_ms,
                page.ids,
                page.states,
                filter=filter_text,
                cursor=page.cursor,
            )
        found, unknown = _ids_of(request)
        states = bytes([bk.ANY_STATE_BYTE]) * len(found)
        return Plan(ns, new_id(), task, undo_ms, b"".join(found), states, unknown)

    async def _wait(self, plan: Plan, *, is_async: bool) -> Bulk:
        """Wait until the operation is over, or until there is a reason to answer earlier."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + (SEAL_S if is_async else ANSWER_S)
        with self._runner.watch(plan.id) as moved:
            while True:
                moved.clear()
                bulk = self._engine.read.bulk(plan.ns, plan.id)
                assert bulk is not None, "an operation is kept for days"
                if bulk.status not in bk.UNFINISHED:
                    return bulk
                is_large = bulk.total > limits.BULK_SYNC_MAX
                if bulk.status != bk.COLLECTING and (is_async or is_large):
                    return bulk
                left_s = deadline_s - loop.time()
                if left_s <= 0 or not self._engine.is_serving:
                    return bulk
                await _wait_some(moved, min(left_s, LOOK_S))

    async def _preview(
        self,
        ns: int,
        task: BulkTask,
        request: wire.BulkRequest,
        filter_text: bytes,
        began_s: float,
    ) -> Answer:
        """Count what an operation would do, without doing it."""
        count = _Count(self._engine, ns, task.action)
        if filter_text:
            cursor = None
            while cursor is None or cursor:
                page = await self._runner.find(ns, filter_text, cursor or b"", FILL_TARGETS)
                await count.look(_split(page.ids), list(page.states))
                cursor = page.cursor
        else:
            found, unknown = _ids_of(request)
            count.skip(bk.NOT_FOUND, unknown)
            await count.look(found, [ANY_STATE] * len(found))
        elapsed_ms = int((asyncio.get_running_loop().time() - began_s) * 1000)
        members = {
            "dry_run": True,
            "action": ACTION_NAMES[task.action],
            "matched": count.matched,
            "affected": count.affected,
            "skipped": sum(count.skipped.values()),
            "skipped_reasons": count.skipped,
            "errors": 0,
            "sample": count.sample,
            "duration_ms": elapsed_ms,
        }
        return answer(members)

    # --- afterwards -----------------------------------------------------------------------------

    async def list(self, call: Call) -> Answer:
        """`GET /bulk`: operations, the newest first; `cursor` and `limit` page through them."""
        limit = _limit_of(call)
        text = call.query("cursor")
        before = b"" if text is None else parse_id(BULK, text)
        if before is None:
            raise RequestError("this is not the cursor of a page", field="cursor")
        ns, read = call.principal.ns, self._engine.read
        # Cost: the store is read upwards only, so a page passes over everything older, at about a
        # microsecond an operation; each of them was asked for by a person, so they are not many.
        newest: deque[bytes] = deque(maxlen=limit + 1)
        last = b""
        while found := read.bulk_ids(ns, last, before, _SLICE):
            newest += found
            last = found[-1]
            await asyncio.sleep(0)
        has_more = len(newest) > limit
        if has_more:
            newest.popleft()
        shown = [bulk for each in reversed(newest) if (bulk := read.bulk(ns, each)) is not None]
        members = {
            "operations": [bulk_members(bulk) for bulk in shown],
            "cursor": render_id(BULK, newest[0]) if has_more else None,
            "has_more": has_more,
        }
        return answer(members)

    async def get(self, call: Call) -> Answer:
        """`GET /bulk/{id}`."""
        return answer(bulk_members(self._find(call)))

    async def abort(self, call: Call) -> Answer:
        """`POST /bulk/{id}/abort`: what is done stays done."""
        call.read(_NOTHING)
        return _changed(*await self._runner.abort(call.principal.ns, _identifier(call)))

    async def undo(self, call: Call) -> Answer:
        """`POST /bulk/{id}/undo`: brings back what nobody has touched since."""
        call.read(_NOTHING)
        identifier = _identifier(call)
        outcome, index = await self._runner.undo(call.principal.ns, identifier)
        if isinstance(outcome, Rejected):
            return refusal(outcome, index)
        plan = Plan(call.principal.ns, identifier, BulkTask(bk.DELETE), 0)
        bulk = await self._wait(plan, is_async=False)
        status = 202 if bulk.status == bk.UNDOING else 200
        members = bulk_members(bulk) | {"index": self._engine.index}
        return Answer(status, encode(members), index=self._engine.index)

    async def progress(self, call: Call, receive: Receive, send: Send) -> None:
        """`GET /bulk/{id}/progress`: server-sent events until the operation is over."""
        bulk = self._find(call)
        # The task ends with the request it belongs to, which cancels it.
        leaving = asyncio.ensure_future(_gone(receive))  # noqa: TID251
        try:
            with self._runner.watch(bulk.id) as moved:
                await _send_head(send, self._engine.index)
                await self._stream(bulk, moved, leaving, send)
        finally:
            leaving.cancel()

    async def _stream(
        self, bulk: Bulk, moved: asyncio.Event, leaving: "asyncio.Future[None]", send: Send
    ) -> None:
        sent = b""
        looks = 0
        while not leaving.done():
            moved.clear()
            found = self._engine.read.bulk(bulk.ns, bulk.id)
            bulk = found if found is not None else bulk
            text = _progress(bulk)
            looks += 1
            is_over = bulk.status not in bk.UNFINISHED or not self._engine.is_serving
            if text != sent:
                sent, looks = text, 0
                await _send_piece(send, text)
            elif looks % HEARTBEAT_LOOKS == 0:
                await _send_piece(send, b": heartbeat\n\n")
            if is_over or found is None:
                break
            await _wait_some(moved, LOOK_S)
        await send({"type": "http.response.body", "body": b""})

    def _find(self, call: Call) -> Bulk:
        bulk = self._engine.read.bulk(call.principal.ns, _identifier(call))
        if bulk is None:
            raise not_found("bulk operation")
        return bulk


class ProgressEndpoint:
    """The stream of one operation, as an ASGI application."""

    path: Final = f"{_PREFIX}/{{id}}/progress"
    methods: Final = ("GET", "HEAD")  # for whoever asks what the router serves

    def __init__(self, routes: BulkRoutes, engine: "Engine") -> None:
        self._routes = routes
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["method"] not in self.methods:
            raise HTTPException(405, headers={"Allow": "GET, HEAD"})
        try:
            await self._routes.progress(Call(scope, b""), receive, send)
        except CorvoError as error:
            await send_answer(send, Answer(*errors.of_error(error)), self._engine.index)


def progress_route(routes: BulkRoutes, engine: "Engine") -> Route:
    """Make the route of the stream."""
    return Route(ProgressEndpoint.path, ProgressEndpoint(routes, engine))


# --- reading requests ----------------------------------------------------------------------------


def task_of(request: wire.BulkRequest) -> BulkTask:
    """Read what is to be done, and refuse what belongs to another action."""
    action = _ACTIONS[request.action]
    by = check_note(request.by, "by", limits.NAME_BYTES_MAX)
    note = check_note(request.note, "note")
    match action:
        case bk.MOVE:
            if request.move_to_queue is None:
                raise RequestError("a move needs a queue to move to", field="move_to_queue")
            queue = check_name(request.move_to_queue, "move_to_queue")
            keeps = request.keep_priority is not False
            return BulkTask(action, queue, request.reset_attempts or False, keeps)
        case bk.PRIORITY:
            if request.priority is None:
                raise RequestError("a change of priority needs a priority", field="priority")
            return BulkTask(action, tier=TIERS[request.priority])
        case bk.HOLD:
            reason, timeout_ms, timeout_action = hold_terms(request)
            return BulkTask(
                action, reason=reason, timeout_ms=timeout_ms, timeout_action=timeout_action
            )
        case bk.APPROVE:
            return BulkTask(action, by=by, note=note)
        case bk.REJECT:
            return BulkTask(action, reason=check_note(request.reason, "reason") or note, by=by)
        case _:
            return BulkTask(action)


def _filter_of(request: wire.BulkRequest) -> bytes:
    """Read the filter; empty when the jobs are named. Exactly one of the two is given."""
    has_filter = request.filter is not wire.ABSENT and bytes(request.filter) != b"null"
    if has_filter == (request.job_ids is not None):
        message = "name the jobs in job_ids or describe them in filter, one of the two"
        raise RequestError(message, field="job_ids")
    if not has_filter:
        return b""
    text = bytes(request.filter)
    if not text.startswith(b"{"):
        raise RequestError("a filter is an object", field="filter")
    if len(text) > limits.BULK_FILTER_BYTES_MAX:
        message = f"the filter exceeds {limits.BULK_FILTER_BYTES_MAX} bytes"
        raise RequestError(message, field="filter")
    return text


def _ids_of(request: wire.BulkRequest) -> tuple[list[bytes], int]:
    """Read the names of jobs, each once; and how many cannot be a job's."""
    assert request.job_ids is not None
    texts = dict.fromkeys(request.job_ids)
    found = [found for text in texts if (found := parse_id(JOB, text)) is not None]
    return found, len(texts) - len(found)


def _limit_of(call: Call) -> int:
    text = call.query("limit")
    if text is None:
        return limits.BULK_LIST_DEFAULT
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= value <= limits.BULK_LIST_MAX:
        raise RequestError(f"the limit is 1 to {limits.BULK_LIST_MAX}", field="limit")
    return value


def _split(ids: bytes) -> list[bytes]:
    return [ids[at : at + bk.ID_BYTES] for at in range(0, len(ids), bk.ID_BYTES)]


def _identifier(call: Call) -> bytes:
    """Read the id of an operation; the clearing of a queue has one of its own kind, too."""
    found = parse_id(BULK, call.argument) or parse_id(OPERATION, call.argument)
    if found is None:
        raise not_found("bulk operation")
    return found


class _Count:
    """What a dry run has seen so far."""

    def __init__(self, engine: "Engine", ns: int, action: int) -> None:
        self._engine = engine
        self._ns = ns
        self._action = action
        self.matched = 0
        self.affected = 0
        self.skipped: dict[str, int] = {}
        self.sample: list[dict[str, Any]] = []

    def skip(self, reason: str, count: int = 1) -> None:
        """Count jobs that would be left alone."""
        if count:
            self.matched += count
            self.skipped[reason] = self.skipped.get(reason, 0) + count

    async def look(self, ids: list[bytes], states: list[int]) -> None:
        """Look at some jobs, in slices: others wait for the loop meanwhile."""
        for position, (job_id, expected) in enumerate(zip(ids, states, strict=True)):
            if position % _SLICE == 0:
                await asyncio.sleep(0)
            reason, _ = self._engine.read.bulk_preview(self._ns, job_id, self._action, expected)
            if reason:
                self.skip(reason)
                continue
            self.matched += 1
            self.affected += 1
            if len(self.sample) < limits.BULK_SAMPLE_COUNT:
                self._show(job_id)

    def _show(self, job_id: bytes) -> None:
        view = self._engine.read.job(self._ns, job_id)
        if view is not None:
            self.sample.append(
                {
                    "job_id": render_id(JOB, job_id),
                    "queue": view.queue,
                    "state": STATE_NAMES[view.job.state],
                    "payload": raw(view.spec.payload),
                }
            )


# --- rendering -----------------------------------------------------------------------------------


def bulk_members(bulk: Bulk) -> dict[str, Any]:
    """Show an operation."""
    task = bulk.task
    return {
        "id": render_id(BULK, bulk.id),
        "bulk_operation_id": render_id(BULK, bulk.id),
        "status": STATUS_NAMES[bulk.status],
        "action": ACTION_NAMES[task.action],
        "queue": task.queue or None,
        "filter": Raw(bulk.filter) if bulk.filter else None,
        "total": bulk.total,
        "processed": bulk.processed,
        "percent": bulk.processed * 100 // bulk.total if bulk.total else 100,
        "affected": bulk.affected,
        "skipped": sum(bulk.skipped.values()),
        "skipped_reasons": bulk.skipped,
        "errors": bulk.errors,
        "error": bulk.error or None,
        "created_at": render_instant(bulk.created_ms),
        "updated_at": render_instant(bulk.updated_ms),
        "finished_at": maybe_instant(bulk.finished_ms),
        "undo_until": maybe_instant(bulk.undo_until_ms),
        "undone_at": maybe_instant(bulk.undone_ms),
        "restored": bulk.restored,
        "not_restored": sum(bulk.kept.values()),
        "not_restored_reasons": bulk.kept,
    }


def _accepted(bulk: Bulk, index: int) -> dict[str, Any]:
    name = render_id(BULK, bulk.id)
    return {
        "bulk_operation_id": name,
        "status": "processing" if bulk.status in bk.UNFINISHED else STATUS_NAMES[bulk.status],
        "estimated_total": bulk.total,
        "progress_url": f"{_PREFIX}/{name}/progress",
        "index": index,
    }


def _counts_answer(bulk: Bulk, elapsed_ms: int, index: int) -> Answer:
    members = {
        "bulk_operation_id": render_id(BULK, bulk.id),
        "status": STATUS_NAMES[bulk.status],
        "affected": bulk.affected,
        "skipped": sum(bulk.skipped.values()),
        "skipped_reasons": bulk.skipped,
        "errors": bulk.errors,
        "undo_until": maybe_instant(bulk.undo_until_ms),
        "duration_ms": elapsed_ms,
        "index": index,
    }
    return Answer(200, encode(members), index=index)


def _changed(outcome: Outcome, index: int) -> Answer:
    if isinstance(outcome, Rejected):
        return refusal(outcome, index)
    assert isinstance(outcome, BulkChanged)
    return Answer(200, encode(bulk_members(outcome.bulk) | {"index": index}), index=index)


_EVENTS: Final = {
    bk.COLLECTING: b"bulk.progress",
    bk.RUNNING: b"bulk.progress",
    bk.UNDOING: b"bulk.progress",
    bk.COMPLETED: b"bulk.completed",
    bk.ABORTED: b"bulk.aborted",
    bk.FAILED: b"bulk.failed",
    bk.UNDONE: b"bulk.undone",
}


def _progress(bulk: Bulk) -> bytes:
    members = {"type": _EVENTS[bulk.status].decode()} | bulk_members(bulk)
    # Safety: JSON holds no line break, so an event is one line of data.
    number = bulk.processed + bulk.restored + sum(bulk.kept.values())
    return b"event: %b\nid: %d\ndata: %b\n\n" % (_EVENTS[bulk.status], number, encode(members))


# --- streaming -----------------------------------------------------------------------------------


async def _gone(receive: Receive) -> None:
    """Return when the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _wait_some(moved: asyncio.Event, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await moved.wait()
    except TimeoutError:
        pass


async def _send_head(send: Send, index: int) -> None:
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-corvo-index", b"%d" % index),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _send_piece(send: Send, piece: bytes) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": True})
