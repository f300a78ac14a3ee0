"""Puts the worker service over gRPC together. Imported only when it is on: it brings gRPC along."""

from corvo.api.app import Surface
from corvo.api.routes.server import FEATURES
from corvo.api.stream.calls import Calls
from corvo.api.stream.grpc_server import GrpcServer, Report
from corvo.api.stream.subscribe import Subscriptions
from corvo.api.translate import Context
from corvo.engine import Engine, Watcher


def make_grpc_server(
    engine: Engine, surface: Surface, payload_bytes_max: int, report: Report
) -> GrpcServer:
    """Build the service of an engine; it does not listen yet."""
    subscriptions = Subscriptions(engine)
    surface.live.observers.append(subscriptions.observe)
    engine.watch(Watcher(_nothing, subscriptions.drain))
    context = Context(engine.new_id, payload_bytes_max, lambda: engine.now_ms)
    calls = Calls(engine, context, FEATURES)
    return GrpcServer(surface.streams, calls, subscriptions, report)


def _nothing() -> None:
    """The hub tells of events; the engine need not."""
