"""A stream over a WebSocket on the HTTP port.

The framing of RFC 6455 is the library's (`websockets`, its part without input and output); here are
the socket, the limits, and the time-outs, which the sweep of the listener enforces.
"""

import asyncio
from collections import deque
from functools import partial
from typing import Final, cast
from urllib.parse import urlsplit

from websockets.datastructures import Headers
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from corvo.api import errors
from corvo.api.http.edge import Edge
from corvo.api.principal import principal_of
from corvo.api.stream.codecs import BY_PROTOCOL, JSON, Codec
from corvo.api.stream.frames import Problem, PushFrame, ServerFrame
from corvo.api.stream.session import Session
from corvo.api.stream.streams import Streams
from corvo.errors import CorvoError, RequestError
from corvo.model import limits

CLOSE_SILENT: Final = 4007
CLOSE_FAILED: Final = 1011
_WRONG_KIND: Final = 1003
_NOT_TEXT: Final = 1007
_OPENING_MS: Final = 10_000  # a client that asked for the upgrade has sent its whole request
_SILENT: Final = Problem(
    error="nothing came from the client for too long",
    code="REQUEST_TIMEOUT",
    hint="answer pings, then connect again and resume",
)
_FAILED: Final = Problem(error="a bug in the server", code="INTERNAL_ERROR")
_REASON_BYTES_MAX: Final = 120  # a close frame holds 123


class StreamConnection(asyncio.Protocol):
    """One WebSocket: a connection of the listener, and the outlet of a session."""

    def __init__(self, edge: Edge, streams: Streams) -> None:
        self._edge = edge
        self._streams = streams
        self._loop = asyncio.get_running_loop()
        self._websocket = ServerProtocol(max_size=streams.limits.frame_bytes_max)
        self._transport: asyncio.Transport
        self._session: Session | None = None
        self._fragments: list[bytes] = []
        self._fragments_opcode = Opcode.TEXT
        self._messages: deque[tuple[Opcode, bytes]] = deque()  # bounded by one read
        self._unwritten: list[bytes] = []
        self._unwritten_bytes = 0
        self._is_paused = False
        self._is_closing = False
        self._is_taking = False
        self._since_tick = edge.tick  # when something came last, or when closing began
        self._is_pinged = False
        self._unsent_seen = 0
        self._unsent_tick = edge.tick
        self.codec: Codec = JSON

    # --- the listener's side --------------------------------------------------------------------

    @property
    def open_count(self) -> int:
        """A stream has no requests."""
        return 0

    @property
    def parked_count(self) -> int:
        """Its fetches are counted by the engine."""
        return 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over a connection."""
        # The transport of uvloop is one, and not by inheritance.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=limits.STREAM_PUSH_PAUSE_BYTES)
        self._edge.enter(self)

    def data_received(self, data: bytes) -> None:
        """Take what came: the request for the upgrade, then messages."""
        self._edge.bytes_in += len(data)
        self._receive(data)

    def begin(self, data: bytes) -> None:
        """Take the request that asked for the upgrade, which was counted already."""
        self._receive(data)

    def _receive(self, data: bytes) -> None:
        if not self._is_closing:
            self._since_tick = self._edge.tick
            self._is_pinged = False
        websocket = self._websocket
        websocket.receive_data(data)
        for event in websocket.events_received():
            if isinstance(event, Request):
                self._shake_hands(event)
            elif isinstance(event, Frame):
                self._gather(event)
        self._flush_soon()
        self._take_messages()
        if websocket.close_expected():
            self._end()

    def eof_received(self) -> bool:
        """A client that sends no more is gone."""
        self._websocket.receive_eof()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Forget the connection; the session keeps its leases."""
        self._end()
        self._edge.leave(self)

    def pause_writing(self) -> None:
        """Nothing to do: the session looks at what is unsent before it claims jobs."""

    def resume_writing(self) -> None:
        """The client reads on: push what was held back."""
        if self._session is not None:
            self._session.supply.pump()

    def check_deadlines(self) -> None:
        """Ping the silent, end the deaf, and cut off whoever does not read or does not leave."""
        edge, bounds = self._edge, self._streams.limits
        waited = edge.tick - self._since_tick
        if self._is_closing:
            if waited > edge.linger_ticks:
                self.abort()
            return
        if self._session is None:
            if waited > edge.limits.ticks(_OPENING_MS):
                self.abort()
            return
        unsent = self.unsent_bytes
        if unsent != self._unsent_seen or not unsent:
            self._unsent_seen, self._unsent_tick = unsent, edge.tick
        elif edge.tick - self._unsent_tick > edge.limits.ticks(bounds.write_ms):
            self._streams.close_slow(self)
            return
        if waited > edge.limits.ticks(bounds.idle_ms):
            self.close(CLOSE_SILENT, _SILENT)
        elif not self._is_pinged and waited >= edge.limits.ticks(bounds.idle_ms // 3):
            self._is_pinged = True
            self._websocket.send_ping(b"")
            self._flush_soon()

    def start_drain(self) -> None:
        """The streams tell their workers; only a connection that is none yet ends here."""
        if self._session is None:
            self.abort()

    def abort(self) -> None:
        """End the connection at once, whatever is unsent."""
        self._is_closing = True
        self._transport.abort()

    # --- opening --------------------------------------------------------------------------------

    def _shake_hands(self, request: Request) -> None:
        response = self._answer(request)
        self._websocket.send_response(response)
        if self._websocket.state is not OPEN:
            return
        try:
            self._session = self._streams.open(self, principal_of(request).ns)
        except CorvoError as error:  # admitted a moment ago, on the same turn
            raise AssertionError(error) from error

    def _answer(self, request: Request) -> Response:
        offered = ",".join(request.headers.get_all("Sec-WebSocket-Protocol"))
        names = [name.strip() for name in offered.split(",") if name.strip()]
        chosen = next((name for name in names if name in BY_PROTOCOL), None)
        try:
            if names and chosen is None:
                raise RequestError(
                    "none of these subprotocols is spoken here",
                    field="sec-websocket-protocol",
                    hint=f"one of: {', '.join(BY_PROTOCOL)}",
                )
            _check_origin(request.headers)
            self._streams.admit()
        except CorvoError as error:
            status, body, extra = errors.of_error(error)
            return _refusal(self._websocket, status, body, extra)
        response = self._websocket.accept(request)
        if response.status_code == 101 and chosen is not None:
            self.codec = BY_PROTOCOL[chosen]
            response.headers["Sec-WebSocket-Protocol"] = chosen
        return response

    # --- messages -------------------------------------------------------------------------------

    def _gather(self, frame: Frame) -> None:
        """Put messages together; their size is bounded by the library."""
        opcode = frame.opcode
        if opcode is Opcode.CONT:
            self._fragments.append(bytes(frame.data))
        elif opcode in (Opcode.TEXT, Opcode.BINARY):
            self._fragments = [bytes(frame.data)]
            self._fragments_opcode = opcode
        else:
            return
        if frame.fin:
            self._messages.append((self._fragments_opcode, b"".join(self._fragments)))
            self._fragments = []

    def _take_messages(self) -> None:
        session = self._session
        if session is None or self._is_taking:
            return
        self._is_taking = True
        try:
            while self._messages and not self._is_closing and not session.is_full:
                self._take(session, *self._messages.popleft())
        except Exception as error:  # noqa: BLE001 - reported, and the stream is ended
            self._edge.fail(error)
            self.close(CLOSE_FAILED, _FAILED)
        finally:
            self._is_taking = False
        if self._is_closing:
            self._messages.clear()
        elif session.is_full != self._is_paused:
            self._is_paused = session.is_full
            if self._is_paused:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def _take(self, session: Session, opcode: Opcode, message: bytes) -> None:
        codec = self.codec
        if (opcode is Opcode.TEXT) != codec.is_text:
            self._fail(_WRONG_KIND, "text" if codec.is_text else "binary")
            return
        if codec.is_text and not message.isascii():
            try:
                message.decode()
            except UnicodeDecodeError:
                self._fail(_NOT_TEXT, "UTF-8")
                return
        try:
            frame = codec.decode(message)
        except RequestError as error:
            session.refuse(codec.request_id(message), error)
        else:
            session.take(frame)

    def _fail(self, code: int, wanted: str) -> None:
        message = f"messages of this stream are {wanted}"
        self.close(code, Problem(error=message, code="VALIDATION_ERROR"))

    # --- the session's side ---------------------------------------------------------------------

    @property
    def unsent_bytes(self) -> int:
        """What the client has not taken yet."""
        return self._unwritten_bytes + self._transport.get_write_buffer_size()

    def send(self, frame: ServerFrame) -> None:
        """Write a frame at the end of this turn, together with others of it."""
        if self._is_closing or self._websocket.state is not OPEN:
            return
        message = self.codec.encode(frame)
        if self.codec.is_text:
            self._websocket.send_text(message)
        else:
            self._websocket.send_binary(message)
        self._flush_soon()

    def answered(self) -> None:
        """Read on when there is room again."""
        if self._messages or self._is_paused:
            self._take_messages()

    def close(self, code: int, problem: Problem) -> None:
        """Say why, and end the connection; the session keeps its leases."""
        if self._is_closing:
            return
        self.send(PushFrame(closing=problem))
        if self._websocket.state is OPEN:
            reason = problem.error.encode()[:_REASON_BYTES_MAX].decode(errors="ignore")
            self._websocket.send_close(code, reason)
        self._flush_soon()
        self._end()

    def _end(self) -> None:
        """Part with the session; the socket follows when the client has closed, or is too slow."""
        if not self._is_closing:
            self._is_closing = True
            self._since_tick = self._edge.tick
            if self._is_paused:
                self._transport.resume_reading()
        session, self._session = self._session, None
        if session is not None:
            self._streams.disconnect(session)

    # --- writing --------------------------------------------------------------------------------

    def _flush_soon(self) -> None:
        data = self._websocket.data_to_send()
        if not data:
            return
        if not self._unwritten:
            self._loop.call_soon(self._flush)
        self._unwritten += data
        self._unwritten_bytes += sum(map(len, data))

    def _flush(self) -> None:
        data, self._unwritten = self._unwritten, []
        self._unwritten_bytes = 0
        if self._transport.is_closing():
            return
        self._edge.bytes_out += sum(map(len, data))
        self._transport.write(b"".join(data))
        # Format: the library says with an empty piece that nothing follows.
        if not data[-1]:
            self._transport.close()


def upgrade_of(streams: Streams) -> "partial[StreamConnection]":
    """What the listener makes of a request for the upgrade: called with its edge."""
    return partial(StreamConnection, streams=streams)


def _check_origin(headers: Headers) -> None:
    """Refuse web pages of other sites.

    Safety: a browser lets any page open a WebSocket to any server, and says so in this header only.
    """
    origin = headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("Host"):
        raise RequestError("a web page of another origin may not open a stream", field="origin")


def _refusal(websocket: ServerProtocol, status: int, body: bytes, extra: bytes) -> Response:
    response = websocket.reject(status, body.decode())
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = "application/json"
    for line in extra.decode().splitlines():
        name, _, value = line.partition(": ")
        response.headers[name] = value
    return response
