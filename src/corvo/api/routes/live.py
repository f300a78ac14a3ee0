"""Routes of what happens: event streams, waiting for a job, pages of events, throughput."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from corvo.api import errors, views
from corvo.api.live.batch import event_data, event_members
from corvo.api.live.figures import COLUMNS
from corvo.api.live.filters import parse_filter
from corvo.api.live.hub import GONE, Hub
from corvo.api.routing import Answer, Call, Table, answer, not_found, send_answer
from corvo.api.values import check_name, parse_duration, render_instant
from corvo.errors import CorvoError, RequestError
from corvo.model import limits
from corvo.model.event import EVENT_NAMES, EventBlock
from corvo.model.ids import JOB, parse_id, render_id
from corvo.model.job import SETTLED

if TYPE_CHECKING:
    from corvo.engine import Engine
    from corvo.view.client import ViewClient

_EVENTS: Final = "/api/v1/events"
_WAIT: Final = "/api/v1/jobs/{id}/wait"
_PAGE_BYTES: Final = 96 * 1024
_SCAN_BYTES: Final = 192 * 1024  # about two thousand events, a millisecond
_SCAN_EVENTS_MAX: Final = 65_536
_NO_CONTENT: Final = 204

Timeline = Callable[[Call, bytes], Awaitable[Answer]]
Waiting = Callable[[Call, Receive, Send], Awaitable[None]]


class LiveRoutes:
    """The operations on what happens, bound to one hub."""

    def __init__(self, engine: "Engine", hub: Hub, view: "ViewClient | None" = None) -> None:
        self._engine = engine
        self._hub = hub
        # The view has whole timelines; without it the server's memory of the last events answers.
        self._view = view if view is not None and view.is_on else None
        self._timeline: Timeline = (
            self._recent_timeline if self._view is None else self._whole_timeline
        )

    def table(self) -> Table:
        """Paths, methods and operations of what is answered at once."""
        return {
            "/api/v1/cluster/events": {"GET": self.page},
            "/api/v1/jobs/{id}/events": {"GET": self.job_events},
            "/api/v1/metrics/throughput": {"GET": self.throughput},
        }

    def waiting(self) -> Mapping[str, Waiting]:
        """Paths of what takes its time; all of them GET."""
        return {_EVENTS: self.stream, _WAIT: self.wait}

    # --- streams and waits ----------------------------------------------------------------------

    async def stream(self, call: Call, receive: Receive, send: Send) -> None:
        """`GET /events`: events as they happen, for as long as the client stays."""
        wanted = parse_filter(call.principal.ns, call.query)
        # The header is what a client sends that was cut off; it knows more than the address.
        text = (call.header(b"last-event-id") or b"").decode("latin-1") or call.query(
            "last_event_id"
        )
        stream = self._hub.open(wanted, _parse_seq(text, "last_event_id"))
        leaving = _watch(receive, on_gone=lambda: self._hub.leave(stream))
        try:
            await _send_stream_head(send, self._engine.index)
            await _send_piece(send, stream.opening())
            while pieces := await stream.next():
                for piece in pieces:
                    await _send_piece(send, piece)
            if stream.reason != GONE:
                await send({"type": "http.response.body", "body": stream.closing()})
        finally:
            self._hub.close(stream)
            leaving.cancel()

    async def wait(self, call: Call, receive: Receive, send: Send) -> None:
        """`GET /jobs/{id}/wait`: 200 the job once it is settled, 204 when the time passes."""
        identifier = _identifier(call)
        text = call.query("timeout")
        timeout_ms = limits.WAIT_TIMEOUT_MS_DEFAULT
        if text is not None:
            most_ms = limits.WAIT_TIMEOUT_MS_MAX
            value = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else text
            timeout_ms = parse_duration(value, "timeout", most_ms=most_ms)
        leaving = _watch(receive)
        try:
            ns = call.principal.ns
            view = await self._hub.waits.wait(ns, identifier, timeout_ms / 1000, leaving)
        finally:
            leaving.cancel()
        if view is None:
            raise not_found("job")
        index = self._engine.index
        if view.job.state in SETTLED:
            await send_answer(send, answer(views.job_members(view)), index)
        else:
            headers = [(b"x-corvo-index", b"%d" % index)]
            start: dict[str, Any] = {"type": "http.response.start", "status": _NO_CONTENT}
            await send(start | {"headers": headers})
            await send({"type": "http.response.body", "body": b""})

    # --- pages ----------------------------------------------------------------------------------

    async def page(self, call: Call) -> Answer:
        """`GET /cluster/events`: stored events after a sequence number, oldest first."""
        wanted = parse_filter(call.principal.ns, call.query)
        after_seq = _parse_seq(call.query("after_seq"), "after_seq") or 0
        limit = _parse_limit(call.query("limit"))
        engine = self._engine
        oldest_seq = engine.oldest_seq
        is_reset = not oldest_seq - 1 <= after_seq <= engine.seq
        seq = oldest_seq - 1 if is_reset else after_seq
        index = engine.locate(seq)
        events: list[dict[str, Any]] = []
        scanned_count = 0
        while len(events) < limit and scanned_count < _SCAN_EVENTS_MAX:
            found = engine.feed(index, _PAGE_BYTES)
            if not found:
                break
            for reached, block in found:
                index = reached
                for number, event in enumerate(block.events, block.first_seq):
                    if number > seq and len(events) < limit:
                        seq = number
                        if wanted.passes(event):
                            events.append(event_members(number, block.at_ms, event))
                scanned_count += len(block.events)
            await asyncio.sleep(0)
        members = {
            "events": events,
            "next_after_seq": seq,
            "oldest_seq": oldest_seq,
            "last_seq": engine.seq,
            "reset": is_reset and after_seq > 0,
        }
        return answer(members)

    async def job_events(self, call: Call) -> Answer:
        """`GET /jobs/{id}/events`: what happened to a job, oldest first."""
        return await self._timeline(call, _identifier(call))

    async def _whole_timeline(self, call: Call, identifier: bytes) -> Answer:
        """Answer from the view, which has every event of every job it knows."""
        assert self._view is not None
        if self._engine.read.job(call.principal.ns, identifier) is None:
            raise not_found("job")
        query: dict[str, Any] = {
            "ns": call.principal.ns,
            "job_id": render_id(JOB, identifier),
            "after_seq": _parse_seq(call.query("after_seq"), "after_seq") or 0,
            "limit": _parse_limit(call.query("limit")),
        }
        return Answer(200, await self._view.query("job_events", query, call.after))

    async def _recent_timeline(self, call: Call, identifier: bytes) -> Answer:
        """Answer from the events in memory; `complete` tells whether the first one is among them.

        Cost: 50 ns an event of the ring, in slices, so that nobody else waits for it.
        """
        engine = self._engine
        if engine.read.job(call.principal.ns, identifier) is None:
            raise not_found("job")
        after_seq = _parse_seq(call.query("after_seq"), "after_seq") or 0
        limit = _parse_limit(call.query("limit"))
        found: list[dict[str, Any]] = []
        is_complete = False
        index = self._hub.recent_index
        while blocks := engine.feed(index, _SCAN_BYTES):
            index = blocks[-1][0]
            for _, block in blocks:
                found += _of_job(block, identifier)
            await asyncio.sleep(0)
        if found:
            is_complete = found[0]["type"] in ("enqueued", "scheduled")
        page = [event for event in found if event["seq"] > after_seq]
        members = {
            "job_id": render_id(JOB, identifier),
            "events": page[:limit],
            "next_after_seq": page[limit - 1]["seq"] if len(page) > limit else None,
            "complete": is_complete,
        }
        return answer(members)

    async def throughput(self, call: Call) -> Answer:
        """`GET /metrics/throughput`: the last sixty minutes of a queue, or of all."""
        queue = call.query("queue") or None
        if queue is not None:
            check_name(queue, "queue")
        rows = self._hub.figures.throughput(call.principal.ns, queue)
        minutes = [
            {"minute": render_instant(at_ms)} | dict(zip(COLUMNS, counts, strict=True))
            for at_ms, counts in rows
        ]
        return answer({"queue": queue, "minutes": minutes})


class WaitingEndpoint:
    """A GET whose answer takes its time, as an ASGI application."""

    methods: Final = ("GET",)  # for whoever asks what the router serves

    def __init__(self, operation: Waiting, index: Callable[[], int]) -> None:
        self._operation = operation
        self._index = index

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["method"] != "GET":
            raise HTTPException(405, headers={"Allow": "GET"})
        try:
            await self._operation(Call(scope, b""), receive, send)
        except CorvoError as error:
            await send_answer(send, Answer(*errors.of_error(error)), self._index())


def waiting_routes(routes: LiveRoutes, index: Callable[[], int]) -> list[Route]:
    """Make Starlette routes of what takes its time."""
    return [
        Route(path, WaitingEndpoint(operation, index))
        for path, operation in routes.waiting().items()
    ]


def _identifier(call: Call) -> bytes:
    identifier = parse_id(JOB, call.argument)
    if identifier is None:
        raise not_found("job")
    return identifier


def _of_job(block: EventBlock, identifier: bytes) -> list[dict[str, Any]]:
    return [
        {
            "seq": seq,
            "type": EVENT_NAMES[event.type],
            "at": render_instant(block.at_ms),
            "queue": event.queue,
            "attempt": event.attempt,
            "data": event_data(event),
        }
        for seq, event in enumerate(block.events, block.first_seq)
        if event.job == identifier
    ]


def _parse_seq(text: str | None, field: str) -> int | None:
    if text is None or not text.strip():
        return None
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 16:
        raise RequestError("this is not the id of an event", field=field, hint="a whole number")
    return int(text)


def _parse_limit(text: str | None) -> int:
    if text is None:
        return limits.EVENTS_PAGE_DEFAULT
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= value <= limits.EVENTS_PAGE_MAX:
        raise RequestError(f"the limit is 1 to {limits.EVENTS_PAGE_MAX}", field="limit")
    return value


def _watch(receive: Receive, on_gone: Callable[[], None] | None = None) -> "asyncio.Future[None]":
    """Watch for the client to leave; the future is done then."""
    # The task ends with the request it belongs to, which cancels it.
    leaving = asyncio.ensure_future(_wait_disconnect(receive))  # noqa: TID251
    if on_gone is not None:
        leaving.add_done_callback(lambda _: on_gone())
    return leaving


async def _wait_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_stream_head(send: Send, index: int) -> None:
    headers = [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
        (b"x-corvo-index", b"%d" % index),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _send_piece(send: Send, piece: bytes) -> None:
    await send({"type": "http.response.body", "body": piece, "more_body": True})
