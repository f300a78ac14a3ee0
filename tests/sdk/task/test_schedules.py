"""Schedules that an app declares, against a real server."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from corvo_sdk import Corvo
from corvo_sdk.schedules import Schedule, differs
from tests.support.server import Server


def declare(app: Corvo, **changed: Any) -> Corvo:
    """Declare the schedule `daily` with some options changed."""

    @app.task(queue="reports", retries=2, base_delay="1500ms", unique="report")
    def report(kind: str, count: int = 1) -> None: ...

    options: dict[str, Any] = {
        "timezone": "Europe/Berlin",
        "overlap": "skip",
        "catch_up": "skip",
        "jitter": "90s",
        "end_at": datetime(2090, 1, 1, 1, 2, 3, 456_789, tzinfo=UTC),
        **changed,
    }
    cron = options.pop("cron", "0  7 * * *")
    app.schedule(cron, report.call(options.pop("kind", "daily")), name="daily", **options)
    return app


def fresh(server: Server) -> Corvo:
    return Corvo(url=f"http://127.0.0.1:{server.port}")


def test_a_declared_schedule_is_created_once(server: Server) -> None:
    """The first sync creates it, the second finds nothing to do and writes nothing."""
    app = declare(fresh(server))
    assert app.sync_schedules() == {"daily": "created"}
    stored = server.get("/schedules/daily").json
    assert (
        stored["cron"],
        stored["timezone"],
        stored["overlap"],
    ) == ("0 7 * * *", "Europe/Berlin", "skip")
    assert stored["payload"] == {"kind": "daily"}
    assert stored["tags"] == {"task": "report"}
    before = server.index
    assert app.sync_schedules() == {"daily": "unchanged"}
    another = declare(fresh(server))
    assert another.sync_schedules() == {"daily": "unchanged"}
    assert before == server.index
    app.close()
    another.close()


@pytest.mark.parametrize(
    "changed",
    [
        {"cron": "0 8 * * *"},
        {"kind": "weekly"},
        {"timezone": "UTC"},
        {"jitter": "1m"},
        {"overlap": "queue"},
        {"end_at": datetime(2091, 1, 1, tzinfo=UTC)},
        {"start_at": datetime(2080, 1, 1, tzinfo=UTC)},
        {"paused": True},
    ],
)
def test_a_changed_declaration_replaces_the_schedule(
    server: Server, changed: dict[str, Any]
) -> None:
    """Every field counts, in both directions; the identifier stays."""
    original = declare(fresh(server))
    original.sync_schedules()
    identifier = server.get("/schedules/daily").json["id"]
    other = declare(fresh(server), **changed)
    assert other.sync_schedules() == {"daily": "updated"}
    assert other.sync_schedules() == {"daily": "unchanged"}
    if "paused" not in changed:
        # Taking an option out of a declaration is a change as well.
        assert original.sync_schedules() == {"daily": "updated"}
    assert identifier == server.get("/schedules/daily").json["id"]
    original.close()
    other.close()


def test_a_pause_by_an_operator_survives(server: Server) -> None:
    """A deployment does not resume what somebody has paused."""
    app = declare(fresh(server))
    app.sync_schedules()
    server.post("/schedules/daily/pause")
    assert app.sync_schedules() == {"daily": "unchanged"}
    changed = declare(fresh(server), cron="1 1 * * *")
    assert changed.sync_schedules() == {"daily": "updated"}
    assert server.get("/schedules/daily").json["paused"]
    app.close()
    changed.close()


def test_workers_that_start_together_make_one_schedule(server: Server) -> None:
    """Whoever is second finds it there."""
    apps = [declare(fresh(server)) for _ in range(6)]
    changes: list[str] = []
    start = threading.Barrier(len(apps))

    def sync(app: Corvo) -> None:
        start.wait()
        changes.append(app.sync_schedules()["daily"])

    threads = [threading.Thread(target=sync, args=(app,)) for app in apps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert changes.count("created") == 1
    assert changes.count("unchanged") == 5
    assert [entry["name"] for entry in server.get("/schedules").json] == ["daily"]
    for app in apps:
        app.close()


def test_the_async_twin_does_the_same(server: Server) -> None:
    """Created, left alone, replaced."""

    async def body() -> None:
        app = declare(fresh(server))
        assert await app.async_schedules() == {"daily": "created"}
        assert await app.async_schedules() == {"daily": "unchanged"}
        await app.aclose()
        changed = declare(fresh(server), kind="weekly")
        assert await changed.async_schedules() == {"daily": "updated"}
        await changed.aclose()

    asyncio.run(body())


def test_a_task_without_parameters_is_scheduled_by_itself(server: Server) -> None:
    """The name is that of the task, and a run makes its job."""
    app = fresh(server)

    @app.task(queue="q")
    def tidy() -> None: ...

    app.schedule("0 * * * *", tidy)
    assert app.sync_schedules() == {"tidy": "created"}
    made = server.post("/schedules/tidy/run").json["job_id"]
    assert server.job(made)["tags"] == {"task": "tidy"}
    app.close()


def test_two_schedules_cannot_share_a_name() -> None:
    """The second declaration is refused, unless it says the same."""
    app = Corvo()

    @app.task()
    def tidy() -> None: ...

    app.schedule("0 * * * *", tidy)
    app.schedule("0 * * * *", tidy)
    with pytest.raises(ValueError, match="there is a schedule 'tidy' already"):
        app.schedule("1 * * * *", tidy)
    assert list(app.schedules) == ["tidy"]


def test_what_a_schedule_cannot_have_is_refused() -> None:
    """A job of the calendar has no time, dependency or hold of its own."""
    app = Corvo()

    @app.task()
    def tidy() -> None: ...

    with pytest.raises(ValueError, match="cannot have delay"):
        app.schedule("0 * * * *", tidy.in_("5m").call())
    with pytest.raises(ValueError, match="jitter is 'long'"):
        app.schedule("0 * * * *", tidy, jitter="long")


def test_a_field_the_server_does_not_know_is_a_difference() -> None:
    """An older server that drops a field is asked again, never believed."""
    assert differs(
        Schedule("x", {"name": "x", "cron": "* * * * *", "queue": "q", "payload": b"{}", "new": 1}),
        {},
    )
