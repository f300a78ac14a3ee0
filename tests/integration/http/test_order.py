"""Pipelining: answers leave in the order of the requests, within a lane and across lanes."""

import pytest

from corvo.api.http import Limits
from tests.integration.http.stage import LANES, get, on_loop, post, serve, wait_until


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_many_requests_in_one_write_are_answered_in_order(lane: str) -> None:
    """Three hundred pipelined requests, three hundred answers."""
    async with serve(lane) as stage:
        client = await stage.connect()
        bodies = [b'{"n":%d}' % number for number in range(300)]
        client.send(b"".join(post("/echo", body) for body in bodies))
        assert [(await client.answer()).body for _ in bodies] == bodies


@on_loop
async def test_answers_given_out_of_order_leave_in_order_and_together() -> None:
    """A later answer waits for the earlier ones, then all that are ready leave in one write."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(b"".join(post("/delay", b"%d" % number) for number in range(5)))
        await wait_until(lambda: len(stage.delayed) == 5)
        for number in (4, 2, 1, 3):
            stage.delayed[number].reply(200, b"%d" % number)
        assert stage.listener.statistics().bytes_out == 0
        stage.delayed[0].reply(200, b"0")
        assert [(await client.answer()).body for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_fast_slow_fast_in_one_write_is_answered_and_executed_in_order(lane: str) -> None:
    """Order of effects and of answers is the order of the requests, whatever lane each takes."""
    async with serve(lane) as stage:
        client = await stage.connect()
        client.send(post("/echo", b"1") + get("/ping") + post("/echo", b"3") + get("/ping"))
        client.send(post("/echo", b"5"))
        answers = [(await client.answer()).body for _ in range(5)]
        assert answers == [b"1", b'{"pong":true}', b"3", b'{"pong":true}', b"5"]
        assert stage.order == ["1", "/ping", "3", "/ping", "5"]


@on_loop
async def test_slow_request_waits_for_unanswered_fast_ones() -> None:
    """A slow request behind a pending fast one does not start before that is answered."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(
            post("/delay", b"1") + post("/delay", b"2") + get("/ping") + post("/echo", b"4")
        )
        await wait_until(lambda: stage.listener.statistics().open == 4)
        stage.delayed[1].reply(200, b"2")
        assert stage.order == ["1", "2"]
        stage.delayed[0].reply(200, b"1")
        answers = [(await client.answer()).body for _ in range(4)]
        assert answers == [b"1", b"2", b'{"pong":true}', b"4"]
        assert stage.order == ["1", "2", "/ping", "4"]


@on_loop
async def test_fast_request_behind_a_pending_slow_one_takes_its_turn() -> None:
    """A hot request is not executed before the slow one in front of it has answered."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(get("/slow") + post("/echo", b"2"))
        await wait_until(lambda: stage.listener.statistics().open == 2 and stage.slow_waiting == 1)
        assert stage.order == ["slow"]
        stage.slow_may_answer.set()
        assert (await client.answer()).json == {"slow": True}
        assert (await client.answer()).body == b"2"
        # The connection is free again, so the next hot request takes the fast lane at once.
        assert (await client.ask(post("/echo", b"3"))).body == b"3"


@on_loop
async def test_large_body_of_a_queued_slow_request_is_kept_whole() -> None:
    """A body beyond uvicorn's high-water mark waits for its turn without a stall."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(post("/delay", b"1") + post("/read", b"x" * 500_000) + post("/echo", b"3"))
        await wait_until(lambda: stage.listener.statistics().open == 3)
        stage.delayed[0].reply(200, b"1")
        assert (await client.answer()).body == b"1"
        assert (await client.answer()).json == {"size": 500_000}
        assert (await client.answer()).body == b"3"


@on_loop
async def test_error_comes_after_the_answers_before_it() -> None:
    """A request that cannot be parsed is refused in its turn, behind fast and slow ones."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(post("/delay", b"1") + b"NONSENSE\r\n\r\n")
        await wait_until(lambda: len(stage.delayed) == 1)
        stage.delayed[0].reply(200, b"1")
        assert (await client.answer()).body == b"1"
        assert (await client.answer()).status == 400
        assert await client.ended()

        client = await stage.connect()
        client.send(get("/slow") + b"NONSENSE\r\n\r\n")
        await wait_until(lambda: stage.slow_waiting == 1)
        stage.slow_may_answer.set()
        assert (await client.answer()).json == {"slow": True}
        assert (await client.answer()).json["code"] == "PARSE_ERROR"
        assert await client.ended()


@on_loop
async def test_requests_behind_connection_close_are_not_executed() -> None:
    """The last request is the one that says so."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(post("/echo", b"1", headers="Connection: close\r\n") + post("/echo", b"2"))
        answer = await client.answer()
        assert (answer.body, answer.headers["connection"]) == (b"1", "close")
        assert await client.ended()
        assert stage.order == ["1"]


@on_loop
async def test_long_pipeline_pauses_reading_and_goes_on_when_answered() -> None:
    """Backpressure: a client far ahead of its answers is read again once they are given."""
    async with serve(limits=Limits(pipelined_pause_count=4)) as stage:
        client = await stage.connect()
        for number in range(4):
            client.send(post("/delay", b"%d" % number))
        await wait_until(lambda: len(stage.delayed) == 4)
        client.send(post("/delay", b"4"))
        # Reading is paused: another connection's whole exchange passes first.
        assert (await (await stage.connect()).ask(post("/echo"))).status == 201
        assert len(stage.delayed) == 4
        for number in range(4):
            stage.delayed[number].reply(200, b"%d" % number)
        await wait_until(lambda: len(stage.delayed) == 5)
        stage.delayed[4].reply(200, b"4")
        assert [(await client.answer()).body for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


@on_loop
async def test_too_many_unanswered_requests_end_the_connection_in_order() -> None:
    """Beyond the cap the next request is refused, after the answers before it."""
    async with serve(limits=Limits(pipelined_count_max=3)) as stage:
        client = await stage.connect()
        client.send(b"".join(post("/delay", b"%d" % number) for number in range(5)))
        await wait_until(lambda: len(stage.delayed) == 3)
        for number in range(3):
            stage.delayed[number].reply(200, b"%d" % number)
        assert [(await client.answer()).body for _ in range(3)] == [b"0", b"1", b"2"]
        assert (await client.answer()).json["code"] == "OVERLOADED"
        assert await client.ended()
        assert len(stage.delayed) == 3


@on_loop
async def test_too_many_held_bytes_end_the_connection_in_order() -> None:
    """Bodies of unanswered requests are bounded together, not only one by one."""
    async with serve(limits=Limits(held_bytes_max=250_000)) as stage:
        client = await stage.connect()
        for _ in range(3):
            client.send(post("/delay", b'"' + b"x" * 100_000 + b'"'))
        await wait_until(lambda: len(stage.delayed) == 2)
        stage.delayed[0].reply(200, b"0")
        stage.delayed[1].reply(200, b"1")
        assert [(await client.answer()).status for _ in range(3)] == [200, 200, 503]
        assert await client.ended()
