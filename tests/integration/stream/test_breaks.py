"""Streams whose connection breaks: leases stay, workers resume, servers drain."""

from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from corvo.model.job import PENDING
from tests.support.server import Server, running
from tests.support.streaming import Stream, ack, streaming


@pytest.fixture
def server() -> Iterator[Server]:
    with running("fast") as found:
        yield found


def _vanish(server: Server, stream: Stream) -> None:
    stream.cut()
    server.wait_until(lambda: server.streams.open_count == 0)


def _resume(stream: Stream, stream_id: str, slots: int = 10, **fields: Any) -> Any:
    granted = [{"queues": ["q"], "slots": slots}]
    return stream.call(worker_id="w", resume={"stream_id": stream_id} | fields, credits=granted)


def test_killed_worker_keeps_its_leases_until_they_end(server: Server) -> None:
    """A cut connection gives nothing back early; past the lease the job comes to somebody else."""
    identifier = server.enqueue()
    stream = Stream(server.port)
    stream.start()
    stream.jobs(1)
    _vanish(server, stream)
    assert server.job(identifier)["state"] == "active"
    assert server.fetch() is None
    server.advance(61_000)
    server.wait_until(lambda: server.streams.statistics()["broken_count"] == 0)
    with streaming(server.port) as other:
        other.start()
        (job,) = other.jobs(1)
        assert (job["job_id"], job["attempt"]) == (identifier, 2)


def test_parked_fetch_leaves_with_its_worker(server: Server) -> None:
    """A job enqueued after the break is not claimed for a worker that is gone."""
    stream = Stream(server.port)
    stream.start()
    server.wait_until(lambda: server.engine.waiting(0, "q") == 1)
    _vanish(server, stream)
    server.enqueue()
    assert server.fetch()["attempt"] == 1


def test_job_claimed_while_the_connection_broke_goes_back(server: Server) -> None:
    """A claim under way when the worker vanishes is released: pending, no attempt burnt."""
    stream = Stream(server.port)
    stream.start()
    server.wait_until(lambda: server.engine.waiting(0, "q") == 1)
    server.hold_disk()
    connection = server.connect()
    body = b'{"queue":"q"}'
    headers = {"content-type": "application/json"}
    connection.request("POST", "/api/v1/enqueue", body=body, headers=headers)
    server.wait_until(lambda: server.engine.waiting(0, "q") == 0)
    _vanish(server, stream)
    server.free_disk()
    assert connection.getresponse().status == 201
    connection.close()
    server.wait_until(lambda: server.engine.read.queue(0, "q").record.counts[PENDING] == 1)
    assert server.fetch()["attempt"] == 1


def test_resume_lists_what_is_held_and_pushes_again_what_was_not_seen(server: Server) -> None:
    """Jobs of frames after `received` come again, the others do not; held jobs take up slots."""
    first_id = server.enqueue(payload={"n": 1})
    stream = Stream(server.port)
    stream_id = stream.start(slots=2)["stream"]["stream_id"]
    (first,) = stream.jobs(1)
    second_id = server.enqueue(payload={"n": 2})
    (second,) = stream.jobs(1)
    _vanish(server, stream)
    server.enqueue()
    with streaming(server.port) as again:
        again.last_push = 2
        answer = _resume(again, stream_id, slots=2, received=1)
        info = answer["stream"]
        assert (info["resumed"], info["stream_id"]) == (True, stream_id)
        assert {item["job_id"] for item in info["held"]} == {first_id, second_id}
        assert answer["credits"][0]["in_flight"] == 2
        (resent,) = again.jobs(1)
        assert resent == second
        # Both slots are taken: the third job comes only when one is free.
        assert again.call(acks=[ack(first)])["acked"] == 1
        (third,) = again.jobs(1)
        assert third["job_id"] not in (first_id, second_id)
        answer = again.call(acks=[ack(second), ack(third)])
        assert answer["acked"] == 2


def test_resume_after_a_restart_keeps_jobs_by_their_tokens(server: Server) -> None:
    """A server that knows nothing of the stream takes named jobs in when their token is current."""
    server.enqueue()
    fetched = server.fetch()
    with streaming(server.port) as stream:
        named = [ack(fetched), ack(fetched) | {"lease_token": 7}, {"job_id": "x", "lease_token": 1}]
        info = _resume(stream, "str_of_another_life", jobs=named)["stream"]
        assert info["resumed"] is False
        assert info["stream_id"] != "str_of_another_life"
        assert [item["lease_token"] for item in info["held"]] == [fetched["lease_token"]]
        assert [item["lease_token"] for item in info["lost"]] == [7, 1]
        assert stream.call(acks=[ack(fetched)])["acked"] == 1
        assert not stream.pushes


def test_resume_takes_a_living_connection_over(server: Server) -> None:
    """One stream has one connection: the older one is closed with 4009 and loses nothing."""
    server.enqueue()
    old = Stream(server.port)
    stream_id = old.start()["stream"]["stream_id"]
    (job,) = old.jobs(1)
    with streaming(server.port) as new:
        new.last_push = 1
        info = _resume(new, stream_id, received=1)["stream"]
        assert [item["job_id"] for item in info["held"]] == [job["job_id"]]
        with pytest.raises(ConnectionClosed) as ended:
            while True:
                old.socket.recv(timeout=30)
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == 4009
        assert new.call(acks=[ack(job)])["acked"] == 1
    old.close()


def test_cancel_during_the_break_is_told_on_resume(server: Server) -> None:
    """What was asked for while nobody listened is pushed to whoever comes back."""
    identifier = server.enqueue()
    stream = Stream(server.port)
    stream_id = stream.start()["stream"]["stream_id"]
    (job,) = stream.jobs(1)
    _vanish(server, stream)
    server.post(f"/jobs/{identifier}/cancel")
    with streaming(server.port) as again:
        again.last_push = 1
        _resume(again, stream_id, received=1)
        assert again.push()["cancels"] == [ack(job)]


def test_only_the_first_frame_resumes(server: Server) -> None:
    """Later it is refused, and nothing changes."""
    with streaming(server.port) as stream:
        stream.start()
        assert _resume(stream, "str_x")["error"]["field"] == "resume"


def test_worker_that_drains_is_pushed_nothing(server: Server) -> None:
    """`draining` stops pushes; taking it back starts them again."""
    with streaming(server.port) as stream:
        stream.start(draining=True)
        identifier = server.enqueue()
        stream.call()
        assert server.job(identifier)["state"] == "pending"
        stream.call(draining=False)
        assert stream.jobs(1)[0]["job_id"] == identifier


def test_draining_server_tells_takes_reports_and_closes() -> None:
    """Drain is pushed; acks are taken, enqueues and credits are not; the last report ends it."""
    with running("fast") as server:
        server.enqueue()
        with streaming(server.port) as stream, streaming(server.port) as idle:
            stream.start()
            idle.start()
            (job,) = stream.jobs(1)
            server.run(server.engine.drain)
            assert stream.push()["drain"]["code"] == "DRAINING"
            answer = stream.call(
                acks=[ack(job)],
                enqueues=[{"queue": "q"}],
                credits=[{"queues": ["q"], "slots": 5}],
            )
            assert answer["acks"][0]["status"] == "completed"
            assert answer["enqueues"][0]["code"] == "DRAINING"
            assert answer["credits"][0]["code"] == "DRAINING"
            for each in (stream, idle):
                with pytest.raises(ConnectionClosed) as ended:
                    while True:
                        each.socket.recv(timeout=30)
                assert ended.value.rcvd is not None
                assert ended.value.rcvd.code == 1001


def test_broken_stream_is_forgotten_when_it_holds_nothing(server: Server) -> None:
    """What is remembered of broken streams is bounded by what they hold."""
    with streaming(server.port) as stream:
        stream.start()
    server.wait_until(lambda: server.streams.open_count == 0)
    figures = server.streams.statistics()
    assert (figures["broken_count"], figures["in_flight_count"]) == (0, 0)
