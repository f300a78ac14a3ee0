"""What a read side must never do: lose what it alone had, stumble over a row, forget the rest."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from corvo.view.follower import FILE_PATTERN
from tests.support.process import ServerProcess
from tests.support.walk import Walk


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the server that tests share; each of them has a queue of its own."""
    return tmp_path_factory.mktemp("reads")


@pytest.fixture(scope="module")
def walk(data: Path) -> Iterator[Walk]:
    """A client of a server with its view, whose reads see its writes."""
    with ServerProcess(data) as process:
        found = Walk(process.port)
        yield found
        found.close()


def enqueue(walk: Walk, queue: str = "q", **fields: Any) -> str:
    """Enqueue a job and return its id."""
    return walk("POST", "/enqueue", {"queue": queue} | fields, status=201)["job_id"]


def finish(walk: Walk, queue: str = "q", **report: Any) -> str:
    """Fetch a job and complete it."""
    body = {"queues": [queue], "worker_id": "w", "timeout": 5}
    job = walk("POST", "/fetch", body)["job_id"]
    walk("POST", "/ack/{id}", report, id=job)
    return job


def found(walk: Walk, **fields: Any) -> list[str]:
    """Search."""
    return [job["id"] for job in walk("POST", "/jobs/search", fields)["jobs"]]


def test_what_operators_set_up_does_not_live_in_the_view(tmp_path: Path):
    """With the view's files gone, queues, limits, schedules, webhooks and operations are there."""
    asked = ("/queues", "/limits", "/schedules", "/webhooks", "/bulk")
    with ServerProcess(tmp_path) as process:
        walk = Walk(process.port)
        walk("PATCH", "/queues/{name}", {"max_concurrency": 3}, name="mail")
        walk("PUT", "/limits/{name}", {"max": 3}, name="api")
        cron = {"name": "daily", "queue": "mail", "cron": "0 9 1 1 *"}
        walk("POST", "/schedules", cron, status=201)
        hook = {"url": "https://example.com/", "events": ["queue.*"], "enabled": False}
        walk("POST", "/webhooks", hook, status=201)
        job = enqueue(walk, "mail")
        walk("POST", "/jobs/bulk", {"action": "hold", "job_ids": [job]})
        before = [walk("GET", path) for path in asked]
        walk.close()
        process.stop()
        shutil.rmtree(tmp_path / "view")
        process.start()
        walk = Walk(process.port)
        walk.index = int(walk("GET", "/cluster/status")["index"])
        assert [walk("GET", path) for path in asked] == before
        assert found(walk, queue="mail") == [job]
        walk.close()
        process.stop()


def test_usage_and_errors_are_there_after_a_rebuild(tmp_path: Path):
    """What a worker reported is in the store, so building anew brings it back."""
    with ServerProcess(tmp_path) as process:
        walk = Walk(process.port)
        enqueue(walk)
        usage = {"input_tokens": 12, "output_tokens": 34, "model": "m", "cost_usd": 0.25}
        job = finish(walk, usage=usage)
        dead = enqueue(walk, max_retries=1)
        walk("POST", "/fetch", {"queues": ["q"], "worker_id": "w", "timeout": 5})
        walk("POST", "/fail/{id}", {"error": "boom"}, id=dead)
        assert walk("GET", "/dead")["jobs"][0]["last_error"] == "boom"
        before = rows(tmp_path)
        walk("POST", "/admin/rebuild-sqlite", status=202)
        for _ in range(5_000):
            progress = walk("GET", "/admin/rebuild-sqlite")
            if progress["status"] == "done" and progress["view"] == "ok":
                break
        assert walk("GET", "/dead")["jobs"][0]["last_error"] == "boom"
        assert rows(tmp_path) == before
        assert walk("GET", "/jobs/{id}", id=job)["usage"] == usage
        walk.close()
        process.stop()
    assert [row[1:3] for row in before[0]] == [(12, 34)]
    assert len(before[1]) == 1


def file_of(data: Path) -> str:
    """The file of the view that is in use; a rebuild makes another one."""
    return str(max((data / "view").glob(FILE_PATTERN)))


def rows(data: Path) -> tuple[list[Any], list[Any]]:
    """Usage and errors as the view has them."""
    connection = apsw.Connection(file_of(data), flags=apsw.SQLITE_OPEN_READONLY)
    usage = "SELECT phase, input_tokens, output_tokens, model, cost_microusd FROM job_usage"
    errors = "SELECT attempt, error FROM job_errors"
    try:
        return list(connection.execute(usage)), list(connection.execute(errors))
    finally:
        connection.close()


def test_job_without_tags_is_no_obstacle_to_a_search_by_tag(walk: Walk):
    """Completed, dead and pending ones, with empty tags and with none."""
    for tags in (None, {}, {"tenant": "acme"}):
        enqueue(walk, "tagged", tags=tags)
        finish(walk, "tagged")
        enqueue(walk, "tagged", tags=tags)
    assert len(found(walk, queue="tagged", tags={"tenant": "acme"})) == 2
    assert found(walk, tags={"": "x"}) == []
    assert len(found(walk, queue="tagged", tags={})) == 6


def test_child_of_an_unknown_parent_is_found_and_a_parent_can_go(walk: Walk):
    """A tie to something that is not there harms neither end of it."""
    nobody = "job_" + "0" * 26
    child = enqueue(walk, "tied", parent_id=nobody)
    assert found(walk, parent_id=nobody) == [child]
    parent = enqueue(walk, "tied")
    children = [enqueue(walk, "tied", parent_id=parent) for _ in range(2)]
    walk("DELETE", "/jobs/{id}", id=parent)
    assert sorted(found(walk, parent_id=parent)) == sorted(children)
    assert parent not in found(walk, queue="tied")
    assert len(walk("GET", "/jobs/{id}/graph", id=children[0])["jobs"]) == 1


def test_bulk_by_filter_takes_more_than_a_page(walk: Walk):
    """All matches, whatever a page of a search holds; and none of the others."""
    jobs = [{"queue": "many"}] * 1_300 + [{"queue": "few"}] * 2
    walk("POST", "/enqueue/batch", {"jobs": jobs}, status=201)
    done = walk("POST", "/jobs/bulk", {"action": "cancel", "filter": {"queue": "many"}})
    assert (done["affected"], done["skipped"]) == (1_300, 0)
    totals = {queue["name"]: queue for queue in walk("GET", "/queues")}
    assert (totals["many"]["cancelled"], totals["many"]["pending"]) == (1_300, 0)
    assert totals["few"]["pending"] == 2
    page = walk("POST", "/jobs/search", {"queue": "many", "state": ["cancelled"], "limit": 1})
    assert (page["total"], page["total_is_estimate"]) == (1_300, False)


def test_text_index_neither_grows_nor_slows_with_updates(walk: Walk, data: Path):
    """A job that is changed a hundred times is one row of the index, and is found as it is."""
    job = enqueue(walk, payload={"word": "xylophone"})
    for _ in range(50):
        walk("POST", "/jobs/{id}/priority", {"priority": "high"}, id=job)
        walk("POST", "/jobs/{id}/priority", {"priority": "normal"}, id=job)
    (match,) = walk("GET", "/search/fulltext", query="q=xylophone")["results"]
    assert (match["id"], match["priority"]) == (job, "normal")
    connection = apsw.Connection(file_of(data), flags=apsw.SQLITE_OPEN_READONLY)
    counts = "SELECT (SELECT count(*) FROM jobs_text_docsize), (SELECT count(*) FROM jobs)"
    indexed, stored = connection.execute(counts).get
    assert indexed == stored
    connection.close()
