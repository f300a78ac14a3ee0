"""One request and one answer, on both lanes."""

import pytest

from tests.integration.http.stage import LANES, get, on_loop, post, serve, wait_until


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_body_headers_and_query_reach_the_handler_and_its_answer_comes_back(
    lane: str,
) -> None:
    """What a client sent is what the handler saw, and the handler's answer returns whole."""
    async with serve(lane) as stage:
        client = await stage.connect()
        answer = await client.ask(
            post("/echo?strict=true", b'{"a":1}', headers="X-Mark: seven\r\n")
        )
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


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_parameter_is_the_last_segment_and_a_literal_route_wins(lane: str) -> None:
    """`/item/{id}` gives its argument, decoded, and leaves `/item/batch` and deeper paths."""
    async with serve(lane) as stage:
        client = await stage.connect()
        answer = await client.ask(post("/item/job_01HX?strict=1"))
        assert answer.json == {"argument": "job_01HX", "path": "/item/job_01HX", "method": "POST"}
        assert (await client.ask(post("/item/job%5F1"))).json["argument"] == "job_1"
        assert (await client.ask(post("/item/batch"))).status == 201
        assert (await client.ask(post("/item/a/b"))).status == 404
        assert (await client.ask(post("/item/"))).status == 404


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_no_content_has_neither_length_nor_type(lane: str) -> None:
    """204 ends with its head, and the connection goes on."""
    async with serve(lane) as stage:
        client = await stage.connect()
        answer = await client.ask(post("/none"))
        assert answer.status == 204
        assert "content-length" not in answer.headers
        assert "content-type" not in answer.headers
        assert (await client.ask(post("/echo"))).status == 201


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_other_methods_on_a_hot_path_get_405_with_allow(lane: str) -> None:
    """A hot path is POST only; the application says so."""
    async with serve(lane) as stage:
        client = await stage.connect()
        answer = await client.ask(get("/echo"))
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
        client.send(b"HEAD /ping HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = await client.answer(is_head=True)
        assert (answer.status, answer.headers["content-length"]) == (200, "13")
        assert (await client.ask(post("/echo"))).status == 201


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_body_that_is_not_json_is_415_and_an_empty_body_needs_no_type(lane: str) -> None:
    """A web page cannot post a form here; `curl -X POST` without a body can call."""
    async with serve(lane) as stage:
        client = await stage.connect()
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json2", ""):
            answer = await client.ask(post("/echo", kind=kind))
            assert (answer.status, answer.json["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
        for kind in ("application/json; charset=utf-8", "Application/JSON"):
            assert (await client.ask(post("/echo", kind=kind))).status == 201
        answer = await client.ask(b"POST /echo HTTP/1.1\r\nHost: x\r\ncontent-length: 0\r\n\r\n")
        assert (answer.status, answer.body) == (201, b"")
        assert stage.order == ["{}", "{}", ""]


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_handler_that_raises_is_500_with_a_request_id_and_one_report(lane: str) -> None:
    """A bug never looks like a bad request, and the connection survives it."""
    async with serve(lane) as stage:
        client = await stage.connect()
        answer = await client.ask(post("/boom"))
        assert (answer.status, answer.json["code"]) == (500, "INTERNAL_ERROR")
        ((error, request_id),) = stage.reports
        assert isinstance(error, ValueError)
        assert answer.json["request_id"] == answer.headers["x-request-id"] == request_id
        assert (await client.ask(post("/echo"))).status == 201


@on_loop
async def test_handler_that_raises_after_its_reply_is_reported_and_answered_once() -> None:
    """The client gets the answer that was given; the failure is still on record."""
    async with serve() as stage:
        client = await stage.connect()
        assert (await client.ask(post("/boom_after_reply"))).status == 200
        assert len(stage.reports) == 1
        assert (await client.ask(post("/echo"))).status == 201


@on_loop
async def test_application_that_raises_is_500_with_a_request_id_and_one_report() -> None:
    """The slow lane's failures have the same shape."""
    async with serve() as stage:
        client = await stage.connect()
        answer = await client.ask(get("/crash"))
        assert (answer.status, answer.json["code"]) == (500, "INTERNAL_ERROR")
        assert answer.json["request_id"] == stage.reports[0][1]


@pytest.mark.parametrize("lane", LANES)
@on_loop
async def test_answer_given_later_arrives(lane: str) -> None:
    """A handler may keep the exchange and answer from another callback, whatever the size."""
    async with serve(lane) as stage:
        client = await stage.connect()
        for body in (b"{}", b'"' + b"x" * 3_000_000 + b'"'):
            client.send(post("/delay"))
            await wait_until(lambda: len(stage.delayed) == 1)
            stage.delayed.pop().reply(200, body, b"x-corvo-index: 5\r\n")
            answer = await client.answer()
            assert (answer.body, answer.headers["x-corvo-index"]) == (body, "5")


@on_loop
async def test_second_reply_is_a_programming_error() -> None:
    """An exchange is answered exactly once."""
    async with serve() as stage:
        client = await stage.connect()
        client.send(post("/delay"))
        await wait_until(lambda: len(stage.delayed) == 1)
        stage.delayed[0].reply(200, b"{}")
        with pytest.raises(AssertionError):
            stage.delayed[0].reply(200, b"{}")
