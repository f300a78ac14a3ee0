"""What an operator can do to one job: the table of allowed states, and the effects."""

from typing import Any

import pytest

from tests.support.server import Server


def make(server: Server, state: str) -> str:
    """Bring a job into a state; return its id."""
    later = {"scheduled_at": "2030-01-01T00:00:00Z"} if state == "scheduled" else {}
    hold = {"hold": True} if state == "held" else {}
    identifier = server.enqueue("q", max_retries=3, **later, **hold)
    if state in ("active", "retrying", "completed", "dead"):
        assert server.fetch()["job_id"] == identifier
    if state == "retrying":
        server.post(f"/fail/{identifier}", {"error": "x"})
    if state == "completed":
        server.post(f"/ack/{identifier}", {"result": 1})
    if state == "dead":
        server.post(f"/fail/{identifier}", {"error": "x", "retryable": False})
    if state == "cancelled":
        server.post(f"/jobs/{identifier}/cancel")
    assert server.job(identifier)["state"] == state
    return identifier


STATES = ("scheduled", "pending", "active", "retrying", "held", "completed", "dead", "cancelled")
ALLOWED: dict[str, tuple[tuple[str, ...], Any, str | None]] = {
    "retry": (("dead", "cancelled", "completed", "scheduled", "retrying"), None, "pending"),
    "requeue": (("dead",), None, "pending"),
    "cancel": (("pending", "scheduled", "retrying", "held", "active"), None, None),
    "move": (tuple(state for state in STATES if state != "active"), {"queue": "other"}, None),
    "priority": (("pending", "scheduled", "retrying", "held"), {"priority": "high"}, None),
    "hold": (("pending", "scheduled", "retrying", "active"), {"reason": "r"}, "held"),
    "approve": (("held",), {"by": "ann", "note": "fine"}, "pending"),
    "reject": (("held",), {"by": "ann", "reason": "no"}, "dead"),
}


@pytest.mark.parametrize("action", ALLOWED)
def test_an_action_works_from_exactly_its_states(server: Server, action: str):
    """Every other state is 409 INVALID_STATE naming the state, and changes nothing."""
    allowed, body, after = ALLOWED[action]
    for state in STATES:
        identifier = make(server, state)
        reply = server.post(f"/jobs/{identifier}/{action}", body)
        if state in allowed:
            assert reply.status == 200, (action, state, reply.body)
            assert reply.json["job_id"] == identifier
            if after is not None:
                assert server.job(identifier)["state"] == after == reply.json["state"]
        else:
            assert (reply.status, reply.json["code"]) == (409, "INVALID_STATE"), (action, state)
            assert reply.json["state"] == state == server.job(identifier)["state"]
        server.request("DELETE", f"/api/v1/jobs/{identifier}")


@pytest.mark.parametrize("state", STATES)
def test_any_job_can_be_deleted_and_cloned(server: Server, state: str):
    """Clone and delete work from every state."""
    identifier = make(server, state)
    reply = server.post(f"/jobs/{identifier}/clone", {"payload": {"again": True}})
    assert reply.status == 201
    clone = server.job(reply.json["job_id"])
    assert clone["cloned_from"] == identifier
    assert (clone["payload"], clone["queue"]) == ({"again": True}, "q")
    reply = server.request("DELETE", f"/api/v1/jobs/{identifier}")
    assert (reply.status, reply.json["status"]) == (200, "deleted")
    assert server.get(f"/jobs/{identifier}").status == 404


def test_a_clone_keeps_what_describes_the_work(server: Server):
    """Payload, priority, retries, tags, limits are kept; lock, schedule and batch are not."""
    fields = {
        "payload": {"n": 1},
        "priority": "high",
        "max_retries": 7,
        "retry_backoff": "fixed",
        "retry_base_delay": "7s",
        "retry_max_delay": "8m",
        "retry_jitter": 0.5,
        "tags": {"a": "b"},
        "group": "g",
        "limit_key": "k",
        "cost": 2,
        "expire_after": "2d",
    }
    identifier = server.enqueue("q", unique_key="u", scheduled_at="2030-01-01T00:00:00Z", **fields)
    reply = server.post(f"/jobs/{identifier}/clone")
    clone = server.job(reply.json["job_id"])
    for name, value in fields.items():
        assert clone[name] == value, name
    assert (clone["unique_key"], clone["scheduled_at"]) == (None, None)
    nested = server.post(f"/jobs/{identifier}/clone", {"overrides": {"queue": "z", "cost": 5}})
    clone = server.job(nested.json["job_id"])
    assert (clone["queue"], clone["cost"], clone["priority"]) == ("z", 5, "high")


def test_a_retried_job_may_find_its_lock_taken(server: Server):
    """Retry retakes the unique lock or names who has it."""
    first = server.enqueue("q", unique_key="u")
    server.post(f"/jobs/{first}/cancel")
    second = server.enqueue("q", unique_key="u")
    reply = server.post(f"/jobs/{first}/retry")
    assert (reply.status, reply.json["code"]) == (409, "UNIQUE_CONFLICT")
    assert reply.json["unique_job_id"] == second


def test_requeue_grants_as_many_attempts_again(server: Server):
    """History stays, max_retries grows by its original value."""
    identifier = make(server, "dead")
    server.post(f"/jobs/{identifier}/requeue")
    job = server.job(identifier)
    assert (job["state"], job["max_retries"], job["run"]) == ("pending", 6, 1)
    assert len(job["errors"]) == 1


def test_priority_can_be_put_or_posted(server: Server):
    """Both methods change the tier; another method is 405 naming both."""
    identifier = server.enqueue()
    server.request("PUT", f"/api/v1/jobs/{identifier}/priority", {"priority": "critical"})
    assert server.job(identifier)["priority"] == "critical"
    reply = server.get(f"/jobs/{identifier}/priority")
    assert (reply.status, reply.headers["allow"]) == (405, "POST, PUT")


def test_many_jobs_are_read_at_once(server: Server):
    """bulk-get answers in the order asked for and names who is missing."""
    first, second = server.enqueue(), server.enqueue()
    gone = "job_" + "0" * 26
    asked = {"job_ids": [second, gone, first, "nonsense", second]}
    reply = server.post("/jobs/bulk-get", asked)
    assert [job["id"] for job in reply.json["jobs"]] == [second, first]
    assert reply.json["missing"] == [gone, "nonsense"]


def test_why_names_the_gate_that_stops_a_job(server: Server):
    """A paused queue and the absence of workers are gates; a settled job says how it ended."""
    identifier = server.enqueue()
    why = server.get(f"/jobs/{identifier}/why").json
    assert (why["job_id"], why["state"], why["workers_waiting"]) == (identifier, "pending", 0)
    gates = {gate["gate"]: gate for gate in why["gates"]}
    assert gates["worker"]["ok"] is False
    assert why["runnable"] is False
    server.post("/queues/q/pause")
    why = server.get(f"/jobs/{identifier}/why").json
    blocked = [gate for gate in why["gates"] if not gate["ok"] and gate["gate"] != "worker"]
    assert blocked
    assert set(blocked[0]) == {"gate", "ok", "value", "limit", "changes_at", "detail"}
    settled = server.get(f"/jobs/{make_dead(server)}/why").json
    assert settled["state"] == "dead"
    assert settled["runnable"] is False


def make_dead(server: Server) -> str:
    """A dead job in a queue of its own."""
    identifier = server.enqueue("graveyard", max_retries=1)
    server.fetch("graveyard")
    server.post(f"/fail/{identifier}", {"error": "x"})
    return identifier


def test_operations_on_no_job_are_404(server: Server):
    """An unknown id and a text that is no id are the same: not found."""
    for name in ("job_" + "0" * 26, "nonsense", "%00", "job_" + "Z" * 26):
        for path in (f"/jobs/{name}", f"/jobs/{name}/why"):
            assert server.get(path).status == 404
        for action, (_, body, _) in ALLOWED.items():
            reply = server.post(f"/jobs/{name}/{action}", body)
            assert (reply.status, reply.json["code"]) == (404, "NOT_FOUND"), action
        assert server.post(f"/jobs/{name}/clone").status == 404
        assert server.request("DELETE", f"/api/v1/jobs/{name}").status == 404


def test_a_hold_with_a_timeout_decides_by_itself(server: Server):
    """At its time-out a held job is approved or cancelled, as it was told."""
    first, second = server.enqueue(), server.enqueue()
    server.post(f"/jobs/{first}/hold", {"timeout": "10s", "timeout_action": "approve"})
    server.post(f"/jobs/{second}/hold", {"timeout": "10s", "timeout_action": "cancel"})
    assert server.job(first)["hold_until"] == "2023-11-14T22:13:30.000Z"
    server.advance(10_001)
    assert server.job(first)["state"] == "pending"
    assert server.job(second)["state"] == "cancelled"
