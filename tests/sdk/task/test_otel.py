"""Traces through jobs, with the real SDK of OpenTelemetry and a real server."""

import asyncio
from typing import Any

import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from corvo_sdk import Context, Corvo, FetchedJob, Snooze, otel
from tests.support.server import Server

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


def context(app: Corvo, document: bytes | None) -> Context:
    job = FetchedJob(
        job_id="job_1",
        queue="q",
        lease_token=1,
        attempt=2,
        trace=None if document is None else msgspec.Raw(document),
    )
    return Context(job, app.tasks["work"])


def make(provider: TracerProvider) -> Corvo:
    app = Corvo()

    @app.task(queue="q")
    def work() -> None: ...

    app.middleware(otel.middleware(provider))
    return app


def test_an_enqueue_takes_the_current_span_along(
    server: Server, app: Corvo, provider: TracerProvider
) -> None:
    """The job carries the trace of its producer; outside of a span it carries none."""

    @app.task(queue="q")
    def work() -> None: ...

    with provider.get_tracer("test").start_as_current_span("request") as span:
        handle, many = work.enqueue(), work.enqueue_many([work.call()])
    identifier = f"{span.get_span_context().trace_id:032x}"
    for job in (handle, many[0]):
        assert identifier in server.job(job.id)["trace"]["traceparent"]
    assert "trace" not in work.call().options
    assert otel.current_trace() is None


def test_an_attempt_is_a_span_linked_to_the_enqueue(
    provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    """It names queue, job, task and attempt, and handlers run inside of it."""
    app = make(provider)
    inside: list[Any] = []

    async def handler(_: Context) -> int:
        inside.append(trace.get_current_span().get_span_context().span_id)
        return 5

    document = msgspec.json.encode({"traceparent": PARENT})
    assert asyncio.run(app.surround(context(app, document), handler)) == 5
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.kind) == ("run work", trace.SpanKind.CONSUMER)
    assert span.context is not None
    assert [span.context.span_id] == inside
    assert [int("b7ad6b7169203331", 16)] == [link.context.span_id for link in span.links]
    assert span.parent is None
    assert span.attributes is not None
    assert (
        span.attributes["messaging.destination.name"],
        span.attributes["messaging.message.id"],
        span.attributes["corvo.attempt"],
    ) == ("q", "job_1", 2)
    assert span.status.status_code == trace.StatusCode.UNSET


@pytest.mark.parametrize(
    "document", [None, b"{}", b"[]", b'{"traceparent":7}', b'{"traceparent":"x"}', b'"text"']
)
def test_a_trace_that_is_none_makes_no_link(
    provider: TracerProvider, exporter: InMemorySpanExporter, document: bytes | None
) -> None:
    """A producer may send anything as a trace; the attempt runs all the same."""
    app = make(provider)

    async def handler(_: Context) -> None: ...

    asyncio.run(app.surround(context(app, document), handler))
    assert tuple(exporter.get_finished_spans()[0].links) == ()


def test_a_failure_is_recorded_and_a_control_value_is_none(
    provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    """An exception marks the span, a snooze only says its name; both pass through."""
    app = make(provider)

    async def fail(_: Context) -> None:
        raise KeyError("x")

    async def snooze(_: Context) -> None:
        raise Snooze(5)

    async def give_snooze(_: Context) -> Any:
        return Snooze(5)

    with pytest.raises(KeyError):
        asyncio.run(app.surround(context(app, None), fail))
    with pytest.raises(Snooze):
        asyncio.run(app.surround(context(app, None), snooze))
    asyncio.run(app.surround(context(app, None), give_snooze))
    failed, *others = exporter.get_finished_spans()
    assert failed.status.status_code == trace.StatusCode.ERROR
    assert [event.name for event in failed.events] == ["exception"]
    for span in others:
        assert span.status.status_code == trace.StatusCode.UNSET
        assert span.attributes is not None
        assert span.attributes["corvo.control"] == "Snooze"
