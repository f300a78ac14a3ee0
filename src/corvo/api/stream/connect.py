"""The unary calls of the worker service on the HTTP port, as Connect has them.

    POST /corvo.v1.WorkerService/Ack     application/json or application/proto

protobuf is imported by the first call, so that a server nobody calls this way never pays for it.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from corvo.api import render, translate
from corvo.api.principal import principal_of
from corvo.api.routing import Answer, send_answer
from corvo.api.stream.status import HTTP_STATUS, status_name
from corvo.errors import CorvoError
from corvo.model import limits

if TYPE_CHECKING:
    from corvo.api.stream.calls import Calls
    from corvo.engine import Engine

PATH: Final = "/corvo.v1.WorkerService/{method}"
JSON_TYPE: Final = b"application/json"
PROTO_TYPE: Final = b"application/proto"
_STREAMING: Final = frozenset({"StreamLifecycle", "Subscribe"})


class ConnectEndpoint:
    """All methods of the service, as an ASGI application."""

    methods: Final = frozenset({"POST"})

    def __init__(
        self,
        engine: "Engine",
        context: translate.Context,
        features: tuple[str, ...],
        index: Callable[[], int],
    ) -> None:
        self._make = lambda: _make_calls(engine, context, features)
        self._calls: Calls | None = None
        self._index = index

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one call."""
        if scope["method"] != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        kind = _header(scope, b"content-type").partition(b";")[0].strip().lower()
        if kind not in (JSON_TYPE, PROTO_TYPE):
            extra = b"accept-post: application/json, application/proto\r\n"
            await send_answer(send, Answer(415, b"{}", extra), self._index())
            return
        body = await _receive_body(receive)
        if body is None:
            return
        if len(body) > limits.BODY_BYTES_MAX:
            result = _failure("resource_exhausted", "the body is too large", "PAYLOAD_TOO_LARGE")
        else:
            found = await self._run(scope, kind, body, receive)
            if found is None:
                return
            result = found
        await send_answer(send, result, self._index())

    async def _run(self, scope: Scope, kind: bytes, body: bytes, receive: Receive) -> Answer | None:
        """Answer a call; None when the client left."""
        if self._calls is None:
            self._calls = self._make()
        method = str(scope["path_params"]["method"])
        call = self._calls.by_name.get(method)
        encoding = _header(scope, b"content-encoding")
        if call is None:
            what = "streams are served by gRPC" if method in _STREAMING else "no such method"
            return _failure(
                "unimplemented", what, "NOT_FOUND", 501 if method in _STREAMING else 404
            )
        if encoding not in (b"", b"identity"):
            return _failure("unimplemented", "compression is not taken", "NOT_SUPPORTED")
        try:
            request = _decode(method, kind, body)
            response = await _unless_gone(call(request, principal_of(scope).ns), receive)
        except CorvoError as error:
            return _refusal(error)
        return None if response is None else Answer(200, _encode(response, kind), kind=kind)


def connect_route(endpoint: ConnectEndpoint) -> Route:
    """The route of all methods."""
    return Route(PATH, endpoint)


def _make_calls(engine: "Engine", context: translate.Context, features: tuple[str, ...]) -> "Calls":
    from corvo.api.stream.calls import Calls  # noqa: PLC0415 - as the docstring says

    return Calls(engine, context, features)


def _decode(method: str, kind: bytes, body: bytes) -> Any:
    from google.protobuf import json_format, message  # noqa: PLC0415

    from corvo.api.stream.messages import request_type  # noqa: PLC0415

    request = request_type(method)()
    try:
        if kind == PROTO_TYPE:
            request.ParseFromString(body)
        else:
            json_format.Parse(body or b"{}", request, ignore_unknown_fields=True)
    except (message.DecodeError, json_format.ParseError, ValueError, RecursionError) as error:
        text = str(error)[: limits.REASON_BYTES_MAX]
        raise CorvoError(f"the body is no {method} request: {text}", code="PARSE_ERROR") from error
    return request


def _encode(response: Any, kind: bytes) -> bytes:
    if kind == PROTO_TYPE:
        return response.SerializeToString()
    from google.protobuf import json_format  # noqa: PLC0415

    return json_format.MessageToJson(response, indent=None).encode()


async def _unless_gone(call: Any, receive: Receive) -> Any:
    """Run a call, and cancel it when the client leaves."""
    # Both tasks end below, with this request; a failure of the call is raised here.
    running = asyncio.ensure_future(call)  # noqa: TID251
    leaving = asyncio.ensure_future(_wait_disconnect(receive))  # noqa: TID251
    try:
        await asyncio.wait((running, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not running.done():
            running.cancel()
    return running.result() if running.done() else None


async def _wait_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _receive_body(receive: Receive) -> bytes | None:
    body = bytearray()
    while len(body) <= limits.BODY_BYTES_MAX:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return bytes(body)


def _header(scope: Scope, name: bytes) -> bytes:
    return next((value for key, value in scope["headers"] if key == name), b"")


def _refusal(error: CorvoError) -> Answer:
    return _failure(status_name(error.code), error.message, error.code, hint=error.hint)


def _failure(
    name: str, message: str, code: str, status: int = 0, hint: str | None = None
) -> Answer:
    extra = b"corvo-code: %b\r\n" % code.encode()
    if hint and hint.isascii() and hint.isprintable():
        extra += b"corvo-hint: %b\r\n" % hint.encode()
    body = render.encode({"code": name, "message": f"{code}: {message}"})
    return Answer(status or HTTP_STATUS[name], body, extra)
