"""Bulk operations over real sockets: counts, reasons, dry runs, progress, abort, undo."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from corvo.errors import RequestError, UnavailableError
from corvo.machine import bulk as machine_bulk
from corvo.model.ids import JOB, parse_id
from corvo.model.job import STATE_NAMES
from corvo.scheduler.bulk import Found
from tests.support.server import Server, running


def enqueue_many(server: Server, count: int, queue: str = "q") -> list[str]:
    """Enqueue many jobs quickly."""
    names: list[str] = []
    while len(names) < count:
        part = min(5_000, count - len(names))
        jobs = [{"queue": queue, "payload": {"n": n}} for n in range(part)]
        reply = server.post("/enqueue/batch", {"jobs": jobs})
        assert reply.status == 201
        names += reply.json["job_ids"]
    return names


def bulk(server: Server, action: str, names: list[str], **fields: Any) -> Any:
    """Do something to jobs by name and return the answer."""
    reply = server.post("/jobs/bulk?strict=true", {"action": action, "job_ids": names} | fields)
    assert reply.status in (200, 202), reply.body
    return reply.json


def wait_over(server: Server, name: str) -> Any:
    """Read an operation once it has nothing left to do; the stream ends when it is over."""
    stream = server.get(f"/bulk/{name}/progress")
    assert stream.headers["content-type"].startswith("text/event-stream")
    return server.get(f"/bulk/{name}").json


def test_every_action_changes_the_jobs_it_is_allowed_to(server: Server):
    """Each action, from the states of the single one; the others are skipped with the reason."""
    a, b, c = (server.enqueue() for _ in range(3))
    assert bulk(server, "hold", [a, b], reason="look")["affected"] == 2
    assert server.job(a)["hold_reason"] == "look"
    answer = bulk(server, "approve", [a, c], by="ann")
    assert (answer["affected"], answer["skipped_reasons"]) == (1, {"invalid_state": 1})
    assert bulk(server, "reject", [b], reason="no")["affected"] == 1
    assert server.job(b)["state"] == "dead"
    assert bulk(server, "requeue", [b])["affected"] == 1
    assert bulk(server, "change_priority", [b], priority="critical")["affected"] == 1
    assert server.job(b)["priority"] == "critical"
    assert bulk(server, "move", [a, b, c], move_to_queue="z")["affected"] == 3
    assert server.job(c)["queue"] == "z"
    assert bulk(server, "cancel", [a, b, c])["affected"] == 3
    assert bulk(server, "retry", [a, b, c])["affected"] == 3
    answer = bulk(server, "delete", [a, a, b, c, "job_none", a[:-1] + "0"])
    assert (answer["affected"], answer["errors"]) == (3, 0)
    assert answer["skipped"] == sum(answer["skipped_reasons"].values())
    assert server.get(f"/jobs/{a}").status == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"action": "explode", "job_ids": ["x"]}, "action"),
        ({"action": "retry"}, "job_ids"),
        ({"action": "retry", "job_ids": []}, "job_ids"),
        ({"action": "retry", "job_ids": ["x"], "filter": {}}, "job_ids"),
        ({"action": "retry", "filter": []}, "filter"),
        ({"action": "retry", "filter": {"x": "y" * 20_000}}, "filter"),
        ({"action": "move", "job_ids": ["x"]}, "move_to_queue"),
        ({"action": "move", "job_ids": ["x"], "move_to_queue": "a b"}, "move_to_queue"),
        ({"action": "change_priority", "job_ids": ["x"]}, "priority"),
        ({"action": "hold", "job_ids": ["x"], "timeout_action": "cancel"}, "timeout"),
        ({"action": "retry", "job_ids": ["x"] * 100_001}, "job_ids"),
        ({"action": "retry", "job_ids": ["x"], "async": 3}, "async"),
    ],
)
def test_malformed_request_names_its_field(server: Server, body: Any, field: str):
    """A request that can not be meant is refused before anything happens."""
    reply = server.post("/jobs/bulk", body)
    assert (reply.status, reply.json["field"]) == (400, field)


def test_misspelt_field_is_refused_when_strict(server: Server):
    """`async` is spelt so on the wire, and nothing else is."""
    body = {"action": "retry", "job_ids": ["x"], "async": True}
    assert server.post("/jobs/bulk?strict=true", body).status == 202
    body = {"action": "retry", "job_ids": ["x"], "is_async": True}
    assert server.post("/jobs/bulk?strict=true", body).status == 400


def test_dry_run_counts_and_shows_without_changing(server: Server):
    """What it says is what the operation then does."""
    names = enqueue_many(server, 30)
    server.post(f"/jobs/{names[0]}/cancel")
    index = server.index
    found = bulk(server, "cancel", [*names, "nobody"], dry_run=True)
    assert server.index == index
    assert (found["matched"], found["affected"]) == (31, 29)
    assert found["skipped_reasons"] == {"not_found": 1, "invalid_state": 1}
    assert len(found["sample"]) == 10
    assert found["sample"][0]["job_id"] == names[1]
    assert bulk(server, "cancel", [*names, "nobody"])["affected"] == 29


def test_large_operation_is_accepted_and_goes_on_by_itself(server: Server):
    """Over 10,000: 202, a stream of progress with everything done at its end, then undone."""
    names = enqueue_many(server, 10_001)
    answer = bulk(server, "move", names, move_to_queue="z")
    assert answer["status"] == "processing"
    assert answer["estimated_total"] == 10_001
    stream = server.request("GET", answer["progress_url"])
    blocks = [block for block in stream.body.decode().split("\n\n") if "data:" in block]
    data = [msgspec.json.decode(block.split("data: ")[1]) for block in blocks]
    counts = [each["processed"] for each in data]
    assert counts == sorted(counts)
    assert data[-1]["type"] == "bulk.completed"
    assert data[-1]["affected"] == 10_001
    assert server.get("/queues/z").json["pending"] == 10_001
    name = answer["bulk_operation_id"]
    assert server.post(f"/bulk/{name}/undo").status == 202
    assert wait_over(server, name)["restored"] == 10_001
    assert server.get("/queues/q").json["pending"] == 10_001
    first = server.fetch("q")
    assert first["job_id"] == names[0], "jobs are back in their places"


def test_abort_stops_where_it_stands_and_what_is_done_can_be_undone(server: Server):
    """Nothing is changed after the abort; the rest was never touched."""
    names = enqueue_many(server, 3_000)
    server.hold_disk()
    connection = server.connect()
    body = {"action": "delete", "job_ids": names, "async": True}
    connection.request(
        "POST", "/api/v1/jobs/bulk", msgspec.json.encode(body), {"content-type": "application/json"}
    )
    server.free_disk()
    name = msgspec.json.decode(connection.getresponse().read())["bulk_operation_id"]
    connection.close()
    reply = server.post(f"/bulk/{name}/abort")
    found = wait_over(server, name)
    if reply.status == 200:
        assert found["status"] == "aborted"
        assert found["affected"] < 3_000
    assert server.get("/queues/q").json["pending"] == 3_000 - found["affected"]
    assert server.post(f"/bulk/{name}/undo").json["restored"] == found["affected"]
    assert server.get("/queues/q").json["pending"] == 3_000
    assert server.post(f"/bulk/{name}/abort").status == 409


def test_unknown_operation_is_not_found(server: Server):
    """A name that is none, and one that never was."""
    for name in ("nothing", "bulk_01HF7YAT00001DEMBVS4XM7HZX"):
        assert server.get(f"/bulk/{name}").status == 404
        assert server.get(f"/bulk/{name}/progress").status == 404
        assert server.post(f"/bulk/{name}/abort").status == 404
        assert server.post(f"/bulk/{name}/undo").status == 404
    assert server.post("/bulk/nothing/progress").status == 405


def test_cleared_queue_is_brought_back(server: Server):
    """Clear, let the removal finish, undo by the id the answer gave."""
    names = enqueue_many(server, 700)
    answer = server.post("/queues/q/clear").json
    assert server.post(f"/bulk/{answer['bulk_operation_id']}/undo").status == 409
    server.advance(1_000)
    assert server.get(f"/jobs/{names[0]}").status == 404
    assert server.post(f"/bulk/{answer['operation_id']}/undo").json["restored"] == 700
    assert server.fetch("q")["job_id"] == names[0]
    assert server.post("/queues/empty/pause").status == 200
    assert server.post("/queues/empty/clear").json["bulk_operation_id"] is None


def test_undo_is_for_a_while_only(server: Server):
    """After the window the answer says so."""
    name = bulk(server, "delete", [server.enqueue()])["bulk_operation_id"]
    server.advance(86_400_000)
    reply = server.post(f"/bulk/{name}/undo")
    assert (reply.status, reply.json["code"]) == (409, "INVALID_STATE")
    name = bulk(server, "retry", [server.enqueue()])["bulk_operation_id"]
    assert server.post(f"/bulk/{name}/undo").status == 409


def test_filter_without_a_view_says_so(server: Server):
    """503 with what to do, never an operation on nothing."""
    reply = server.post("/jobs/bulk", {"action": "retry", "filter": {"queue": "q"}})
    assert (reply.status, reply.json["code"]) == (503, "VIEW_DOWN")


def test_job_over_which_the_machine_fails_is_an_error_and_the_rest_goes_on(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    """One bad job among hundreds: it is counted, it is unchanged, and it holds up nobody."""
    names = enqueue_many(server, 600)
    poison = parse_id(JOB, names[400])
    change = machine_bulk.change_job

    def explode(state: Any, ns: int, job_id: bytes, task: Any, expected: int) -> Any:
        if job_id == poison:
            raise RuntimeError("sabotage")
        return change(state, ns, job_id, task, expected)

    monkeypatch.setattr(machine_bulk, "change_job", explode)
    answer = bulk(server, "delete", names)
    assert (answer["affected"], answer["errors"]) == (599, 1)
    assert server.job(names[400])["state"] == "pending"
    assert server.faults
    server.faults.clear()


# --- by filter ------------------------------------------------------------------------------------


class Shelf:
    """A finder over what a test puts in: everything matches, by rising id."""

    def __init__(self) -> None:
        self.jobs: dict[str, str] = {}
        self.failures: list[Exception] = []
        self.calls = 0

    async def __call__(
        self, ns: int, filter_text: bytes, cursor: bytes, limit: int, index: int
    ) -> Found:
        """Return a page."""
        assert (ns, index > 0) == (0, True)
        self.calls += 1
        if msgspec.json.decode(filter_text).get("queue") != "q":
            raise RequestError("no such filter", field="filter")
        if self.failures and cursor:
            raise self.failures.pop()
        pairs = sorted((parse_id(JOB, name) or b"", state) for name, state in self.jobs.items())
        page = [pair for pair in pairs if pair[0] > cursor]
        ids = b"".join(job_id for job_id, _ in page[:limit])
        states = bytes(STATE_NAMES.index(state) for _, state in page[:limit])
        return Found(ids, states, ids[-16:] if len(page) > limit else b"")


@pytest.fixture
def shelf() -> Shelf:
    """What the finder of `filtering` finds."""
    return Shelf()


@pytest.fixture
def filtering(shelf: Shelf) -> Iterator[Server]:
    """A server that can find jobs by a filter."""
    with running("slow", finder=shelf) as server:
        yield server


def test_filter_affects_all_matches_and_skips_what_changed(filtering: Server, shelf: Shelf):
    """More than a page, more than fifty; a job that moved on since is left alone."""
    names = enqueue_many(filtering, 6_000)
    shelf.jobs = dict.fromkeys(names, "pending")
    filtering.post(f"/jobs/{names[5]}/cancel")
    body = {"action": "cancel", "filter": {"queue": "q"}}
    dry = filtering.post("/jobs/bulk", body | {"dry_run": True}).json
    assert (dry["matched"], dry["skipped_reasons"]) == (6_000, {"changed": 1})
    reply = filtering.post("/jobs/bulk", body)
    assert reply.status == 200
    assert reply.json["affected"] == 5_999
    assert reply.json["skipped_reasons"] == {"changed": 1}
    bad = filtering.post("/jobs/bulk", {"action": "cancel", "filter": {"queue": "other"}})
    assert (bad.status, bad.json["field"]) == (400, "filter")


def test_view_that_goes_away_while_jobs_are_collected_only_delays(filtering: Server, shelf: Shelf):
    """The pages that are written down stay; the rest follows once the view is back."""
    names = enqueue_many(filtering, 10_500)
    shelf.jobs = dict.fromkeys(names, "pending")
    shelf.failures = [UnavailableError("restarting", code="VIEW_DOWN")]
    body = {"action": "delete", "filter": {"queue": "q"}}
    reply = filtering.post("/jobs/bulk", body)
    assert reply.status == 202
    found = wait_over(filtering, reply.json["bulk_operation_id"])
    assert (found["status"], found["affected"]) == ("completed", 10_500)
    assert found["filter"] == {"queue": "q"}


def test_filter_that_can_no_longer_be_read_fails_the_operation(filtering: Server, shelf: Shelf):
    """Nothing is changed unless all jobs were found."""
    names = enqueue_many(filtering, 6_000)
    shelf.jobs = dict.fromkeys(names, "pending")
    shelf.failures = [RequestError("what?", field="filter")]
    reply = filtering.post("/jobs/bulk", {"action": "delete", "filter": {"queue": "q"}})
    assert reply.status == 400
    assert filtering.get("/queues/q").json["pending"] == 6_000


def test_operations_are_listed_newest_first_page_by_page(server: Server):
    """Pages meet without gap or repeat, also when operations begin in between."""
    assert server.get("/bulk").json == {"operations": [], "cursor": None, "has_more": False}
    job = server.enqueue()
    made = [bulk(server, "hold", [job])["bulk_operation_id"] for _ in range(5)]
    first = server.get("/bulk?limit=2").json
    assert [each["id"] for each in first["operations"]] == [made[4], made[3]]
    assert first["operations"][0] == server.get(f"/bulk/{made[4]}").json
    assert (first["has_more"], first["cursor"]) == (True, made[3])
    bulk(server, "hold", [job])
    second = server.get(f"/bulk?limit=2&cursor={first['cursor']}").json
    last = server.get(f"/bulk?limit=2&cursor={second['cursor']}").json
    assert [each["id"] for each in second["operations"]] == [made[2], made[1]]
    assert [each["id"] for each in last["operations"]] == [made[0]]
    assert (last["has_more"], last["cursor"]) == (False, None)
    assert len(server.get("/bulk").json["operations"]) == 6


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=x", "limit=", "cursor=x", "cursor="]
)
def test_page_of_operations_that_cannot_be_is_refused(server: Server, query: str):
    """The field that is wrong is named."""
    reply = server.get(f"/bulk?{query}")
    assert (reply.status, reply.json["field"]) == (400, query.partition("=")[0])
