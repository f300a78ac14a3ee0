"""Delivery goes on where it was: nothing lost, and no flood of what was sent before."""

from msgspec.structs import replace

from corvo.engine import Options
from corvo.model.command import CreateWebhook, PauseQueue
from tests.factories import make_other_id
from tests.integration.webhooks.stage import FAST, Stage, staged
from tests.support.receiver import receiving


def test_restart_in_order_repeats_nothing():
    """What was delivered is written down when the server stops."""
    # Saving is slow on purpose: what the stop writes is all there is.
    pace = replace(FAST, save_ms=3_600_000, idle_save_ms=3_600_000)
    with receiving() as receiver:
        first = Stage(pace=pace)
        first.start()
        identifier = first.create(receiver.url, events=["enqueued"])
        jobs = [first.enqueue("mail") for _ in range(20)]
        first.wait_until(lambda: len(receiver.requests) == 20)
        first.wait_until(lambda: first.webhooks.statistics()["outstanding_count"] == 0)
        first.halt()
        with staged(like=first) as second:
            jobs.append(second.enqueue("mail"))
            second.wait_webhook(identifier, delivered=21, waiting=0)
        assert sorted(got.json["event"]["job_id"] for got in receiver.requests) == sorted(jobs)


def test_events_while_the_endpoint_was_down_survive_a_restart():
    """The cursor waits for them, and they come when the endpoint is back."""
    with receiving() as receiver:
        receiver.status = 500
        first = Stage()
        first.start()
        identifier = first.create(receiver.url, events=["enqueued"], retry_limit=20)
        jobs = {first.enqueue("mail") for _ in range(10)}
        first.wait_webhook(identifier, status="suspended")
        first.halt()
        receiver.requests.clear()
        receiver.status = 200
        with staged(like=first) as second:
            assert second.webhook(identifier)["status"] in ("suspended", "active")
            second.wait_webhook(identifier, delivered=10, waiting=0, status="active")
        assert {got.json["event"]["job_id"] for got in receiver.requests} == jobs


def test_crash_loses_nothing_and_repeats_under_the_same_ids():
    """At least once: what was sent but not written down comes again, recognisably."""
    pace = replace(FAST, save_ms=3_600_000, idle_save_ms=3_600_000)
    with receiving() as receiver:
        first = Stage(pace=pace)
        first.start()
        identifier = first.create(receiver.url, events=["enqueued"])
        jobs = {first.enqueue("mail") for _ in range(12)}
        first.wait_until(lambda: len(receiver.requests) == 12)
        first.kill()
        before = {got.delivery_id: got.seq for got in receiver.requests}
        with staged(like=first) as second:
            jobs.add(second.enqueue("mail"))
            second.wait_webhook(identifier, delivered=13, waiting=0)
        after = {got.delivery_id: got.seq for got in receiver.requests}
        assert len(after) == 13
        assert before.items() <= after.items()
        assert {got.json["event"]["job_id"] for got in receiver.requests} == jobs


def test_crash_after_a_save_repeats_only_what_came_since():
    """The more often progress is written down, the less is repeated; done ones never are."""
    with receiving() as receiver:
        first = Stage()
        first.start()
        identifier = first.create(receiver.url, events=["enqueued"])
        for _ in range(15):
            first.enqueue("mail")
        first.wait_webhook(identifier, delivered=15, waiting=0)
        first.kill()
        count = len(receiver.requests)
        with staged(like=first) as second:
            second.enqueue("mail")
            second.wait_webhook(identifier, delivered=16, waiting=0)
        assert len(receiver.requests) == count + 1


def test_done_beyond_a_stuck_delivery_is_not_repeated():
    """One event fails while later ones succeed: after a restart only that one is sent."""
    pace = replace(FAST, failures_max=1_000, backoff_ms=3_600_000)
    with receiving() as receiver:
        first = Stage(pace=pace)
        first.start()
        identifier = first.create(receiver.url, events=["enqueued"])
        receiver.status = 500
        stuck = first.enqueue("mail")
        first.wait_until(lambda: len(receiver.requests) == 1)
        first.wait_until(lambda: first.webhooks.statistics()["running_count"] == 0)
        receiver.status = 200
        for _ in range(9):
            first.enqueue("mail")
        first.wait_webhook(identifier, delivered=9, waiting=1)
        first.kill()
        receiver.requests.clear()
        with staged(like=first, pace=pace) as second:
            second.wait_webhook(identifier, delivered=10, waiting=0)
        assert [got.json["event"]["job_id"] for got in receiver.requests] == [stuck]


def test_dead_letters_survive_a_restart_and_can_be_sent():
    """They are in the store, beside the log of deliveries."""
    with receiving() as receiver:
        receiver.status = 500
        first = Stage()
        first.start()
        identifier = first.create(receiver.url, events=["enqueued"], retry_limit=0)
        first.enqueue("mail")
        first.wait_webhook(identifier, dead_letters=1)
        first.halt()
        receiver.status = 200
        with staged(like=first) as second:
            (letter,) = second.get(f"/webhooks/{identifier}/dead-letters").json["dead_letters"]
            sent = second.post(f"/webhooks/{identifier}/deliveries/{letter['id']}/redeliver")
            assert sent.json["status"] == "delivered"
            second.wait_webhook(identifier, dead_letters=0)
        assert len({got.delivery_id for got in receiver.requests}) == 1


def test_feed_is_kept_for_a_webhook_that_lags():
    """Retention waits for the cursor of a webhook, and goes on when it has moved."""
    options = Options(events_keep_count=5, retention_interval_ms=1)
    with receiving() as receiver, staged(options=options) as stage:
        receiver.gate.clear()
        identifier = stage.create(receiver.url, events=["enqueued"], timeout="30s")
        first = stage.index
        for _ in range(15):
            stage.enqueue("mail")
        stage.wait_until(lambda: receiver.active_count == 4)
        stage.run(stage.ticker.tick)
        assert stage.engine.event_floor <= first + 1
        receiver.gate.set()
        stage.wait_webhook(identifier, delivered=15, waiting=0)
        assert len(set(receiver.seqs)) == 15

        async def trim() -> None:
            commands = stage.engine.due(stage.clock.now_ms())
            await stage.engine.sweep(commands)

        def is_trimmed() -> bool:
            return stage.engine.event_floor > first + 1

        for _ in range(200):
            stage.run(trim)
            if is_trimmed():
                break
        assert is_trimmed()


def test_idle_server_writes_nothing_for_its_webhooks():
    """When all is told, there is nothing to report: the log of an idle server does not grow."""
    with receiving() as receiver, staged() as stage:
        identifier = stage.create(receiver.url)
        stage.enqueue("mail")
        stage.wait_webhook(identifier, waiting=0, delivered=2)
        endpoint = next(iter(stage.webhooks._endpoints.values()))
        stage.wait_until(lambda: not endpoint.has_news and not stage.webhooks._is_saving)
        index = stage.index
        turns = 0

        def has_turned() -> bool:
            nonlocal turns
            turns += 1
            return turns > 2_000

        stage.wait_until(has_turned)
        assert stage.index == index


def test_delivery_log_survives_a_restart():
    """Tests by hand, deliveries and failures are there again as they were, newest first."""
    with receiving() as receiver:
        first = Stage()
        first.start()
        identifier = first.create(receiver.url, events=["enqueued"], retry_limit=0)
        for status in (200, 500, 200):
            receiver.status = status
            count = len(receiver.requests)
            first.enqueue("mail")
            first.wait_until(lambda count=count: len(receiver.requests) == count + 1)
            first.wait_until(lambda: first.webhooks.statistics()["outstanding_count"] == 0)
        assert first.post(f"/webhooks/{identifier}/test").json["status"] == "delivered"
        before = first.get(f"/webhooks/{identifier}/deliveries").json["deliveries"]
        first.halt()
        with staged(like=first) as second:
            after = second.get(f"/webhooks/{identifier}/deliveries").json["deliveries"]
            again = f"/webhooks/{identifier}/deliveries/{after[1]['id']}/redeliver"
            assert second.post(again).json["status"] == "delivered"
    assert before == after
    assert [line["status"] for line in after] == ["delivered", "delivered", "dead", "delivered"]
    assert after[0]["event"]["type"] == "webhook.test"
    assert after[2]["status_code"] == 500


def test_tries_before_a_restart_count():
    """A delivery that failed before goes on with the tries it has left."""
    pace = replace(FAST, failures_max=1_000, backoff_ms=3_600_000)
    with receiving() as receiver:
        receiver.status = 500
        first = Stage(pace=pace)
        first.start()
        identifier = first.create(receiver.url, events=["enqueued"], retry_limit=1)
        first.enqueue("mail")
        first.wait_until(lambda: len(receiver.requests) == 1)
        first.wait_until(lambda: first.webhooks.statistics()["running_count"] == 0)
        first.halt()
        with staged(like=first, pace=pace) as second:
            second.wait_webhook(identifier, dead_letters=1, waiting=0)
            (line,) = second.get(f"/webhooks/{identifier}/deliveries").json["deliveries"]
        assert (line["attempts"], line["status"]) == (2, "dead")
        assert len(receiver.requests) == 2


def test_log_of_a_disabled_webhook_is_read_from_the_store():
    """Switched off, it has no window in memory; what it did is known all the same."""
    with receiving() as receiver, staged() as stage:
        identifier = stage.create(receiver.url, events=["enqueued"])
        stage.enqueue("mail")
        stage.wait_webhook(identifier, delivered=1)
        body = {"url": receiver.url, "enabled": False}
        stage.request("PUT", f"/api/v1/webhooks/{identifier}", body)
        stage.wait_until(lambda: stage.webhooks.statistics()["webhooks_count"] == 0)
        assert stage.post(f"/webhooks/{identifier}/test").json["status"] == "delivered"
        log = stage.get(f"/webhooks/{identifier}/deliveries").json["deliveries"]
        assert [line["event"]["type"] for line in log] == ["webhook.test", "enqueued"]


def test_delivery_that_was_waiting_when_it_was_switched_off_has_failed():
    """Nobody will try it again, so the log does not promise it."""
    pace = replace(FAST, failures_max=1_000, backoff_ms=3_600_000)
    with receiving() as receiver, staged(pace=pace) as stage:
        receiver.status = 500
        identifier = stage.create(receiver.url, events=["enqueued"])
        stage.enqueue("mail")
        log = f"/webhooks/{identifier}/deliveries"
        stage.wait_until(lambda: stage.webhooks.statistics()["tries_total"] == 1)
        stage.wait_until(lambda: stage.webhooks.statistics()["running_count"] == 0)
        (line,) = stage.get(log).json["deliveries"]
        assert (line["status"], line["next_try_at"] is None) == ("waiting", False)
        endpoint = next(iter(stage.webhooks._endpoints.values()))
        stage.wait_until(lambda: not endpoint.has_news and not stage.webhooks._is_saving)
        body = {"url": receiver.url, "events": ["enqueued"]}
        path = f"/api/v1/webhooks/{identifier}"
        for is_enabled in (False, True):
            stage.request("PUT", path, body | {"enabled": is_enabled})
            count = int(is_enabled)
            stage.wait_until(
                lambda count=count: stage.webhooks.statistics()["webhooks_count"] == count
            )
            (line,) = stage.get(log).json["deliveries"]
            assert (line["status"], line["next_try_at"]) == ("failed", None)


def test_log_is_bounded_and_costs_no_entries_of_its_own():
    """A hundred and twenty deliveries leave a hundred lines, told in the one report at the end."""
    pace = replace(FAST, save_ms=3_600_000, idle_save_ms=3_600_000)
    with receiving() as receiver:
        first = Stage(pace=pace)
        first.start()
        identifier = first.create(receiver.url, events=["enqueued"])
        jobs = [{"queue": "mail"}] * 120
        assert first.post("/enqueue/batch", {"jobs": jobs}).status == 201
        index = first.index
        first.wait_until(lambda: len(receiver.requests) == 120)
        first.wait_until(lambda: first.webhooks.statistics()["outstanding_count"] == 0)
        assert first.index == index
        first.halt()
        with staged(like=first) as second:
            log = second.get(f"/webhooks/{identifier}/deliveries").json["deliveries"]
            assert len(log) == 100
            second.request("DELETE", f"/api/v1/webhooks/{identifier}")
            assert second.audit() == []


def test_webhook_gets_events_of_its_own_namespace_only():
    """An event of another namespace passes it by, whatever its patterns and queues."""
    with receiving() as own, receiving() as other, staged() as stage:
        stage.webhooks._namespaces = (0, 1)
        mine = stage.create(own.url, events=["*"])
        theirs = make_other_id(5)

        async def populate() -> None:
            await stage.engine.perform(CreateWebhook(1, theirs, other.url, ("*",)))
            await stage.engine.perform(PauseQueue(1, "secret"))
            await stage.engine.perform(PauseQueue(0, "public"))
            stage.webhooks.poke()

        stage.run(populate)
        stage.wait_until(lambda: "queue.paused" in own.types and "queue.paused" in other.types)
        stage.wait_webhook(mine, waiting=0)
        stage.wait_until(lambda: stage.webhooks.waiting(1, theirs) == 0)
        assert {got.json["event"]["queue"] for got in own.requests} == {"public"}
        assert {got.json["event"]["queue"] for got in other.requests} == {"secret"}
