"""Trace context: in with the job, out to the worker, and spans only for those who ask."""

import os
import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from corvo.server.config import is_tracing
from corvo.server.tracing import Tracer
from tests.support.process import environment
from tests.support.server import LANES, Server, running

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
REPORT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.mark.parametrize("lane", LANES)
def test_the_context_of_an_enqueue_reaches_the_worker(lane: str):
    """Header, field or both: a document of the producer wins; a chain keeps it."""
    with running(lane) as server:
        server.post("/enqueue", {"queue": "q"}, traceparent=PARENT, tracestate="a=1")
        assert server.fetch()["trace"] == {"traceparent": PARENT, "tracestate": "a=1"}
        server.post("/enqueue", {"queue": "q", "trace": {"mine": 1}}, traceparent=PARENT)
        assert server.fetch()["trace"] == {"mine": 1}
        jobs = [{"queue": "q"}, {"queue": "q", "trace": {"mine": 2}}]
        server.post("/enqueue/batch", {"jobs": jobs}, traceparent=PARENT)
        assert [server.fetch()["trace"] for _ in jobs] == [{"traceparent": PARENT}, {"mine": 2}]


@pytest.mark.parametrize(
    "header", ["", "nonsense", PARENT + "0", "ff" + PARENT[2:], f"00-{'0' * 32}-{'1' * 16}-01"]
)
def test_a_malformed_context_is_ignored(server: Server, header: str):
    """The call is served as if it had none."""
    assert server.post("/enqueue", {"queue": "q"}, traceparent=header).status == 201
    assert server.fetch()["trace"] is None


def test_a_traced_job_is_two_spans_of_its_trace(server: Server):
    """Enqueue and run are children of the producer; the run is linked to the worker's report."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = Tracer(server.engine, provider)
    server.live.observers.append(tracer.observe)
    job = server.post("/enqueue", {"queue": "q"}, traceparent=PARENT).json["job_id"]
    server.enqueue("q")
    server.fetch(worker="w1")
    server.advance(1_500)
    tracer.note_report(job, REPORT)
    server.post(f"/fail/{job}", {"error": "oops"})
    server.wait_until(lambda: len(exporter.get_finished_spans()) == 2)
    enqueue, run = exporter.get_finished_spans()
    tracer.close()
    assert (enqueue.name, run.name) == ("enqueue q", "run q")
    for span in (enqueue, run):
        assert f"{span.context.trace_id:032x}" == TRACE
        assert span.parent is not None
        assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
        assert span.attributes["messaging.message.id"] == job
    assert run.end_time - run.start_time == 1_500 * 1_000_000
    assert f"{run.links[0].context.span_id:016x}" == "00f067aa0ba902b7"
    assert (run.status.description, run.attributes["messaging.consumer.id"]) == ("oops", "w1")


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_the_standard_variables_decide(variables: dict[str, str], wanted: bool):
    """Nothing of our own is needed to turn spans on or off."""
    assert is_tracing(variables) is wanted


def test_nothing_is_imported_when_it_is_off():
    """The server starts without a trace of the SDK."""
    text = "import sys, corvo.server.run; print([m for m in sys.modules if 'opentelemetry' in m])"
    found = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        env=environment() | {"PATH": os.environ["PATH"]},
        check=True,
    )
    assert found.stdout.strip() == "[]"
