"""Answers of all kinds, read by the one place that reads them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import msgspec
import pytest

from corvo.cli.top.actions import ACTIONS, Target, perform, preview, sentence, undone
from corvo.cli.top.source import Search, Source, is_away
from corvo_sdk import AsyncClient
from corvo_sdk.errors import (
    ConnectionFailedError,
    CorvoError,
    NotFoundError,
    ProtocolError,
    UnavailableError,
    ViewUnavailableError,
)
from corvo_sdk.protocol.call import Reply, Request
from corvo_sdk.transport.ports import AsyncStreamReply
from corvo_sdk.types import Bulk, BulkResult, JobEvent


class OneAnswer:
    """A transport at whose other end something always says the same."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.requests: list[Request] = []

    async def send(self, _base_url: str, request: Request) -> Reply:
        self.requests.append(request)
        return self.reply

    @asynccontextmanager
    async def stream(
        self, _base_url: str, request: Request
    ) -> AsyncGenerator[AsyncStreamReply, None]:
        self.requests.append(request)

        async def chunks() -> AsyncIterator[bytes]:
            yield self.reply.body

        yield AsyncStreamReply(self.reply.status, self.reply.headers, chunks())

    async def close(self) -> None:
        return


def _talk(body: bytes, kind: str = "application/json") -> tuple[Source, OneAnswer]:
    transport = OneAnswer(Reply(200, {"content-type": kind}, body))
    return Source(AsyncClient("http://x", transport=transport, retries=0), "http://x"), transport


def _source(body: bytes, kind: str = "application/json") -> Source:
    return _talk(body, kind)[0]


@pytest.mark.parametrize(
    "ask",
    [
        Source.status,
        Source.version,
        Source.queues,
        Source.workers,
        Source.groups,
        Source.throughput,
    ],
)
@pytest.mark.parametrize("body", [b"<html>hello</html>", b"[1]", b'{"queues":1,"groups":7}', b""])
def test_something_else_at_the_address_is_told_and_ends_nothing(
    ask: Callable[[Source], Awaitable[object]], body: bytes
) -> None:
    """An answer of another form is an error of the call, or is read as nothing known."""
    kind = "text/html" if body.startswith(b"<") else "application/json"

    async def call() -> None:
        with suppress(ProtocolError):
            await ask(_source(body, kind))

    asyncio.run(call())
    for strange in (b"<html></html>", b'{"view":7}'):
        with pytest.raises(ProtocolError, match="the answer can not be read"):
            asyncio.run(_source(strange).status())


def test_fields_of_a_later_version_are_passed_over() -> None:
    """A screen of one version reads a server of another."""

    async def call() -> None:
        body = b'{"phase":"serving","index":7,"new":{"x":1},"view":{"state":"ok","hue":2}}'
        status = await _source(body).status()
        assert (status.phase, status.index, status.view.state) == ("serving", 7, "ok")

    asyncio.run(call())


def test_a_read_of_the_index_waits_for_our_own_write() -> None:
    """After a change, searches ask for an index that has seen it."""

    async def call() -> None:
        source, transport = _talk(b'{"jobs":[],"groups":[],"status":"paused","index":42}')
        await source.search(Search())
        await source.pause("q", is_paused=True)
        await source.search(Search())
        await source.groups()
        paths = [request.path for request in transport.requests]
        assert paths == [
            "/api/v1/jobs/search?strict=true",
            "/api/v1/queues/q/pause",
            "/api/v1/jobs/search?strict=true&after=42",
            "/api/v1/dead/groups?limit=200&after=42",
        ]

    asyncio.run(call())


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (ConnectionFailedError("x", was_sent=False), True),
        (UnavailableError("x", status=503), True),
        (ViewUnavailableError("x", status=503), False),
        (NotFoundError("x", status=404), False),
    ],
)
def test_a_missing_search_index_is_not_a_missing_server(error: CorvoError, away: bool) -> None:
    """Only who does not answer at all is reconnected to."""
    assert is_away(error) is away


STREAM = b"""\
: hello
id: 4

event: reset
id: 5
data: {"oldest_seq":6}

event: started
id: 7
data: {"seq":7,"type":"started","at":"2026-01-01T00:00:00Z","job_id":"j","data":{"attempt":1}}

event: closed
data: {"reason":"draining","last_seq":7}

"""


def test_only_what_happened_to_the_job_comes_out_of_a_stream() -> None:
    """News about the stream itself is no event; who is not patient is told of its end."""

    async def call() -> None:
        source, transport = _talk(STREAM, "text/event-stream")
        seen: list[JobEvent] = []
        with pytest.raises(ConnectionFailedError, match="the stream ended"):
            async for event in source.follow("j", 3, is_patient=False):
                seen.append(event)
        assert [(event.seq, event.type, event.data) for event in seen] == [
            (7, "started", {"attempt": 1})
        ]
        (request,) = transport.requests
        assert request.path == "/api/v1/events?job_id=j"
        assert request.headers["last-event-id"] == "3"

    asyncio.run(call())


def test_outcomes_are_told_in_one_line() -> None:
    """How many, how many not and why, and whether it can be taken back."""
    delete = ACTIONS["delete"]
    done = BulkResult(
        affected=1,
        skipped=2,
        skipped_reasons={"not_found": 2},
        undo_until=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert sentence(delete, done) == ("deleted 1 job · skipped 2 (2 not found) · u takes it back")
    running = Bulk(id="bulk_1", status="running", affected=5)
    assert "goes on in the server" in sentence(delete, running)
    assert "1 error" in sentence(delete, BulkResult(errors=1))
    assert undone(Bulk(id="bulk_1", status="undone", restored=2, not_restored=1)) == (
        "brought back 2 jobs · 1 were touched since and stay as they are"
    )


def test_a_target_is_either_names_or_a_filter() -> None:
    """The body of a bulk call never has both; a filter is counted first, names are not."""

    async def call() -> None:
        source, transport = _talk(b'{"matched":3}')
        assert (await preview(source, ACTIONS["move"], Target(filter={}, count=9))).count == 3
        assert (await preview(source, ACTIONS["move"], Target(job_ids=["a"], count=1))).count == 1
        await perform(source, ACTIONS["retry"], Target(job_ids=["a"]))
        await perform(source, ACTIONS["move"], Target(filter={"queue": "p"}), "q")
        assert [msgspec.json.decode(request.body or b"") for request in transport.requests] == [
            {"action": "move", "filter": {}, "move_to_queue": "dry-run", "dry_run": True},
            {"action": "retry", "job_ids": ["a"]},
            {"action": "move", "filter": {"queue": "p"}, "move_to_queue": "q"},
        ]

    asyncio.run(call())


def test_an_operation_that_takes_its_time_is_waited_for() -> None:
    """An answer that only says where to look is followed to the counts."""

    async def call() -> None:
        source, transport = _talk(
            b'{"bulk_operation_id":"bulk_1","progress_url":"/x","id":"bulk_1",'
            b'"status":"completed","affected":20000}'
        )
        result = await perform(source, ACTIONS["retry"], Target(filter={}))
        assert isinstance(result, Bulk)
        assert sentence(ACTIONS["retry"], result) == "retried 20,000 jobs"
        assert transport.requests[-1].path == "/api/v1/bulk/bulk_1"

    asyncio.run(call())
