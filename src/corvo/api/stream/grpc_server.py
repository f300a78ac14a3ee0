"""The worker service over gRPC (`grpc.aio`), on a port of its own.

Imported only when gRPC is on: the library takes its time. Messages are converted at this edge; what
happens is decided by `Session` and `Calls`, as over the other transports.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError, Message
from grpc import aio

from corvo.api.principal import principal_of
from corvo.api.stream.calls import Call, Calls
from corvo.api.stream.codecs import JSON, Codec
from corvo.api.stream.frames import Problem, PushFrame, ServerFrame
from corvo.api.stream.generated import worker_pb2 as pb
from corvo.api.stream.messages import all_methods, client_frame, server_frame
from corvo.api.stream.session import Session
from corvo.api.stream.status import status_name
from corvo.api.stream.streams import Streams
from corvo.api.stream.subscribe import Subscriptions
from corvo.errors import CorvoError, RequestError, StorageError
from corvo.model import limits

SERVICE: Final = "corvo.v1.WorkerService"
GRACE_S: Final = 1.0
Report = Callable[[BaseException, str], None]
Context = aio.ServicerContext[Any, Any]
Handler = Callable[[Any, Context], Awaitable[Message | None]]

_CLOSE_STATUS: Final = {
    1001: grpc.StatusCode.UNAVAILABLE,
    1008: grpc.StatusCode.INVALID_ARGUMENT,
    4008: grpc.StatusCode.RESOURCE_EXHAUSTED,
    4009: grpc.StatusCode.ABORTED,
}


class GrpcServer:
    """A running server of the worker service."""

    def __init__(
        self, streams: Streams, calls: Calls, subscriptions: Subscriptions, report: Report
    ) -> None:
        self._streams = streams
        self._calls = calls
        self._subscriptions = subscriptions
        self._report = report
        self._server: aio.Server | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 takes a free one. Raises `StorageError` when it is taken."""
        frame_bytes_max = self._streams.limits.frame_bytes_max
        idle_ms = self._streams.limits.idle_ms
        server = aio.server(
            options=[
                # Safety: without this a second server would share the port, and get half the calls.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", limits.BATCH_BODY_BYTES_MAX),
                ("grpc.max_send_message_length", 2 * limits.BATCH_BODY_BYTES_MAX),
                ("grpc.keepalive_time_ms", max(1_000, idle_ms // 3)),
                ("grpc.keepalive_timeout_ms", max(1_000, idle_ms // 3)),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
                ("grpc.max_concurrent_streams", 1_000),
            ]
        )
        self._frame_bytes_max = frame_bytes_max
        server.add_generic_rpc_handlers([self._handlers()])
        shown = f"[{host}]" if ":" in host else host
        try:
            self.port = server.add_insecure_port(f"{shown}:{port}")
        except RuntimeError as error:
            raise StorageError(
                f"can not listen for gRPC on {shown}:{port}: {error}",
                code="ADDRESS_UNAVAILABLE",
                hint="choose another address with --grpc-bind, or off",
            ) from error
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """End every call; those under way have a moment to be answered."""
        self._subscriptions.drain()
        if self._server is not None:
            await self._server.stop(GRACE_S)

    def _handlers(self) -> grpc.GenericRpcHandler:
        found: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        for method in all_methods():
            name: str = method.name
            request: type[Message] = getattr(pb, method.input_type.name)
            options: dict[str, Any] = {
                "request_deserializer": request.FromString,
                "response_serializer": _serialize,
            }
            if name == "StreamLifecycle":
                handler = grpc.stream_stream_rpc_method_handler(
                    self._stream,
                    # Frames are read by the session, which answers one that is no message.
                    request_deserializer=bytes,
                    response_serializer=_serialize,
                )
            elif name == "Subscribe":
                handler = grpc.unary_stream_rpc_method_handler(self._subscribe, **options)
            else:
                unary = _unary(self._calls.by_name[name], self._report)
                handler = grpc.unary_unary_rpc_method_handler(unary, **options)
            found[name] = handler
        return grpc.method_handlers_generic_handler(SERVICE, found)

    async def _subscribe(
        self, request: pb.SubscribeRequest, context: Context
    ) -> AsyncIterator[object]:
        ns = principal_of(context).ns
        try:
            async for event in self._subscriptions.follow(request, ns):
                yield event
        except CorvoError as error:
            await _abort(context, error)

    async def _stream(self, requests: AsyncIterator[bytes], context: Context) -> None:
        outlet = GrpcOutlet(self._streams)
        try:
            session = self._streams.open(outlet, principal_of(context).ns)
        except CorvoError as error:
            await _abort(context, error)
            return
        outlet.session = session
        reading = asyncio.ensure_future(self._read(requests, session, outlet))  # noqa: TID251
        try:
            # The task that reads ends with this call, and its failure is seen below.
            await outlet.write_all(context)
        finally:
            self._streams.disconnect(session)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if not reading.cancelled() and (failure := reading.exception()) is not None:
            self._report(failure, SERVICE)
        if outlet.status is not None:
            await context.abort(outlet.status, outlet.reason)

    async def _read(
        self, requests: AsyncIterator[bytes], session: Session, outlet: "GrpcOutlet"
    ) -> None:
        try:
            async for message in requests:
                _take(session, message, self._frame_bytes_max)
                await outlet.room(session)
        finally:
            outlet.finish()


def _take(session: Session, message: bytes, bytes_max: int) -> None:
    request = pb.LifecycleStreamRequest()
    if len(message) > bytes_max:
        text = f"a frame holds at most {bytes_max} bytes"
        session.refuse(0, RequestError(text, code="PAYLOAD_TOO_LARGE", status=413))
        return
    try:
        request.ParseFromString(message)
        frame = client_frame(request)
    except DecodeError:
        session.refuse(0, RequestError("the frame is no message", code="PARSE_ERROR"))
    except RequestError as error:
        session.refuse(request.request_id, error)
    else:
        session.take(frame)


class GrpcOutlet:
    """The writing side of one stream: a bounded queue, and the coroutine that empties it."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._frames: deque[tuple[ServerFrame, int]] = deque()
        self._wake = asyncio.Event()
        self._answered = asyncio.Event()
        self._is_over = False
        self._written = asyncio.get_running_loop().time()
        self.codec: Codec = JSON
        self.unsent_bytes = 0
        self.session: Session | None = None
        self.status: grpc.StatusCode | None = None
        self.reason = ""

    def send(self, frame: ServerFrame) -> None:
        """Queue a frame."""
        if self._is_over:
            return
        size = _size_of(frame)
        self.unsent_bytes += size
        self._frames.append((frame, size))
        self._wake.set()

    def answered(self) -> None:
        """Let the reader go on."""
        self._answered.set()

    async def room(self, session: Session) -> None:
        """Wait until the stream may have one more frame on its way."""
        while session.is_full and not self._is_over:
            self._answered.clear()
            await self._answered.wait()

    def close(self, code: int, problem: Problem) -> None:
        """End the call after what is queued."""
        if self._is_over:
            return
        self.send(PushFrame(closing=problem))
        self.status = _CLOSE_STATUS.get(code, grpc.StatusCode.INTERNAL)
        self.reason = f"{problem.code}: {problem.error}"
        self.finish()
        if self.session is not None:
            # The client may be too slow to ever take the last frame; its places are free now.
            self._streams.disconnect(self.session)

    def finish(self) -> None:
        """Nothing more is sent."""
        self._is_over = True
        self._wake.set()
        self._answered.set()

    async def write_all(self, context: Context) -> None:
        """Write frames until the stream is over, or the client does not read for too long."""
        write_s = self._streams.limits.write_ms / 1000
        while True:
            while self._frames:
                frame, size = self._frames.popleft()
                try:
                    async with asyncio.timeout(write_s):
                        await context.write(server_frame(frame))
                except TimeoutError:
                    self.status = grpc.StatusCode.RESOURCE_EXHAUSTED
                    self.reason = "OVERLOADED: the client does not read what it is sent"
                    return
                self.unsent_bytes -= size
            if self._is_over:
                return
            self._pump()
            self._wake.clear()
            if not self._frames:
                await self._wake.wait()

    def _pump(self) -> None:
        if self.session is not None:
            self.session.supply.pump()


def _size_of(frame: ServerFrame) -> int:
    """About how many bytes a frame has."""
    jobs = frame.jobs or []
    return 200 + sum(400 + len(bytes(job.payload)) for job in jobs)


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


def _unary(call: Call, report: Report) -> Handler:
    """Make a handler of a call: refusals become a status."""

    async def handle(request: Any, context: Context) -> Message | None:
        try:
            return await call(request, principal_of(context).ns)
        except CorvoError as error:
            await _abort(context, error)
        except Exception as error:  # noqa: BLE001 - reported, and answered as a bug
            report(error, SERVICE)
            await context.abort(grpc.StatusCode.INTERNAL, "INTERNAL_ERROR: a bug in the server")
        return None

    return handle


async def _abort(context: Context, error: CorvoError) -> None:
    trailers = [("corvo-code", error.code)]
    for name, text in (("corvo-hint", error.hint), ("corvo-field", error.field)):
        # Format: metadata is printable ASCII.
        if text and text.isascii() and text.isprintable():
            trailers.append((name, text))
    status = grpc.StatusCode[status_name(error.code).upper()]
    await context.abort(status, f"{error.code}: {error.message}", tuple(trailers))
