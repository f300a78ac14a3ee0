"""The worker stream over real sockets, with the stock WebSocket client."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from corvo.api.stream.held import Bounds
from tests.support.server import LANES, Server, running
from tests.support.streaming import JSON, MSGPACK, Stream, ack, streaming


@pytest.fixture(params=LANES)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with running(request.param) as found:
        yield found


@pytest.fixture
def fast() -> Iterator[Server]:
    with running("fast") as found:
        yield found


@pytest.mark.parametrize("protocol", [JSON, MSGPACK, None])
def test_jobs_are_pushed_and_acknowledged(server: Server, protocol: str | None) -> None:
    """A job that waits is pushed after the grant; its ack is answered; the next one follows."""
    ids = [server.enqueue(payload={"n": n}) for n in range(3)]
    with streaming(server.port, protocol) as stream:
        answer = stream.start(slots=2)
        assert answer["credits"] == [{"queues": ["q"], "slots": 2, "in_flight": 0}]
        assert answer["stream"]["resumed"] is False
        jobs = stream.jobs(2)
        assert [job["job_id"] for job in jobs] == ids[:2]
        answer = stream.call(acks=[ack(jobs[0])])
        assert answer["acks"] == [{"job_id": ids[0], "status": "completed"}]
        assert answer["acked"] == 1
        (last,) = stream.jobs(1)
        assert last["job_id"] == ids[2]
    assert server.job(ids[0])["state"] == "completed"


def test_job_enqueued_later_is_pushed_at_once(server: Server) -> None:
    """Nobody polls: the parked fetch of the grant takes the job in its own entry."""
    with streaming(server.port) as stream:
        stream.start()
        identifier = server.enqueue(payload={"late": True})
        (job,) = stream.jobs(1)
        assert (job["job_id"], job["payload"]) == (identifier, {"late": True})


def test_pushed_job_has_the_members_of_a_fetch(fast: Server) -> None:
    """Whoever reads answers of POST /fetch reads pushed jobs."""
    fast.enqueue(payload={"a": 1}, tags={"k": "v"}, priority="high", group="g")
    fast.enqueue(payload={"a": 1}, tags={"k": "v"}, priority="high", group="g")
    fetched = fast.fetch()
    with streaming(fast.port) as stream:
        stream.start()
        (pushed,) = stream.jobs(1)
    assert set(pushed) == set(fetched) - {"index"}
    assert pushed["tags"] == fetched["tags"]


def test_frame_with_every_kind_of_item_is_answered_item_by_item(fast: Server) -> None:
    """Each list of results has the length and order of its items, whatever is wrong with some."""
    for _ in range(6):
        fast.enqueue(max_retries=3)
    with streaming(fast.port) as stream:
        stream.start()
        jobs = stream.jobs(6)
        items = [ack(job) for job in jobs]
        stale = ack(jobs[0]) | {"lease_token": jobs[0]["lease_token"] - 1}
        answer = stream.call(
            acks=[stale, items[0] | {"result": {"ok": 1}}, {"job_id": "nonsense"}],
            fails=[items[1] | {"error": "bad"}],
            releases=[items[2]],
            snoozes=[items[3] | {"delay": "5m"}, items[4]],
            holds=[items[4] | {"reason": "look"}],
            heartbeats=[items[5], {"job_id": "nonsense"}],
            enqueues=[
                {"queue": "other", "unique_key": "u"},
                {"queue": "no name"},
                {"queue": "other", "unique_key": "u"},
            ],
            credits=[{"queues": ["q"], "slots": 1_000_000}],
        )
        codes = [item.get("code") for item in answer["acks"]]
        assert codes == ["LEASE_LOST", None, "NOT_FOUND"]
        assert answer["acked"] == 1
        assert answer["fails"][0]["status"] == "retrying"
        assert answer["fails"][0]["attempts_remaining"] == 2
        assert answer["releases"][0]["status"] == "pending"
        assert [item["status"] for item in answer["snoozes"]] == ["scheduled", "rejected"]
        assert answer["snoozes"][1]["code"] == "VALIDATION_ERROR"
        assert answer["holds"][0]["status"] == "held"
        assert [item["status"] for item in answer["heartbeats"]] == ["ok", "lost"]
        assert [item["status"] for item in answer["enqueues"]] == [
            "pending",
            "rejected",
            "duplicate",
        ]
        assert answer["enqueues"][1]["field"] == "queue"
        assert answer["credits"][0]["code"] == "VALIDATION_ERROR"
    assert fast.job(jobs[0]["job_id"])["result"] == {"ok": 1}


def test_repeated_item_gets_the_same_answer(fast: Server) -> None:
    """A frame whose answer was lost may be sent again: the token makes it one ack."""
    fast.enqueue()
    with streaming(fast.port) as stream:
        stream.start()
        (job,) = stream.jobs(1)
        first = stream.call(acks=[ack(job)])["acks"]
        assert stream.call(acks=[ack(job)])["acks"] == first


def test_documents_are_exact_in_msgpack(fast: Server) -> None:
    """A document sent as bytes is kept byte for byte; any other value is written as JSON."""
    exact = b'{"big":123456789012345678901234567890,"spaced" : [1]}'
    with streaming(fast.port, MSGPACK) as stream:
        stream.start()
        stream.call(
            enqueues=[{"queue": "q", "payload": exact}, {"queue": "q", "payload": {"a": 1}}]
        )
        jobs = stream.jobs(2)
        assert jobs[0]["payload"] == exact
        assert msgspec.json.decode(jobs[1]["payload"]) == {"a": 1}
        answer = stream.call(enqueues=[{"queue": "q", "payload": b"not json"}])
        assert answer["error"]["field"] == "enqueues[0].payload"
        answer = stream.call(acks=[ack(jobs[0]) | {"result": [1, {"b": None}]}])
        assert answer["acks"][0]["status"] == "completed"
    assert fast.job(jobs[0]["job_id"])["result"] == [1, {"b": None}]


def test_answers_come_in_the_order_of_frames(fast: Server) -> None:
    """Frames with and without work for the disk are answered as they came."""
    with streaming(fast.port) as stream:
        fast.hold_disk()
        numbers = [stream.send(enqueues=[{"queue": "q"}] if n % 2 else []) for n in range(10)]
        fast.free_disk()
        assert [stream.answer()["request_id"] for _ in numbers] == numbers


def test_more_frames_than_may_wait_are_all_answered(fast: Server) -> None:
    """Past the bound of unanswered frames the server reads on when there is room."""
    with streaming(fast.port) as stream:
        fast.hold_disk()
        numbers = [stream.send(enqueues=[{"queue": "q"}]) for _ in range(200)]
        fast.free_disk()
        assert [stream.answer()["request_id"] for _ in numbers] == numbers
    assert fast.get("/queues/q").json["pending"] == 200


def test_cancel_is_pushed(server: Server) -> None:
    """The worker hears of a cancel without asking, once, and its report settles the job."""
    identifier = server.enqueue()
    with streaming(server.port) as stream:
        stream.start()
        (job,) = stream.jobs(1)
        for _ in range(2):
            server.post(f"/jobs/{identifier}/cancel")
        frame = stream.push()
        assert frame["cancels"] == [ack(job)]
        assert stream.call(fails=[ack(job)])["fails"][0]["status"] == "cancelled"
    assert server.job(identifier)["state"] == "cancelled"


def test_lease_is_warned_of_and_then_lost(fast: Server) -> None:
    """A third before the end comes a warning; past the end the job is lost and its slot is free."""
    identifier = fast.enqueue()
    with streaming(fast.port) as stream:
        stream.call(worker_id="w", credits=[{"queues": ["q"], "slots": 1, "lease_duration": "30s"}])
        (job,) = stream.jobs(1)
        fast.advance(20_000)
        warning = stream.push()["warnings"]
        assert [item["lease_token"] for item in warning] == [job["lease_token"]]
        fast.advance(11_000)
        frame = stream.push()
        assert frame["lost"] == [ack(job) | {"reason": "lease_expired"}]
        (again,) = stream.jobs(1)
        assert (again["job_id"], again["attempt"]) == (identifier, 2)
        assert stream.call(acks=[ack(job)])["acks"][0]["code"] == "LEASE_LOST"
        # The stale report did not free the slot of the new lease.
        fast.enqueue()
        answer = stream.call(credits=[{"queues": ["q"], "slots": 1}])
        assert answer["credits"][0]["in_flight"] == 1


def test_job_that_comes_again_takes_one_slot(fast: Server) -> None:
    """With a free slot the job is back before its loss was told: the old lease is counted out."""
    identifier = fast.enqueue()
    with streaming(fast.port) as stream:
        stream.start(slots=3)
        (first,) = stream.jobs(1)
        fast.advance(61_000)
        seen: list[Any] = []
        while not any("jobs" in frame for frame in seen):
            seen.append(stream.push())
        lost = [item for frame in seen for item in frame.get("lost", [])]
        assert lost == [ack(first) | {"reason": "lease_expired"}]
        assert seen[-1]["jobs"][0]["job_id"] == identifier
        answer = stream.call(credits=[{"queues": ["q"], "slots": 3}])
        assert answer["credits"][0]["in_flight"] == 1
        assert stream.call(acks=[ack(seen[-1]["jobs"][0])])["acked"] == 1
        answer = stream.call(credits=[{"queues": ["q"], "slots": 3}])
        assert answer["credits"][0]["in_flight"] == 0


def test_heartbeat_puts_the_warning_off(fast: Server) -> None:
    """A lease that was renewed, over the stream or by HTTP, is not warned of in its first term."""
    fast.enqueue()
    with streaming(fast.port) as stream:
        stream.call(worker_id="w", credits=[{"queues": ["q"], "slots": 1, "lease_duration": "30s"}])
        (job,) = stream.jobs(1)
        fast.advance(15_000)
        answer = stream.call(heartbeats=[ack(job)])
        assert answer["heartbeats"][0]["status"] == "ok"
        fast.advance(10_000)
        body = {"jobs": {job["job_id"]: {"lease_token": job["lease_token"]}}}
        assert fast.post("/heartbeat", body).json["jobs"][job["job_id"]]["status"] == "ok"
        fast.advance(19_000)
        # Nothing was pushed: the next frame is the answer to this one.
        stream.call()
        assert not stream.pushes


def test_job_deleted_or_settled_elsewhere_is_lost(fast: Server) -> None:
    """Whatever ends the lease frees the slot, and the worker is told why."""
    for _ in range(2):
        fast.enqueue()
    with streaming(fast.port) as stream:
        stream.start()
        jobs = stream.jobs(2)
        fast.request("DELETE", f"/api/v1/jobs/{jobs[0]['job_id']}")
        assert stream.push()["lost"] == [ack(jobs[0]) | {"reason": "deleted"}]
        fast.post(f"/ack/{jobs[1]['job_id']}", {"lease_token": jobs[1]["lease_token"]})
        assert stream.push()["lost"] == [ack(jobs[1]) | {"reason": "settled"}]


def test_old_style_frame_is_answered_one_to_one(fast: Server) -> None:
    """A frame with fetch_count gets its jobs in its answer, and nothing is ever pushed."""
    ids = [fast.enqueue() for _ in range(3)]
    with streaming(fast.port) as stream:
        answer = stream.call(worker_id="w", queues=["q"], fetch_count=2)
        assert [job["job_id"] for job in answer["jobs"]] == ids[:2]
        answer = stream.call(
            acks=[ack(job) for job in answer["jobs"]],
            enqueues=[{"queue": "other"}],
            fetch_count=5,
        )
        assert answer["acked"] == 2
        assert [job["job_id"] for job in answer["jobs"]] == ids[2:]
        assert stream.call(fetch_count=5)["jobs"] == []
        assert not stream.pushes


def test_old_style_fetch_needs_worker_and_queues(fast: Server) -> None:
    """Without them the frame is refused, and the field is named."""
    with streaming(fast.port) as stream:
        assert stream.call(queues=["q"], fetch_count=1)["error"]["field"] == "worker_id"
        assert stream.call(worker_id="w", fetch_count=1)["error"]["field"] == "queues"


def test_unreadable_frame_changes_nothing(fast: Server) -> None:
    """A frame with one field of the wrong type is refused as a whole, with its number."""
    with streaming(fast.port) as stream:
        answer = stream.call(enqueues=[{"queue": "q"}, {"queue": 7}])
        assert answer["error"]["field"] == "enqueues[1].queue"
        assert answer["error"]["code"] == "VALIDATION_ERROR"
        many = [{"job_id": "job_x"}] * 1_001
        assert "at most 1000 items" in stream.call(acks=many)["error"]["error"]
        assert stream.call(credits=[{"queues": ["q"], "slots": 1}])["credits"][0]["field"] == (
            "worker_id"
        )
    assert fast.get("/queues/q").status == 404


def test_ten_unreadable_frames_end_the_stream(fast: Server) -> None:
    """A client that does not speak the protocol is sent away with a reason."""
    with streaming(fast.port) as stream:
        for _ in range(10):
            stream.socket.send("nonsense")
        for _ in range(10):
            assert stream.answer()["error"]["code"] == "PARSE_ERROR"
        assert "10 frames" in stream.push()["closing"]["error"]
        assert _closed(stream) == 1008


@pytest.mark.parametrize(
    ("protocol", "message", "code"),
    [(JSON, b"{}", 1003), (MSGPACK, "{}", 1003)],
)
def test_wrong_kind_of_message_ends_the_stream(
    fast: Server, protocol: str, message: Any, code: int
) -> None:
    """Text is JSON and binary is msgpack; the subprotocol says which."""
    with streaming(fast.port, protocol) as stream:
        stream.socket.send(message)
        assert "closing" in stream.push()
        assert _closed(stream) == code


def test_text_that_is_not_utf8_ends_the_stream(fast: Server) -> None:
    """As the standard wants it."""
    with streaming(fast.port) as stream:
        stream.socket.send(b'{"worker_id":"\xff"}', text=True)
        stream.push()
        assert _closed(stream) == 1007


def test_oversized_frame_ends_the_stream() -> None:
    """The bound of a frame is the bound of what one client makes the server hold."""
    with running("fast", bounds=Bounds(frame_bytes_max=2_000)) as server:
        with streaming(server.port) as stream:
            assert stream.start()["stream"]["limits"]["frame_bytes_max"] == 2_000
            stream.socket.send("x" * 2_001)
            assert _closed(stream) == 1009
        assert server.get("/healthz").status == 200


def test_too_many_streams_are_refused() -> None:
    """The handshake is answered 429 with the ordinary envelope; a free place is given anew."""
    with running("fast", bounds=Bounds(open_max=1)) as server:
        with streaming(server.port), pytest.raises(InvalidStatus) as refused:
            Stream(server.port)
        response = refused.value.response
        assert response.status_code == 429
        assert msgspec.json.decode(response.body)["code"] == "OVERLOADED"
        assert response.headers["retry-after"]
        server.wait_until(lambda: server.streams.open_count == 0)
        with streaming(server.port) as stream:
            stream.start()


def test_unknown_subprotocol_and_foreign_origin_are_refused(fast: Server) -> None:
    """A web page of another site can not open a stream, whatever the browser allows."""
    with pytest.raises(InvalidStatus) as refused:
        Stream(fast.port, "soap")
    assert refused.value.response.status_code == 400
    with pytest.raises(InvalidStatus) as refused:
        Stream(fast.port, origin="http://evil.example")
    assert msgspec.json.decode(refused.value.response.body)["field"] == "origin"
    with streaming(fast.port, origin=f"http://127.0.0.1:{fast.port}") as stream:
        stream.start()


def test_other_paths_are_no_streams(fast: Server) -> None:
    """A wish for an upgrade elsewhere is ignored, and the path answers as always."""
    reply = fast.request(
        "GET", "/healthz", headers={"connection": "upgrade", "upgrade": "websocket"}
    )
    assert reply.status == 200
    assert fast.get("/stream").status == 404


def test_silent_client_is_pinged_and_then_closed() -> None:
    """A client that answers pings stays; one that is deaf is closed with 4007."""
    with running("fast", bounds=Bounds(idle_ms=200)) as server:
        with streaming(server.port) as stream:
            stream.start()
            tick = server.listener._edge.tick
            server.wait_until(lambda: server.listener._edge.tick > tick + 40)
            assert stream.call()["request_id"] == 2
        deaf = server.connect()
        deaf.connect()
        raw = deaf.sock
        assert raw is not None
        raw.sendall(
            b"GET /api/v1/stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        received = b""
        while piece := raw.recv(4096):
            received += piece
        assert b"101 Switching Protocols" in received
        assert b"REQUEST_TIMEOUT" in received
        assert (4007).to_bytes(2, "big") in received
        deaf.close()


def test_slow_reader_is_closed_and_keeps_what_it_was_given() -> None:
    """Past the bound of unsent bytes the stream ends; what was never written goes back at once."""
    bounds = Bounds(buffer_bytes_max=300_000)
    with running("fast", bounds=bounds) as server:
        stream = Stream(server.port, max_queue=1)
        payload = "x" * 200_000
        for _ in range(80):
            server.enqueue(payload=payload)
        stream.send(worker_id="w", credits=[{"queues": ["q"], "slots": 1_000}])
        server.wait_until(lambda: server.streams.slow_total == 1)
        server.wait_until(lambda: server.streams.open_count == 0)
        # Leases of what was written stand; the rest is pending for somebody else.
        counts = server.get("/queues/q").json
        held = server.streams.statistics()["in_flight_count"]
        assert counts["active"] == held < 80
        assert counts["pending"] == 80 - held
        stream.cut()


def _closed(stream: Stream) -> int:
    """Read to the end; returns the code the server closed with."""
    with pytest.raises(ConnectionClosed) as ended:
        while True:
            stream.socket.recv(timeout=30)
    assert ended.value.rcvd is not None
    return ended.value.rcvd.code
