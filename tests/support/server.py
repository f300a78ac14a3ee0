"""A whole server in this process: real socket, real engine, memory or disk below; both lanes.

The server runs on its own loop in a thread, so that a test is plain code with a plain client. Time
is a virtual clock unless a test asks for the real one: it moves when the test says so.
"""

import asyncio
import http.client
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
import structlog

from corvo.api.app import Surface, build
from corvo.api.http import Limits, Listener, start
from corvo.api.live.hub import Hub
from corvo.api.stream.held import Bounds
from corvo.engine import Engine, Options
from corvo.engine.engine import Hooks
from corvo.machine.audit import audit
from corvo.machine.kv import Store
from corvo.replication import FsyncPolicy, LocalLog, MemoryDisk
from corvo.runtime.clock import Clock, SystemClock, VirtualClock
from corvo.runtime.tasks import Supervisor
from corvo.scheduler.bulk import BulkRunner, Finder
from corvo.scheduler.ticker import Ticker
from corvo.storage.memory import MemoryStore
from tests.support.rig import HeldSync

# A line per request would only hide what a failing test prints.
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))

LANES = ("fast", "slow")
START_MS = 1_700_000_000_000
Result = TypeVar("Result")


class Reply(msgspec.Struct):
    """An answer as a client sees it."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as a value."""
        return msgspec.json.decode(self.body)

    @property
    def index(self) -> int:
        """The log index the answer carries."""
        return int(self.headers["x-corvo-index"])


class Server:
    """One running server and a client of it."""

    def __init__(
        self,
        *,
        lane: str,
        clock: Clock | None = None,
        options: Options | None = None,
        segment_bytes: int = 1 << 20,
        finder: Finder | None = None,
        heartbeat_ms: int = 15_000,
        bounds: Bounds | None = None,
    ) -> None:
        self.bounds = bounds
        self.finder = finder
        self.lane = lane
        self.heartbeat_ms = heartbeat_ms
        self.live: Hub
        self.tasks = Supervisor()
        self.clock = clock if clock is not None else VirtualClock(START_MS)
        self.options = options
        self.segment_bytes = segment_bytes
        self.reports: list[tuple[BaseException, str]] = []
        self.failures: list[BaseException] = []
        self.faults: list[str] = []
        self.store: Store = MemoryStore()
        self.disk = MemoryDisk()
        self.syncer = HeldSync(self.disk)
        self.engine: Engine
        self.listener: Listener
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._local = threading.local()

    # --- life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Serve on a free port."""
        self._thread.start()
        self.run(self._start)

    async def _start(self) -> None:
        log = LocalLog.open(
            self.disk,
            "data/wal",
            policy=FsyncPolicy.parse("always"),
            cluster_id=bytes(16),
            node_id=1,
            segment_bytes=self.segment_bytes,
            syncer=self.syncer,
            on_failure=self.failures.append,
        )
        hooks = Hooks(
            fatal=self.failures.append,
            reply_failed=self.failures.append,
            fault=lambda _index, _ordinal, text: self.faults.append(text),
        )
        self.engine = Engine.open(
            store=self.store, log=log, clock=self.clock, hooks=hooks, options=self.options
        )
        self.engine.start()
        self.ticker = Ticker(self.engine)
        self.bulk = BulkRunner(self.engine, self.finder)
        surface = self.surface_found = self.surface()
        self.live = surface.live
        self.tasks.start("bulk", self.bulk.run())
        self.tasks.start("live", surface.live.run())
        self.streams = surface.streams
        self.tasks.start("streams", surface.streams.run())
        self.listener = await start(
            "127.0.0.1",
            0,
            surface.application,
            surface.hot,
            report=lambda error, request_id: self.reports.append((error, request_id)),
            # Clients that leave are noticed at once, so that a test need not wait for it.
            limits=Limits(half_close_ms=20, sweep_ms=20),
            is_fast_lane_on=self.lane == "fast",
            upgrades=surface.upgrades,
        )
        self.port = self.listener.port

    def surface(self) -> Surface:
        """What is served; a test that needs more than the engine overrides this."""
        return build(
            self.engine, bulk=self.bulk, heartbeat_ms=self.heartbeat_ms, bounds=self.bounds
        )

    def stop(self) -> None:
        """End everything; what went wrong inside fails the test."""
        self.run(self._stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        assert self.failures == []
        assert self.faults == []

    async def _stop(self) -> None:
        await self.listener.close()
        await self.tasks.stop()
        assert self.tasks.failure is None
        await self.engine.close()

    def run(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Run something on the server's loop and wait for it."""

        async def body() -> Result:
            return await work()

        return asyncio.run_coroutine_threadsafe(body(), self._loop).result(90)

    def advance(self, ms: int) -> None:
        """Let time pass, and let everything happen that is then due."""
        assert isinstance(self.clock, VirtualClock)
        self.clock.advance(ms)

        async def tick() -> None:
            # The ticker looks again as long as it moves something: a promoted job may be due again.
            while await self.ticker.tick():
                pass

        self.run(tick)

    def hold_disk(self) -> None:
        """Let no sync return until `free_disk`."""

        async def hold() -> None:
            self.syncer.is_held = True

        self.run(hold)

    def free_disk(self) -> None:
        """Let every sync return again."""

        async def free() -> None:
            self.syncer.let_all_go()

        self.run(free)

    def wait_until(self, fact: Callable[[], bool]) -> None:
        """Let the server's loop go on until a fact holds."""

        async def look() -> None:
            # Generous: the bound is for a fact that never comes, not for a slow machine.
            async with asyncio.timeout(60):
                while not fact():  # noqa: ASYNC110 - the facts are the server's, without events
                    await asyncio.sleep(0)

        self.run(look)

    @property
    def index(self) -> int:
        """The last applied index."""
        return self.engine.index

    def audit(self) -> list[str]:
        """Violated invariants of the stored state."""

        async def look() -> list[str]:
            return audit(self.store)

        return self.run(look)

    # --- client ---------------------------------------------------------------------------------

    def connect(self) -> http.client.HTTPConnection:
        """A connection of its own, for requests that wait."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        connection: http.client.HTTPConnection | None = None,
    ) -> Reply:
        """Send one request; a value is encoded, bytes are sent as they are."""
        if connection is None:
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = self.connect()
        if body is not None and not isinstance(body, bytes):
            body = msgspec.json.encode(body)
        sent = {"content-type": "application/json"} if body is not None else {}
        connection.request(method, path, body=body, headers=sent | (headers or {}))
        response = connection.getresponse()
        lines = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, lines, response.read())

    def get(self, path: str) -> Reply:
        """Read something below the prefix."""
        return self.request("GET", "/api/v1" + path)

    def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        """Send something below the prefix."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("POST", "/api/v1" + path, body, headers=sent)

    def enqueue(self, queue: str = "q", **fields: Any) -> str:
        """Enqueue a job and return its id."""
        reply = self.post("/enqueue", {"queue": queue} | fields)
        assert reply.status == 201, reply.body
        return reply.json["job_id"]

    def fetch(self, *queues: str, worker: str = "w", **fields: Any) -> Any:
        """Fetch a job without waiting; None when there is none."""
        body = {"queues": queues or ("q",), "worker_id": worker, "timeout": 0} | fields
        reply = self.post("/fetch", body)
        assert reply.status in (200, 204), reply.body
        return reply.json if reply.status == 200 else None

    def job(self, identifier: str) -> Any:
        """Read a job."""
        reply = self.get(f"/jobs/{identifier}")
        assert reply.status == 200, reply.body
        return reply.json

    def close_connection(self) -> None:
        """Forget the shared connection, as after an answer that ends it."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None


@contextmanager
def running(lane: str, **arguments: Any) -> Iterator[Server]:
    """A server for one test; state and invariants are checked at its end."""
    server = Server(lane=lane, **arguments)
    server.start()
    try:
        yield server
        assert server.reports == []
        assert server.audit() == []
    finally:
        server.close_connection()
        server.stop()


__all__ = ["LANES", "START_MS", "Reply", "Server", "SystemClock", "running"]
