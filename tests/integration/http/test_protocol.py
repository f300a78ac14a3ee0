"""HTTP/1.1 as clients speak it: versions, chunks, expectations, upgrades, odd packet borders."""

import socket

import pytest

from corvo.api.http.fastlane import FastLaneProtocol
from tests.integration.http.stage import LANES, get, on_loop, post, serve, wait_until

JSON_HEAD = b"Host: x\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("connection", ["", "Connection: keep-alive\r\n"])
@on_loop
async def test_http_1_0_is_answered_and_closed(lane: str, connection: str) -> None:
    """An HTTP/1.0 client gets one answer per connection, marked as the last."""
    async with serve(lane) as stage:
        client = await stage.connect()
        head = f"POST /echo HTTP/1.0\r\n{connection}Content-Type: application/json\r\n"
        answer = await client.ask(head.encode() + b"Content-Length: 2\r\n\r\n{}")
        assert (answer.status, answer.headers["connection"]) == (201, "close")
        assert await client.ended()


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_chunked_body_is_put_together_and_trailers_are_dropped(lane: str) -> None:
    """Chunks with extensions and trailers make one body; a trailer cannot pose as a header."""
    async with serve(lane) as stage:
        client = await stage.connect()
        head = b"POST /echo HTTP/1.1\r\n" + JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        chunks = b'4;a=b\r\n{"a"\r\n2\r\n:1\r\n1\r\n}\r\n0\r\nX-Mark: trailer\r\n\r\n'
        answer = await client.ask(head + chunks)
        assert answer.body == b'{"a":1}'
        if lane == "fast":
            assert answer.headers["x-mark"] == ""
        assert (await client.ask(head + b"2\r\n{}\r\n0\r\n\r\n")).body == b"{}"


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_bytes_dribbled_one_at_a_time_make_the_same_requests(lane: str) -> None:
    """Packet borders mean nothing."""
    async with serve(lane) as stage:
        client = await stage.connect()
        chunked = (
            b"POST /item/7?q=1 HTTP/1.1\r\n" + JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        )
        data = post("/echo?a=b", b'{"a":1}') + chunked + b"2\r\n{}\r\n0\r\n\r\n" + get("/ping")
        for index in range(len(data)):
            client.send(data[index : index + 1])
            # Wait for the server to have taken this byte, so that each is a read of its own.
            await wait_until(lambda count=index + 1: stage.listener.statistics().bytes_in == count)
        answer = await client.answer()
        assert (answer.body, answer.headers["x-query"]) == (b'{"a":1}', "a=b")
        assert (await client.answer()).json["argument"] == "7"
        assert (await client.answer()).json == {"pong": True}


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_expected_continue_is_sent_before_the_body(lane: str) -> None:
    """A client may wait for the invitation; the answer follows the body."""
    async with serve(lane) as stage:
        client = await stage.connect()
        request = post("/echo", b'{"a":1}', headers="Expect: 100-continue\r\n")
        client.send(request[:-7])
        assert await client.reader.readexactly(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(request[-7:])
        assert (await client.answer()).body == b'{"a":1}'


@on_loop
async def test_continue_waits_for_the_answers_before_it() -> None:
    """An interim answer keeps its place in the order."""
    async with serve() as stage:
        client = await stage.connect()
        request = post("/echo", b"2", headers="Expect: 100-continue\r\n")
        client.send(post("/delay", b"1") + request[:-1])
        await wait_until(lambda: stage.listener.statistics().bytes_in > len(request))
        stage.delayed[0].reply(200, b"1")
        assert (await client.answer()).body == b"1"
        assert await client.reader.readexactly(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"2")
        assert (await client.answer()).body == b"2"


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_refused_expectation_is_final(lane: str) -> None:
    """413 instead of the invitation when the length is too large, 417 for any other expectation."""
    async with serve(lane) as stage:
        client = await stage.connect()
        client.send(post("/tiny", b"1" * 2000, headers="Expect: 100-continue\r\n")[:-2000])
        assert (await client.answer()).status == 413
        client = await stage.connect()
        answer = await client.ask(post("/echo", headers="Expect: miracles\r\n"))
        assert (answer.status, answer.json["code"]) == (417, "EXPECTATION_FAILED")


@pytest.mark.parametrize("path", ["/echo", "/read"])
@on_loop
async def test_wish_for_another_protocol_is_ignored_and_the_body_is_kept(path: str) -> None:
    """A client that offers HTTP/2 with its first request, as Java's does, is served in HTTP/1.1."""
    async with serve() as stage:
        client = await stage.connect()
        wish = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
        client.send(post(path, b"123", headers=wish) + post("/echo", b"2"))
        assert (await client.answer()).body in (b"123", b'{"size":3}')
        assert (await client.answer()).body == b"2"


@on_loop
async def test_many_wishes_for_another_protocol_in_one_write_are_all_ignored() -> None:
    """A pipeline of such requests costs no stack: each is parsed again on its own."""
    async with serve() as stage:
        client = await stage.connect()
        wish = "Connection: Upgrade, close-not\r\nUpgrade: h2c\r\n"
        client.send(b"".join(post("/echo", b"%d" % n, headers=wish) for n in range(1500)))
        for number in range(1500):
            assert (await client.answer()).body == b"%d" % number


@on_loop
async def test_target_in_absolute_form_is_served() -> None:
    """A proxy's form of the target reaches the same handler."""
    async with serve() as stage:
        client = await stage.connect()
        assert (await client.ask(post("http://x/echo"))).status == 201


@on_loop
async def test_accepted_sockets_send_without_delay() -> None:
    """TCP_NODELAY is on, or small answers would wait for acknowledgements."""
    async with serve() as stage:
        client = await stage.connect()
        await client.ask(post("/echo"))
        (connection,) = stage.listener._edge.connections  # pyright: ignore[reportPrivateUsage]
        assert isinstance(connection, FastLaneProtocol)
        sock: socket.socket = connection.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
