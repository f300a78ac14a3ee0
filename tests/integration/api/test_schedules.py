"""Schedules over a socket: what can be asked, what comes of it, and what is refused."""

from typing import Any

import pytest

from tests.support.server import Reply, Server

# The virtual clock starts on Tuesday, 14 November 2023, at 22:13:20 UTC.
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
HOURS = [f"15T{hour:02}" for hour in range(24)]  # of the day after


def create(server: Server, **fields: Any) -> Any:
    """Create a schedule, hourly unless told otherwise."""
    reply = server.post("/schedules", {"name": "n", "queue": "q", "cron": "@hourly"} | fields)
    assert reply.status == 201, reply.body
    return reply.json


def put(server: Server, identifier: str, **fields: Any) -> Reply:
    """Replace a schedule."""
    body = {"name": "n", "queue": "q", "cron": "@hourly"} | fields
    return server.request("PUT", f"/api/v1/schedules/{identifier}", body)


def test_the_schedule_of_the_design_runs_at_nine_in_new_york(server: Server):
    """The example as printed: created, listed, previewed, fired, and the job says its slot."""
    made = create(
        server,
        name="daily-report",
        queue="reports.generate",
        cron="0 9 * * *",
        timezone="America/New_York",
        payload={"type": "daily"},
        unique_key="daily-report",
    )
    assert made["id"].startswith("sched_")
    assert (made["overlap"], made["catch_up"], made["status"]) == ("allow", "last", "active")
    assert made["next_run_at"] == "2023-11-15T14:00:00.000Z"
    assert made["index"] == server.index
    runs = server.get("/schedules/daily-report/preview?count=2").json["runs"]
    assert runs == ["2023-11-15T14:00:00.000Z", "2023-11-16T14:00:00.000Z"]
    server.advance(16 * HOUR_MS)
    job = server.fetch("reports.generate")
    assert job["payload"] == {"type": "daily"}
    assert job["scheduled_at"] == "2023-11-15T14:00:00.000Z"
    shown = server.job(job["job_id"])
    assert (shown["schedule_id"], shown["unique_key"]) == (made["id"], "daily-report")
    (listed,) = server.get("/schedules").json
    assert listed["last_job_id"] == job["job_id"]
    assert (listed["fired"], listed["skipped"]) == (1, 0)
    assert "payload" not in listed
    one = server.get(f"/schedules/{made['id']}").json
    assert one == listed | {"payload": {"type": "daily"}}


def test_every_hour_has_one_job(server: Server):
    """However often time is looked at; a worker that waits gets the job at once."""
    create(server)
    for _ in range(40):
        server.advance(HOUR_MS // 8)
    slots = [server.fetch()["scheduled_at"] for _ in range(5)]
    assert slots == [f"2023-11-{hour}:00:00.000Z" for hour in ("14T23", *HOURS[:4])]
    assert server.fetch() is None


def test_a_name_is_taken_once(server: Server):
    """409 for a second one, also by renaming; the first stays as it is."""
    first = create(server)
    second = create(server, name="m")
    for reply in (
        server.post("/schedules", {"name": "n", "queue": "x", "cron": "@daily"}),
        put(server, second["id"], name="n"),
    ):
        assert (reply.status, reply.json["code"], reply.json["field"]) == (
            409,
            "NAME_TAKEN",
            "name",
        )
    assert server.get("/schedules/n").json["id"] == first["id"]
    assert [found["name"] for found in server.get("/schedules").json] == ["m", "n"]
    assert [found["name"] for found in server.get("/schedules?limit=1").json] == ["m"]
    assert [found["name"] for found in server.get("/schedules?limit=1&after=m").json] == ["n"]


def test_put_replaces_what_is_asked_for_and_keeps_the_rest(server: Server):
    """New time, new queue, new name; counts and pause stay."""
    made = create(server, payload={"a": 1}, tags={"team": "x"})
    server.advance(HOUR_MS)
    server.post("/schedules/n/pause")
    reply = put(server, made["id"], name="renamed", queue="other", cron="@daily")
    assert reply.status == 200
    shown = server.get("/schedules/renamed").json
    assert (shown["queue"], shown["tags"], shown["payload"]) == ("other", {}, {})
    assert (shown["fired"], shown["status"], shown["next_run_at"]) == (1, "paused", None)
    assert server.get("/schedules/n").status == 404
    assert put(server, made["id"], cron="@daily", paused=False).json["status"] == "active"
    assert put(server, "sched_" + "0" * 26).status == 404


def test_a_pause_is_not_made_up_for(server: Server):
    """No slot fires while paused; after it the next one does."""
    create(server, catch_up="all")
    assert server.post("/schedules/n/pause").json["status"] == "paused"
    server.advance(5 * HOUR_MS)
    assert server.fetch() is None
    resumed = server.post("/schedules/n/resume").json
    assert (resumed["status"], resumed["next_run_at"]) == ("resumed", "2023-11-15T04:00:00.000Z")
    server.advance(HOUR_MS)
    assert server.fetch()["scheduled_at"] == "2023-11-15T04:00:00.000Z"
    assert server.fetch() is None


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("skip", []),
        ("last", ["2023-11-15T08:00:00.000Z"]),
        ("all", [f"2023-11-{hour}:00:00.000Z" for hour in ("14T23", *HOURS[:9])]),
    ],
)
def test_catch_up_decides_about_missed_slots(server: Server, catch_up: str, expected: list[str]):
    """Ten hours nobody looked: none of them, the last, or all in order."""
    create(server, catch_up=catch_up)
    server.advance(10 * HOUR_MS)
    found: list[str] = []
    while (job := server.fetch()) is not None:
        found.append(job["scheduled_at"])
    assert found == expected
    assert server.get("/schedules/n").json["next_run_at"] == "2023-11-15T09:00:00.000Z"


def test_catching_up_is_bounded(server: Server):
    """A schedule of every second that slept for a day makes up for a thousand slots."""
    create(server, cron="* * * * * *", catch_up="all")
    server.advance(DAY_MS)
    pending = server.get("/queues/q").json["pending"]
    # The late ones up to the bound (a firing decides 64 at a time), and a minute that is on time.
    assert 1_000 <= pending <= 1_000 + 64 + 61
    assert server.get("/schedules/n").json["next_run_at"] == "2023-11-15T22:13:21.000Z"


def test_overlap_skip_makes_no_second_job_while_one_is_live(server: Server):
    """Neither by the calendar nor by hand."""
    create(server, overlap="skip")
    server.advance(HOUR_MS)
    server.advance(HOUR_MS)
    shown = server.get("/schedules/n").json
    assert (shown["fired"], shown["skipped"]) == (1, 1)
    by_hand = server.post("/schedules/n/run")
    assert (by_hand.status, by_hand.json["code"]) == (409, "INVALID_STATE")
    server.post(f"/ack/{server.fetch()['job_id']}")
    assert server.post("/schedules/n/run").status == 201


def test_overlap_queue_and_cancel(server: Server):
    """One waits for the job before it, the other asks it to stop."""
    create(server, name="a", queue="a", overlap="queue")
    create(server, name="b", queue="b", overlap="cancel")
    server.advance(HOUR_MS)
    server.advance(HOUR_MS)
    first = server.fetch("a")
    assert server.fetch("a") is None
    server.post(f"/fail/{first['job_id']}", {"retryable": False})
    assert server.fetch("a") is not None
    states = {server.fetch("b")["job_id"]: "active"}
    assert server.fetch("b") is None
    assert server.get("/queues/b").json["cancelled"] == 1
    assert list(states.values()) == ["active"]


def test_run_makes_a_job_now(server: Server):
    """201 with its id, also of a paused schedule; the calendar goes on as before."""
    made = create(server, paused=True, payload=[1])
    assert (made["status"], made["next_run_at"]) == ("paused", None)
    runs = [server.post("/schedules/n/run").json["job_id"] for _ in range(2)]
    assert len(set(runs)) == 2
    assert server.job(runs[0])["payload"] == [1]
    assert server.job(runs[0])["scheduled_at"] is None
    assert server.get("/schedules/n").json["fired"] == 2


def test_backfill_makes_the_jobs_that_are_missing(server: Server):
    """Half-open, once per slot, bounded, never of the future."""
    create(server, cron="@daily")
    span = {"from": "2023-11-01T00:00:00Z", "to": "2023-11-08T00:00:00Z"}
    reply = server.post("/schedules/n/backfill?strict=true", span)
    assert reply.status == 200
    assert (reply.json["slots"], reply.json["skipped"]) == (7, 0)
    slots = [server.job(job)["scheduled_at"][:10] for job in reply.json["job_ids"]]
    assert slots == [f"2023-11-0{day}" for day in range(1, 8)]
    again = server.post("/schedules/n/backfill", span).json
    assert (again["job_ids"], again["skipped"]) == ([], 7)
    for body, field in (
        ({"from": "2015-01-01T00:00:00Z", "to": "2023-01-01T00:00:00Z"}, "to"),
        ({"from": "2023-11-01T00:00:00Z", "to": "2023-12-01T00:00:00Z"}, "to"),
        ({"from": "2023-11-02T00:00:00Z", "to": "2023-11-02T00:00:00Z"}, "from"),
        ({"from": "yesterday", "to": "2023-11-02T00:00:00Z"}, "from"),
        ({"from": "2023-11-02T00:00:00Z"}, "to"),
    ):
        refused = server.post("/schedules/n/backfill", body)
        assert (refused.status, refused.json["field"]) == (400, field)


def test_start_and_end_bound_the_slots(server: Server):
    """None before the start, none from the end on; then the schedule is finished."""
    create(server, start_at="2023-11-15T01:30:00Z", end_at="2023-11-15T03:00:00Z", catch_up="all")
    assert server.get("/schedules/n").json["next_run_at"] == "2023-11-15T02:00:00.000Z"
    server.advance(DAY_MS)
    assert server.fetch()["scheduled_at"] == "2023-11-15T02:00:00.000Z"
    assert server.fetch() is None
    assert server.get("/schedules/n").json["status"] == "finished"
    assert server.get("/schedules/n/preview").json == {"runs": []}


def test_jitter_delays_the_job_and_not_the_slot(server: Server):
    """The job comes within the jitter and still says its slot."""
    create(server, jitter="10m")
    server.advance(47 * 60_000)  # twenty seconds past the hour
    server.advance(10 * 60_000)
    assert server.fetch()["scheduled_at"] == "2023-11-14T23:00:00.000Z"


def test_a_deleted_schedule_leaves_its_jobs(server: Server):
    """It is gone from the list and fires no more."""
    create(server)
    server.advance(HOUR_MS)
    deleted = server.request("DELETE", "/api/v1/schedules/n")
    assert (deleted.status, deleted.json["status"]) == (200, "deleted")
    server.advance(HOUR_MS)
    assert server.fetch() is not None
    assert server.fetch() is None
    assert server.get("/schedules").json == []
    for path in ("pause", "resume", "run"):
        assert server.post(f"/schedules/n/{path}").status == 404
    assert server.request("DELETE", "/api/v1/schedules/n").status == 404
    assert server.get("/schedules/n/preview").status == 404


@pytest.mark.parametrize(
    ("fields", "field", "where"),
    [
        ({"cron": "0 25 * * *"}, "cron", "column 3"),
        ({"cron": "0 0 31 2 *"}, "cron", "column 5"),
        ({"cron": "0 0 */31 * 5L"}, "cron", "never fire"),
        ({"timezone": "Mars/Olympus"}, "timezone", "no time zone"),
        ({"timezone": "../../etc/passwd"}, "timezone", "no time zone"),
        ({"overlap": "maybe"}, "overlap", ""),
        ({"catch_up": 1}, "catch_up", ""),
        ({"jitter": "2d"}, "jitter", ""),
        ({"name": "a b"}, "name", ""),
        ({"name": "sched_" + "0" * 26}, "name", ""),
        ({"queue": ""}, "queue", ""),
        ({"end_at": "2001-01-01T00:00:00Z"}, "end_at", "never fire"),
        ({"start_at": "2030-01-01T00:00:00Z", "end_at": "2029-01-01T00:00:00Z"}, "end_at", ""),
        ({"unique_mode": "window"}, "unique_mode", ""),
        ({"max_retries": -1}, "max_retries", ""),
        ({"tags": {"": "x"}}, "tags", ""),
    ],
)
def test_what_is_wrong_is_named(server: Server, fields: dict[str, Any], field: str, where: str):
    """400 with the field; nothing is written."""
    before = server.index
    body = {"name": "n", "queue": "q", "cron": "@hourly"} | fields
    for reply in (server.post("/schedules", body),):
        assert (reply.status, reply.json["field"]) == (400, field), reply.body
        assert where in reply.json["error"]
    assert server.index == before


def test_an_expression_can_be_tried_before_it_is_saved(server: Server):
    """The preview says the slots, or what is wrong; nothing is written."""
    before = server.index
    body = {"cron": "0 9 * * MON", "timezone": "Europe/Berlin", "count": 2}
    runs = server.post("/schedules/preview?strict=true", body).json["runs"]
    assert runs == ["2023-11-20T08:00:00.000Z", "2023-11-27T08:00:00.000Z"]
    assert server.post("/schedules/preview", {"cron": "nonsense"}).status == 400
    assert server.post("/schedules/preview", {"cron": "@daily", "count": 101}).status == 400
    assert server.index == before
    create(server)
    for count in ("0", "101", "x", "-1", "1e3", ""):
        assert server.get(f"/schedules/n/preview?count={count}").json["field"] == "count"


@pytest.mark.parametrize("name", ["%ff", "%ed%a0%80", "%c3%a9", "..%2f..", "a%00b", "x" * 5_000])
def test_a_name_nothing_can_have_is_not_found(server: Server, name: str):
    """404 whatever stands in the path; 400 for a place in the list that cannot be."""
    for path in (f"/schedules/{name}", f"/schedules/{name}/preview"):
        assert server.get(path).status == 404
    assert server.post(f"/schedules/{name}/run").status == 404
    assert server.get(f"/schedules?after={name}").status in (200, 400)


def test_many_schedules_of_one_moment_are_all_fired(server: Server):
    """More than one round looks at, none of them later than the next tick."""
    for number in range(60):
        create(server, name=f"s{number:02}")
    server.advance(HOUR_MS)
    assert server.get("/queues/q").json["pending"] == 60
    names = [found["name"] for found in server.get("/schedules?limit=60").json]
    assert names == sorted(names)


def test_a_draining_server_starts_nothing(server: Server):
    """503 for what makes jobs; slots wait for the next start."""
    create(server)
    server.run(server.engine.drain)
    assert server.post("/schedules/n/run").json["code"] == "DRAINING"
    server.advance(HOUR_MS)
    assert server.get("/schedules/n").json["fired"] == 0
