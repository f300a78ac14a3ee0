"""Requests with headers seen before take a shorter way and must come out the same."""

import pytest

from corvo.api.http.known import KnownHeads
from tests.integration.http.stage import on_loop, post, serve

HEAD = b"POST /api/v1/enqueue HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def request(body: bytes, head: bytes = HEAD) -> bytes:
    """Write a request with its length."""
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


FIELDS = [(b"Host", b"x"), (b"Content-Type", b"application/json"), (b"Content-Length", b"2")]


def test_a_learnt_head_is_found_again_with_its_target_and_body() -> None:
    """What was learnt from one request describes the next one with equal headers."""
    known = KnownHeads()
    known.learn(request(b"{}"), FIELDS)
    found = known.find(request(b"[]", HEAD.replace(b"enqueue", b"ack/job_1")))
    assert found is not None
    target, head, body_at = found
    assert target == b"/api/v1/ack/job_1"
    assert head == {name.lower(): value for name, value in FIELDS}
    assert request(b"[]", HEAD.replace(b"enqueue", b"ack/job_1"))[body_at:] == b"[]"


@pytest.mark.parametrize(
    "data",
    [
        request(b"{}") + b"POST",
        request(b"{}")[:-1],
        request(b"{} "),
        request(b"{}").replace(b"POST", b"PUT"),
        request(b"{}").replace(b"HTTP/1.1", b"HTTP/1.0"),
        b"\r\n\r\n",
        b"",
        b"POST",
    ],
)
def test_anything_but_one_whole_known_request_is_left_to_the_parser(data: bytes) -> None:
    """A second request behind it, a missing byte, another method or version: not this way."""
    known = KnownHeads()
    known.learn(request(b"{}"), FIELDS)
    assert known.find(data) is None


@pytest.mark.parametrize("name", [b"Transfer-Encoding", b"Expect", b"Connection", b"Upgrade"])
def test_headers_that_ask_something_of_the_transport_are_not_learnt(name: bytes) -> None:
    """Such requests always go through the parser."""
    known = KnownHeads()
    head = HEAD + name + b": y\r\n"
    known.learn(request(b"{}", head), [*FIELDS, (name, b"y")])
    assert known.find(request(b"{}", head)) is None


def test_the_memory_is_bounded() -> None:
    """Ten thousand different clients do not fill it."""
    known = KnownHeads()
    for number in range(10_000):
        head = HEAD + b"X-Client: %d\r\n" % number
        known.learn(request(b"{}", head), [*FIELDS, (b"X-Client", b"%d" % number)])
    assert len(known._blocks) <= 2_048


@on_loop
async def test_repeated_requests_on_one_connection_get_equal_answers() -> None:
    """The first, parsed, and the rest, looked up, cannot be told apart from outside."""
    async with serve("fast") as stage:
        client = await stage.connect()
        mark = "X-Mark: seven\r\n"
        answers = [await client.ask(post("/echo", b'{"a":1}', headers=mark)) for _ in range(5)]
        assert {(a.status, a.body, a.headers["x-mark"]) for a in answers} == {
            (201, b'{"a":1}', "seven")
        }
        assert (await client.ask(post("/tiny", b"x" * 2000))).status == 413


@on_loop
async def test_a_known_head_does_not_excuse_other_checks() -> None:
    """Limits of the route, failing handlers and parked requests behave as on the first time."""
    async with serve("fast") as stage:
        client = await stage.connect()
        body = b'"' + b"x" * 1500 + b'"'
        assert (await client.ask(post("/echo", body))).status == 201
        assert (await client.ask(post("/echo", body))).status == 201
        assert (await client.ask(post("/tiny", body))).status == 413
        other = await stage.connect()
        for _ in range(3):
            assert (await other.ask(post("/boom"))).status == 500
            assert (await other.ask(post("/none"))).status == 204
        assert len(stage.reports) == 3
