"""Spans on the wire: a real server, the real exporter, a collector that decodes what it gets."""

import gzip
import json
import urllib.request
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.support.process import ServerProcess
from tests.support.receiver import Got, Receiver, receiving

_REASON = "the extra `otel` is not installed (requirements-otel.lock)"
pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter", reason=_REASON)
service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
REPORT = "00f067aa0ba902b7"


def decode(got: Got) -> Any:
    """The request of an exporter, whichever way it was packed."""
    body = got.body
    match got.headers.get("content-encoding", ""):
        case "gzip":
            body = gzip.decompress(body)
        case "deflate":
            body = zlib.decompress(body)
        case _:
            pass
    request = service.ExportTraceServiceRequest()
    request.ParseFromString(body)
    return request


def call(url: str, body: dict[str, Any], **headers: str) -> Any:
    """Post something as a program with a trace would."""
    sent = {"content-type": "application/json"} | headers
    request = urllib.request.Request(url, json.dumps(body).encode(), sent)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def attributes(owner: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    found: dict[str, Any] = {}
    for each in owner.attributes:
        kind = each.value.WhichOneof("value")
        found[each.key] = getattr(each.value, kind)
    return found


def run_job(server: ServerProcess) -> str:
    """Enqueue, fetch and complete a job, each call within the same trace."""
    base = f"{server.url}/api/v1"
    parent = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    job = call(f"{base}/enqueue", {"queue": "mail"}, **parent)["job_id"]
    call(f"{base}/enqueue", {"queue": "mail"})  # without a trace: no span
    fetched = call(f"{base}/fetch", {"queues": ["mail"], "worker_id": "w1", "timeout": 5})
    assert fetched["job_id"] == job
    assert fetched["trace"]["traceparent"] == parent["traceparent"]
    token = {"lease_token": fetched["lease_token"]}
    call(f"{base}/ack/{job}", token, traceparent=f"00-{TRACE}-{REPORT}-01")
    return job


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_collector_gets_the_spans_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str
):
    """Enqueue and run arrive as children of the producer's span, linked to the report."""
    with receiving() as collector:
        start = collector.url.partition("/hook")[0]
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", start)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", compression)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=acme")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "corvo-under-test")
        with ServerProcess(tmp_path, "--view", "off") as server:
            job = run_job(server)
            # What waits is sent at the end: nothing of a traced job is lost by a restart.
            assert server.stop() == 0
        spans, resource = collect(collector)
    assert sorted(spans) == ["enqueue mail", "run mail"]
    assert resource["service.name"] == "corvo-under-test"
    for span in spans.values():
        assert span.trace_id.hex() == TRACE
        assert span.parent_span_id.hex() == PARENT
        assert attributes(span)["messaging.message.id"] == job
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
    run = spans["run mail"]
    assert attributes(run)["messaging.consumer.id"] == "w1"
    assert [link.span_id.hex() for link in run.links] == [REPORT]
    assert (spans["enqueue mail"].kind, run.kind) == (4, 5)  # producer, consumer


def collect(collector: Receiver) -> tuple[dict[str, Any], dict[str, Any]]:
    """Spans by name, and the resource they name; the requests are what the protocol asks for."""
    spans: dict[str, Any] = {}
    resource: dict[str, Any] = {}
    for got in collector.requests:
        assert got.path == "/v1/traces"
        assert got.headers["content-type"] == "application/x-protobuf"
        assert got.headers["x-tenant"] == "acme"
        for batch in decode(got).resource_spans:
            resource |= attributes(batch.resource)
            for scope in batch.scope_spans:
                assert scope.scope.name == "corvo"
                spans |= {span.name: span for span in scope.spans}
    return spans, resource


def test_collector_that_is_away_harms_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Jobs are served and the server stops in time, whatever becomes of the spans."""
    with receiving() as collector:
        start = collector.url.partition("/hook")[0]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", start)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with ServerProcess(tmp_path, "--view", "off") as server:
        run_job(server)
        assert server.stop() == 0
