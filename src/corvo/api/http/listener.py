"""The listening socket: accept, count, drain, close. Signals are the business of `server`."""

import asyncio
import contextlib
import socket
from collections.abc import Mapping

import msgspec
from starlette.types import ASGIApp
from uvicorn.config import Config

from corvo.api.http.edge import Edge, Report, Sweep, Upgrade
from corvo.api.http.exchange import Route, RouteTable
from corvo.api.http.fastlane import FastLaneProtocol
from corvo.api.http.limits import Limits
from corvo.api.http.slowlane import GuardedApplication

BACKLOG_COUNT = 8192


class Statistics(msgspec.Struct, frozen=True):
    """What a listener did and holds."""

    # Open now, and since the start.
    connections: int
    connections_total: int
    # Unanswered now, of these parked, and answered since the start.
    open: int
    parked: int
    requests_total: int
    bytes_in: int
    bytes_out: int


class Listener:
    """A running listener. Life: `start`, then `stop_accepting`, `drain`, `close`."""

    def __init__(self, edge: Edge, server: asyncio.Server, sweep: Sweep) -> None:
        self._edge = edge
        self._server = server
        self._sweep = sweep
        self.port: int = server.sockets[0].getsockname()[1]

    def stop_accepting(self) -> None:
        """Accept no further connection; those that are open go on. Harmless when repeated."""
        self._server.close()

    async def drain(self, timeout_ms: int) -> bool:
        """End every connection after its last answer; return whether all ended in time.

        Idle connections end at once and every answer says `Connection: close`. While the listener
        still accepts, new connections are served one request each, so that workers can settle what
        they hold. Parked exchanges are answered by whoever parked them.
        """
        self._edge.is_draining = True
        for connection in tuple(self._edge.connections):
            connection.start_drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._edge.is_empty.wait()
        return self._edge.is_empty.is_set()

    async def close(self) -> None:
        """End everything at once, answered or not. Harmless when repeated."""
        self.stop_accepting()
        self._sweep.stop()
        for connection in tuple(self._edge.connections):
            connection.abort()
        await self._edge.is_empty.wait()
        tasks = tuple(self._edge.server_state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def statistics(self) -> Statistics:
        """Return counters; costs a look at every connection."""
        edge = self._edge
        connections = tuple(edge.connections)
        return Statistics(
            connections=len(connections),
            connections_total=edge.connections_count,
            open=sum(connection.open_count for connection in connections),
            parked=sum(connection.parked_count for connection in connections),
            requests_total=edge.requests_count,
            bytes_in=edge.bytes_in,
            bytes_out=edge.bytes_out,
        )


async def start(
    host: str,
    port: int,
    application: ASGIApp,
    routes: Mapping[str, Route],
    *,
    report: Report,
    limits: Limits | None = None,
    is_fast_lane_on: bool = True,
    upgrades: Mapping[bytes, Upgrade] | None = None,
) -> Listener:
    """Listen on `host` and `port` (0 picks a free one).

    `routes` maps a path ("/api/v1/enqueue", "/api/v1/ack/{id}") to its handler; the application
    must serve the same paths through `hot_routes`, since the slow lane is chosen per request. With
    the fast lane off the table only tells the body limits. `report` gets each failure with its
    request id. `upgrades` maps a path to what takes a connection that becomes a WebSocket there.
    """
    loop = asyncio.get_running_loop()
    edge = Edge(
        limits=limits or Limits(),
        routes=RouteTable(routes),
        report=report,
        is_fast_lane_on=is_fast_lane_on,
        upgrades=upgrades,
    )
    config = Config(
        GuardedApplication(application, edge.fail),
        http="httptools",
        ws="none",
        interface="asgi3",
        lifespan="off",
        log_config=None,
        access_log=False,
    )
    config.load()
    # TCP_NODELAY is set by asyncio and uvloop on every accepted socket; a test holds them to it.
    server = await loop.create_server(
        lambda: FastLaneProtocol(config, edge, loop),
        host=host,
        port=port,
        backlog=BACKLOG_COUNT,
        reuse_address=True,
        family=socket.AF_UNSPEC,
    )
    sweep = Sweep(edge, loop)
    sweep.start()
    return Listener(edge, server, sweep)
