"""Every operation of the description, asked for something sensible, answers as described.

A fuzzer beside this finds what nobody thought of; here each operation is called the way a person
would, by a server with its view process, so that answers are full: jobs with errors and chains,
batches with callbacks, searches that find something.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corvo.api.openapi.catalog import CATALOG
from tests.support.events import EventReader
from tests.support.process import ServerProcess
from tests.support.receiver import Receiver, receiving
from tests.support.walk import Walk

LINES = {"content-type": "application/x-ndjson"}
NOBODY = "job_" + "0" * 26
WORKER = {"queues": ["mail"], "worker_id": "w1", "timeout": 0}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server with everything on."""
    with ServerProcess(tmp_path, "--webhook-allow", "127.0.0.0/8") as found:
        yield found


def enqueue(walk: Walk, **fields: Any) -> str:
    """Enqueue a job and return its id."""
    return walk("POST", "/enqueue", {"queue": "mail"} | fields, status=201)["job_id"]


def fetch(walk: Walk, *queues: str) -> Any:
    """Fetch a job that is there."""
    return walk("POST", "/fetch", WORKER | {"queues": queues or ["mail"], "timeout": 5})


def make_dead(walk: Walk, **fields: Any) -> str:
    """A job that failed for good."""
    job = enqueue(walk, max_retries=1, **fields)
    assert fetch(walk)["job_id"] == job
    walk("POST", "/fail/{id}", {"error": "no luck", "backtrace": "line 1"}, id=job)
    return job


def walk_producing_and_working(walk: Walk):
    """The way of a job, with everything a job can have."""
    first = enqueue(walk, payload={"n": 1}, unique_key="k", tags={"a": "b"}, expire_after="1h")
    twin = walk("POST", "/enqueue", {"queue": "mail", "unique_key": "k"})
    assert (twin["status"], twin["job_id"]) == ("duplicate", first)
    steps = [{"queue": "one"}, {"queue": "two"}]
    enqueue(walk, queue="one", chain={"steps": steps, "on_exit": {"queue": "three"}})
    members = [{"queue": "mail"}, {"queue": "mail", "depends_on": ["#0"]}]
    batch = {"callback_queue": "done", "callback_payload": {"x": 1}}
    made = walk("POST", "/enqueue/batch", {"jobs": members, "batch": batch}, status=201)
    assert walk("GET", "/batches/{id}", id=made["batch_id"])["pending"] == 2
    fetched = fetch(walk)
    beat = {"lease_token": fetched["lease_token"], "progress": {"current": 1, "total": 2}}
    beat |= {"checkpoint": {"at": 1}}
    walk("POST", "/heartbeat", {"worker_id": "w1", "jobs": {first: beat, NOBODY: {}}})
    walk("POST", "/ack/{id}", {"result": {"ok": True}}, id=first)
    walk("POST", "/ack/{id}", {"result": 1}, id=fetch(walk, "one")["job_id"])
    several = walk("POST", "/fetch/batch", WORKER | {"count": 2})
    acks = [{"job_id": job["job_id"]} for job in several["jobs"]]
    walk("POST", "/ack/batch", {"acks": [*acks, {"job_id": NOBODY}]})
    other = fetch(walk)["job_id"]
    walk("POST", "/release/{id}", {"checkpoint": {"n": 1}}, id=other)
    walk("POST", "/snooze/{id}", {"delay": "1h"}, id=fetch(walk)["job_id"])
    failing = enqueue(walk, retry_base_delay="1h")
    fetch(walk)
    again = walk("POST", "/fail/{id}", {"error": "oops"}, id=failing)
    assert again["status"] == "retrying"
    walk("POST", "/fetch", WORKER | {"queues": ["empty"]}, status=204)


def walk_changing_jobs(walk: Walk):
    """Each change of one job, and each way to read it."""
    job = enqueue(walk, payload={"who": "ann"})
    walk("POST", "/jobs/{id}/hold", {"reason": "look", "timeout": "1d"}, id=job)
    walk("POST", "/jobs/{id}/approve", {"by": "bob"}, id=job)
    walk("POST", "/jobs/{id}/priority", {"priority": "high"}, id=job)
    walk("PUT", "/jobs/{id}/priority", {"priority": "normal"}, id=job)
    walk("POST", "/jobs/{id}/move", {"queue": "aside"}, id=job)
    walk("GET", "/jobs/{id}/why", id=job)
    walk("POST", "/jobs/{id}/hold", id=job)
    walk("POST", "/jobs/{id}/reject", {"reason": "no"}, id=job)
    walk("POST", "/jobs/{id}/requeue", id=job)
    walk("POST", "/jobs/{id}/cancel", id=job)
    walk("POST", "/jobs/{id}/retry", id=job)
    walk("GET", "/jobs/{id}", id=job)
    copy = walk("POST", "/jobs/{id}/clone", {"overrides": {"queue": "mail"}}, status=201, id=job)
    assert walk("POST", "/jobs/bulk-get", {"job_ids": [job, NOBODY]})["missing"] == [NOBODY]
    walk("GET", "/jobs/{id}/wait", query="timeout=0", status=204, id=job)
    walk("DELETE", "/jobs/{id}", id=job)
    walk("POST", "/jobs/{id}/cancel", id=copy["job_id"])
    walk("GET", "/jobs/{id}/wait", id=copy["job_id"])
    timeline = walk("GET", "/jobs/{id}/events", id=copy["job_id"])
    assert [event["type"] for event in timeline["events"]] == ["enqueued", "cancelled"]


def walk_queues_and_limits(walk: Walk):
    """Each operation on a queue and on a limit."""
    settings = {"max_concurrency": 5, "rate": {"rate": 10, "period": "1s"}, "weights": {"a": 2}}
    walk("PATCH", "/queues/{name}", settings, name="video")
    for action in ("pause", "resume", "drain", "clear"):
        walk("POST", f"/queues/{{name}}/{action}", name="video")
    walk("POST", "/queues/{name}/concurrency", {"max": 3}, name="video")
    walk("POST", "/queues/{name}/throttle", {"rate": 5, "period": "1m"}, name="video")
    walk("DELETE", "/queues/{name}/throttle", name="video")
    walk("GET", "/queues/{name}", name="video")
    assert len(walk("GET", "/queues")) >= 2
    walk("DELETE", "/queues/{name}", query="confirm=true", name="video")
    walk("PUT", "/limits/{name}", {"max": 3, "rate": 5, "period": "1s"}, name="api")
    walk("GET", "/limits/{name}", name="api")
    assert len(walk("GET", "/limits")) == 1
    walk("DELETE", "/limits/{name}", name="api")


def walk_finding(walk: Walk):
    """Each search finds something."""
    dead = make_dead(walk, payload={"to": "ann@example.com"}, tags={"t": "x"}, group="g")
    child = enqueue(walk, parent_id=dead, depends_on=[enqueue(walk, hold=True)])
    found = walk("POST", "/jobs/search", {"state": ["dead"], "payload_jq": '.to | startswith("a")'})
    assert dead in [job["id"] for job in found["jobs"]]
    page = walk("POST", "/jobs/search", {"limit": 1})
    assert page["has_more"]
    assert walk("GET", "/dead")["jobs"]
    assert walk("GET", "/dead/groups")["groups"]
    assert walk("GET", "/search/fulltext", query="q=example")["results"][0]["id"] == dead
    assert len(walk("GET", "/jobs/{id}/graph", id=child)["edges"]) == 2
    assert walk("GET", "/batches")["batches"]
    assert walk("GET", "/stats/storage")["queues"]


def walk_bulk(walk: Walk):
    """An operation from its dry run to its undo."""
    jobs = [enqueue(walk, queue="bulk") for _ in range(3)]
    body: dict[str, Any] = {"action": "cancel", "filter": {"queue": "bulk"}}
    assert walk("POST", "/jobs/bulk", body | {"dry_run": True})["sample"]
    done = walk("POST", "/jobs/bulk", body)["bulk_operation_id"]
    assert walk("GET", "/bulk/{id}", id=done)["affected"] == 3
    assert walk("GET", "/bulk")["operations"][0]["id"] == done
    walk("POST", "/bulk/{id}/undo", id=done)
    named = {"action": "hold", "job_ids": jobs, "async": True}
    accepted = walk("POST", "/jobs/bulk", named, status=202)
    assert b"bulk.completed" in walk("GET", "/bulk/{id}/progress", id=accepted["bulk_operation_id"])
    walk("POST", "/bulk/{id}/abort", status=409, id=done)


def walk_schedules(walk: Walk):
    """A schedule from its preview to its end."""
    cron = {"name": "daily", "queue": "cron", "cron": "0 9 * * *", "payload": {"n": 1}}
    walk("POST", "/schedules/preview", {"cron": "*/5 * * * *", "timezone": "Europe/Berlin"})
    made = walk("POST", "/schedules", cron, status=201)["id"]
    walk("PUT", "/schedules/{id}", cron | {"jitter": "5s", "unique_key": "k"}, id=made)
    walk("POST", "/schedules/{id}/pause", id=made)
    walk("POST", "/schedules/{id}/resume", id=made)
    walk("POST", "/schedules/{id}/run", status=201, id=made)
    span = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    walk("POST", "/schedules/{id}/backfill", span, id=made)
    assert len(walk("GET", "/schedules/{id}/preview", query="count=3", id=made)["runs"]) == 3
    walk("GET", "/schedules/{id}", id="daily")
    assert len(walk("GET", "/schedules")) == 1
    walk("DELETE", "/schedules/{id}", id=made)


def walk_webhooks(walk: Walk, receiver: Receiver):
    """A webhook that fails, and what is left of it; and one that comes in."""
    receiver.status = 500
    made = walk("POST", "/webhooks", {"url": receiver.url, "retry_limit": 0}, status=201)["id"]
    body = {"url": receiver.url, "events": ["enqueued"], "retry_limit": 0, "secret": "s"}
    walk("PUT", "/webhooks/{id}", body, id=made)
    assert walk("POST", "/webhooks/{id}/test", id=made)["status"] == "failed"
    incoming = {"content-type": "text/plain"}
    walk("POST", "/webhooks/{name}", b"hello", status=201, headers=incoming, name="inbox")
    # The test, and the event of the job that came in.
    receiver.wait_until(lambda: "enqueued" in receiver.types)
    letters: list[Any] = []
    for _ in range(5_000):
        letters = walk("GET", "/webhooks/{id}/dead-letters", id=made)["dead_letters"]
        if letters:
            break
    receiver.status = 200
    again = "/webhooks/{id}/deliveries/{delivery}/redeliver"
    sent = walk("POST", again, id=made, delivery=letters[0]["id"])
    assert sent["status"] == "delivered"
    assert len(walk("GET", "/webhooks/{id}/deliveries", id=made)["deliveries"]) >= 2
    walk("GET", "/webhooks/{id}", id=made)
    assert len(walk("GET", "/webhooks")) == 1
    walk("DELETE", "/webhooks/{id}", id=made)


def walk_events_and_figures(walk: Walk, server: ServerProcess):
    """What happened, in all its forms."""
    assert walk("GET", "/cluster/events", query="limit=5")["events"]
    assert len(walk("GET", "/metrics/throughput", query="queue=mail")["minutes"]) == 60
    assert b"corvo_jobs" in walk("GET", "/metrics")
    with EventReader(server.port, "?type=enqueued", last=0) as reader:
        assert reader.event().data.keys() == {"seq", "type", "at", "job_id", "queue", "data"}
        walk.check("GET", "/api/v1/events", reader.response, b"")


def walk_the_server_itself(walk: Walk):
    """Health, description, workers, backup, export, import, rebuild."""
    for path in ("/healthz", "/livez", "/openapi.json"):
        walk("GET", path)
    for path in ("/docs", "/docs/page.js", "/docs/page.css"):
        walk("GET", path)
    assert walk("GET", "/info")["features"]
    assert walk("GET", "/workers")
    walk("GET", "/cluster/status")
    assert walk("POST", "/admin/backup").startswith(b"manifest.json")
    lines = walk("GET", "/admin/export")
    answer = walk("POST", "/admin/import", lines, headers=LINES)
    assert {each["code"] for each in answer["refused"]} == {"ALREADY_EXISTS"}
    assert walk("GET", "/admin/view")["position"] > 0
    walk("POST", "/admin/rebuild-sqlite", status=202)
    walk("GET", "/admin/rebuild-sqlite")


def test_every_operation_answers_as_described(server: ServerProcess):
    """All of them, none left out. To repair: call a new operation in one of the walks above."""
    walk = Walk(server.port)
    walk_producing_and_working(walk)
    walk_changing_jobs(walk)
    walk_queues_and_limits(walk)
    walk_finding(walk)
    walk_bulk(walk)
    walk_schedules(walk)
    with receiving() as receiver:
        walk_webhooks(walk, receiver)
    walk_events_and_figures(walk, server)
    walk_the_server_itself(walk)
    walk.close()
    described = {(item.method, item.path) for item in CATALOG}
    # The same handlers answer below the prefix.
    twins = {("GET", f"/api/v1{path}") for path in ("/healthz", "/livez", "/openapi.json")}
    assert sorted(described - walk.walked - twins) == []


def test_the_walk_notices_what_is_not_described(server: ServerProcess):
    """With a member taken out of the description, the answer that has it fails."""
    other = Walk(server.port)
    described = other.document["components"]["schemas"]["Info"]
    del described["properties"]["features"]
    described["required"].remove("features")
    with pytest.raises(AssertionError, match="features"):
        other("GET", "/info")
    other.close()
