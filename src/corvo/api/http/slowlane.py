"""The slow lane: the same hot handlers behind ASGI routes, for requests the fast lane leaves alone.

A hot request takes this lane when it stands behind an unfinished slow one, when its path needs
decoding, or when the fast lane is off; limits, refusals and disconnects are those of the fast lane.
"""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus

from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from corvo.api.http.exchange import Exchange, Route
from corvo.api.http.replies import (
    JSON_TYPE,
    NOT_JSON,
    Refusal,
    body_too_large,
    internal_error,
    is_json,
)

_INTERNAL_ERROR = 500
_Answer = tuple[int, bytes, bytes]


class SlowExchange(Exchange):
    """An exchange whose answer an ASGI task is waiting for."""

    __slots__ = ("answered", "headers", "method")

    def __init__(self, scope: Scope, body: bytes, answered: asyncio.Future[_Answer]) -> None:
        self.method = scope["method"]
        self.path = scope["raw_path"]
        self.query = scope["query_string"]
        self.body = body
        self.argument = str(next(iter(scope.get("path_params", {}).values()), ""))
        self.on_gone = None
        self.is_gone = False
        self.headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.answered = answered

    def header(self, name: bytes) -> bytes | None:
        """Return the first value of the header with this lower-case name."""
        return _first(self.headers, name)

    def reply(self, status: int, body: bytes, extra: bytes = b"") -> None:
        """Answer; the waiting task sends it."""
        assert not self.answered.done(), "an exchange is answered exactly once"
        self.on_gone = None
        self.answered.set_result((status, body, extra))

    @property
    def is_replied(self) -> bool:
        """Whether `reply` was called."""
        return self.answered.done()


class HotEndpoint:
    """An ASGI application that serves one hot route."""

    def __init__(self, route: Route) -> None:
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; an exception of the handler is the guard's to answer and report."""
        received = await self._receive_body(scope, receive)
        if received is None:
            return
        if isinstance(received, Refusal):
            await _send(
                send, received.status, received.body(), b"", closes=received is not NOT_JSON
            )
            return
        exchange = SlowExchange(scope, received, asyncio.get_running_loop().create_future())
        self._route.handler(exchange)
        if not exchange.is_replied:
            await _wait_answer_or_gone(exchange, receive)
        if not exchange.is_gone:
            status, body, extra = exchange.answered.result()
            await _send(send, status, body, extra, closes=False)

    async def _receive_body(self, scope: Scope, receive: Receive) -> bytes | Refusal | None:
        bytes_max = self._route.body_bytes_max
        headers = scope["headers"]
        if int(_first(headers, b"content-length") or b"0") > bytes_max:
            return body_too_large(bytes_max)
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > bytes_max:
                return body_too_large(bytes_max)
            if not message.get("more_body", False):
                break
        if body and not is_json(_first(headers, b"content-type") or b""):
            return NOT_JSON
        return bytes(body)


class GuardedApplication:
    """An ASGI application whose failures are reported once and answered as JSON with a request id.

    Safety: frameworks answer a failure with a text of their own before they raise it again. So an
    answer with status 500 is held back until it is clear whether the application failed or meant
    it.
    """

    def __init__(self, application: ASGIApp, fail: Callable[[BaseException], str]) -> None:
        self._application = application
        self._fail = fail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or connection."""
        is_started = False
        held: list[Message] = []

        async def watch(message: Message) -> None:
            nonlocal is_started
            if held or (not is_started and message.get("status") == _INTERNAL_ERROR):
                held.append(message)
                return
            is_started = True
            await send(message)

        try:
            await self._application(scope, receive, watch)
        except Exception as error:  # noqa: BLE001 - reported, and answered with 500.
            request_id = self._fail(error)
            if is_started or scope["type"] != "http":
                # uvicorn ends a connection whose answer stays incomplete.
                return
            body, line = internal_error(request_id)
            await _send(send, _INTERNAL_ERROR, body, line, closes=False)
        else:
            for message in held:
                await send(message)


def hot_routes(routes: Mapping[str, Route]) -> list[StarletteRoute]:
    """Return Starlette routes that serve the hot routes; another method gets 405 with Allow."""
    # Safety: Starlette takes the first match, so literal paths go before those with a parameter.
    patterns = sorted(routes, key=lambda pattern: "{" in pattern)
    return [
        StarletteRoute(pattern, HotEndpoint(routes[pattern]), methods=["POST"])
        for pattern in patterns
    ]


async def _wait_answer_or_gone(exchange: SlowExchange, receive: Receive) -> None:
    """Wait until the handler answers or the client leaves; tell the handler of the latter."""
    # The task ends below, with this request; a crash of it is seen here.
    leaving = asyncio.ensure_future(_wait_disconnect(receive))  # noqa: TID251
    try:
        await asyncio.wait((exchange.answered, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
    if exchange.answered.done():
        return
    exchange.is_gone = True
    on_gone, exchange.on_gone = exchange.on_gone, None
    if on_gone is not None:
        on_gone()


async def _wait_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _first(headers: list[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    for sent_name, value in headers:
        if sent_name == name:
            return value
    return None


async def _send(send: Send, status: int, body: bytes, extra: bytes, *, closes: bool) -> None:
    headers: list[tuple[bytes, bytes]] = []
    if status != HTTPStatus.NO_CONTENT:
        headers.append((b"content-type", JSON_TYPE))
        headers.append((b"content-length", b"%d" % len(body)))
    for line in extra.split(b"\r\n"):
        name, colon, value = line.partition(b": ")
        if colon:
            headers.append((name, value))
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
