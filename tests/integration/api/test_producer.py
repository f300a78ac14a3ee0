"""What a producer can say: enqueue, enqueue/batch, unique, chain, dependencies, idempotency."""

import pytest

from tests.support.server import START_MS, Server

FULL = {
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


def test_the_full_example_is_accepted_and_read_back(server: Server):
    """Every field of the main example comes back in the job object in the form it was sent."""
    reply = server.post("/enqueue", FULL)
    assert reply.status == 201
    assert reply.json == {
        "job_id": reply.json["job_id"],
        "status": "pending",
        "unique_existing": False,
        "index": reply.index,
    }
    job = server.job(reply.json["job_id"])
    for name, value in FULL.items():
        assert job[name] == value, name
    assert (job["id"], job["state"], job["attempt"]) == (reply.json["job_id"], "pending", 0)
    assert job["created_at"].endswith("Z")
    for name in ("started_at", "completed_at", "batch_id", "progress", "checkpoint", "result"):
        assert job[name] is None
    assert (job["errors"], job["worker"]) == ([], None)


def test_a_payload_comes_back_byte_for_byte(server: Server):
    """Spaces, big numbers, key order and escapes survive."""
    payload = b'{ "n":12345678901234567890123.0e2 ,"b" : "\\u00e9\\/", "a":[ ] }'
    reply = server.post("/enqueue", b'{"queue":"q","payload":' + payload + b"}")
    assert payload in server.get(f"/jobs/{reply.json['job_id']}").body
    body = {"queues": ["q"], "worker_id": "w"}
    assert payload in server.post("/fetch", body).body


def test_a_duplicate_names_the_owner(server: Server):
    """The second job with a unique key is 200 with the first one's id."""
    first = server.post("/enqueue", FULL).json["job_id"]
    reply = server.post("/enqueue", FULL)
    assert reply.status == 200
    assert reply.json["job_id"] == first
    assert reply.json["status"] == "duplicate"
    assert reply.json["unique_existing"] is True
    assert reply.json["state"] == "pending"


def test_a_window_returns_the_stored_result(server: Server):
    """In mode window a duplicate of a finished job has its result."""
    job = {"queue": "q", "unique_key": "k", "unique_mode": "window", "unique_period": "1h"}
    identifier = server.post("/enqueue", job).json["job_id"]
    server.fetch()
    server.post(f"/ack/{identifier}", {"result": {"answer": 42}})
    reply = server.post("/enqueue", job)
    assert (reply.status, reply.json["result"]) == (200, {"answer": 42})
    server.advance(3_600_001)
    assert server.post("/enqueue", job).status == 201


def test_a_replaced_payload_is_the_new_one(server: Server):
    """Mode replace swaps the payload of an owner that has not started."""
    job = {"queue": "q", "unique_key": "k", "unique_mode": "replace"}
    identifier = server.post("/enqueue", job | {"payload": 1}).json["job_id"]
    reply = server.post("/enqueue", job | {"payload": 2})
    assert (reply.status, reply.json["replaced"]) == (200, True)
    assert server.job(identifier)["payload"] == 2


def test_a_scheduled_job_waits_for_its_time(server: Server):
    """A future scheduled_at is scheduled; a past one is now."""
    future = server.post("/enqueue", {"queue": "q", "scheduled_at": "2023-11-15T00:00:00+01:00"})
    assert future.json["status"] == "scheduled"
    assert server.job(future.json["job_id"])["scheduled_at"] == "2023-11-14T23:00:00.000Z"
    assert server.fetch() is None
    past = server.post("/enqueue", {"queue": "q", "scheduled_at": "2001-01-01T00:00:00Z"})
    assert past.json["status"] == "pending"
    assert server.fetch()["job_id"] == past.json["job_id"]
    server.advance(1_700_003_000_000 - START_MS)
    assert server.fetch()["job_id"] == future.json["job_id"]


def test_a_held_job_is_held_from_the_start(server: Server):
    """Hold at enqueue: nothing runs before somebody decides."""
    reply = server.post("/enqueue", {"queue": "q", "hold": {"reason": "look first"}})
    assert reply.json["status"] == "held"
    assert server.job(reply.json["job_id"])["hold_reason"] == "look first"
    assert server.fetch() is None
    server.post(f"/jobs/{reply.json['job_id']}/approve", {"by": "ann"})
    assert server.fetch()["job_id"] == reply.json["job_id"]


def test_a_batch_calls_back_once_all_members_ended(server: Server):
    """The batch example: ids in order, a batch id, and the callback with the counts."""
    reply = server.post(
        "/enqueue/batch",
        {
            "jobs": [{"queue": "emails.send", "payload": {"to": name}} for name in "abc"],
            "batch": {
                "callback_queue": "emails.batch-complete",
                "callback_payload": {"campaign_id": "camp_123"},
            },
        },
    )
    assert reply.status == 201
    assert len(reply.json["job_ids"]) == len(reply.json["results"]) == 3
    batch_id = reply.json["batch_id"]
    for _ in range(3):
        assert server.fetch("emails.batch-complete") is None
        server.post(f"/ack/{server.fetch('emails.send')['job_id']}", {})
    callback = server.fetch("emails.batch-complete")
    counts = {"id": batch_id, "total": 3, "succeeded": 3, "failed": 0, "cancelled": 0}
    assert callback["payload"] == {"campaign_id": "camp_123", "batch": counts}
    batch = server.get(f"/batches/{batch_id}").json
    assert (batch["total"], batch["pending"], batch["succeeded"]) == (3, 0, 3)
    assert batch["callback_job_id"] == callback["job_id"]


def test_a_batch_call_without_batch_has_no_batch_id(server: Server):
    """Many jobs in one call need not be a batch; unique duplicates are told apart."""
    job = {"queue": "q", "unique_key": "k"}
    reply = server.post("/enqueue/batch", {"jobs": [job, job, {"queue": "q"}]})
    assert reply.status == 201
    assert reply.json["batch_id"] is None
    statuses = [result["status"] for result in reply.json["results"]]
    assert statuses == ["pending", "duplicate", "pending"]
    assert reply.json["results"][1]["job_id"] == reply.json["job_ids"][0]


def test_siblings_of_a_batch_depend_on_each_other(server: Server):
    """'#0' names the first job of the same call."""
    jobs = [{"queue": "q"}, {"queue": "q", "depends_on": ["#0"]}]
    first, second = server.post("/enqueue/batch", {"jobs": jobs}).json["job_ids"]
    assert server.job(second)["blocked_by"] == [first]
    assert server.fetch()["job_id"] == first
    assert server.fetch() is None
    server.post(f"/ack/{first}")
    assert server.fetch()["job_id"] == second


def test_a_missing_dependency_is_refused(server: Server):
    """Nothing is enqueued that waits for a job that never was."""
    reply = server.post("/enqueue", {"queue": "q", "depends_on": ["job_" + "0" * 26]})
    assert (reply.status, reply.json["code"]) == (409, "DEPENDENCY_NOT_FOUND")


def test_a_chain_runs_step_by_step_and_forwards_results(server: Server):
    """The chain example: each step sees the result of the one before, the exit handler the last."""
    identifier = server.enqueue(
        "ai.extract",
        payload={"document_url": "https://example.com/report.pdf"},
        chain={
            "steps": [
                {"queue": "ai.extract"},
                {"queue": "ai.summarize", "payload": {"words": 100}},
                {"queue": "ai.review"},
            ],
            "on_failure": {"queue": "alerts.chain-failed", "payload": {"notify": "ops"}},
            "on_exit": {"queue": "cleanup.finalize"},
        },
    )
    first = server.fetch("ai.extract")
    assert first["job_id"] == identifier
    server.post(f"/ack/{identifier}", {"result": {"text": "t"}, "step_status": "continue"})
    second = server.fetch("ai.summarize")
    expected = {"words": 100, "previous_job_id": identifier, "previous_result": {"text": "t"}}
    assert second["payload"] == expected
    job = server.job(second["job_id"])
    assert (job["chain_step"], job["chain_id"]) == (1, server.job(identifier)["chain_id"])
    server.post(f"/ack/{second['job_id']}", {"step_status": "exit"})
    assert server.fetch("ai.review") is None
    assert server.fetch("cleanup.finalize") is not None


def test_a_repeated_idempotent_call_gets_the_same_answer(server: Server):
    """Same key and body: the same job and a header; another body: 409; nothing is written twice."""
    first = server.post("/enqueue", {"queue": "q", "payload": 1}, idempotency_key="k-1")
    again = server.post("/enqueue", {"queue": "q", "payload": 1}, idempotency_key="k-1")
    assert (first.status, again.status) == (201, 201)
    assert again.json["job_id"] == first.json["job_id"]
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    other = server.post("/enqueue", {"queue": "q", "payload": 2}, idempotency_key="k-1")
    assert (other.status, other.json["code"]) == (409, "IDEMPOTENCY_MISMATCH")
    by_field = server.post("/enqueue", {"queue": "q", "idempotency_key": "k-2"})
    replay = server.post("/enqueue", {"queue": "q", "idempotency_key": "k-2"})
    assert replay.json["job_id"] == by_field.json["job_id"]
    assert server.get("/queues/q").json["pending"] == 2


def test_a_repeated_idempotent_batch_gets_the_same_answer(server: Server):
    """A whole call is remembered, ids and batch id."""
    body = {"jobs": [{"queue": "q"}, {"queue": "q"}], "batch": {"callback_queue": "c"}}
    first = server.post("/enqueue/batch", body, idempotency_key="k")
    again = server.post("/enqueue/batch", body, idempotency_key="k")
    assert again.headers["idempotent-replayed"] == "true"
    for name in ("job_ids", "batch_id", "results"):
        assert again.json[name] == first.json[name]


@pytest.mark.parametrize("field", ["agent", "routing", "result_schema"])
def test_a_field_of_a_feature_not_built_is_refused(server: Server, field: str):
    """400 NOT_SUPPORTED, naming the field."""
    reply = server.post("/enqueue", {"queue": "q", field: {}})
    assert (reply.status, reply.json["code"]) == (400, "NOT_SUPPORTED")
    assert reply.json["field"] == field


def test_strict_requests_refuse_unknown_fields(server: Server):
    """Ignored without strict, 400 with it, nothing written."""
    assert server.post("/enqueue", {"queue": "q", "colour": "red"}).status == 201
    before = server.index
    reply = server.post("/enqueue?strict=true", {"queue": "q", "colour": "red"})
    assert (reply.status, reply.json["field"]) == (400, "colour")
    assert server.index == before
    assert server.post("/enqueue?strict=true", FULL).status == 201


def test_a_queue_can_bound_its_payloads(server: Server):
    """The queue's own max_payload is enforced with 413."""
    server.request("PATCH", "/api/v1/queues/q", {"max_payload": 10})
    assert server.post("/enqueue", {"queue": "q", "payload": 1}).status == 201
    reply = server.post("/enqueue", {"queue": "q", "payload": "x" * 20})
    assert (reply.status, reply.json["code"]) == (413, "PAYLOAD_TOO_LARGE")
