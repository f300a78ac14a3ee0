"""A real listener with handlers that show what reached them, and a client of raw bytes."""

import asyncio
import contextlib
import functools
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import msgspec
import uvloop
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as StarletteRoute

from corvo.api.http import Exchange, Limits, Listener, Route, hot_routes, start

LANES = ("fast", "slow")
KIB = 1024


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on a fresh uvloop; a test that hangs fails within ten seconds."""

    @functools.wraps(test)
    def run(*args: object, **kwargs: object) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(10):
                await test(*args, **kwargs)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(bounded())

    return run


async def wait_until(fact: Callable[[], bool]) -> None:
    """Wait until a fact holds; the test's own time limit bounds it."""
    while not fact():  # noqa: ASYNC110 - facts of the server have no event to wait for
        await asyncio.sleep(0)


class Answer(msgspec.Struct):
    """An answer as it came over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the decoded body."""
        return msgspec.json.decode(self.body)


class Client:
    """One connection that sends exactly the bytes it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self, *, is_head: bool = False) -> Answer:
        """Read one whole answer."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers: dict[str, str] = {}
        for line in head[1:-2]:
            name, _, value = line.partition(": ")
            assert name.lower() not in headers, f"header sent twice: {name}"
            headers[name.lower()] = value
        status = int(head[0].split(" ")[1])
        body = b""
        if headers.get("transfer-encoding") == "chunked" and not is_head:
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            await self.reader.readexactly(2)
        elif "content-length" in headers and not is_head:
            body = await self.reader.readexactly(int(headers["content-length"]))
        return Answer(status, headers, body)

    async def ask(self, data: bytes) -> Answer:
        """Send a request and read its answer."""
        self.send(data)
        return await self.answer()

    async def ended(self) -> bool:
        """Wait for the server's end of the connection; False if an answer came instead."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    def reset(self) -> None:
        """Leave with a reset instead of an orderly end."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


def post(
    path: str, body: bytes = b"{}", *, headers: str = "", kind: str = "application/json"
) -> bytes:
    """Return the bytes of a POST request with a body of known length."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def get(path: str, *, headers: str = "") -> bytes:
    """Return the bytes of a GET request."""
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode()


class Stage:
    """A listener with one handler per behaviour."""

    def __init__(self, lane: str, limits: Limits) -> None:
        self.lane = lane
        self.limits = limits
        self.listener: Listener
        self.clients: list[Client] = []
        self.reports: list[tuple[BaseException, str]] = []
        # Exchanges whose handler has not answered, in order of arrival.
        self.parked: list[Exchange] = []
        self.delayed: list[Exchange] = []
        self.gone: list[Exchange] = []
        # Names in the order in which handlers of either lane were entered.
        self.order: list[str] = []
        self.slow_may_answer = asyncio.Event()
        self.slow_waiting = 0
        self.slow_gone = 0
        self.routes = {
            "/echo": Route(self._echo, 4096 * KIB),
            "/tiny": Route(self._echo, 1 * KIB),
            "/park": Route(self._park, 4096 * KIB),
            "/delay": Route(self._delay, 4096 * KIB),
            "/boom": Route(self._boom, 4096 * KIB),
            "/boom_after_reply": Route(self._boom_after_reply, 4096 * KIB),
            "/none": Route(lambda exchange: exchange.reply(204, b""), 4096 * KIB),
            "/item/batch": Route(self._echo, 4096 * KIB),
            "/item/{id}": Route(self._item, 4096 * KIB),
        }
        self.application = Starlette(
            routes=[
                *hot_routes(self.routes),
                StarletteRoute("/ping", self._ping),
                StarletteRoute("/slow", self._slow),
                StarletteRoute("/crash", self._crash),
                StarletteRoute("/read", self._read, methods=["POST"]),
                StarletteRoute("/early", self._ping, methods=["POST"]),
            ],
            exception_handlers={HTTPException: _as_json},
        )

    def _echo(self, exchange: Exchange) -> None:
        self.order.append(exchange.body.decode("latin-1")[:20])
        seen = exchange.header(b"x-mark") or b""
        exchange.reply(
            201, exchange.body, b"x-mark: " + seen + b"\r\nx-query: " + exchange.query + b"\r\n"
        )

    def _park(self, exchange: Exchange) -> None:
        def on_gone() -> None:
            self.parked.remove(exchange)
            self.gone.append(exchange)

        exchange.on_gone = on_gone
        self.parked.append(exchange)

    def _delay(self, exchange: Exchange) -> None:
        self.order.append(exchange.body.decode("latin-1")[:20])
        self.delayed.append(exchange)

    def _boom(self, _exchange: Exchange) -> None:
        raise ValueError("the handler is broken")

    def _boom_after_reply(self, exchange: Exchange) -> None:
        exchange.reply(200, b"{}")
        raise ValueError("broken after its reply")

    def _item(self, exchange: Exchange) -> None:
        answer = {
            "argument": exchange.argument,
            "path": exchange.path.decode(),
            "method": exchange.method,
        }
        exchange.reply(200, msgspec.json.encode(answer))

    async def _ping(self, request: Request) -> Response:
        self.order.append(request.url.path)
        return JSONResponse({"pong": True})

    async def _slow(self, request: Request) -> Response:
        self.order.append(request.url.query or "slow")
        self.slow_waiting += 1
        leaving = asyncio.ensure_future(request.receive())
        allowed = asyncio.ensure_future(self.slow_may_answer.wait())
        # The first event is the empty body; only the second can be the client's leaving.
        await leaving
        leaving = asyncio.ensure_future(request.receive())
        await asyncio.wait((leaving, allowed), return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            self.slow_gone += 1
        allowed.cancel()
        leaving.cancel()
        return JSONResponse({"slow": True})

    async def _crash(self, _request: Request) -> Response:
        raise ValueError("the application is broken")

    async def _read(self, request: Request) -> Response:
        return JSONResponse({"size": len(await request.body())})

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.listener.port)
        client = Client(reader, writer)
        self.clients.append(client)
        return client


async def _as_json(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = {"error": error.detail, "code": f"HTTP_{error.status_code}"}
    return JSONResponse(body, status_code=error.status_code, headers=error.headers)


@contextlib.asynccontextmanager
async def serve(lane: str = "fast", limits: Limits | None = None) -> AsyncGenerator[Stage]:
    """Run a stage; at the end every connection and the listener are closed."""
    stage = Stage(lane, limits or Limits())
    stage.listener = await start(
        "127.0.0.1",
        0,
        stage.application,
        stage.routes,
        report=lambda error, request_id: stage.reports.append((error, request_id)),
        limits=stage.limits,
        is_fast_lane_on=lane == "fast",
    )
    try:
        yield stage
    finally:
        for client in stage.clients:
            await client.close()
        await stage.listener.close()
