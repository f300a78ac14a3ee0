"""`POST /webhooks/{queue}`: whatever somebody sends becomes a job."""

from collections.abc import Iterator
from typing import Any

import pytest

from corvo.model import limits
from corvo.webhooks import sign
from tests.support.server import START_MS, Reply, Server, running

NOW_S = START_MS // 1_000


@pytest.fixture
def server() -> Iterator[Server]:
    """A server whose clock stands still."""
    with running("slow") as found:
        yield found


def send(server: Server, path: str, body: bytes = b"", **headers: str) -> Reply:
    """Post bytes as another service would."""
    sent = {"content-type": "application/x-anything"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return server.request("POST", f"/api/v1/webhooks/{path}", body, headers=sent)


def payload_of(server: Server, reply: Reply) -> Any:
    """The payload of the job that was made."""
    assert reply.status == 201, reply.body
    return server.job(reply.json["job_id"])["payload"]


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        (b"", {}),
        (b" \n", {}),
        (b'{"a": 1}', {"a": 1}),
        (b" [1, 2] \n", [1, 2]),
        (b"null", None),
        (b"12", 12),
        (b"a=1&b=2", "a=1&b=2"),
        (b'{"a": ', '{"a": '),
        (b"NaN", "NaN"),
        (b"<xml/>", "<xml/>"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'"\xff"', '"\ufffd"'),
        (b"caf\xc3\xa9", "caf\u00e9"),
    ],
)
def test_body_becomes_the_payload(server: Server, body: bytes, payload: Any):
    """JSON stays JSON, nothing is an empty object, anything else is a string."""
    assert payload_of(server, send(server, "hooks.in", body)) == payload


def test_query_sets_options_of_the_job(server: Server):
    """Priority, tags, retries, unique key and time come in the query."""
    query = "priority=high&unique_key=k&max_retries=7&tags=a:1,b:x:y"
    query += "&scheduled_at=2030-01-01T00:00:00Z"
    reply = send(server, f"team/in?{query}", b"{}")
    job = server.job(reply.json["job_id"])
    assert (job["queue"], job["priority"], job["max_retries"]) == ("team/in", "high", 7)
    assert (job["tags"], job["state"]) == ({"a": "1", "b": "x:y"}, "scheduled")
    again = send(server, f"team/in?{query}", b"{}")
    assert (again.status, again.json["status"]) == (200, "duplicate")


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("q?priority=urgent", "priority"),
        ("q?max_retries=many", "max_retries"),
        ("q?max_retries=1001", "max_retries"),
        ("q?scheduled_at=tomorrow", "scheduled_at"),
        ("q?tags=nonsense", "tags"),
        ("q?tags=:x", "tags"),
        ("q?unique_key=", "unique_key"),
        ("q?strict=true&other=1", "other"),
        ("a%20b", "queue"),
        ("wh_mine", None),
    ],
)
def test_bad_parameter_is_refused_with_its_name(server: Server, path: str, field: str | None):
    """A wrong option is a 400 that names it; names of outgoing webhooks are no queues."""
    reply = send(server, path, b"{}")
    assert reply.status == (405 if field is None else 400)
    assert reply.json.get("field") == field


def test_route_beside_an_outgoing_one_is_still_a_queue(server: Server):
    """A queue may be called like an action; only ids are special."""
    for path in ("a/test", "a/deliveries", "b/deliveries/c/redeliver", "a/dead-letters"):
        job = server.job(send(server, path, b"{}").json["job_id"])
        assert job["queue"] == path
    assert server.get("/webhooks/a/test").status == 405


def test_payload_limit_holds(server: Server):
    """What would be too large for enqueue is too large here; so is a body over 4 MiB."""
    for size in (limits.PAYLOAD_BYTES_MAX + 1, limits.BODY_BYTES_MAX + 1):
        reply = send(server, "q", b"x" * size)
        assert (reply.status, reply.json["code"]) == (413, "PAYLOAD_TOO_LARGE")
        server.close_connection()
    deep = b"[" * 100 + b"]" * 100
    assert send(server, "q", deep).status == 400


def test_same_key_enqueues_once(server: Server):
    """A service that sends again after a lost answer sends its Idempotency-Key again."""
    first = send(server, "q", b"hello", idempotency_key="d1")
    again = send(server, "q", b"hello", idempotency_key="d1")
    assert first.json["job_id"] == again.json["job_id"]
    assert again.headers["idempotent-replayed"] == "true"


def test_web_page_can_not_enqueue(server: Server):
    """A form or a script on some page sends an Origin and no JSON type: refused."""
    for headers in ({"origin": "https://evil.example"}, {"sec_fetch_site": "cross-site"}):
        reply = send(server, "q", b"{}", content_type="text/plain", **headers)
        assert (reply.status, reply.json["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
        reply = send(server, "q", b"", content_type="text/plain", **headers)
        assert reply.status == 415
    assert server.get("/queues/q").status == 404


def sealed(server: Server, queue: str = "safe") -> None:
    """Give a queue a secret."""
    reply = server.request("PATCH", f"/api/v1/queues/{queue}", {"webhook_secret": "hush"})
    assert reply.status == 200


def test_signed_request_is_accepted(server: Server):
    """The signature is made of time and body, as for outgoing ones."""
    sealed(server)
    body = b'{"paid": true}'
    timestamp = str(NOW_S - 299)
    signature = sign("hush", timestamp, body)
    reply = send(server, "safe", body, x_corvo_timestamp=timestamp, x_corvo_signature=signature)
    assert payload_of(server, reply) == {"paid": True}


@pytest.mark.parametrize(
    ("timestamp", "signature"),
    [
        ("", ""),
        (str(NOW_S), ""),
        ("", sign("hush", str(NOW_S), b"{}")),
        (str(NOW_S), sign("wrong", str(NOW_S), b"{}")),
        (str(NOW_S), sign("hush", str(NOW_S), b"{ }")),
        (str(NOW_S), sign("hush", str(NOW_S + 1), b"{}")),
        (str(NOW_S), sign("hush", str(NOW_S), b"{}").upper()),
        (str(NOW_S), "sha256=\xe9"),
        (str(NOW_S - 301), sign("hush", str(NOW_S - 301), b"{}")),
        (str(NOW_S + 301), sign("hush", str(NOW_S + 301), b"{}")),
        ("soon", sign("hush", "soon", b"{}")),
        ("9" * 400, sign("hush", "9" * 400, b"{}")),
    ],
)
def test_request_without_proof_is_refused(server: Server, timestamp: str, signature: str):
    """Missing, forged, for another body, or too old: 401 and no job."""
    sealed(server)
    headers = {"x_corvo_timestamp": timestamp, "x_corvo_signature": signature}
    reply = send(server, "safe", b"{}", **{name: text for name, text in headers.items() if text})
    assert (reply.status, reply.json["code"]) == (401, "SIGNATURE_INVALID")
    assert server.get("/queues/safe").json["pending"] == 0
