"""The slow lane's own routes: from an ASGI request to a call, from an answer to ASGI messages.

One `Endpoint` serves all methods of a path, so that another method is answered 405 with an `Allow`
that names all of them, and the first path that matches is the one that answers.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from corvo.api import errors, render
from corvo.api.decode import Reader
from corvo.api.http.replies import JSON_TYPE, is_json
from corvo.api.principal import principal_of
from corvo.errors import CorvoError, RequestError
from corvo.model import limits
from corvo.model.outcome import Rejected
from corvo.model.principal import Principal

LINES_TYPE = b"application/x-ndjson"
Shape = TypeVar("Shape", bound=Struct)


class Answer(Struct, frozen=True):
    """Status, JSON body, further header lines, and the index of what was written."""

    status: int
    body: bytes
    extra: bytes = b""
    index: int = 0  # 0: nothing was written; the answer carries the index the server has reached
    kind: bytes = JSON_TYPE  # media type of the body


async def _nothing() -> None:
    return None


class Stream(Struct, frozen=True):
    """An answer that is sent piece by piece; `on_end` is awaited however it ended, maybe twice."""

    chunks: AsyncIterator[bytes]
    kind: bytes
    extra: bytes = b""
    size: int = -1  # -1: not known before it is sent
    index: int = 0
    on_end: Callable[[], Awaitable[None]] = _nothing


class Call:
    """One request of the slow lane, its body complete."""

    __slots__ = ("_scope", "body", "principal")

    def __init__(self, scope: Scope, body: bytes) -> None:
        self._scope = scope
        self.body = body
        self.principal: Principal = principal_of(scope)

    @property
    def argument(self) -> str:
        """What stands in the path in place of the route's parameter."""
        return str(next(iter(self._scope["path_params"].values()), ""))

    def query(self, name: str) -> str | None:
        """The last value of a query parameter."""
        text = self._scope["query_string"].decode("latin-1")
        return dict(parse_qsl(text, keep_blank_values=True)).get(name)

    @property
    def after(self) -> int:
        """The index a read waits for: `?after=` or `X-Corvo-After`; 0 for none."""
        text = self.query("after") or (self.header(b"x-corvo-after") or b"0").decode("latin-1")
        if not text.isascii() or not text.isdigit() or int(text) > limits.SAFE_INTEGER_MAX:
            message = "after must be an index: the X-Corvo-Index of an answer"
            raise RequestError(message, field="after")
        return int(text)

    @property
    def arguments(self) -> dict[str, str]:
        """All parameters of the path, by name."""
        return {name: str(value) for name, value in self._scope["path_params"].items()}

    @property
    def queries(self) -> dict[str, str]:
        """All query parameters; of one given twice, the last."""
        text = self._scope["query_string"].decode("latin-1")
        return dict(parse_qsl(text, keep_blank_values=True))

    @property
    def query_string(self) -> bytes:
        """The query as it was sent."""
        return self._scope["query_string"]

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header; the name in lower case."""
        return next((value for key, value in self._scope["headers"] if key == name), None)

    def read(self, reader: Reader[Shape]) -> Shape:
        """Decode the body. Raises `RequestError`."""
        return reader.read(self.body, self._scope["query_string"])


Operation = Callable[[Call], Awaitable[Answer | Stream]]
Table = Mapping[str, Mapping[str, Operation]]


Method = TypeVar("Method", bound=Callable[..., Any])


def takes_lines(method: Method) -> Method:
    """Mark an operation whose body is lines of JSON, not one document."""
    method.media = LINES_TYPE  # pyright: ignore[reportFunctionMemberAccess]
    return method


def answer(members: Any, status: int = 200) -> Answer:
    """Answer with an object or an array."""
    return Answer(status, render.encode(members))


def written(members: dict[str, Any], index: int) -> Answer:
    """Answer to a write: its index is in the body and in the header."""
    return Answer(200, render.encode(members | {"index": index}), index=index)


def refusal(rejected: Rejected, index: int) -> Answer:
    """Answer with what the machine refused."""
    return Answer(*errors.of_rejection(rejected), index=index)


def not_found(what: str) -> RequestError:
    """Say that the thing a path names does not exist."""
    return RequestError(f"there is no such {what}", code="NOT_FOUND", status=404)


Method = TypeVar("Method", bound=Callable[..., Awaitable[Answer]])


def takes_any_body(operation: Method) -> Method:
    """Mark an operation whose body need not be JSON; it sees to the content type itself."""
    operation.is_raw = True  # type: ignore[attr-defined]
    return operation


class Endpoint:
    """All methods of one path, as an ASGI application."""

    def __init__(self, operations: Mapping[str, Operation], index: Callable[[], int]) -> None:
        self._operations = dict(operations)
        self._raw = [each for each in operations.values() if getattr(each, "is_raw", False)]
        if "GET" in operations:
            # The server sends the head of the answer only.
            self._operations["HEAD"] = operations["GET"]
        self.methods = frozenset(operations)
        self._allowed = ", ".join(sorted(self._operations))
        self._index = index

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        operation = self._operations.get(scope["method"])
        if operation is None:
            raise HTTPException(405, headers={"Allow": self._allowed})
        try:
            media = None if operation in self._raw else getattr(operation, "media", JSON_TYPE)
            body = await _receive_body(scope, receive, media)
            if body is None:
                return
            result = await operation(Call(scope, body))
        except CorvoError as error:
            result = Answer(*errors.of_error(error))
        if isinstance(result, Stream):
            await send_stream(receive, send, result, self._index())
        else:
            await send_answer(send, result, self._index())


class Application:
    """The ASGI application: routes, and JSON for what no route answers."""

    def __init__(
        self,
        router: ASGIApp,
        index: Callable[[], int],
        missed: Callable[[str, int], None] = lambda _method, _status: None,
    ) -> None:
        self._router = router
        self._index = index
        self._missed = missed  # told of each request that no route took

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; an unexpected exception goes up to the transport's guard."""
        # Starlette raises its refusals only inside an application; outside it answers plain text.
        scope["app"] = self
        try:
            await self._router(scope, receive, send)
        except HTTPException as error:
            is_method = error.status_code == 405
            if "endpoint" not in scope:
                self._missed(scope["method"], error.status_code)
            code = "METHOD_NOT_ALLOWED" if is_method else "NOT_FOUND"
            message = f"{scope['method']} is not a method of this route" if is_method else ""
            if not is_method:
                message = f"there is no route {scope['path']}"
            headers = error.headers or {}
            extra = b"".join(
                b"%b: %b\r\n" % (name.lower().encode(), value.encode())
                for name, value in headers.items()
            )
            body = errors.envelope(code, message)
            result = Answer(errors.CODES[code].status, body, extra)
            await send_answer(send, result, self._index())


def starlette_routes(table: Table, index: Callable[[], int]) -> list[Route]:
    """Make Starlette routes of a table; the order of the table is the order of matching."""
    return [Route(path, Endpoint(operations, index)) for path, operations in table.items()]


async def _receive_body(scope: Scope, receive: Receive, media: bytes | None) -> bytes | None:
    """Read a whole body; None when the client left. The transport bounds it before we do."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > limits.BODY_BYTES_MAX:
            text = f"the body exceeds {limits.BODY_BYTES_MAX} bytes"
            raise RequestError(text, code="PAYLOAD_TOO_LARGE", status=413)
        if not message.get("more_body", False):
            break
    if body and media is not None and not _is_media(_content_type(scope), media):
        raise RequestError(
            "the body must be JSON" if media == JSON_TYPE else "the body must be lines of JSON",
            code="UNSUPPORTED_MEDIA_TYPE",
            status=415,
            hint=f"send Content-Type: {media.decode()}",
        )
    return bytes(body)


def _is_media(sent: bytes, media: bytes) -> bool:
    if media == JSON_TYPE:
        return is_json(sent)
    return sent.partition(b";")[0].strip().lower() == media


def _content_type(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"content-type":
            return value
    return b""


def _lines_of(extra: bytes) -> list[tuple[bytes, bytes]]:
    parts = (line.partition(b": ") for line in extra.split(b"\r\n"))
    return [(name, value) for name, colon, value in parts if colon]


async def send_answer(send: Send, result: Answer, index: int) -> None:
    """Send an answer; `index` is what the server has reached."""
    headers = [
        (b"content-type", result.kind),
        (b"content-length", b"%d" % len(result.body)),
        (b"x-corvo-index", b"%d" % (result.index or index)),
    ]
    headers += _lines_of(result.extra)
    await send({"type": "http.response.start", "status": result.status, "headers": headers})
    await send({"type": "http.response.body", "body": result.body})


async def send_stream(receive: Receive, send: Send, result: Stream, index: int) -> None:
    """Send an answer piece by piece, and stop when the client has left."""
    # The task ends below, with this request; a crash of it is seen here.
    leaving = asyncio.ensure_future(_wait_disconnect(receive))  # noqa: TID251
    try:
        headers = [
            (b"content-type", result.kind),
            (b"x-corvo-index", b"%d" % (result.index or index)),
        ]
        if result.size >= 0:
            headers.append((b"content-length", b"%d" % result.size))
        headers += _lines_of(result.extra)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        held = b""
        async for chunk in result.chunks:
            if leaving.done():
                return
            if held:
                await send({"type": "http.response.body", "body": held, "more_body": True})
            held = chunk
        # The last piece waits: a client that has read all of it finds everything given back.
        await result.on_end()
        await send({"type": "http.response.body", "body": held})
    finally:
        leaving.cancel()
        await result.on_end()


async def _wait_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
