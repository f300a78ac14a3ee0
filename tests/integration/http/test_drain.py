"""The end of a listener: drain lets work finish, close does not."""

import asyncio

import pytest

from tests.integration.http.stage import LANES, get, on_loop, post, serve, wait_until


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_drain_closes_idle_connections_and_waits_for_open_requests(lane: str) -> None:
    """Idle ones end at once; the others end with an answer that says so."""
    async with serve(lane) as stage:
        idle, parked, slow, behind = [await stage.connect() for _ in range(4)]
        await idle.ask(post("/echo"))
        parked.send(post("/park"))
        slow.send(get("/slow"))
        behind.send(post("/delay", b"1") + post("/delay", b"2"))
        await wait_until(lambda: stage.listener.statistics().open >= 4)
        await wait_until(lambda: len(stage.parked) == 1 and stage.slow_waiting == 1)
        stage.listener.stop_accepting()
        draining = asyncio.ensure_future(stage.listener.drain(5_000))
        assert await idle.ended()
        assert not draining.done()
        stage.parked[0].reply(204, b"")
        answer = await parked.answer()
        assert (answer.status, answer.headers["connection"]) == (204, "close")
        assert await parked.ended()
        stage.slow_may_answer.set()
        assert (await slow.answer()).headers["connection"] == "close"
        assert await slow.ended()
        await wait_until(lambda: len(stage.delayed) >= 1)
        stage.delayed[0].reply(200, b"1")
        assert "connection" not in (await behind.answer()).headers
        await wait_until(lambda: len(stage.delayed) == 2)
        stage.delayed[1].reply(200, b"2")
        answer = await behind.answer()
        assert (answer.body, answer.headers["connection"]) == (b"2", "close")
        assert await draining


@on_loop
async def test_drain_gives_up_after_its_time_out_and_close_tells_the_handlers() -> None:
    """A request nobody answers does not hold the server forever."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(post("/park"))
        await wait_until(lambda: len(stage.parked) == 1)
        assert not await stage.listener.drain(20)
        await stage.listener.close()
        assert len(stage.gone) == 1
        assert await client.ended()


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_new_connections_during_drain_are_served_one_request_each(lane: str) -> None:
    """As long as it accepts, a draining listener lets workers settle what they hold."""
    async with serve(lane) as stage:
        held = await stage.connect()
        held.send(post("/park"))
        await wait_until(lambda: len(stage.parked) == 1)
        draining = asyncio.ensure_future(stage.listener.drain(5_000))
        await asyncio.sleep(0)
        client = await stage.connect()
        answer = await client.ask(post("/echo"))
        assert (answer.status, answer.headers["connection"]) == (201, "close")
        assert await client.ended()
        stage.parked[0].reply(204, b"")
        assert await draining


@on_loop
async def test_stopped_listener_refuses_connections_and_serves_those_it_has() -> None:
    """`stop_accepting` is not an end for anyone inside."""
    async with serve() as stage:
        client = await stage.connect()
        await client.ask(post("/echo"))
        stage.listener.stop_accepting()
        stage.listener.stop_accepting()
        with pytest.raises(ConnectionError):
            await stage.connect()
        assert (await client.ask(post("/echo"))).status == 201


@on_loop
async def test_close_ends_running_slow_requests_and_is_repeatable() -> None:
    """After `close` nothing of the listener is left running."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(get("/slow"))
        await wait_until(lambda: stage.slow_waiting == 1)
        await stage.listener.close()
        await stage.listener.close()
        assert await client.ended()
        assert stage.listener.statistics().connections == 0


@on_loop
async def test_statistics_count_both_lanes() -> None:
    """Requests, bytes and connections are counted whatever lane they take."""
    async with serve() as stage:
        client = await stage.connect()
        hot, cold = post("/echo"), get("/ping")
        await client.ask(hot)
        await client.ask(cold)
        statistics = stage.listener.statistics()
        assert statistics.requests_total == 2
        assert statistics.bytes_in == len(hot) + len(cold)
        assert statistics.bytes_out > 100
        assert (statistics.connections, statistics.connections_total) == (1, 1)
        assert (statistics.open, statistics.parked) == (0, 0)
