"""Sizes and times a client cannot exceed, and bytes that are no HTTP."""

import pytest

from corvo.api.http import Limits
from tests.integration.http.stage import LANES, Stage, get, on_loop, post, serve, wait_until

QUICK = Limits(sweep_ms=20, keep_alive_ms=300, head_ms=60, body_ms=60, linger_ms=60)


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_body_at_the_limit_passes_and_one_byte_more_is_413(lane: str) -> None:
    """The limit is the route's own; the refusal can be read although the body was not."""
    async with serve(lane) as stage:
        client = await stage.connect()
        assert (await client.ask(post("/tiny", b"1" * 1024))).status == 201
        answer = await client.ask(post("/tiny", b"1" * 1025))
        assert (answer.status, answer.json["code"]) == (413, "PAYLOAD_TOO_LARGE")
        assert answer.headers["connection"] == "close"
        assert await client.ended()


@pytest.mark.parametrize("path", ["/echo", "/read", "/ping"])
@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_huge_body_is_refused_and_the_client_can_read_why(lane: str, path: str) -> None:
    """Ten megabytes with a length, on hot and other routes: 413, not a reset connection."""
    async with serve(lane) as stage:
        client = await stage.connect()
        client.send(post(path, b"1" * 10_000_000))
        assert (await client.answer()).status == 413
        assert await client.ended()
        assert stage.order == []


@pytest.mark.parametrize("path", ["/tiny", "/read"])
@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_huge_chunked_body_is_refused_while_it_comes(lane: str, path: str) -> None:
    """A body of unknown length is counted as it arrives."""
    async with serve(lane) as stage:
        client = await stage.connect()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        client.send(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"1" * 65536 + b"\r\n"
        client.send(chunk * 80)
        assert (await client.answer()).status == 413
        assert await client.ended()


@on_loop
async def test_body_behind_an_early_answer_is_bounded_too() -> None:
    """An application that does not read the body is no way to send without limit."""
    async with serve(limits=Limits(body_bytes_max=200_000)) as stage:
        client = await stage.connect()
        head = b"POST /early HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = await client.ask(head + b"1\r\nx\r\n")
        assert answer.status == 200
        client.send((b"10000\r\n" + b"1" * 65536 + b"\r\n") * 10)
        assert await client.ended()


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_large_head_is_431_whole_or_dribbled_or_without_end(lane: str) -> None:
    """Headers are counted whether they come in one read, in many, or as one endless value."""
    async with serve(lane, Limits(head_bytes_max=4096)) as stage:
        many = "".join(f"X-{number}: {'v' * 80}\r\n" for number in range(60))
        for heads in (
            [post("/echo", headers=many)],
            [post("/echo", headers=f"X-Long: {'v' * 5000}\r\n")],
            [b"POST /echo HTTP/1.1\r\n", *([b"X-A: b\r\n" * 100] * 6)],
            [b"POST /echo HTTP/1.1\r\nX-Endless: ", *([b"v" * 1000] * 5)],
            [b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n\r\n"],
        ):
            client = await stage.connect()
            for piece in heads:
                client.send(piece)
                await client.writer.drain()
            answer = await client.answer()
            assert (answer.status, answer.json["code"]) == (431, "HEADERS_TOO_LARGE")
            assert await client.ended()
        client = await stage.connect()
        assert (await client.ask(post("/echo", headers=f"X: {'v' * 3900}\r\n"))).status == 201
        assert (await client.ask(post("/echo", b'"' + b"v" * 9000 + b'"'))).status == 201


@on_loop
async def test_endless_trailers_are_refused() -> None:
    """Headers behind a chunked body count as much as those before it."""
    async with serve(limits=Limits(head_bytes_max=4096)) as stage:
        client = await stage.connect()
        head = b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.send(head + b"1\r\n1\r\n0\r\n")
        for _ in range(600):
            client.send(b"X-Trailer: v\r\n")
            await client.writer.drain()
        assert (await client.answer()).status == 431


@pytest.mark.parametrize(
    "data",
    [
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /echo HTTP/1.1\r\nBad Header: x\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        b"CONNECT example.com:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET \xff\xfe HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
@on_loop
async def test_bytes_that_are_no_http_get_a_json_400_and_the_end(data: bytes) -> None:
    """Whatever comes, the answer is the error envelope; nothing is reported as our own failure."""
    async with serve() as stage:
        client = await stage.connect()
        answer = await client.ask(data)
        assert (answer.status, answer.json["code"]) == (400, "PARSE_ERROR")
        assert answer.headers["connection"] == "close"
        assert await client.ended()
        assert stage.reports == []
        assert stage.order == []


@pytest.mark.parametrize("path", ["/echo", "/read"])
@on_loop
async def test_body_shorter_than_its_length_is_400(path: str) -> None:
    """A client that closes its side amid a body is told so, and no handler sees the piece."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(post(path, b"0123456789")[:-3])
        client.writer.write_eof()
        assert (await client.answer()).json["code"] == "PARSE_ERROR"
        assert await client.ended()
        assert stage.order == []


@on_loop
async def test_body_longer_than_its_length_is_a_bad_next_request() -> None:
    """The surplus is parsed as a request, and refused as such after the answer."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(post("/echo", b"{}") + b"surplus}\r\n\r\n")
        assert (await client.answer()).status == 201
        assert (await client.answer()).status == 400
        assert await client.ended()


@on_loop
async def test_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    """Keep-alive ends by the sweep; a parked request is not idleness."""
    async with serve(limits=QUICK) as stage:
        parked = await stage.connect()
        parked.send(post("/park"))
        fresh, used, slow = [await stage.connect() for _ in range(3)]
        assert (await used.ask(post("/echo"))).status == 201
        assert (await slow.ask(get("/ping"))).status == 200
        for client in (fresh, used, slow):
            assert await client.ended()
        assert stage.listener.statistics().connections == 1
        stage.parked[0].reply(200, b"{}")
        assert (await parked.answer()).status == 200
        assert await parked.ended()


@pytest.mark.parametrize("path", ["/echo", "/read"])
@pytest.mark.parametrize("missing_count", [1, 40])
@on_loop
async def test_request_that_does_not_finish_is_408(path: str, missing_count: int) -> None:
    """A client that holds a head or a body back is refused by the same sweep."""
    async with serve(limits=QUICK) as stage:
        client = await stage.connect()
        client.send(post(path, b"{}")[:-missing_count])
        answer = await client.answer()
        assert (answer.status, answer.json["code"]) == (408, "REQUEST_TIMEOUT")
        assert await client.ended()
        assert stage.order == []


@on_loop
async def test_body_that_comes_fast_enough_may_take_longer_than_the_time_out() -> None:
    """Large bodies get time in proportion to what has arrived."""
    limits = Limits(sweep_ms=10, body_ms=20, body_bytes_per_second_min=1000)
    async with serve(limits=limits) as stage:
        client = await stage.connect()
        request = post("/echo", b'"' + b"x" * 2000 + b'"')
        client.send(request[:-1])
        probe = await stage.connect()
        # Time passes as the sweep sees it: a second connection is timed out meanwhile.
        probe.send(post("/echo", b"{}")[:-1])
        assert (await probe.answer()).status == 408
        client.send(request[-1:])
        assert (await client.answer()).status == 201


async def _refused(stage: Stage) -> None:
    client = await stage.connect()
    client.send(post("/tiny", b"1" * 5000))
    await client.answer()
    assert await client.ended()
    await wait_until(lambda: stage.listener.statistics().connections == 0)


@on_loop
async def test_refused_client_that_stays_is_cut_off() -> None:
    """A lingering close ends by itself."""
    async with serve(limits=QUICK) as stage:
        await _refused(stage)


@on_loop
async def test_refused_client_that_floods_is_cut_off() -> None:
    """What is thrown away is bounded."""
    async with serve(limits=Limits(discarded_bytes_max=1_000_000)) as stage:
        client = await stage.connect()
        client.send(post("/tiny", b"1" * 5000))
        await client.answer()
        client.send(b"1" * 2_000_000)
        await wait_until(lambda: stage.listener.statistics().connections == 0)
