"""Traces that go through a job: from whoever enqueues it to the handler that runs it.

An enqueue inside of a span takes the span along, without anything to switch on. On the side of the
worker, `app.middleware(otel.middleware())` makes a span of every attempt, linked to the one that
enqueued: a link and not a parent, since a job may run hours later and several times.

OpenTelemetry is never imported for those who do not use it: without its API loaded there can be no
current span, so an enqueue costs one look into `sys.modules`.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

import msgspec

from corvo_sdk.control import Control

if TYPE_CHECKING:
    from corvo_sdk.context import Context

_API = "opentelemetry.trace"


def current_trace() -> dict[str, str] | None:
    """Give the trace context of the caller as a job carries it; None outside of a span."""
    if _API not in sys.modules:
        return None
    from opentelemetry import trace  # noqa: PLC0415 - only where it is loaded already

    if not trace.get_current_span().get_span_context().is_valid:
        return None
    carrier: dict[str, str] = {}
    _propagator().inject(carrier)
    return carrier or None


def middleware(
    tracer_provider: Any = None,
) -> "Callable[[Context, Callable[[Context], Awaitable[Any]]], Awaitable[Any]]":
    """Make middleware that opens a span around every attempt; needs `opentelemetry-api`.

    The span is of kind CONSUMER, named `run <task>`, and carries the attributes of the messaging
    conventions. What a handler raises is recorded; a control value is no error.
    """
    from opentelemetry import trace  # noqa: PLC0415 - only for those who ask for it

    tracer = trace.get_tracer("corvo_sdk", tracer_provider=tracer_provider)

    async def traced(context: "Context", call_next: "Callable[[Context], Awaitable[Any]]") -> Any:
        name = context.task.name if context.task is not None else context.job.queue
        with tracer.start_as_current_span(
            f"run {name}",
            kind=trace.SpanKind.CONSUMER,
            links=_links(context.job.trace),
            attributes=_attributes(context, name),
            # Recorded below, where what is no error can be told apart.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await call_next(context)
            except Control as control:
                span.set_attribute("corvo.control", type(control).__name__)
                raise
            except Exception as error:
                span.record_exception(error)
                span.set_status(trace.StatusCode.ERROR, f"{type(error).__name__}: {error}")
                raise
            if isinstance(result, Control):
                span.set_attribute("corvo.control", type(result).__name__)
            return result

    return traced


def _attributes(context: "Context", name: str) -> dict[str, str | int]:
    return {
        "messaging.system": "corvo",
        "messaging.operation.type": "process",
        "messaging.destination.name": context.job.queue,
        "messaging.message.id": context.job_id,
        "corvo.task": name,
        "corvo.attempt": context.attempt,
    }


def _links(document: bytes | msgspec.Raw | None) -> list[Any]:
    from opentelemetry import trace  # noqa: PLC0415 - as above

    carrier = _carrier(document)
    if carrier is None:
        return []
    found = trace.get_current_span(_propagator().extract(carrier)).get_span_context()
    return [trace.Link(found)] if found.is_valid else []


def _carrier(document: bytes | msgspec.Raw | None) -> dict[str, str] | None:
    # The document is whatever the producer sent; only what looks like a trace context is read.
    if document is None:
        return None
    try:
        return msgspec.json.decode(document, type=dict[str, str])
    except msgspec.DecodeError:
        return None


def _propagator() -> Any:
    from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415 - as above

    return cast("Any", tracecontext.TraceContextTextMapPropagator())
