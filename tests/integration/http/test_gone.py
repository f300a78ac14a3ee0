"""Clients that leave, close one side, or do not read."""

import asyncio
import socket
from typing import cast

import pytest

from corvo.api.http import Limits
from tests.integration.http.stage import LANES, Client, Stage, get, on_loop, post, serve, wait_until

QUICK = Limits(sweep_ms=20, half_close_ms=40)


async def _parked(stage: Stage) -> Client:
    client = await stage.connect()
    before = len(stage.parked)
    client.send(post("/park"))
    await wait_until(lambda: len(stage.parked) == before + 1)
    return client


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("manner", ["close", "reset"])
@on_loop
async def test_client_that_leaves_while_parked_is_noticed_once(lane: str, manner: str) -> None:
    """`on_gone` is called once, the exchange says so, and a late reply is dropped."""
    async with serve(lane, QUICK) as stage:
        client = await _parked(stage)
        if manner == "close":
            client.writer.close()
        else:
            client.reset()
        await wait_until(lambda: len(stage.gone) == 1)
        (exchange,) = stage.gone
        assert exchange.is_gone
        exchange.reply(200, b"{}")
        await wait_until(lambda: stage.listener.statistics().connections == 0)
        assert stage.reports == []
        assert len(stage.gone) == 1


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_parked_request_is_answered_without_on_gone(lane: str) -> None:
    """An answered exchange never hears of its client's leaving."""
    async with serve(lane, QUICK) as stage:
        client = await _parked(stage)
        assert stage.listener.statistics().open == 1
        stage.parked.pop().reply(200, b'{"job":1}')
        assert (await client.answer()).json == {"job": 1}
        await client.close()
        await wait_until(lambda: stage.listener.statistics().connections == 0)
        assert stage.gone == []


@on_loop
async def test_leaving_is_noticed_although_requests_are_pipelined_behind_a_parked_one() -> None:
    """Reading goes on while a request is parked, whatever follows it and on whichever lane."""
    async with serve(limits=Limits(pipelined_pause_count=2)) as stage:
        client = await _parked(stage)
        client.send(post("/delay") * 4 + get("/ping") + post("/read", b"x" * 200_000))
        await wait_until(lambda: stage.listener.statistics().open == 7)
        client.writer.close()
        await wait_until(lambda: len(stage.gone) == 1)
        assert stage.listener.statistics().connections == 0


@on_loop
async def test_one_client_that_left_does_not_silence_the_others() -> None:
    """Replies to gone and present clients may be given in one go."""
    async with serve() as stage:
        clients = [await stage.connect() for _ in range(3)]
        for client in clients:
            client.send(post("/delay"))
        await wait_until(lambda: len(stage.delayed) == 3)
        clients[1].reset()
        await wait_until(lambda: stage.listener.statistics().connections == 2)
        for exchange in stage.delayed:
            exchange.reply(200, b"{}")
        assert (await clients[0].answer()).status == 200
        assert (await clients[2].answer()).status == 200
        assert sum(exchange.is_gone for exchange in stage.delayed) == 1


@on_loop
async def test_on_gone_that_raises_is_reported_and_the_others_are_still_told() -> None:
    """One broken callback does not hide the client's leaving from the rest."""
    async with serve() as stage:
        client = await _parked(stage)
        client.send(post("/park"))
        await wait_until(lambda: len(stage.parked) == 2)

        def broken() -> None:
            raise ValueError("broken")

        stage.parked[0].on_gone = broken
        client.reset()
        await wait_until(lambda: len(stage.gone) == 1)
        assert [str(error) for error, _ in stage.reports] == ["broken"]


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_client_that_closes_its_sending_side_gets_its_answers(lane: str) -> None:
    """`printf ... | nc` works: what was sent before is answered, then the connection ends."""
    async with serve(lane) as stage:
        client = await stage.connect()
        client.send(post("/delay", b"1") + post("/echo", b"2") + get("/ping"))
        client.writer.write_eof()
        await wait_until(lambda: len(stage.delayed) == 1)
        stage.delayed[0].reply(200, b"1")
        assert [(await client.answer()).body for _ in range(3)] == [b"1", b"2", b'{"pong":true}']
        assert await client.ended()


@on_loop
async def test_slow_answer_to_a_half_closed_client_is_given_up_after_a_grace() -> None:
    """A stream to a client that closed its side would otherwise never end."""
    async with serve(limits=QUICK) as stage:
        client = await stage.connect()
        client.send(get("/slow"))
        await wait_until(lambda: stage.slow_waiting == 1)
        client.writer.write_eof()
        assert await client.ended()
        await wait_until(lambda: stage.slow_gone == 1)


@on_loop
async def test_running_slow_request_is_told_of_leaving_although_others_are_queued() -> None:
    """Not only the request that came last hears of it."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(get("/slow") + get("/ping"))
        await wait_until(lambda: stage.slow_waiting == 1)
        client.reset()
        await wait_until(lambda: stage.slow_gone == 1)
        await wait_until(lambda: stage.listener.statistics().open == 0)
        assert stage.order == ["slow"]


@on_loop
async def test_client_that_reads_nothing_is_not_read_and_then_cut_off() -> None:
    """Unsent answers stop the intake, and a reader that takes nothing for too long is cut off."""
    limits = Limits(sweep_ms=20, write_ms=100, write_pause_bytes=64 * 1024)
    async with serve(limits=limits) as stage:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", stage.listener.port))
        body = b'"' + b"x" * 1_000_000 + b'"'
        sending = asyncio.ensure_future(
            asyncio.get_running_loop().sock_sendall(sock, post("/echo", body) * 50)
        )
        await wait_until(lambda: stage.listener.statistics().connections == 1)
        await wait_until(lambda: stage.listener.statistics().connections == 0)
        assert 0 < stage.listener.statistics().requests_total < 50
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        sock.close()


@on_loop
async def test_client_that_parks_and_floods_without_reading_is_cut_off() -> None:
    """Reading cannot pause while a request is parked, so what may be unsent is bounded instead."""
    limits = Limits(write_bytes_max=8_000_000, write_pause_bytes=64 * 1024)
    async with serve(limits=limits) as stage:
        client = await stage.connect()
        # The client's side stops reading from its socket.
        cast("asyncio.Transport", client.writer.transport).pause_reading()
        client.send(b"".join(post("/delay") for _ in range(20)) + post("/park"))
        await wait_until(lambda: len(stage.delayed) == 20 and len(stage.parked) == 1)
        for exchange in stage.delayed:
            exchange.reply(200, b'"' + b"x" * 1_000_000 + b'"')
        await wait_until(lambda: len(stage.gone) == 1)
        assert stage.listener.statistics().connections == 0


@on_loop
async def test_a_thousand_parked_clients_are_answered() -> None:
    """Many idle workers cost their sockets, and each gets its own answer."""
    async with serve() as stage:
        clients = await asyncio.gather(*(stage.connect() for _ in range(1000)))
        for number, client in enumerate(clients):
            client.send(post("/park", b"%d" % number))
        await wait_until(lambda: len(stage.parked) == 1000)
        assert stage.listener.statistics().parked == 1000
        for exchange in stage.parked:
            exchange.reply(200, exchange.body)
        answers = await asyncio.gather(*(client.answer() for client in clients))
        assert [answer.body for answer in answers] == [b"%d" % number for number in range(1000)]
