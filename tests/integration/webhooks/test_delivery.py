"""Outgoing webhooks against a real endpoint on a real socket."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from corvo.model import limits
from corvo.webhooks import sign
from tests.integration.webhooks.stage import FAST, Stage, staged
from tests.support.receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint."""
    with receiving() as found:
        yield found


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A server that may post to this machine."""
    with staged() as found:
        yield found


def test_event_is_delivered_signed_and_in_shape(stage: Stage, receiver: Receiver):
    """The body names webhook, delivery and event; the signature covers time and body."""
    identifier = stage.create(receiver.url, secret="hush", events=["job.enqueued"])
    job = stage.enqueue("mail")
    stage.wait_until(lambda: len(receiver.requests) == 1)
    got = receiver.requests[0]
    assert got.path == "/hook?x=1"
    event = got.json.pop("event")
    assert {"webhook_id", "delivery_id"} <= set(got.json)
    assert got.json["webhook_id"] == identifier
    assert (event["type"], event["job_id"], event["queue"]) == ("enqueued", job, "mail")
    assert event["seq"] > 0
    assert event["at"].endswith("Z")
    headers = got.headers
    assert headers["content-type"] == "application/json"
    assert headers["x-corvo-webhook-event"] == "enqueued"
    assert headers["x-corvo-delivery-id"] == got.delivery_id
    expected = sign("hush", headers["x-corvo-timestamp"], got.body)
    assert headers["x-corvo-signature"] == expected


def test_only_wanted_events_of_wanted_queues_come(stage: Stage, receiver: Receiver):
    """Patterns and the queue filter select; the cursor passes what nobody wants."""
    wanted = ["completed", "queue.paused"]
    identifier = stage.create(receiver.url, events=wanted, queues=["mail", "a.*"])
    for queue in ("mail", "other", "a.b"):
        stage.enqueue(queue)
        job = stage.fetch(queue)
        assert stage.post(f"/ack/{job['job_id']}").status == 200
        stage.post(f"/queues/{queue}/pause")
    stage.wait_webhook(identifier, delivered=4, waiting=0)
    found = sorted((got.type, got.json["event"]["queue"]) for got in receiver.requests)
    both = ("a.b", "mail")
    assert found == [(kind, queue) for kind in ("completed", "queue.paused") for queue in both]


def test_secret_is_never_returned(stage: Stage, receiver: Receiver):
    """No answer holds it; a PUT that leaves it out keeps it, null removes it."""
    identifier = stage.create(receiver.url, secret="hush-hush")
    path = f"/api/v1/webhooks/{identifier}"
    answers = [stage.get("/webhooks"), stage.get(f"/webhooks/{identifier}")]
    answers.append(stage.request("PUT", path, {"url": receiver.url}))
    assert answers[-1].json["has_secret"] is True
    answers.append(stage.request("PUT", path, {"url": receiver.url, "secret": None}))
    assert answers[-1].json["has_secret"] is False
    answers.append(stage.get(f"/webhooks/{identifier}/deliveries"))
    assert all(reply.status == 200 and b"hush-hush" not in reply.body for reply in answers)


def test_webhook_can_be_listed_read_changed_and_deleted(stage: Stage, receiver: Receiver):
    """The four calls of any resource, and 404 afterwards."""
    reply = stage.post("/webhooks", {"url": "https://example.com/x"})
    made = reply.json
    assert reply.status == 201
    assert (made["enabled"], made["events"], made["retry_limit"]) == (True, ["*"], 5)
    assert (made["status"], made["timeout"]) == ("active", "10s")
    identifier = made["id"]
    assert [hook["id"] for hook in stage.get("/webhooks").json] == [identifier]
    path = f"/api/v1/webhooks/{identifier}"
    changed = stage.request("PUT", path, {"url": receiver.url, "enabled": False, "timeout": "2s"})
    assert (changed.json["status"], changed.json["timeout"]) == ("disabled", "2s")
    assert stage.request("DELETE", path).json["status"] == "deleted"
    for method in ("GET", "DELETE"):
        assert stage.request(method, path).status == 404
    assert stage.request("PUT", path, {"url": receiver.url}).status == 404
    assert stage.get("/webhooks").json == []
    assert stage.get("/webhooks/wh_nonsense").status == 404
    assert stage.request("PATCH", path).status == 405


def test_failure_is_tried_again_and_then_filed(stage: Stage, receiver: Receiver):
    """Tries are bounded; what failed for good is a dead letter that can be sent again by hand."""
    receiver.status = 500
    identifier = stage.create(receiver.url, events=["enqueued"], retry_limit=2)
    stage.enqueue("mail")
    seen = stage.wait_webhook(identifier, dead_letters=1, waiting=0)
    assert (seen["failed"], seen["delivered"], seen["last_status_code"]) == (1, 0, 500)
    assert len(receiver.requests) == 3
    assert len({got.delivery_id for got in receiver.requests}) == 1
    (letter,) = stage.get(f"/webhooks/{identifier}/dead-letters").json["dead_letters"]
    assert (letter["status"], letter["attempts"], letter["status_code"]) == ("dead", 3, 500)
    (logged,) = stage.get(f"/webhooks/{identifier}/deliveries").json["deliveries"]
    assert (logged["status"], logged["id"], logged["response"]) == ("dead", letter["id"], "ok")

    again = f"/webhooks/{identifier}/deliveries/{letter['id']}/redeliver"
    assert stage.post(again).json["status"] == "dead"
    receiver.status = 204
    assert stage.post(again).json["status"] == "delivered"
    seen = stage.wait_webhook(identifier, dead_letters=0, delivered=1)
    assert seen["failures_in_a_row"] == 0
    unknown = stage.post(f"/webhooks/{identifier}/deliveries/{identifier}/redeliver")
    assert unknown.status == 404


def test_redirect_is_a_failure_and_not_followed(stage: Stage, receiver: Receiver):
    """Following one would be a way around the guard."""
    receiver.status, receiver.location = 302, "http://127.0.0.1:1/elsewhere"
    identifier = stage.create(receiver.url, events=["enqueued"], retry_limit=0)
    stage.enqueue("mail")
    seen = stage.wait_webhook(identifier, failed=1)
    assert seen["last_error"] == "the endpoint answered 302"
    assert len(receiver.requests) == 1


def test_endpoint_that_keeps_failing_is_suspended_and_resumes(stage: Stage, receiver: Receiver):
    """After some failures only probes are sent; the first success lets everything through."""
    receiver.status = 503
    identifier = stage.create(receiver.url, events=["enqueued"], retry_limit=20)
    for _ in range(10):
        stage.enqueue("mail")
    seen = stage.wait_webhook(identifier, status="suspended")
    assert seen["suspended_until"] is not None
    assert seen["dead_letters"] == 0
    receiver.status = 200
    stage.wait_webhook(identifier, status="active", delivered=10, waiting=0)
    assert stage.webhook(identifier)["suspended_until"] is None


def test_operator_can_end_a_suspension(receiver: Receiver):
    """A PUT says: I have looked after it."""
    pace = replace(FAST, suspension_ms=3_600_000)
    with staged(pace=pace) as stage:
        receiver.status = 500
        identifier = stage.create(receiver.url, events=["enqueued"])
        for _ in range(5):
            stage.enqueue("mail")
        stage.wait_webhook(identifier, status="suspended")
        receiver.status = 200
        body = {"url": receiver.url, "events": ["enqueued"]}
        stage.request("PUT", f"/api/v1/webhooks/{identifier}", body)
        stage.wait_webhook(identifier, status="active", delivered=5)


def test_slow_endpoint_delays_only_itself(stage: Stage, receiver: Receiver):
    """One endpoint never answers, the other gets everything; and the slow one is not stormed."""
    receiver.gate.clear()
    slow = stage.create(receiver.url, events=["enqueued"])
    with receiving() as quick_receiver:
        quick = stage.create(quick_receiver.url, events=["enqueued"])
        for _ in range(30):
            stage.enqueue("mail")
        stage.wait_webhook(quick, delivered=30, waiting=0)
        assert len(quick_receiver.requests) == 30
        assert stage.webhook(slow)["delivered"] == 0
        assert receiver.active_max == 4
        receiver.gate.set()
        stage.wait_webhook(slow, delivered=30, waiting=0)
        assert receiver.active_max == 4


def test_endpoint_that_does_not_answer_times_out(stage: Stage, receiver: Receiver):
    """A try has an end, whatever the other side does."""
    receiver.gate.clear()
    identifier = stage.create(receiver.url, events=["enqueued"], timeout="100ms", retry_limit=0)
    stage.enqueue("mail")
    seen = stage.wait_webhook(identifier, failed=1)
    assert seen["last_error"] == "no answer within 100 ms"
    assert seen["last_status_code"] is None


def test_endpoint_nobody_listens_on_fails_politely(stage: Stage, receiver: Receiver):
    """A refused connection is a failed try with a sentence."""
    url = receiver.url
    receiver.close()
    receiver._http.socket.close()
    identifier = stage.create(url, events=["enqueued"], retry_limit=0)
    stage.enqueue("mail")
    seen = stage.wait_webhook(identifier, failed=1)
    assert "no connection" in seen["last_error"]


def test_more_events_than_the_window_all_arrive(stage: Stage, receiver: Receiver):
    """A block larger than the window is taken in parts, each event once."""
    count = limits.WEBHOOK_WINDOW_MAX * 2 + 17
    identifier = stage.create(receiver.url, events=["enqueued"])
    jobs = [{"queue": "mail"}] * count
    assert stage.post("/enqueue/batch", {"jobs": jobs}).status == 201
    stage.wait_webhook(identifier, delivered=count, waiting=0)
    assert len(receiver.seqs) == len(set(receiver.seqs)) == count


def test_test_button_sends_one_event_and_says_how_it_went(stage: Stage, receiver: Receiver):
    """It works for a disabled webhook too, and a failure is an answer."""
    identifier = stage.create(receiver.url, enabled=False, secret="s")
    reply = stage.post(f"/webhooks/{identifier}/test").json
    assert (reply["status"], reply["status_code"]) == ("delivered", 200)
    assert receiver.types == ["webhook.test"]
    receiver.status = 418
    reply = stage.post(f"/webhooks/{identifier}/test").json
    assert (reply["status"], reply["status_code"]) == ("failed", 418)
    assert stage.post("/webhooks/wh_01JAAAAAAAAAAAAAAAAAAAAAAA/test").status == 404


def test_disabled_webhook_gets_nothing_and_starts_from_now(stage: Stage, receiver: Receiver):
    """What happens while it is off is not delivered later."""
    identifier = stage.create(receiver.url, events=["enqueued"], enabled=False)
    stage.enqueue("mail")
    body = {"url": receiver.url, "events": ["enqueued"]}
    stage.request("PUT", f"/api/v1/webhooks/{identifier}", body)
    late = stage.enqueue("mail")
    stage.wait_webhook(identifier, delivered=1)
    assert [got.json["event"]["job_id"] for got in receiver.requests] == [late]


def test_deleted_webhook_gets_nothing_more(stage: Stage, receiver: Receiver):
    """Deleting ends delivery at once, also of what waits for another try."""
    receiver.status = 500
    identifier = stage.create(receiver.url, events=["enqueued"], retry_limit=20)
    stage.enqueue("mail")
    stage.wait_until(lambda: bool(receiver.requests))
    stage.request("DELETE", f"/api/v1/webhooks/{identifier}")
    stage.wait_until(lambda: stage.webhooks.statistics()["webhooks_count"] == 0)
    assert stage.webhooks.statistics()["outstanding_count"] == 0


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "url"),
        ({"url": "ftp://example.com"}, "url"),
        ({"url": "example.com/x"}, "url"),
        ({"url": "https://user:pass@example.com/"}, "url"),
        ({"url": "https://exa mple.com/"}, "url"),
        ({"url": "https://example.com:99999/"}, "url"),
        ({"url": "https://example.com:0/"}, "url"),
        ({"url": "https:///x"}, "url"),
        ({"url": "https://bücher.example/"}, "url"),
        ({"url": "https://example.com/" + "x" * 3_000}, "url"),
        ({"url": "https://example.com/\r\nHost: x"}, "url"),
        ({"url": "https://example.com", "events": []}, "events"),
        ({"url": "https://example.com", "events": ["nothing"]}, "events[0]"),
        ({"url": "https://example.com", "events": ["*"] * 65}, "events"),
        ({"url": "https://example.com", "queues": ["a b"]}, "queues[0]"),
        ({"url": "https://example.com", "queues": [""]}, "queues[0]"),
        ({"url": "https://example.com", "queues": ["a*b"]}, "queues[0]"),
        ({"url": "https://example.com", "retry_limit": 21}, "retry_limit"),
        ({"url": "https://example.com", "timeout": "1ms"}, "timeout"),
        ({"url": "https://example.com", "timeout": "31s"}, "timeout"),
        ({"url": "https://example.com", "secret": "x" * 1_025}, "secret"),
        ({"url": "https://example.com", "enabled": "yes"}, "enabled"),
    ],
)
def test_bad_webhook_is_refused_with_its_field(stage: Stage, fields: dict, field: str):
    """A webhook that could never work is not accepted."""
    reply = stage.post("/webhooks", fields)
    assert (reply.status, reply.json["code"]) == (400, "VALIDATION_ERROR")
    assert reply.json["field"] == field


def test_event_wakes_the_dispatcher(receiver: Receiver):
    """Nothing is looked at by the clock here: what happens is what starts a delivery."""
    with staged(pace=replace(FAST, reload_ms=3_600_000, idle_save_ms=3_600_000)) as stage:
        identifier = stage.create(receiver.url, events=["enqueued"])
        for count in (1, 2, 3):
            stage.enqueue("mail")
            stage.wait_until(lambda count=count: len(receiver.requests) == count)
        stage.wait_webhook(identifier, delivered=3, waiting=0)


def test_failures_of_jobs_are_told(stage: Stage, receiver: Receiver):
    """Retrying and dead are events like any other, with what went wrong in them."""
    stage.create(receiver.url, events=["job.retrying", "job.dead"])
    jobs = {
        "retrying": stage.enqueue("mail", retry_base_delay="1h"),
        "dead": stage.enqueue("mail", max_retries=1),
    }
    for job in jobs.values():
        assert stage.fetch("mail")["job_id"] == job
        stage.post(f"/fail/{job}", {"error": "no luck"})
    stage.wait_until(lambda: len(receiver.requests) == 2)
    found = {got.type: got.json["event"] for got in receiver.requests}
    assert {kind: event["job_id"] for kind, event in found.items()} == jobs
    assert all(event["attempt"] == 1 for event in found.values())
