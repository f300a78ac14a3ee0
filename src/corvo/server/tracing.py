"""Spans of jobs for OpenTelemetry, made from the feed: requests pay nothing for them.

A job that was enqueued within a trace becomes two spans of that trace: `enqueue <queue>` where it
was taken in, and `run <queue>` for each attempt, from the fetch to the report, linked to the span
the worker reported in. Jobs without a trace make none.

The SDK is imported only when it is asked for: `pip install corvo[otel]`, and one of the standard
variables OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_TRACES_EXPORTER.
Everything else (headers, resource, sampling, batching) the SDK reads from its variables itself.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corvo import __version__
from corvo.engine import Engine
from corvo.model import event as ev
from corvo.model.event import Event, EventBlock
from corvo.model.ids import JOB, parse_id, render_id
from corvo.model.view import JobView
from corvo.server.config import ConfigError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

REPORTS_MAX: Final = 10_000  # contexts of reports that wait for their event; when full, forgotten
NANOSECONDS_PER_MS: Final = 1_000_000
_ENDED: Final = frozenset({ev.COMPLETED, ev.FAILED})
_EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


class Context(msgspec.Struct):
    """What of a job's trace is understood."""

    traceparent: str
    tracestate: str = ""


_decode: Final = msgspec.json.Decoder(Context).decode


class Tracer:
    """Turns events of traced jobs into spans."""

    def __init__(self, engine: Engine, provider: "TracerProvider") -> None:
        trace = import_module("opentelemetry.trace")
        propagation = import_module("opentelemetry.trace.propagation.tracecontext")
        self._engine = engine
        self._provider = provider
        self._trace: Any = trace
        self._extract: Any = propagation.TraceContextTextMapPropagator().extract
        self._tracer: Any = provider.get_tracer("corvo", __version__)
        self._reports: dict[bytes, str] = {}

    def note_report(self, job: str, parent: str) -> None:
        """Remember the context in which a worker reports on a job."""
        identifier = parse_id(JOB, job)
        if identifier is not None:
            if len(self._reports) >= REPORTS_MAX:
                self._reports.clear()
            self._reports[identifier] = parent

    def observe(self, blocks: list[EventBlock]) -> None:
        """Make the spans of some events."""
        for block in blocks:
            for event in block.events:
                if event.type in _ENDED:
                    self._run(event, block.at_ms)
                elif event.type in (ev.ENQUEUED, ev.SCHEDULED):
                    self._enqueue(event, block.at_ms)

    def _enqueue(self, event: Event, at_ms: int) -> None:
        found = self._context(event)
        if found is not None:
            _, context = found
            kind = self._trace.SpanKind.PRODUCER
            start_ms = min(at_ms, int.from_bytes(event.job[:6], "big"))
            self._span(f"enqueue {event.queue}", event, context, kind, start_ms).end(
                at_ms * NANOSECONDS_PER_MS
            )

    def _run(self, event: Event, at_ms: int) -> None:
        report = self._reports.pop(event.job, "")
        found = self._context(event)
        if found is None:
            return
        view, context = found
        links: list[Any] = []
        if report:
            reported = self._extract({"traceparent": report})
            links.append(
                self._trace.Link(self._trace.get_current_span(reported).get_span_context())
            )
        kind = self._trace.SpanKind.CONSUMER
        start_ms = min(at_ms, view.job.started_ms or at_ms)
        span = self._span(f"run {event.queue}", event, context, kind, start_ms, links)
        if view.job.worker:
            span.set_attribute("messaging.consumer.id", view.job.worker)
        if event.type == ev.FAILED:
            error = str((event.data or {}).get("error", ""))
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, error))
        span.end(at_ms * NANOSECONDS_PER_MS)

    def _span(
        self,
        name: str,
        event: Event,
        context: Any,
        kind: Any,
        start_ms: int,
        links: list[Any] | None = None,
    ) -> Any:
        attributes = {
            "messaging.system": "corvo",
            "messaging.destination.name": event.queue,
            "messaging.message.id": render_id(JOB, event.job),
            "corvo.attempt": event.attempt,
        }
        return self._tracer.start_span(
            name,
            context=context,
            kind=kind,
            attributes=attributes,
            links=links,
            start_time=start_ms * NANOSECONDS_PER_MS,
        )

    def _context(self, event: Event) -> tuple[JobView, Any] | None:
        view = self._engine.read.job(event.ns, event.job)
        if view is None or view.spec.trace is None:
            return None
        try:
            members = _decode(view.spec.trace)
        except msgspec.DecodeError:
            return None  # the producer keeps something of its own there
        carrier = {"traceparent": members.traceparent, "tracestate": members.tracestate}
        return view, self._extract(carrier)

    def close(self) -> None:
        """Send what is waiting and stop."""
        self._provider.shutdown()


def make_tracer(engine: Engine) -> Tracer:
    """Build the tracer with the exporter of the standard variables."""
    try:
        sdk: Any = import_module("opentelemetry.sdk.trace")
        export: Any = import_module("opentelemetry.sdk.trace.export")
        exporter: Any = import_module(_EXPORTER)
    except ImportError as error:
        raise ConfigError(
            "OTEL_* variables ask for traces, and OpenTelemetry is not installed",
            hint="pip install 'corvo[otel]', or set OTEL_SDK_DISABLED=true",
        ) from error
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.BatchSpanProcessor(exporter.OTLPSpanExporter()))
    return Tracer(engine, provider)
