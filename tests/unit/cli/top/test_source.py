"""Answers of all kinds, read by the one place that reads them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress

import pytest

from corvo.cli.top.actions import ACTIONS, Target, sentence, undone
from corvo.cli.top.facts import BulkResult
from corvo.cli.top.source import Source, is_away
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


class OneAnswer:
    """A transport at whose other end something always says the same."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.requests: list[Request] = []

    async def send(self, _base_url: str, request: Request) -> Reply:
        self.requests.append(request)
        return self.reply

    def stream(
        self, _base_url: str, _request: Request
    ) -> AbstractAsyncContextManager[AsyncStreamReply]:
        raise NotImplementedError

    async def close(self) -> None:
        return


def _source(body: bytes, kind: str = "application/json", index: str = "0") -> Source:
    reply = Reply(200, {"content-type": kind, "x-corvo-index": index}, body)
    return Source(AsyncClient("http://x", transport=OneAnswer(reply), retries=0), "http://x")


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
    with pytest.raises(ProtocolError, match="not what a Corvo server says"):
        asyncio.run(_source(b"<html></html>", "text/html").status())


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
        reply = Reply(200, {"content-type": "application/json", "x-corvo-index": "42"}, b"{}")
        transport = OneAnswer(reply)
        source = Source(AsyncClient("http://x", transport=transport, retries=0), "http://x")
        await source.search({})
        await source.pause("q", is_paused=True)
        await source.search({})
        paths = [request.path for request in transport.requests]
        assert paths == [
            "/api/v1/jobs/search",
            "/api/v1/queues/q/pause",
            "/api/v1/jobs/search?after=42",
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


def test_outcomes_are_told_in_one_line() -> None:
    """How many, how many not and why, and whether it can be taken back."""
    delete = ACTIONS["delete"]
    done = BulkResult(affected=1, skipped=2, skipped_reasons={"not_found": 2}, undo_until="soon")
    assert sentence(delete, done) == ("deleted 1 job · skipped 2 (2 not found) · u takes it back")
    assert "goes on in the server" in sentence(delete, BulkResult(status="running", affected=5))
    assert "1 error" in sentence(delete, BulkResult(errors=1))
    assert undone(BulkResult(restored=2, not_restored=1)) == (
        "brought back 2 jobs · 1 were touched since and stay as they are"
    )


def test_a_target_is_either_names_or_a_filter() -> None:
    """The body of a bulk call never has both."""
    assert Target(job_ids=["a"]).body("retry") == {"action": "retry", "job_ids": ["a"]}
    assert Target(filter={}).body("move", "q") == {
        "action": "move",
        "filter": {},
        "move_to_queue": "q",
    }
