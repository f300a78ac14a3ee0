"""What happens in one namespace is nobody's business in another.

There is one namespace for callers so far, so a second one is made where it can be: commands name
theirs, and the one place that names a caller is told to believe a parameter of the query.
"""

import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest

from corvo.api import routing
from corvo.model.command import AckJob, Command, EnqueueJob, FetchJobs
from corvo.model.ids import JOB, render_id
from corvo.model.principal import Principal
from tests.factories import make_job_id, make_spec
from tests.support.events import EventReader
from tests.support.server import Server, running

THEIRS = "?as=1"


def _principal(scope: Any) -> Principal:
    query = parse_qs(scope["query_string"].decode())
    return Principal("someone", int(query.get("as", ["0"])[0]))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that takes a caller's word for its namespace."""
    monkeypatch.setattr(routing, "principal_of", _principal)
    with running("fast") as found:
        yield found


def perform(server: Server, *commands: Command) -> list[Any]:
    """Let the engine do something, in any namespace."""

    async def work() -> list[Any]:
        return [(await server.engine.perform(command))[0] for command in commands]

    return server.run(work)


def enqueue_there(server: Server, number: int, queue: str = "q") -> str:
    """Enqueue a job in the other namespace."""
    perform(server, EnqueueJob(make_spec(number, queue, ns=1)))
    return render_id(JOB, make_job_id(number))


@pytest.mark.parametrize("more", ["", "&queue=q", "&type=enqueued", "&queue=*"])
def test_stream_shows_its_own_namespace_only(server: Server, more: str):
    """With and without filters, live and read back."""
    with (
        EventReader(server.port, "?as=0" + more) as own,
        EventReader(server.port, THEIRS + more) as other,
    ):
        for number in range(3):
            theirs = enqueue_there(server, number)
            mine = server.enqueue("q")
            found = _enqueued(own), _enqueued(other)
            assert found == (mine, theirs)
    with (
        EventReader(server.port, "?as=0" + more, last=0) as own,
        EventReader(server.port, THEIRS + more, last=0) as other,
    ):
        shown = {_enqueued(own) for _ in range(3)}, {_enqueued(other) for _ in range(3)}
    assert len(shown[0]) == len(shown[1]) == 3
    assert not shown[0] & shown[1]


def _enqueued(reader: EventReader) -> str:
    while (message := reader.event()).event != "enqueued":
        assert message.data["queue"] == "q"
    return message.data["job_id"]


def test_stream_of_a_job_of_another_namespace_is_silent(server: Server):
    """Knowing an id is not enough."""
    theirs = enqueue_there(server, 1)
    mine = server.enqueue("q")
    with EventReader(server.port, f"?as=0&job_id={theirs},{mine}", last=0) as reader:
        assert _enqueued(reader) == mine


def test_pages_of_events_are_of_the_caller(server: Server):
    """`GET /cluster/events` passes over what is not the caller's."""
    theirs = enqueue_there(server, 1)
    mine = server.enqueue("q")
    for query, job in (("?as=0", mine), (THEIRS, theirs)):
        events = server.get("/cluster/events" + query).json["events"]
        assert {event["job_id"] for event in events} == {None, job}


def test_throughput_counts_the_callers_queues(server: Server):
    """Queues of one name in two namespaces are two queues, and sums are apart, too."""
    for number in range(3):
        enqueue_there(server, number)
    server.enqueue("q")
    server.wait_until(lambda: server.live.seq == server.engine.seq)
    for query, count in (("?as=0", 1), (THEIRS, 3)):
        for more in ("", "&queue=q"):
            minutes = server.get("/metrics/throughput" + query + more).json["minutes"]
            assert sum(minute["enqueued"] for minute in minutes) == count
    nobody = server.get("/metrics/throughput?as=2").json["minutes"]
    assert sum(minute["enqueued"] for minute in nobody) == 0


def test_wait_and_timeline_of_another_namespace_are_unknown(server: Server):
    """A job of another namespace is 404, as if it were not there."""
    theirs = enqueue_there(server, 1)
    for path in ("wait", "events"):
        assert server.get(f"/jobs/{theirs}/{path}?as=0").status == 404
    assert server.get(f"/jobs/{theirs}/wait{THEIRS}&timeout=0").status == 204
    assert server.get(f"/jobs/{theirs}/events{THEIRS}").status == 200


def test_wait_ends_when_the_job_of_its_namespace_does(server: Server):
    """What ends in another namespace wakes nobody here."""
    theirs = enqueue_there(server, 1)
    perform(server, EnqueueJob(make_spec(2, "q", ns=0)))
    answers: list[Any] = []

    def wait() -> None:
        answers.append(server.get(f"/jobs/{theirs}/wait{THEIRS}").json)
        server.close_connection()

    waiting = threading.Thread(target=wait)
    waiting.start()
    server.wait_until(lambda: server.live.waits.count == 1)
    perform(server, FetchJobs(0, ["q"], "w"), AckJob(0, make_job_id(2)))
    server.wait_until(lambda: server.live.seq == server.engine.seq)
    assert (server.live.waits.count, answers) == (1, [])
    perform(server, FetchJobs(1, ["q"], "w"), AckJob(1, make_job_id(1)))
    waiting.join(20)
    assert answers[0]["state"] == "completed"
