"""A whole Corvo inside the test's own process: real engine, real API, memory for a disk.

    house = House()
    house.call("POST", "/api/v1/enqueue", body=b'{"queue":"emails"}')
    house.advance(5_000)
    house.close()

It lives on the event loop of a thread of its own, so that a test may be synchronous or run a loop
itself. Requests reach the application as they would from a socket, as bytes; time is virtual and
moves only when the test says so.
"""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote

from msgspec import Struct
from starlette.types import ASGIApp

from corvo.api import app
from corvo.api.http.slowlane import GuardedApplication
from corvo.engine import Engine
from corvo.engine.engine import Hooks
from corvo.replication import FsyncPolicy, LocalLog, MemoryDisk
from corvo.runtime.clock import VirtualClock
from corvo.runtime.tasks import Supervisor
from corvo.runtime.telemetry import silence_unless_configured
from corvo.scheduler import BulkRunner, Ticker
from corvo.storage.memory import MemoryStore

CLUSTER_ID = bytes(16)
SEGMENT_BYTES = 1 << 20
CLOSE_SECONDS = 10
PIPE_CHUNKS_MAX = 64

# One advance does at most this many separate instants; a schedule of every second reaches it after
# a day and a half of virtual time.
INSTANTS_MAX = 131_072

Result = TypeVar("Result")


class HouseReply(Struct, frozen=True):
    """Status, headers by lower-case name, and the body."""

    status: int
    headers: dict[str, str]
    body: bytes


class HouseError(Exception):
    """The server inside the test failed: a bug in Corvo, with its cause attached."""


class House:
    """One server without sockets, files or passing time. Close it after use."""

    def __init__(self, *, now_ms: int = 1_767_225_600_000) -> None:
        self.clock = VirtualClock(now_ms)
        self._failures: list[BaseException] = []
        self._tasks = Supervisor()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="corvo house", daemon=True)
        self._thread.start()
        self._is_closed = False
        self.run(self._build())

    # --- from any thread ----------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do something on the loop of the house and wait for it."""
        assert threading.current_thread() is not self._thread, "the house would wait for itself"
        result = asyncio.run_coroutine_threadsafe(work, self._loop).result()
        self._raise_failure()
        return result

    async def arun(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do something on the loop of the house, waiting on the caller's."""
        result = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
        self._raise_failure()
        return result

    async def serve(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> HouseReply:
        """Answer one request; only on the loop of the house (`run`, `arun`)."""
        exchange = _Exchange(method, target, headers, body or b"")
        await self._application(exchange.scope, exchange.receive, exchange.send)
        return exchange.reply()

    async def open(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> "Pipe":
        """Begin a request whose answer comes piece by piece; only on the loop of the house."""
        pipe = Pipe(method, target, headers, body or b"")
        self._tasks.start(f"stream {target}", pipe.serve(self._application))
        await pipe.begun.wait()
        return pipe

    def call(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> HouseReply:
        """Send one request and wait for its answer."""
        return self.run(self.serve(method, target, headers or {}, body))

    def advance(self, ms: int) -> int:
        """Let time pass, stopping at every instant at which something is due; return the time."""
        return self.run(self.pass_time(ms))

    def next_due_ms(self) -> int:
        """When time will change something: a retry, a schedule, a lease; 0 when never."""
        return self.run(self.next_due())

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms()

    def close(self) -> None:
        """Stop the server and its thread. May be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)
        self._loop.close()
        self._raise_failure()

    # --- on the loop of the house -------------------------------------------------------------

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _build(self) -> None:
        silence_unless_configured()
        log = LocalLog.open(
            MemoryDisk(),
            "house",
            segment_bytes=SEGMENT_BYTES,
            policy=FsyncPolicy.off(),
            cluster_id=CLUSTER_ID,
            node_id=1,
        )
        hooks = Hooks(
            fatal=self._failures.append,
            reply_failed=self._failures.append,
            fault=lambda index, _, trace: self._failures.append(
                HouseError(f"a command of entry {index} failed inside the machine:\n{trace}")
            ),
        )
        self._engine = Engine.open(store=MemoryStore(), log=log, clock=self.clock, hooks=hooks)
        await self._engine.name_history()
        bulk = BulkRunner(self._engine)
        surface = app.build(self._engine, bulk=bulk)
        self._application = GuardedApplication(surface.application, self._report)
        self._ticker = Ticker(self._engine)
        self._engine.start()
        self._tasks.start("live", surface.live.run())
        self._tasks.start("bulk", bulk.run())

    async def _stop(self) -> None:
        await self._tasks.stop()
        await self._engine.close()

    async def next_due(self) -> int:
        """When time will change something; on the loop of the house."""
        instants = (self._engine.next_due_ms(), self._engine.next_schedule_ms())
        return min((instant for instant in instants if instant > 0), default=0)

    async def pass_time(self, ms: int) -> int:
        """Let time pass; on the loop of the house."""
        target_ms = self.clock.now_ms() + ms
        await self.settle()
        for _ in range(INSTANTS_MAX):
            due_ms = await self.next_due()
            if not 0 < due_ms <= target_ms:
                break
            # An estimate that stays in the past must not hold time up: it moves at least 1 ms.
            now_ms = self.clock.now_ms()
            self.clock.advance_to(min(max(due_ms, now_ms + 1), target_ms))
            await self.settle()
            if self.clock.now_ms() == target_ms:
                break
        else:
            message = f"more than {INSTANTS_MAX} things are due in {ms} ms; tick in smaller steps"
            raise HouseError(message)
        self.clock.advance_to(max(target_ms, self.clock.now_ms()))
        await self.settle()
        return self.clock.now_ms()

    async def settle(self) -> None:
        """Do what is due now, and what becomes due by it; on the loop of the house."""
        while await self._ticker.tick():
            pass

    def _report(self, error: BaseException) -> str:
        self._failures.append(error)
        return "house"

    def _raise_failure(self) -> None:
        if self._tasks.failure is not None:
            self._failures.append(self._tasks.failure)
        if self._failures:
            failure = self._failures.pop(0)
            message = f"the server inside the test failed: {failure}"
            raise HouseError(message) from failure


class _Exchange:
    """One request and its answer as ASGI messages. The client stays until it is answered."""

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        path, _, query = target.partition("?")
        lines = {name.lower(): value for name, value in headers.items()}
        if body:
            lines.setdefault("content-type", "application/json")
            lines["content-length"] = str(len(body))
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode("ascii"),
            "query_string": query.encode("ascii"),
            "root_path": "",
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1")) for name, value in lines.items()
            ],
            "client": ("house", 0),
            "server": ("house", 0),
        }
        self._body: bytes | None = body
        self._status = 0
        self._headers: dict[str, str] = {}
        self._answer = bytearray()
        self._left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        if self._body is None:
            await self._left.wait()  # or cancelled by the application once it has answered
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in message["headers"]
            }
        else:
            self._answer += message.get("body", b"")

    def reply(self) -> HouseReply:
        assert self._status > 0, "the application ended without an answer"
        return HouseReply(self._status, self._headers, bytes(self._answer))


class Pipe(_Exchange):
    """An answer read while it is written. All of it happens on the loop of the house."""

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(method, target, headers, body)
        self.begun = asyncio.Event()
        # Bounded: whoever writes waits for the test to read.
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue(PIPE_CHUNKS_MAX)
        self._ended = asyncio.Event()

    async def serve(self, application: ASGIApp) -> None:
        """Run the application until the answer is complete or nobody reads it any more."""
        try:
            await application(self.scope, self.receive, self.send)
        finally:
            self.begun.set()
            self._ended.set()

    async def send(self, message: Mapping[str, Any]) -> None:
        await super().send(message)
        if self._status:
            self.begun.set()
        chunk, self._answer = bytes(self._answer), bytearray()
        if chunk and not self._left.is_set():
            await self._chunks.put(chunk)

    async def next(self) -> bytes:
        """Return the next piece; nothing after the last."""
        while self._chunks.empty() and not self._ended.is_set():
            getting = asyncio.ensure_future(self._chunks.get())
            ending = asyncio.ensure_future(self._ended.wait())
            await asyncio.wait((getting, ending), return_when=asyncio.FIRST_COMPLETED)
            ending.cancel()
            if getting.done():
                return getting.result()
            getting.cancel()
        return b"" if self._chunks.empty() else self._chunks.get_nowait()

    async def leave(self) -> None:
        """Read no more: the application is told that the client went away."""
        self._left.set()
        while not self._chunks.empty():
            self._chunks.get_nowait()
