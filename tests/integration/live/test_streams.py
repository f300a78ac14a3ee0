"""Event streams: everything once, in order, across disconnects, and never at the server's cost."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.engine import Options
from corvo.model.event import EVENT_NAMES
from tests.support.events import EventReader
from tests.support.process import ServerProcess
from tests.support.server import Server, running


def seqs(reader: EventReader, count: int) -> list[int]:
    return [message.data["seq"] for message in reader.events(count)]


def test_an_event_carries_its_type_its_seq_and_what_changed(server: Server):
    """`event` is the type, `id` the seq, and data the object of the contract."""
    with EventReader(server.port) as reader:
        job = server.enqueue("emails", payload={"secret": 1})
        server.fetch("emails", worker="w1")
        created, enqueued, started = reader.events(3)
    assert (created.event, created.data["queue"], created.data["job_id"]) == (
        "queue.created",
        "emails",
        None,
    )
    assert enqueued.event == enqueued.data["type"] == "enqueued"
    assert enqueued.id == str(enqueued.data["seq"])
    assert enqueued.data.keys() == {"seq", "type", "at", "job_id", "queue", "data"}
    assert (enqueued.data["job_id"], enqueued.data["queue"]) == (job, "emails")
    assert enqueued.data["at"].endswith("Z")
    assert started.data["data"] == {"attempt": 1, "worker": "w1"}
    assert int(started.id) == int(enqueued.id) + 1


def test_a_new_stream_begins_with_what_comes_next(server: Server):
    """What happened before is not sent, and the opening tells where the stream stands."""
    server.enqueue()
    with EventReader(server.port) as reader:
        assert reader.opening is not None
        assert reader.opening.id == str(server.engine.seq)
        job = server.enqueue()
        assert reader.event().data["job_id"] == job


def test_a_stream_resumes_where_it_was_cut_off(server: Server):
    """With Last-Event-ID, in the header or the address, nothing is lost and nothing repeated."""
    with EventReader(server.port) as reader:
        server.enqueue()
        first = seqs(reader, 1)
        seen = reader.seen
    for _ in range(5):
        server.enqueue()
    last = server.engine.seq
    with EventReader(server.port, last=seen) as reader:
        assert first + seqs(reader, last - first[0]) == list(range(first[0], last + 1))
    with EventReader(server.port, f"?last_event_id={seen}") as reader:
        server.enqueue()
        assert seqs(reader, last + 1 - first[0]) == list(range(first[0] + 1, last + 2))


def test_a_stream_resumes_from_the_store_across_a_restart(tmp_path: Path):
    """Events written before a kill are sent after it, each once, then the live ones."""
    process = ServerProcess(tmp_path, "--fsync", "off")
    with process:
        client = process.client()
        for _ in range(3):
            client.call("POST", "/api/v1/enqueue", {"queue": "q"})
        with EventReader(process.port, last=0) as reader:
            assert seqs(reader, 2) == [1, 2]
            seen = reader.seen
        client.close()
        process.stop()
    with process:
        client = process.client()
        with EventReader(process.port, last=seen) as reader:
            assert seqs(reader, 2) == [3, 4]
            client.call("POST", "/api/v1/enqueue", {"queue": "q"})
            assert seqs(reader, 1) == [5]
        client.close()
        process.stop()


def test_events_that_are_gone_are_told_once():
    """Older than retention: one reset with the oldest seq, then everything from there on."""
    with running("fast", options=Options(events_keep_count=10, retention_interval_ms=1)) as server:
        for _ in range(60):
            server.enqueue()
        server.advance(10_000)
        server.wait_until(lambda: server.engine.oldest_seq > 1)
        oldest = server.engine.oldest_seq
        with EventReader(server.port, last=1) as reader:
            reset = reader.event()
            assert (reset.event, reset.data["oldest_seq"]) == ("reset", oldest)
            assert seqs(reader, 3) == [oldest, oldest + 1, oldest + 2]
            assert int(reset.id) == oldest - 1
        # A history this server never had: the same answer.
        with EventReader(server.port, last=10**9) as reader:
            assert reader.event().event == "reset"


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("?queue=a", ["queue.created", "enqueued"]),
        ("?queue=a&type=enqueued", ["enqueued"]),
        ("?type=queue.*", ["queue.created", "queue.created", "queue.created", "queue.paused"]),
        ("?queue=a.*,b&type=enqueued,queue.paused", ["enqueued", "enqueued", "queue.paused"]),
        ("?queue=*&type=*&queue=", ["queue.created", "enqueued"]),
    ],
)
def test_a_stream_gets_what_it_asks_for(server: Server, query: str, wanted: list[str]):
    """Filters by queue and type: lists, and prefixes ending in a star."""
    with EventReader(server.port, query) as live:
        server.enqueue("a")
        server.enqueue("a.b")
        server.enqueue("b")
        server.post("/queues/b/pause")
        assert [message.event for message in live.events(len(wanted))] == wanted
    with EventReader(server.port, query, last=0) as stored:
        assert [message.event for message in stored.events(len(wanted))] == wanted


def test_a_stream_of_one_job_gets_its_story(server: Server):
    """Filter by job: nothing of its neighbours."""
    job, other = server.enqueue(), server.enqueue()
    with EventReader(server.port, f"?job_id={job}", last=0) as reader:
        for _ in range(2):
            claim = server.fetch()
            server.post(f"/ack/{claim['job_id']}")
        found = reader.events(3)
    assert [message.event for message in found] == ["enqueued", "started", "completed"]
    assert {message.data["job_id"] for message in found} == {job}
    assert other != job


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?type=nonsense", "type"),
        ("?type=x.*", "type"),
        ("?job_id=nonsense", "job_id"),
        ("?queue=a%20b", "queue"),
        ("?queue=a,,b", "queue"),
        ("?queue=" + ",".join(["q"] * 65), "queue"),
        ("?last_event_id=-1", "last_event_id"),
        ("?last_event_id=" + "9" * 17, "last_event_id"),
    ],
)
def test_a_bad_filter_is_400_and_names_the_field(server: Server, query: str, field: str):
    """Nothing malformed opens a stream."""
    reply = server.get("/events" + query)
    assert (reply.status, reply.json["code"], reply.json["field"]) == (
        400,
        "VALIDATION_ERROR",
        field,
    )


def test_a_quiet_stream_gets_heartbeats():
    """A comment shows that the stream lives; its id moves a choosy stream on."""
    with (
        running("fast", heartbeat_ms=30) as server,
        EventReader(server.port, "?queue=other") as reader,
    ):
        server.enqueue("q")
        while True:
            beat = reader.read()
            assert beat is not None
            assert beat.comment == "heartbeat"
            if int(beat.id) == server.engine.seq:
                break


def test_streams_end_when_the_server_drains(server: Server):
    """The last block says why; a new stream is refused with 503."""
    with EventReader(server.port) as reader:
        server.run(server.engine.drain)
        last = reader.event()
        assert (last.event, last.data["reason"]) == ("closed", "draining")
        assert reader.read() is None
    assert server.get("/events").status == 503


def test_a_slow_client_is_dropped_with_a_reason_and_costs_nothing(server: Server):
    """A client that does not read falls out of the ring, is told so, and can resume."""
    server.live._ring_events_max = 2_000
    with socket.socket() as listener:
        listener.settimeout(20)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        listener.connect(("127.0.0.1", server.port))
        listener.sendall(b"GET /api/v1/events HTTP/1.1\r\nhost: x\r\n\r\n")
        head = listener.recv(600)
        assert b"200 OK" in head
        jobs = [{"queue": "q"}] * 1_000
        for _ in range(40):
            assert server.post("/enqueue/batch", {"jobs": jobs}).status == 201
        server.wait_until(lambda: server.live.seq == server.engine.seq)
        # The ring is all that is held, and the stream is not among those who have everything.
        assert server.live.statistics()["ring_events_count"] <= 3_000
        text = head
        while not text.endswith(b"\r\n0\r\n\r\n"):
            part = listener.recv(1 << 20)
            assert part, "the stream ended without its last chunk"
            text = text[-4_096:] + part
    assert b'event: closed\ndata: {"reason":"slow"' in text
    server.wait_until(lambda: server.live.statistics()["streams_count"] == 0)
    assert server.live.dropped_total == 1


def test_too_many_streams_are_429(server: Server):
    """The bound is an answer with a time to come back, and leaving makes room."""
    server.live._streams_max = 2
    with EventReader(server.port), EventReader(server.port):
        reply = server.get("/events")
        assert (reply.status, reply.json["code"]) == (429, "OVERLOADED")
    server.wait_until(lambda: server.live.statistics()["streams_count"] == 0)
    with EventReader(server.port) as reader:
        assert reader.status == 200


def test_a_thousand_streams_see_every_event(server: Server):
    """All of them get the same events; rendering is shared, and writers are not held up."""
    count = 1_000
    streams = []
    request = b"GET /api/v1/events?queue=%b HTTP/1.1\r\nhost: x\r\n\r\n"
    for number in range(count):
        stream = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        # Half of them want another queue and must cost nothing at all.
        stream.sendall(request % (b"q" if number % 2 else b"other"))
        streams.append(stream)
    server.wait_until(lambda: server.live.statistics()["streams_count"] == count)
    began = time.monotonic()
    for _ in range(50):
        server.enqueue("q")
    elapsed = time.monotonic() - began
    last = b"id: %d\n" % server.engine.seq
    for number, stream in enumerate(streams):
        if number % 2:
            text = b""
            while last not in text:
                text += stream.recv(1 << 16)
            assert text.count(b"event: enqueued") == 50
        stream.close()
    assert elapsed < 5, "fifty enqueues under a thousand streams"


def test_an_event_reaches_a_stream_within_milliseconds(server: Server):
    """From the answer to an enqueue to its event: the median is well below 20 ms (loosely)."""
    delays: list[float] = []
    with EventReader(server.port, "?type=enqueued") as reader:
        for _ in range(41):
            server.enqueue()
            answered = time.monotonic()
            reader.event()
            delays.append(time.monotonic() - answered)
    assert sorted(delays)[20] < 0.1


def test_no_event_is_lost_or_repeated_while_streams_come_and_go(server: Server):
    """Cut off at random places under load and resumed, a client has every seq exactly once."""
    total = 600

    def produce() -> None:
        connection = server.connect()
        for _ in range(total // 5):
            body = msgspec.json.encode({"jobs": [{"queue": "q"}] * 5})
            server.request("POST", "/api/v1/enqueue/batch", body, connection=connection)
        connection.close()

    producer = threading.Thread(target=produce)
    found: list[int] = []
    seen: str | int = 0
    producer.start()
    sizes = [1, 7, 50, 3, 120, 2, 33]
    turn = 0
    while len(found) < total + 1:
        with EventReader(server.port, last=seen) as reader:
            found += seqs(reader, min(sizes[turn % len(sizes)], total + 1 - len(found)))
            seen = reader.seen
        turn += 1
    producer.join()
    assert found == list(range(1, total + 2))


@settings(max_examples=30, deadline=None)
@given(after=st.integers(0, 90), types=st.sets(st.sampled_from(EVENT_NAMES[:10]), max_size=3))
def test_a_page_and_a_stream_agree(after: int, types: set[str]):
    """From any place with any filter, the stored page is what a stream would send."""
    server = _shared()
    query = f"type={','.join(sorted(types))}" if types else ""
    page = server.get(f"/cluster/events?after_seq={after}&limit=1000&{query}").json
    events = page["events"]
    assert page["next_after_seq"] == page["last_seq"] == server.engine.seq
    with EventReader(server.port, "?" + query, last=after) as reader:
        assert [message.data for message in reader.events(len(events))] == events
    assert [event["seq"] for event in events] == sorted({event["seq"] for event in events})


_kept: list[Server] = []


def _shared() -> Server:
    return _kept[0]


@pytest.fixture(autouse=True, scope="module")
def _history() -> Iterator[None]:
    """A server with some history, for the property above."""
    with running("fast") as server:
        for number in range(30):
            job = server.enqueue(f"q{number % 3}", max_retries=2)
            server.fetch(f"q{number % 3}")
            if number % 3 == 0:
                server.post(f"/fail/{job}", {"error": "line\nbreak"})
            elif number % 3 == 1:
                server.post(f"/ack/{job}")
        _kept.append(server)
        yield
        _kept.clear()
