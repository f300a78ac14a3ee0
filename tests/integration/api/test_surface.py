"""Routes about the server, and what every route has in common."""

import socket

import pytest

from corvo.api.app import build
from corvo.errors import OverloadedError
from tests.support.server import Server


def test_the_probes_answer(server: Server):
    """Health and liveness are found with and without the prefix."""
    for prefix in ("", "/api/v1"):
        health = server.request("GET", prefix + "/healthz")
        assert (health.status, health.json["status"]) == (200, "ok")
        assert server.request("GET", prefix + "/livez").json == {"status": "ok"}


def test_a_draining_server_takes_results_but_no_work(server: Server):
    """503 DRAINING with Retry-After for enqueue and fetch; ack and heartbeat go on; 503 healthz."""
    identifier = server.enqueue()
    server.fetch()
    server.run(server.engine.drain)
    assert server.request("GET", "/healthz").json["status"] == "draining"
    assert server.request("GET", "/healthz").status == 503
    for path, body in (
        ("/enqueue", {"queue": "q"}),
        ("/enqueue/batch", {"jobs": [{"queue": "q"}]}),
        ("/fetch", {"queues": ["q"], "worker_id": "w"}),
    ):
        reply = server.post(path, body)
        assert (reply.status, reply.json["code"]) == (503, "DRAINING"), path
        assert int(reply.headers["retry-after"]) >= 1
    assert server.post("/heartbeat", {"jobs": {identifier: {}}}).status == 200
    assert server.post(f"/ack/{identifier}").status == 200


def test_the_server_describes_itself(server: Server):
    """Version, features, and the figures of the pipeline."""
    info = server.get("/info").json
    assert info["api_version"] == "v1"
    assert {"chains", "unique", "why"} <= set(info["features"])
    server.enqueue()
    status = server.get("/cluster/status").json
    assert (status["mode"], status["index"]) == ("single", server.index)
    for name in ("queue_time", "apply_time"):
        assert {"p50", "p90", "p99"} <= {key.split("_")[0] for key in status[name]}, status[name]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/api/v1/enqueue", "POST"),
        ("PUT", "/api/v1/ack/job_x", "POST"),
        ("POST", "/api/v1/queues", "GET, HEAD"),
        ("GET", "/api/v1/queues/q/pause", "POST"),
        ("POST", "/api/v1/queues/q", "DELETE, GET, HEAD, PATCH"),
        ("POST", "/api/v1/limits/x", "DELETE, GET, HEAD, PUT"),
        ("PUT", "/api/v1/queues/q/throttle", "DELETE, POST"),
        ("POST", "/api/v1/jobs/job_x", "DELETE, GET, HEAD"),
        ("OPTIONS", "/api/v1/enqueue", "POST"),
    ],
)
def test_another_method_is_405_with_all_that_are_allowed(
    server: Server, method: str, path: str, allowed: str
):
    """The Allow header names every method of the path."""
    reply = server.request(method, path)
    assert (reply.status, reply.json["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert reply.headers["allow"] == allowed


def test_an_unknown_route_is_404_json(server: Server):
    """Also below known prefixes, and with a slash too many."""
    for path in ("/", "/nope", "/api/v1", "/api/v2/enqueue", "/api/v1/enqueue/", "/api/v1/jobs"):
        reply = server.request("GET", path)
        assert (reply.status, reply.json["code"]) == (404, "NOT_FOUND"), path
        assert reply.headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", ["/enqueue", "/ack/job_x", "/queues/q/pause", "/jobs/bulk-get"])
def test_a_body_that_is_not_declared_as_json_is_415(server: Server, path: str):
    """A web page of another origin cannot send JSON without asking, so it cannot enqueue."""
    before = server.index
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        reply = server.post(path, b'{"queue":"q"}', content_type=kind)
        assert (reply.status, reply.json["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert server.index == before
    with_charset = "application/json; charset=utf-8"
    assert server.post(path, b"{}", content_type=with_charset).status != 415


def test_every_answer_of_a_handler_carries_the_index(server: Server):
    """Reads, writes and refusals; a write has the same index in its body."""
    write = server.post("/enqueue", {"queue": "q"})
    assert write.json["index"] == write.index == server.index
    pause = server.post("/queues/q/pause")
    assert pause.json["index"] == pause.index == write.index + 1
    for reply in (
        server.get("/queues"),
        server.get("/jobs/nonsense"),
        server.request("GET", "/nope"),
        server.post("/enqueue", {}),
        server.post("/ack/nonsense"),
    ):
        assert reply.index == server.index


TARGETS = [
    b"/api/v1/queues/\xc3\xa9",
    b"/api/v1/queues/%ff",
    b"/api/v1/queues/%",
    b"/api/v1/ack/%ed%a0%80",
    b"/api/v1/ack/\xff",
    b"/api/v1/ack/a/b",
    b"/api/v1/ack/%2e%2e",
    b"/api/v1/ack/x#fragment",
    b"//api/v1/queues",
    b"/api/v1/queues/..%2f..",
    b"http://x/api/v1/queues",
    b"/api/v1/queues?\xff=\x80",
    b"/api/v1/queues/q?confirm=%ff",
    b"*",
]


def test_strange_targets_are_answered_like_any_other(server: Server):
    """No spelling of a path makes a 500 or hangs."""
    for target in TARGETS:
        for method in (b"GET", b"POST", b"DELETE"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
                connection.sendall(b"%b %b HTTP/1.1\r\nhost: x\r\n\r\n" % (method, target))
                status = int(connection.makefile("rb").readline().split()[1])
            assert status < 500, (method, target)


def test_there_is_no_cors(server: Server):
    """No header invites other origins."""
    reply = server.request("GET", "/healthz", headers={"origin": "https://evil.example"})
    assert not [name for name in reply.headers if name.startswith("access-control")]


def test_a_failing_handler_is_500_with_a_request_id(server: Server):
    """A bug is reported once under the id the client is told, in both lanes and on slow routes."""
    surface = build(server.engine)
    assert surface.hot.keys() >= {"/api/v1/enqueue", "/api/v1/ack/{id}"}
    original = server.engine.workers.observe_fetch

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    server.engine.workers.observe_fetch = broken  # type: ignore[method-assign]
    reply = server.post("/fetch", {"queues": ["q"], "worker_id": "w"})
    server.engine.workers.observe_fetch = original  # type: ignore[method-assign]
    assert (reply.status, reply.json["code"]) == (500, "INTERNAL_ERROR")
    (error, request_id) = server.reports.pop()
    assert isinstance(error, ZeroDivisionError)
    assert reply.json["request_id"] == request_id
    assert server.get("/queues").status == 200


def test_an_overloaded_server_says_when_to_come_back(server: Server):
    """429 has an integer Retry-After and the finer figure in the body, on hot and slow routes."""
    original = server.engine.submit

    def full(*_: object) -> None:
        message = "too much is pending"
        raise OverloadedError(message, retry_after_ms=1_250)

    server.engine.submit = full  # type: ignore[method-assign]
    replies = [server.post("/enqueue", {"queue": "q"}), server.post("/queues/q/pause")]
    server.engine.submit = original  # type: ignore[method-assign]
    for reply in replies:
        assert (reply.status, reply.json["code"]) == (429, "OVERLOADED")
        assert (reply.headers["retry-after"], reply.json["retry_after_ms"]) == ("2", 1_250)
