"""Composition: from an engine to the hot route table and the ASGI application.

    surface = build(engine)
    listener = await start(host, port, surface.application, surface.hot, report=...)

Both hold the same handlers for the hot routes, so it does not matter which lane a request takes.
Handler exceptions are not caught here: the transport answers them 500 INTERNAL_ERROR with a request
id and hands them to its `report`, the same way in both lanes.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.routing import Route as StarletteRoute
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from corvo.api import tracing
from corvo.api.hot import HotRoutes
from corvo.api.http.exchange import Handler, Route
from corvo.api.http.slowlane import hot_routes
from corvo.api.live.hub import HEARTBEAT_MS, Hub
from corvo.api.metrics.collect import Metrics
from corvo.api.metrics.tally import Tallies, observe_routes
from corvo.api.routes.admin import AdminRoutes
from corvo.api.routes.bulk import BulkRoutes, progress_route
from corvo.api.routes.docs import DocsRoutes
from corvo.api.routes.jobs import JobRoutes
from corvo.api.routes.limits import LimitRoutes
from corvo.api.routes.live import LiveRoutes, waiting_routes
from corvo.api.routes.queues import QueueRoutes
from corvo.api.routes.schedules import ScheduleRoutes
from corvo.api.routes.search import SearchRoutes
from corvo.api.routes.server import ServerRoutes
from corvo.api.routes.view import ViewRoutes
from corvo.api.routes.webhooks import WebhookRoutes
from corvo.api.routing import Application, Table, starlette_routes
from corvo.api.translate import Context
from corvo.model import limits
from corvo.scheduler.bulk import BulkRunner
from corvo.view.client import ViewClient
from corvo.webhooks import Dispatcher

if TYPE_CHECKING:
    from corvo.engine import Engine

from starlette.exceptions import HTTPException

_PREFIX = "/api/v1"


class Surface(Struct, frozen=True):
    """What a listener needs: the hot routes by pattern, and the application for everything.

    The hub must be run beside it (`live.run()`), or streams and waits see nothing.
    """

    hot: Mapping[str, Route]
    application: ASGIApp
    operations: frozenset[tuple[str, str]]  # method and pattern of everything the router serves
    live: Hub
    metrics: Metrics


def build(
    engine: "Engine",
    *,
    payload_bytes_max: int = limits.PAYLOAD_BYTES_MAX,
    view: ViewClient | None = None,
    bulk: BulkRunner | None = None,
    undo_ms: int = limits.UNDO_MS_DEFAULT,
    webhooks: Dispatcher | None = None,
    heartbeat_ms: int = HEARTBEAT_MS,
    note_report: tracing.Note | None = None,
) -> Surface:
    """Build the API of an engine. Without a running dispatcher webhooks are kept, not delivered."""
    view = view if view is not None else ViewClient(engine, is_on=False)
    hub = Hub(engine, heartbeat_ms=heartbeat_ms)
    live = LiveRoutes(engine, hub, view)
    hot = hot_table(HotRoutes(engine, payload_bytes_max))
    if note_report is not None:
        for pattern in (f"{_PREFIX}/ack/{{id}}", f"{_PREFIX}/fail/{{id}}"):
            handler = tracing.noting(hot[pattern].handler, note_report)
            hot[pattern] = Route(handler, hot[pattern].body_bytes_max)
    context = Context(engine.new_id, payload_bytes_max, lambda: engine.now_ms)
    # Safety: an operation whose runner nobody runs is taken no further than its first step.
    bulk_routes = BulkRoutes(engine, bulk if bulk is not None else BulkRunner(engine), undo_ms)
    tallies = Tallies()
    metrics = Metrics(engine, hub, hot, tallies)
    tables: tuple[Table, ...] = (
        live.table(),
        SearchRoutes(view).table(),
        bulk_routes.table(),
        JobRoutes(engine, context).table(),
        QueueRoutes(engine, undo_ms).table(),
        LimitRoutes(engine).table(),
        ScheduleRoutes(engine, context).table(),
        ServerRoutes(engine, view, metrics.render).table(),
        ViewRoutes(view).table(),
        WebhookRoutes(engine, context, webhooks or Dispatcher(engine)).table(),
        AdminRoutes(engine, context).table(),
        DocsRoutes().table(),
    )

    def index() -> int:
        return engine.index

    routes = hot_routes(hot)
    routes.append(progress_route(bulk_routes, engine))
    for table in tables:
        routes += starlette_routes(table, index)
    observe_routes(routes, tallies)
    routes += observe_routes(waiting_routes(live, index), tallies, waits=True)
    router = Router(routes, redirect_slashes=False, default=_no_route)
    return Surface(
        hot,
        Application(router, index, tallies.missed),
        operations_of(routes),
        hub,
        metrics,
    )


def operations_of(routes: Iterable[StarletteRoute]) -> frozenset[tuple[str, str]]:
    """Method and pattern of everything these routes serve; HEAD goes without saying."""
    found: set[tuple[str, str]] = set()
    for route in routes:
        methods = getattr(route.endpoint, "methods", None) or route.methods or ()
        assert methods, f"a route that names no methods cannot be described: {route.path}"
        found |= {(method, route.path) for method in methods if method != "HEAD"}
    return frozenset(found)


def hot_table(handlers: HotRoutes) -> dict[str, Route]:
    """The hot routes by pattern; only enqueue/batch takes large bodies."""
    ordinary: dict[str, Handler] = {
        "enqueue": handlers.enqueue,
        "fetch": handlers.fetch,
        "fetch/batch": handlers.fetch_batch,
        "ack/batch": handlers.ack_batch,
        "heartbeat": handlers.heartbeat,
        "ack/{id}": handlers.ack,
        "fail/{id}": handlers.fail,
        "release/{id}": handlers.release,
        "snooze/{id}": handlers.snooze,
    }
    table = {
        f"{_PREFIX}/{pattern}": Route(handler, limits.BODY_BYTES_MAX)
        for pattern, handler in ordinary.items()
    }
    batch = Route(handlers.enqueue_batch, limits.BATCH_BODY_BYTES_MAX)
    table[f"{_PREFIX}/enqueue/batch"] = batch
    return table


async def _no_route(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise HTTPException(404)
