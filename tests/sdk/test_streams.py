"""Streams over real sockets: events that resume, downloads that are whole or an error."""

from io import BytesIO
from itertools import islice
from typing import Any

import pytest

from corvo_sdk.errors import (
    ConnectionFailedError,
    UnavailableError,
    ValidationError,
    ViewUnavailableError,
)
from tests.support.rude import RudeServer, refusal, rude
from tests.support.sdk import client_of
from tests.support.server import Server

STREAM = {"content-type": "text/event-stream"}


def _piece(*seqs: int) -> bytes:
    return b"".join(
        b'event: enqueued\nid: %d\ndata: {"seq":%d,"type":"enqueued","queue":"q"}\n\n' % (seq, seq)
        for seq in seqs
    )


def test_events_of_a_server_are_typed(client: Any, server: Server) -> None:
    """From a point in the past on, filtered, in order."""
    jobs = [server.enqueue("a", payload=n) for n in range(3)]
    server.enqueue("b")
    events = client.events(queue=["a"], event_type="enqueued", last_event_id=0)
    found = list(islice(events, 3))
    events.close()
    assert [event.job_id for event in found] == jobs
    assert {event.type for event in found} == {"enqueued"}
    assert all(event.at.tzinfo is not None for event in found)


def test_broken_stream_goes_on_where_it_was(shell: str) -> None:
    """Across ends, halves, drops and refusals every event comes exactly once."""
    with rude() as server:
        server.script = [
            (200, STREAM, b"retry: 10\nid: 0\n: hello\n\n" + _piece(1, 2) + b"id: 3\ndata: {"),
            "drop",
            refusal(503, "DRAINING", retry_after_ms=10),
            (200, STREAM, _piece(3) + b": beat\nid: 7\n\n"),
            (200, STREAM, _piece(8)),
        ]
        with client_of(shell, server.url) as client:
            events = client.events(queue="q", last_event_id=0)
            assert [event.seq for event in islice(events, 4)] == [1, 2, 3, 8]
            events.close()
        sent = [request.headers.get("last-event-id") for request in server.seen]
    assert sent == ["0", "2", "2", "2", "7"]
    assert server.seen[0].path == "/api/v1/events?queue=q"


def test_stream_nobody_serves_is_given_up(shell: str) -> None:
    """Patience has an end."""
    with rude() as gone:
        url = gone.url
    with client_of(shell, url, retries=0) as client, pytest.raises(ConnectionFailedError):
        list(client.events(patience_s=0.2))


def test_bad_filter_is_the_callers_error(client: Any) -> None:
    """What can not get better by waiting is not repeated."""
    with pytest.raises(ValidationError):
        next(client.events(job_id="nonsense"))


def test_download_that_breaks_is_an_error(shell: str, middle: RudeServer, server: Server) -> None:
    """An archive that is cut off is never taken for a whole one."""
    server.enqueue("q", payload="x" * 1_000)
    middle.script = ["half", "cut"]
    with client_of(shell, middle.url) as client:
        for _ in range(2):
            with pytest.raises(ConnectionFailedError):
                client.export(BytesIO())
        whole = BytesIO()
        client.export(whole)
    assert b'"kind":"end"' in whole.getvalue().splitlines()[-1]


def test_search_that_can_not_go_on_does_not_look_complete(shell: str) -> None:
    """A part of the matches without a way to the rest is an error after what was found."""
    page = b'{"jobs":[{"id":"a","queue":"q","state":"dead"}],"partial":true,"has_more":%b,%b}'
    with rude() as server, client_of(shell, server.url) as client:
        server.script = [
            (200, {}, page % (b"true", b'"cursor":"c"')),
            (200, {}, page % (b"true", b'"cursor":null,"hint":"narrow it"')),
        ]
        found = client.search(queue="q")
        assert [job.id for job in islice(found, 2)] == ["a", "a"]
        with pytest.raises(ViewUnavailableError) as caught:
            next(found)
    assert caught.value.hint == "narrow it"


def test_refused_download_writes_nothing(shell: str) -> None:
    """The refusal is an error and not the content of the file."""
    with rude() as server:
        server.script = [refusal(503, "DRAINING", retry_after_ms=60_000)]
        file = BytesIO()
        with client_of(shell, server.url) as client, pytest.raises(UnavailableError):
            client.backup(file)
    assert file.getvalue() == b""
