"""Bad input: a 4xx naming the field, within limits listed in one place, and nothing written."""

from typing import Any

import msgspec
import pytest

from corvo.model import limits
from tests.support.server import Server

JOB = "job_" + "0" * 26


def nested(depth: int) -> bytes:
    """A document of so many levels."""
    return b"[" * depth + b"]" * depth


RAW: list[tuple[str, bytes, int, str | None]] = [
    ("/enqueue", b"{", 400, None),
    ("/enqueue", b'{"queue":"q",}', 400, "queue"),
    ("/enqueue", b'["q"]', 400, None),
    ("/enqueue", b'{"queue":"q"} {}', 400, None),
    ("/enqueue", b'{"queue":"q","payload":NaN}', 400, "payload"),
    ("/enqueue", b'{"queue":"q","payload":{"a":Infinity}}', 400, "payload.a"),
    ("/enqueue", b'{"queue":"q","payload":"\\ud800"}', 400, "payload"),
    ("/enqueue", b'{"queue":"q","payload":"\xff"}', 400, "payload"),
    ("/enqueue", b'{"queue":"q","tags":{"a":"\\udc00"}}', 400, "tags.a"),
    ("/enqueue", b'{"queue":"q","payload":' + nested(65) + b"}", 400, "payload"),
    ("/enqueue", b'{"queue":"q","payload":' + nested(5_000) + b"}", 400, "payload"),
    ("/enqueue", b'{"queue":"a\\u0000b"}', 400, "queue"),
    ("/fetch", b'{"queues":["q"],"worker_id":"a\\u0000"}', 400, "worker_id"),
    ("/ack/" + JOB, b'{"result":' + nested(65) + b"}", 400, "result"),
    ("/fail/" + JOB, b'{"checkpoint":NaN}', 400, "checkpoint"),
    ("/heartbeat", b'{"jobs":{"a":{"progress":NaN}}}', 400, "jobs.a.progress"),
]

VALUES: list[tuple[str, Any, int, str | None]] = [
    ("/enqueue", {}, 400, "queue"),
    ("/enqueue", {"queue": None}, 400, "queue"),
    ("/enqueue", {"queue": ["q"]}, 400, "queue"),
    ("/enqueue", {"queue": "q" * 300}, 400, "queue"),
    ("/enqueue", {"queue": ""}, 400, "queue"),
    ("/enqueue", {"queue": "q", "priority": "low"}, 400, "priority"),
    ("/enqueue", {"queue": "q", "priority": 1}, 400, "priority"),
    ("/enqueue", {"queue": "q", "retry_backoff": "cubic"}, 400, "retry_backoff"),
    ("/enqueue", {"queue": "q", "max_retries": -1}, 400, "max_retries"),
    ("/enqueue", {"queue": "q", "max_retries": "3"}, 400, "max_retries"),
    ("/enqueue", {"queue": "q", "max_retries": 10**30}, 400, "max_retries"),
    ("/enqueue", {"queue": "q", "retry_base_delay": -5}, 400, "retry_base_delay"),
    ("/enqueue", {"queue": "q", "retry_base_delay": "five"}, 400, "retry_base_delay"),
    ("/enqueue", {"queue": "q", "retry_base_delay": 1.5}, 400, "retry_base_delay"),
    ("/enqueue", {"queue": "q", "retry_jitter": 1.01}, 400, "retry_jitter"),
    ("/enqueue", {"queue": "q", "scheduled_at": "2026-02-11T10:00:00"}, 400, "scheduled_at"),
    ("/enqueue", {"queue": "q", "scheduled_at": 5}, 400, "scheduled_at"),
    ("/enqueue", {"queue": "q", "expire_after": "-1h"}, 400, "expire_after"),
    ("/enqueue", {"queue": "q", "cost": 0}, 400, "cost"),
    ("/enqueue", {"queue": "q", "tags": ["a"]}, 400, "tags"),
    ("/enqueue", {"queue": "q", "tags": {"a": 1}}, 400, "tags[...]"),
    ("/enqueue", {"queue": "q", "payload": "x" * (256 * 1024)}, 413, "payload"),
    ("/enqueue", {"queue": "q", "hold": "yes"}, 400, "hold"),
    ("/enqueue/batch", {}, 400, "jobs"),
    ("/enqueue/batch", {"jobs": []}, 400, "jobs"),
    ("/enqueue/batch", {"jobs": [{"queue": "q"}, 5]}, 400, "jobs[1]"),
    ("/enqueue/batch", {"jobs": [{"queue": "q"}, {"queue": "q", "cost": 0}]}, 400, "jobs[1].cost"),
    ("/enqueue/batch", {"jobs": [{"queue": "q"}] * 100_000}, 400, "jobs"),
    ("/fetch", {"queues": ["q"]}, 400, "worker_id"),
    ("/fetch", {"queues": "q", "worker_id": "w"}, 400, "queues"),
    ("/fetch", {"queues": ["q"], "worker_id": "w", "timeout": 61}, 400, "timeout"),
    ("/fetch/batch", {"queues": ["q"], "worker_id": "w", "count": 513}, 400, "count"),
    ("/ack/" + JOB, {"lease_token": -1}, 400, "lease_token"),
    ("/ack/" + JOB, {"lease_token": 2**53}, 400, "lease_token"),
    ("/ack/" + JOB, {"lease_token": "1"}, 400, "lease_token"),
    ("/ack/" + JOB, {"step_status": "stop"}, 400, "step_status"),
    ("/ack/" + JOB, {"usage": "x" * 5_000}, 413, "usage"),
    ("/ack/batch", {"acks": []}, 400, "acks"),
    ("/ack/batch", {"acks": [{"job_id": JOB}] * 513}, 400, "acks"),
    ("/ack/batch", {"acks": [{"job_id": "nonsense"}]}, 400, "acks[0].job_id"),
    ("/fail/" + JOB, {"retry_after": "-1s"}, 400, "retry_after"),
    ("/fail/" + JOB, {"error": 5}, 400, "error"),
    ("/snooze/" + JOB, {"until": "later"}, 400, "until"),
    ("/heartbeat", {"jobs": []}, 400, "jobs"),
    ("/heartbeat", {"jobs": {JOB: {"progress": "x" * 5_000}}}, 413, f"jobs.{JOB}.progress"),
    ("/jobs/bulk-get", {"job_ids": []}, 400, "job_ids"),
    ("/jobs/bulk-get", {"job_ids": [JOB] * 1_001}, 400, "job_ids"),
    ("/jobs/" + JOB + "/move", {}, 400, "queue"),
    ("/jobs/" + JOB + "/move", {"queue": "a b"}, 400, "queue"),
    ("/jobs/" + JOB + "/priority", {"priority": "low"}, 400, "priority"),
    ("/jobs/" + JOB + "/hold", {"timeout_action": "explode"}, 400, "timeout_action"),
    ("/queues/a%00b/pause", None, 400, "name"),
    ("/queues/" + "q" * 300 + "/pause", None, 400, "name"),
    ("/queues/q/throttle", {"rate": 5}, 400, "period"),
    ("/queues/q/concurrency", {"max": -5}, 400, "max"),
]


@pytest.mark.parametrize("cases", [RAW, VALUES], ids=["bytes", "values"])
def test_bad_input_is_refused_by_field_and_writes_nothing(
    server: Server, cases: list[tuple[str, Any, int, str | None]]
):
    """Every case: its status, its field, an envelope with a sentence, and an index that stays."""
    for path, body, status, field in cases:
        before = server.index
        reply = server.post(path, body)
        seen = (path, body if len(str(body)) < 200 else "...", reply.status, reply.body[:300])
        assert reply.status == status, seen
        assert reply.json.get("field") == field, seen
        assert reply.json["error"], seen
        assert reply.json["code"].isupper(), seen
        assert server.index == before, seen
    assert server.get("/queues").json == []


def test_a_body_over_the_limit_of_its_route_is_413(server: Server):
    """10 MiB is too much for enqueue, and not for enqueue/batch; 17 MiB is too much for both."""
    blank = b" " * (10 * 1024 * 1024)
    for path, body in (
        ("/enqueue", blank),
        ("/queues/q/pause", blank),
        ("/enqueue/batch", b" " * (limits.BATCH_BODY_BYTES_MAX + 1)),
    ):
        before = server.index
        try:
            reply = server.post(path, body)
        except (BrokenPipeError, ConnectionResetError):
            # The server may refuse and stop reading before a client has sent all of it.
            server.close_connection()
            continue
        assert (reply.status, reply.json["code"]) == (413, "PAYLOAD_TOO_LARGE")
        assert server.index == before
        server.close_connection()
    jobs = [{"queue": "q", "payload": "x" * 200_000}] * 50
    body = msgspec.json.encode({"jobs": jobs})
    assert len(body) > 9 * 1024 * 1024
    assert server.post("/enqueue/batch", body).status == 201
