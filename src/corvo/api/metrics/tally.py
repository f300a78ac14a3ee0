"""Requests of the slow lane: counted by route pattern, and traced by a request id.

The hot routes count their own answers (`http.exchange.Route.answers`), with less ceremony.
"""

import re
import secrets
from time import monotonic_ns
from typing import Final

import structlog
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from corvo.api.http.exchange import new_times, observe_time
from corvo.runtime.telemetry import bind_request, logger

NO_ROUTE: Final = "(none)"
SLOW_MS: Final = 1_000

_PARAMETER: Final = re.compile(r":path(?=\})")
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class Tallies:
    """What the slow lane answered so far."""

    def __init__(self) -> None:
        # Invariant: bounded by routes × methods × statuses; unknown methods share one label.
        self.counts: dict[tuple[str, str, int], int] = {}
        self.times: dict[str, list[int]] = {}
        self.open_count = 0

    def missed(self, method: str, status: int) -> None:
        """Note a request that no route took."""
        self.observe(NO_ROUTE, method, status, 0)

    def observe(self, route: str, method: str, status: int, elapsed_ns: int) -> None:
        """Note an answer."""
        key = (route, method if method in _METHODS else "OTHER", status)
        self.counts[key] = self.counts.get(key, 0) + 1
        times = self.times.get(route)
        if times is None:
            times = self.times[route] = new_times()
        observe_time(times, elapsed_ns)


_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Observed:
    """An ASGI application of one route whose answers are counted, named and, if need be, told."""

    def __init__(
        self, route: str, application: ASGIApp, tallies: Tallies, *, waits: bool = False
    ) -> None:
        self._route = _PARAMETER.sub("", route)
        self._application = application
        self._tallies = tallies
        self._waits = waits  # it is meant to take long
        self._telemetry: structlog.typing.FilteringBoundLogger = logger("http")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request_id = _request_id(scope)
        bind_request(request_id)
        status = 0
        tallies = self._tallies

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], (b"x-request-id", request_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        began_ns = monotonic_ns()
        tallies.open_count += 1
        try:
            await self._application(scope, receive, watch)
        except HTTPException as error:
            status = error.status_code
            raise
        except Exception:
            status = 500
            raise
        finally:
            tallies.open_count -= 1
            elapsed_ns = monotonic_ns() - began_ns
            if status:  # a client that left before its answer got none
                tallies.observe(self._route, scope["method"], status, elapsed_ns)
                self._tell(scope, status, elapsed_ns // 1_000_000)

    def _tell(self, scope: Scope, status: int, elapsed_ms: int) -> None:
        is_slow = elapsed_ms >= SLOW_MS and not self._waits
        level = "warning" if is_slow or status > 500 else "debug"
        getattr(self._telemetry, level)(
            "slow request" if is_slow else "request",
            method=scope["method"],
            route=self._route,
            status=status,
            elapsed_ms=elapsed_ms,
        )


def observe_routes(routes: list[Route], tallies: Tallies, *, waits: bool = False) -> list[Route]:
    """Count what these routes answer."""
    for route in routes:
        route.app = Observed(route.path, route.app, tallies, waits=waits)
    return routes


def _request_id(scope: Scope) -> str:
    """The client's own id where it sent a harmless one, so that its records and ours agree."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return value.decode("ascii")
    return "req_" + secrets.token_hex(8)
