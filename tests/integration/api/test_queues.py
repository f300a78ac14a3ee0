"""Queues and named limits: settings, gates, counters, clear and delete."""

from tests.support.server import Server


def test_a_queue_is_listed_with_counts_and_totals(server: Server):
    """Every state has a count; totals only rise."""
    assert server.get("/queues").json == []
    for _ in range(3):
        server.enqueue("emails")
    server.post(f"/ack/{server.fetch('emails')['job_id']}")
    server.fetch("emails")
    (queue,) = server.get("/queues").json
    assert queue == server.get("/queues/emails").json
    counts = {name: queue[name] for name in ("pending", "active", "completed", "dead", "held")}
    assert counts == {"pending": 1, "active": 1, "completed": 1, "dead": 0, "held": 0}
    totals = {"enqueued": 3, "started": 2, "completed": 1, "failed": 0, "dead": 0}
    assert queue["totals"] == totals
    assert (queue["name"], queue["paused"], queue["draining"]) == ("emails", False, False)
    assert queue["oldest_pending_at"] == "2023-11-14T22:13:20.000Z"
    assert server.get("/queues/unknown").status == 404


def test_a_paused_queue_hands_out_nothing(server: Server):
    """Pause, resume and drain; pausing an unknown queue creates it."""
    assert server.post("/queues/q/pause").json["status"] == "paused"
    server.enqueue()
    assert server.fetch() is None
    assert server.get("/queues/q").json["paused"] is True
    assert server.post("/queues/q/resume").json["status"] == "resumed"
    assert server.fetch() is not None
    drain = server.post("/queues/q/drain")
    assert (drain.json["status"], drain.json["active"]) == ("draining", 1)
    assert server.get("/queues/q").json["draining"] is True


def test_clear_removes_what_waits_and_spares_the_rest(server: Server):
    """Pending, scheduled and retrying go; held and active stay."""
    active = server.enqueue()
    server.fetch()
    held = server.enqueue(hold=True)
    waiting = [server.enqueue(), server.enqueue(scheduled_at="2030-01-01T00:00:00Z")]
    reply = server.post("/queues/q/clear")
    assert reply.status == 200
    assert reply.json["removed"] == 2
    assert reply.json["operation_id"].startswith("op_")
    server.advance(1_000)
    for identifier in waiting:
        assert server.get(f"/jobs/{identifier}").status == 404
    assert server.job(active)["state"] == "active"
    assert server.job(held)["state"] == "held"


def test_deleting_a_queue_needs_a_confirmation(server: Server):
    """Without ?confirm=true nothing happens; with it everything of the queue is gone."""
    identifier = server.enqueue()
    before = server.index
    reply = server.request("DELETE", "/api/v1/queues/q")
    assert (reply.status, reply.json["code"]) == (400, "CONFIRMATION_REQUIRED")
    assert server.index == before
    reply = server.request("DELETE", "/api/v1/queues/q?confirm=true")
    assert (reply.status, reply.json["removed"]) == (200, 1)
    server.advance(1_000)
    assert server.get("/queues/q").status == 404
    assert server.get(f"/jobs/{identifier}").status == 404
    assert server.fetch() is None


def test_unknown_queues_cannot_be_cleared_drained_or_deleted(server: Server):
    """404, and the queue does not come into being."""
    assert server.post("/queues/nope/clear").status == 404
    assert server.post("/queues/nope/drain").status == 404
    assert server.request("DELETE", "/api/v1/queues/nope?confirm=true").status == 404
    assert server.get("/queues").json == []


def test_concurrency_bounds_what_is_active(server: Server):
    """At most max jobs of a queue are handed out; null and 0 remove the bound."""
    for _ in range(3):
        server.enqueue()
    server.post("/queues/q/concurrency", {"max": 1})
    first = server.fetch()
    assert server.fetch() is None
    server.post(f"/ack/{first['job_id']}")
    assert server.fetch() is not None
    assert server.fetch() is None
    server.post("/queues/q/concurrency", {"max": None})
    assert server.get("/queues/q").json["settings"]["max_concurrency"] is None
    assert server.fetch() is not None
    assert server.post("/queues/q/concurrency", {}).json["field"] == "max"


def test_a_throttle_bounds_the_rate(server: Server):
    """Both spellings set it; DELETE and a rate of 0 remove it."""
    for _ in range(5):
        server.enqueue()
    server.post("/queues/q/throttle", {"rate": 1, "period": "1m"})
    assert server.fetch() is not None
    assert server.fetch() is None
    server.advance(60_000)
    assert server.fetch() is not None
    settings = server.post("/queues/q/throttle", {"rate": 2, "window_ms": 500}).json["settings"]
    assert settings["rate"] == {"rate": 2, "period": "500ms", "burst": 2}
    server.request("DELETE", "/api/v1/queues/q/throttle")
    assert server.get("/queues/q").json["settings"]["rate"] is None
    assert server.fetch() is not None
    assert server.post("/queues/q/throttle", {"rate": 0}).status == 200


def test_every_setting_reads_back(server: Server):
    """What PATCH sets, GET shows; the secret is write-only; null removes."""
    settings = {
        "max_concurrency": 5,
        "key_concurrency": 2,
        "rate": {"rate": 10, "period": "1s", "burst": 20},
        "key_rate": {"rate": 1, "period": "1m", "burst": 1},
        "weights": {"a": 3},
        "priority_mode": "aging",
        "aging_step": "30s",
        "lease_duration": "2m",
        "retention": "1d",
        "retention_count": 100,
        "require_token": True,
        "max_payload": 1000,
    }
    sent = settings | {"webhook_secret": "hush"}
    reply = server.request("PATCH", "/api/v1/queues/q?strict=true", sent)
    assert reply.status == 200
    shown = server.get("/queues/q")
    assert shown.json["settings"] == settings | {"has_webhook_secret": True}
    assert b"hush" not in shown.body
    removed = dict.fromkeys(sent)
    server.request("PATCH", "/api/v1/queues/q", removed)
    cleared = server.get("/queues/q").json["settings"]
    assert (cleared["max_concurrency"], cleared["rate"], cleared["weights"]) == (None, None, {})
    assert (cleared["priority_mode"], cleared["require_token"]) == ("strict", False)
    assert cleared["has_webhook_secret"] is False


def test_an_absent_setting_stays(server: Server):
    """PATCH changes only what it names."""
    server.request("PATCH", "/api/v1/queues/q", {"max_concurrency": 5, "retention": "1d"})
    server.request("PATCH", "/api/v1/queues/q", {"max_concurrency": 6})
    settings = server.get("/queues/q").json["settings"]
    assert (settings["max_concurrency"], settings["retention"]) == (6, "1d")


def test_names_with_slashes_are_reachable(server: Server):
    """A queue name may hold a slash, escaped or not."""
    server.enqueue("team/emails")
    assert server.post("/queues/team/emails/pause").status == 200
    assert server.get("/queues/team%2Femails").json["paused"] is True
    assert server.post("/queues/team%2Femails/resume").status == 200
    assert server.get("/queues/team/emails").json["paused"] is False


def test_a_named_limit_is_shared_by_queues(server: Server):
    """PUT, GET, list, DELETE; jobs that name it wait for its slots across queues."""
    reply = server.request("PUT", "/api/v1/limits/openai", {"max": 1})
    assert (reply.status, reply.json["name"]) == (200, "openai")
    first = server.enqueue("a", limits=["openai"])
    server.enqueue("b", limits=["openai"])
    free = server.enqueue("b")
    assert server.fetch("a")["job_id"] == first
    assert server.fetch("b")["job_id"] == free
    assert server.fetch("b") is None
    limit = server.get("/limits/openai").json
    assert (limit["max"], limit["used"]) == (1, 1)
    assert [item["name"] for item in server.get("/limits").json] == ["openai"]
    rate = {"rate": 5, "period": "1m", "burst": 9}
    server.request("PUT", "/api/v1/limits/openai", rate)
    limit = server.get("/limits/openai").json
    assert {name: limit[name] for name in rate} == rate
    assert server.request("DELETE", "/api/v1/limits/openai").status == 200
    assert server.get("/limits/openai").status == 404
    assert server.request("DELETE", "/api/v1/limits/openai").status == 404
    assert server.request("PUT", "/api/v1/limits/x", {}).json["field"] == "max"
    assert server.fetch("b") is not None
