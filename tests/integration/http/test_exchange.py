"""One request and one answer, on both lanes."""

import pytest

from tests.integration.http.stage import LANES, get, on_loop, post, serve


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_body_headers_and_query_reach_the_handler_and_its_answer_comes_back(lane: str) -> None:
    """What a client sent is what the handler saw, and the handler's status, headers and body return."""
    async with serve(lane) as stage:
        client = await stage.connect()
        answer = await client.ask(post("/echo?strict=true", b'{"a":1}', headers="X-Mark: seven\r\n"))
        assert (answer.status, answer.body) == (201, b'{"a":1}')
        assert answer.headers["content-type"] == "application/json"
        assert (answer.headers["x-mark"], answer.headers["x-query"]) == ("seven", "strict=true")
        assert answer.headers["date"].endswith("GMT")


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_connection_is_kept_for_many_requests_of_both_kinds(lane: str) -> None:
    """Hot and other requests take turns on one connection."""
    async with serve(lane) as stage:
        client = await stage.connect()
        for number in range(20):
            body = b'{"n":%d}' % number
            assert (await client.ask(post("/echo", body))).body == body
            assert (await client.ask(get("/ping"))).json == {"pong": True}
        assert stage.listener.statistics().connections_total == 1
        assert stage.listener.statistics().requests_total == 40
