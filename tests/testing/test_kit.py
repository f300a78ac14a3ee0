"""The testing kit, as a user's test sees it."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from corvo.testing import Kit, KitError
from corvo_sdk import Context, Corvo, Discard, Snooze


@dataclass
class Mail:
    """A payload of struct kind."""

    to: str
    when: datetime


@pytest.fixture
def kit():
    """Give a kit of the test's own."""
    with Kit() as made:
        yield made


def make_app() -> Corvo:
    return Corvo("tested")


def test_enqueued_job_is_asserted_and_run(kit: Kit):
    """What was enqueued is found by task and arguments; a drain runs it once."""
    app, seen = make_app(), []

    @app.task(queue="mail")
    def send(to: str, subject: str = "hello") -> str:
        seen.append((to, subject))
        return f"sent to {to}"

    kit.use(app)
    handle = send.enqueue("ada@example.org", subject="hello")
    kit.assert_enqueued(send, to="ada@example.org")
    kit.assert_enqueued(send, {"subject": "hello"}, queue="mail", state="pending", count=1)
    kit.assert_enqueued(send, lambda payload: payload["to"].startswith("ada"))
    kit.refute_enqueued(send, to="bob@example.org")
    assert seen == []
    drained = kit.drain_sync()
    assert (drained.completed, drained.total) == (1, 1)
    assert seen == [("ada@example.org", "hello")]
    assert handle.result(timeout=0) == "sent to ada@example.org"


def test_missing_job_is_told_with_what_was_enqueued_instead(kit: Kit):
    """The error of an assertion lists what is there."""
    app = make_app()

    @app.task(queue="mail")
    def send(to: str) -> None: ...

    kit.use(app)
    send.enqueue("ada@example.org")
    with pytest.raises(KitError) as raised:
        kit.assert_enqueued(send, to="bob@example.org")
    assert "bob@example.org" in str(raised.value)
    assert '{"to":"ada@example.org"}' in str(raised.value)


def test_payload_goes_through_json(kit: Kit):
    """A handler gets what came out of JSON, never the object that went in."""
    app, seen = make_app(), []

    @app.task(queue="mail")
    def send(mail: Mail) -> None:
        seen.append(mail)

    kit.use(app)
    mail = Mail("ada@example.org", datetime(2026, 1, 2, tzinfo=UTC))
    send.enqueue(mail)
    kit.drain_sync()
    assert seen == [mail]
    assert seen[0] is not mail


def test_time_waits_for_the_test(kit: Kit):
    """A delayed job runs when its time has come, and not a moment before."""
    app, seen = make_app(), []

    @app.task(queue="later")
    def remind() -> None:
        seen.append(kit.now)

    kit.use(app)
    began = kit.now
    remind.in_("5m").enqueue()
    assert kit.drain_sync().total == 0
    kit.tick("4m59s")
    assert kit.drain_sync().total == 0
    kit.tick("1s")
    assert kit.drain_sync().completed == 1
    assert seen == [began + timedelta(minutes=5)]


def test_retries_follow_the_policy_of_the_task(kit: Kit):
    """A failing job is tried again after its back-off, and dies when its attempts are used up."""
    app, attempts = make_app(), []

    @app.task(queue="flaky", retries=3, backoff="fixed", base_delay="10s")
    def flaky(ctx: Context) -> None:
        attempts.append((ctx.attempt, kit.now))
        raise ValueError("no")

    kit.use(app)
    handle = flaky.enqueue()
    drained = kit.drain_sync(advance=True)
    assert [number for number, _ in attempts] == [1, 2, 3]
    assert attempts[1][1] - attempts[0][1] == timedelta(seconds=10)
    assert (drained.retrying, drained.dead) == (2, 1)
    assert handle.refresh().errors[0].error == "ValueError: no"
    with pytest.raises(KitError, match="is dead, not completed"):
        kit.wait_for_sync(handle)


def test_raise_errors_shows_the_exception_of_the_handler(kit: Kit):
    """A test that wants the traceback of its handler gets it."""
    app = make_app()

    @app.task(queue="flaky")
    def flaky() -> None:
        raise LookupError("the original")

    kit.use(app)
    flaky.enqueue()
    with pytest.raises(LookupError, match="the original"):
        kit.drain_sync(raise_errors=True)


def test_control_values_and_checkpoints_work_as_in_a_worker(kit: Kit):
    """Snooze and Discard say what they say; a checkpoint is there in the next attempt."""
    app, seen = make_app(), []

    @app.task(queue="long")
    def long(ctx: Context) -> None:
        seen.append(ctx.checkpoint_value)
        if ctx.checkpoint_value is None:
            ctx.checkpoint({"row": 7})
            raise Snooze("1h")
        raise Discard("enough")

    kit.use(app)
    handle = long.enqueue()
    assert kit.drain_sync().scheduled == 1
    assert kit.drain_sync(advance=True).dead == 1
    assert seen == [None, {"row": 7}]
    assert handle.refresh().dead_reason is not None


def test_async_test_and_async_handler_share_a_loop(kit: Kit):
    """An async handler runs on the loop of the test."""
    app, loops = make_app(), []

    @app.task(queue="loop")
    async def where() -> None:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())

    kit.use(app)

    async def test() -> None:
        handle = await where.aenqueue()
        job = await kit.wait_for(handle, "completed")
        assert job.state == "completed"
        assert loops == [asyncio.get_running_loop()]

    asyncio.run(test())


def test_inline_runs_where_it_is_enqueued(kit: Kit):
    """Inside `inline`, an enqueue returns after the job, and the jobs it enqueued, have run."""
    app, seen = make_app(), []

    @app.task(queue="parent")
    def parent() -> None:
        child.enqueue(1)
        seen.append("parent")

    @app.task(queue="child")
    async def child(number: int) -> None:
        seen.append(f"child {number}")

    kit.use(app)
    with kit.inline():
        parent.enqueue()
        assert seen == ["parent", "child 1"]

        async def on_a_loop() -> None:
            child.enqueue(2)
            assert seen[-1] == "child 2"
            await child.aenqueue(3)
            assert seen[-1] == "child 3"

        asyncio.run(on_a_loop())
    parent.enqueue()
    assert len(seen) == 4


def test_schedule_fires_as_time_passes(kit: Kit):
    """A cron schedule makes one job for each slot that a tick passes."""
    app, seen = make_app(), []

    @app.task(queue="cron")
    def report() -> None:
        seen.append(1)

    app.schedule("*/10 * * * *", report)
    kit.use(app)
    app.sync_schedules()
    kit.tick("1h")
    assert kit.drain_sync().completed == 6


def test_apps_are_given_back(kit: Kit):
    """After the kit is closed, an app makes clients of its own again."""
    app = make_app()

    @app.task(queue="q")
    def work() -> None: ...

    kit.use(app)
    work.enqueue()
    kit.close()
    assert app.client is not kit.client


def test_handler_without_a_task_is_named(kit: Kit):
    """A job that names a task nobody declares is an error of the test, with the name."""
    app = make_app()

    @app.task(queue="q")
    def work() -> None: ...

    kit.use(app)
    kit.client.enqueue("q", {}, tags={"task": "gone"})
    with pytest.raises(KitError, match="gone"):
        kit.drain_sync()


def test_endless_job_ends_the_drain(kit: Kit):
    """A job that enqueues itself does not hang the test."""
    app = make_app()

    @app.task(queue="q")
    def again() -> None:
        again.enqueue()

    kit.use(app)
    again.enqueue()
    with pytest.raises(KitError, match="no end"):
        kit.drain_sync(limit=20)
