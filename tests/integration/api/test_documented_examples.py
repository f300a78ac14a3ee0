"""The examples a newcomer reads first, played in order over a real socket.

Requests are data: what is sent, and what of the answer a reader may rely on. Every operation of the
lists of the core API occurs here once as an example shows it; the finer points of each have their
own tests.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.events import EventReader
from tests.support.process import ServerProcess
from tests.support.server import START_MS, Server
from tests.support.walk import Walk

WELCOME: dict[str, Any] = {
    "queue": "emails.send",
    "payload": {"to": "user@example.com", "template": "welcome"},
    "priority": "normal",
    "unique_key": "send-welcome-user@example.com",
    "unique_period": 3600,
    "max_retries": 5,
    "retry_backoff": "exponential",
    "retry_base_delay": "5s",
    "retry_max_delay": "10m",
    "scheduled_at": None,
    "expire_after": "1h",
    "tags": {"tenant": "acme-corp"},
}
PIPELINE: dict[str, Any] = {
    "queue": "ai.extract",
    "payload": {"document_url": "https://example.com/report.pdf"},
    "chain": {
        "steps": [{"queue": "ai.extract"}, {"queue": "ai.summarize"}, {"queue": "ai.review"}],
        "on_failure": {"queue": "alerts.chain-failed", "payload": {"notify": "ops"}},
        "on_exit": {"queue": "cleanup.finalize"},
    },
}
FETCH = {
    "queues": ["emails.send", "emails.bulk"],
    "worker_id": "worker-abc",
    "hostname": "pod-xyz-123",
    "timeout": 30,
}


def holds(expected: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether an answer has these members; more of them do no harm."""
    return expected.items() <= answer.items()


# --- producers and workers ----------------------------------------------------------------------


def test_a_job_from_enqueue_to_completion(server: Server):
    """Accepted, found again by its unique key, handed out whole, completed with its result."""
    reply = server.post("/enqueue", WELCOME)
    assert reply.status == 201
    assert holds({"status": "pending", "unique_existing": False}, reply.json)
    job = reply.json["job_id"]
    assert job.startswith("job_")
    twin = server.post("/enqueue", WELCOME)
    assert twin.status == 200
    expected = {"job_id": job, "status": "duplicate", "unique_existing": True}
    assert holds(expected, twin.json)
    fetched = server.post("/fetch", FETCH).json
    assert holds(
        {
            "job_id": job,
            "queue": "emails.send",
            "payload": {"to": "user@example.com", "template": "welcome"},
            "attempt": 1,
            "max_retries": 5,
            "lease_duration": 60,
            "checkpoint": None,
            "tags": {"tenant": "acme-corp"},
        },
        fetched,
    )
    result = {"sent": True, "message_id": "msg_123"}
    assert server.post(f"/ack/{job}", {"result": result, "step_status": "continue"}).status == 200
    assert holds({"state": "completed", "result": result}, server.job(job))
    assert server.post("/fetch", FETCH | {"timeout": 0}).status == 204
    # The key is free again.
    assert server.post("/enqueue", WELCOME).status == 201


def test_the_whole_job_object(server: Server):
    """What a reader of a job in its second attempt sees."""
    job = server.post("/enqueue", WELCOME).json["job_id"]
    server.post("/fetch", FETCH)
    failure = {"error": "SMTP connection timeout", "backtrace": "at send_email:42\nat worker:18"}
    failed = server.post(f"/fail/{job}", failure).json
    assert holds({"status": "retrying", "attempts_remaining": 4}, failed)
    assert failed["next_attempt_at"] is not None
    assert server.job(job)["state"] == "retrying"
    server.advance(5_000)
    server.post("/fetch", FETCH)
    progress = {"current": 450, "total": 1000, "message": "Sending batch 450/1000"}
    server.post("/heartbeat", {"jobs": {job: {"progress": progress}}})
    read = server.job(job)
    assert holds(
        {
            "id": job,
            "queue": "emails.send",
            "payload": WELCOME["payload"],
            "state": "active",
            "priority": "normal",
            "attempt": 2,
            "max_retries": 5,
            "retry_backoff": "exponential",
            "retry_base_delay": "5s",
            "retry_max_delay": "10m",
            "completed_at": None,
            "expire_after": "1h",
            "unique_key": WELCOME["unique_key"],
            "unique_period": 3600,
            "batch_id": None,
            "tags": {"tenant": "acme-corp"},
            "progress": progress,
            "checkpoint": None,
            "result": None,
            "worker": {"id": "worker-abc", "hostname": "pod-xyz-123"},
        },
        read,
    )
    assert read["created_at"].endswith("Z")
    (error,) = read["errors"]
    assert holds({"attempt": 1} | failure, error)


def test_a_chain_runs_its_steps_in_order(server: Server):
    """Each step gets the result of the one before; the last is followed by the exit handler."""
    assert server.post("/enqueue", PIPELINE).json["status"] == "pending"
    before = None
    for step, queue in enumerate(("ai.extract", "ai.summarize", "ai.review")):
        job = server.fetch(queue)
        read = server.job(job["job_id"])
        assert read["chain_step"] == step
        if before is not None:
            assert holds({"previous_job_id": before, "previous_result": step - 1}, job["payload"])
        before = job["job_id"]
        server.post(f"/ack/{before}", {"result": step})
    assert server.fetch("cleanup.finalize") is not None
    assert server.fetch("alerts.chain-failed") is None


def test_a_chain_can_be_left_early_or_fail(server: Server):
    """`exit` skips to the exit handler; a dead step runs the failure handler with its context."""
    server.post("/enqueue", PIPELINE)
    server.post(f"/ack/{server.fetch('ai.extract')['job_id']}", {"step_status": "exit"})
    assert server.fetch("ai.summarize") is None
    assert server.fetch("cleanup.finalize") is not None
    server.post("/enqueue", PIPELINE | {"max_retries": 1})
    job = server.fetch("ai.extract")["job_id"]
    server.post(f"/fail/{job}", {"error": "no such document"})
    alarm = server.fetch("alerts.chain-failed")["payload"]
    expected = {"notify": "ops", "failed_job_id": job, "failed_step": 0}
    assert holds(expected | {"error": "no such document"}, alarm)


def test_a_batch_calls_back_when_all_have_ended(server: Server):
    """Succeeded and failed alike; the callback says how many of each."""
    receivers = ("a", "b", "c")
    jobs = [{"queue": "emails.send", "payload": {"to": f"{x}@example.com"}} for x in receivers]
    jobs[2]["max_retries"] = 1
    callback = {"callback_queue": "emails.batch-complete"}
    callback |= {"callback_payload": {"campaign_id": "camp_123"}}
    reply = server.post("/enqueue/batch", {"jobs": jobs, "batch": callback})
    assert reply.status == 201
    assert len(reply.json["job_ids"]) == 3
    assert reply.json["batch_id"].startswith("batch_")
    for _ in range(2):
        assert server.post(f"/ack/{server.fetch('emails.send')['job_id']}").status == 200
    assert server.fetch("emails.batch-complete") is None
    last = server.fetch("emails.send")["job_id"]
    assert server.post(f"/fail/{last}", {"error": "bounced"}).json["status"] == "dead"
    payload = server.fetch("emails.batch-complete")["payload"]
    assert payload["campaign_id"] == "camp_123"
    assert holds({"total": 3, "succeeded": 2, "failed": 1}, payload["batch"])


def test_a_heartbeat_speaks_for_all_jobs_of_a_worker(server: Server):
    """Progress and checkpoint are kept, and a cancelled job is told."""
    jobs = [server.enqueue("emails.send") for _ in range(3)]
    for _ in jobs:
        server.post("/fetch", FETCH)
    cancelled = server.post(f"/jobs/{jobs[2]}/cancel")
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelling")
    progress = {"current": 450, "total": 1000, "message": "Sending batch"}
    body = {
        "jobs": {
            jobs[0]: {},
            jobs[1]: {"progress": progress},
            jobs[2]: {"checkpoint": {"offset": 47000}},
        }
    }
    found = server.post("/heartbeat", body).json["jobs"]
    assert [found[job]["status"] for job in jobs] == ["ok", "ok", "cancel"]
    assert server.job(jobs[1])["progress"] == progress
    server.post(f"/ack/{jobs[2]}")
    assert server.job(jobs[2])["state"] == "cancelled"


def test_a_checkpoint_comes_back_with_the_next_attempt(server: Server):
    """An interrupted job goes on where it was; releasing it burns no attempt."""
    job = server.enqueue("reports.generate")
    server.fetch("reports.generate")
    server.post("/heartbeat", {"jobs": {job: {"checkpoint": {"offset": 47000}}}})
    assert server.post(f"/release/{job}").json["status"] == "pending"
    again = server.fetch("reports.generate")
    assert (again["checkpoint"], again["attempt"]) == ({"offset": 47000}, 1)


# --- rules --------------------------------------------------------------------------------------


def test_priorities_come_in_tiers(server: Server):
    """Critical before high before normal, and first come first served within."""
    order = ("normal", "high", "critical", "normal", "critical")
    jobs = [server.enqueue("emails.send", priority=priority) for priority in order]
    found = [server.fetch("emails.send")["job_id"] for _ in jobs]
    assert found == [jobs[2], jobs[4], jobs[1], jobs[0], jobs[3]]


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        ("none", [0, 0, 0]),
        ("fixed", [5, 5, 5]),
        ("linear", [5, 10, 15]),
        ("exponential", [5, 10, 20]),
    ],
)
def test_pauses_between_attempts(server: Server, backoff: str, delays: list[int]):
    """As the table of strategies has them."""
    more = {"retry_backoff": backoff, "retry_base_delay": "5s", "max_retries": 4}
    job = server.enqueue("emails.send", **more)
    for delay_s in delays:
        assert server.fetch("emails.send")["job_id"] == job
        server.post(f"/fail/{job}", {"error": "again"})
        if delay_s:
            server.advance(delay_s * 1_000 - 1)
            assert server.fetch("emails.send") is None
            server.advance(1)
    assert server.fetch("emails.send")["attempt"] == 4
    assert server.post(f"/fail/{job}", {"error": "last"}).json["status"] == "dead"


def test_a_delayed_job_waits_for_its_time(server: Server):
    """Scheduled until then, pending afterwards."""
    reply = server.post(
        "/enqueue", {"queue": "emails.send", "scheduled_at": "2023-11-15T09:00:00Z"}
    )
    assert reply.json["status"] == "scheduled"
    job = reply.json["job_id"]
    server.advance(1_700_038_800_000 - START_MS - 1)
    assert server.job(job)["state"] == "scheduled"
    server.advance(1)
    assert server.fetch("emails.send")["job_id"] == job


def test_a_schedule_makes_jobs_at_nine_in_new_york(server: Server):
    """Listed, replaced, deleted; and its job carries the payload."""
    cron = {
        "name": "daily-report",
        "queue": "reports.generate",
        "cron": "0 9 * * *",
        "timezone": "America/New_York",
        "payload": {"type": "daily"},
        "unique_key": "daily-report",
    }
    made = server.post("/schedules", cron)
    assert made.status == 201
    assert made.json["next_run_at"] == "2023-11-15T14:00:00.000Z"
    assert [each["name"] for each in server.get("/schedules").json] == ["daily-report"]
    server.advance(1_700_056_800_000 - START_MS)
    assert server.fetch("reports.generate")["payload"] == {"type": "daily"}
    path = f"/api/v1/schedules/{made.json['id']}"
    assert server.request("PUT", path, cron | {"cron": "0 10 * * *"}).status == 200
    assert server.request("DELETE", path).status == 200
    assert server.get("/schedules").json == []


def test_a_job_expires(server: Server):
    """Dead with a reason, past all retries."""
    job = server.enqueue("emails.send", expire_after="1h")
    server.advance(3_600_000)
    read = server.job(job)
    assert (read["state"], read["dead_reason"]) == ("dead", "expired")


def test_cancelling_and_moving_and_retrying_a_job(server: Server):
    """The list of what can be done to one job."""
    job = server.enqueue("emails.send")
    assert server.post(f"/jobs/{job}/cancel").json["status"] == "cancelled"
    assert server.post(f"/jobs/{job}/retry").status == 200
    assert server.post(f"/jobs/{job}/move", {"queue": "emails.legacy"}).status == 200
    assert holds({"state": "pending", "queue": "emails.legacy"}, server.job(job))
    assert server.request("DELETE", f"/api/v1/jobs/{job}").status == 200
    assert server.get(f"/jobs/{job}").status == 404


def test_what_can_be_done_to_a_queue(server: Server):
    """Pause, resume, limits, drain, clear, delete, and the list of queues."""
    server.enqueue("emails.send")
    server.post("/queues/emails.send/pause")
    assert server.fetch("emails.send") is None
    server.post("/queues/emails.send/resume")
    assert server.post("/queues/payments.process/concurrency", {"max": 1}).status == 200
    for _ in range(2):
        server.enqueue("payments.process")
    assert server.fetch("payments.process") is not None
    assert server.fetch("payments.process") is None
    throttle = {"rate": 2, "period": "1m"}
    assert server.post("/queues/emails.send/throttle", throttle).status == 200
    for _ in range(3):
        server.enqueue("emails.send")
    found = [server.fetch("emails.send") is not None for _ in range(4)]
    assert found == [True, True, False, False]
    assert server.request("DELETE", "/api/v1/queues/emails.send/throttle").status == 200
    assert server.fetch("emails.send") is not None
    assert holds({"status": "draining", "active": 3}, server.post("/queues/emails.send/drain").json)
    assert server.post("/queues/emails.send/clear").json["removed"] == 1
    listed = {queue["name"]: queue for queue in server.get("/queues").json}
    assert holds({"pending": 0, "active": 3}, listed["emails.send"])
    path = "/api/v1/queues/emails.send"
    assert server.request("DELETE", path).json["code"] == "CONFIRMATION_REQUIRED"
    assert server.request("DELETE", f"{path}?confirm=true").status == 200


def test_who_works_and_what_happens(server: Server):
    """Workers, cluster, metrics and the stream of events."""
    with EventReader(server.port) as reader:
        server.enqueue("emails.send")
        server.post("/fetch", FETCH)
        assert [event.event for event in reader.events(3)][1:] == ["enqueued", "started"]
    (worker,) = server.get("/workers").json
    assert holds({"id": "worker-abc", "hostname": "pod-xyz-123"}, worker)
    assert server.get("/cluster/status").json["mode"] == "single"
    assert b"corvo_jobs" in server.get("/metrics").body


# --- finding and changing many ------------------------------------------------------------------


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    """A client of a server with its view, whose reads see its writes."""
    with ServerProcess(tmp_path) as process:
        found = Walk(process.port)
        yield found
        found.close()


def kill(walk: Walk, error: str, **fields: Any) -> str:
    """A dead job of worker-abc."""
    body = {"queue": "emails.send", "max_retries": 1} | fields
    job = walk("POST", "/enqueue", body, status=201)["job_id"]
    walk("POST", "/fetch", FETCH)
    walk("POST", "/fail/{id}", {"error": error}, id=job)
    return job


def test_searches_and_bulk_actions(walk: Walk):
    """Search with everything at once, then each of the bulk examples."""
    welcome, tags = {"to": "user@example.com", "template": "welcome"}, {"tenant": "acme-corp"}
    wanted = kill(walk, "SMTP timeout", payload=welcome, tags=tags)
    legacy = kill(walk, "SMTP timeout", payload={"template": "legacy"})
    kill(walk, "bounced", payload=welcome, tags=tags)
    body = {"queue": "emails.send", "payload": welcome, "tags": tags}
    pending = walk("POST", "/enqueue", body, status=201)["job_id"]
    search = {
        "queue": "emails.send",
        "state": ["pending", "dead"],
        "priority": "normal",
        "tags": tags,
        "payload_contains": "user@example.com",
        "payload_jq": '.template == "welcome"',
        "created_after": "2020-02-10T00:00:00Z",
        "created_before": "2100-02-11T23:59:59Z",
        "worker_id": "worker-abc",
        "has_errors": True,
        "error_contains": "SMTP",
        "sort": "created_at",
        "order": "desc",
        "cursor": None,
        "limit": 50,
    }
    found = walk("POST", "/jobs/search", search)
    assert holds({"total": 1, "cursor": None, "has_more": False}, found)
    (job,) = found["jobs"]
    expected = {"id": wanted, "state": "dead", "attempt": 1, "last_error": "SMTP timeout"}
    assert holds(expected | {"payload": welcome, "tags": tags}, job)
    assert len(walk("GET", "/dead")["jobs"]) == 3

    dead = {"queue": "emails.send", "state": ["dead"]}
    move = {"filter": dead | {"payload_jq": '.template == "legacy"'}, "action": "move"}
    moved = walk("POST", "/jobs/bulk", move | {"move_to_queue": "emails.legacy"})
    assert holds({"affected": 1, "errors": 0}, moved)
    assert walk("GET", "/jobs/{id}", id=legacy)["queue"] == "emails.legacy"
    narrow = dead | {"error_contains": "SMTP timeout", "created_after": "2020-02-11T00:00:00Z"}
    assert walk("POST", "/jobs/bulk", {"filter": narrow, "action": "retry"})["affected"] == 1
    assert walk("GET", "/jobs/{id}", id=wanted)["state"] == "pending"
    tagged = {"queue": "emails.send", "state": ["pending"], "tags": tags}
    change = {"filter": tagged, "action": "change_priority", "priority": "critical"}
    changed = walk("POST", "/jobs/bulk", change)
    assert changed["affected"] == 2
    assert walk("GET", "/jobs/{id}", id=pending)["priority"] == "critical"
    named = {"job_ids": [wanted, pending], "action": "cancel"}
    assert walk("POST", "/jobs/bulk", named)["affected"] == 2
    large = walk("POST", "/jobs/bulk", named | {"action": "retry", "async": True}, status=202)
    name = large["bulk_operation_id"]
    assert large["progress_url"] == f"/api/v1/bulk/{name}/progress"
    assert b"event: bulk.completed" in walk("GET", "/bulk/{id}/progress", id=name)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    """A server with one job, that some filters describe."""
    with ServerProcess(tmp_path_factory.mktemp("examples")) as process:
        found = Walk(process.port)
        found("POST", "/enqueue", {"queue": "filters", "unique_key": "k"}, status=201)
        yield found
        found.close()


@pytest.mark.parametrize(
    ("field", "value", "is_found"),
    [
        ("state", ["pending"], True),
        ("unique_key", "k", True),
        ("expire_before", "2100-01-01T00:00:00Z", False),
        ("expire_after", "2020-01-01T00:00:00Z", False),
        ("scheduled_before", "2100-01-01T00:00:00Z", False),
        ("scheduled_after", "2020-01-01T00:00:00Z", False),
        ("started_after", "2020-01-01T00:00:00Z", False),
        ("started_before", "2100-01-01T00:00:00Z", False),
        ("completed_after", "2020-01-01T00:00:00Z", False),
        ("completed_before", "2100-01-01T00:00:00Z", False),
        ("attempt_min", 1, False),
        ("attempt_max", 0, True),
        ("job_id_prefix", "job_", True),
        ("batch_id", "batch_" + "0" * 26, False),
    ],
)
def test_every_filter_of_the_table_exists(examples: Walk, field: str, value: Any, is_found: bool):
    """And filters: a job without the property is not found by it."""
    body = {"queue": "filters", field: value}
    found = examples("POST", "/jobs/search", body, query="strict=true")
    assert bool(found["total"]) is is_found
