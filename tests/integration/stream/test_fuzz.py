"""Whatever a client sends, it gets an answer or an end, and the server goes on."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corvo.api.stream.frames import ClientFrame
from tests.support.server import Server, running
from tests.support.streaming import JSON, MSGPACK, Stream, streaming

NAMES = sorted(field.name for field in msgspec.structs.fields(ClientFrame))
MEMBERS = [*NAMES, "job_id", "lease_token", "queue", "payload", "slots", "stream_id", "x"]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.sampled_from(["job_01HF7YAT0000231KB13YPC3W8N", "q", "5s", "#0", "str_x"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4)
    ),
    max_leaves=12,
)
FRAMES = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5)
OPTIONS = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running("fast") as found:
        yield found


def _exchange(server: Server, protocol: str, message: Any) -> None:
    with streaming(server.port, protocol) as stream:
        stream.socket.send(message)
        answer = stream.answer()
        assert "request_id" in answer
        if "error" in answer:
            assert answer["error"]["code"] != "INTERNAL_ERROR"
        # The same stream still works.
        assert "error" not in stream.call(request_id=1)
    assert server.reports == []


@OPTIONS
@given(frame=FRAMES)
def test_any_json_frame_is_answered(server: Server, frame: dict[str, Any]) -> None:
    """Frames of the right names and any values: an answer each, never a bug."""
    _exchange(server, JSON, msgspec.json.encode(frame).decode())


@OPTIONS
@given(frame=FRAMES)
def test_any_msgpack_frame_is_answered(server: Server, frame: dict[str, Any]) -> None:
    """The same in msgpack."""
    _exchange(server, MSGPACK, msgspec.msgpack.encode(frame))


@OPTIONS
@given(message=st.binary(max_size=60))
def test_any_bytes_are_answered(server: Server, message: bytes) -> None:
    """Bytes that are nothing at all are refused with PARSE_ERROR or VALIDATION_ERROR."""
    _exchange(server, MSGPACK, message)


@OPTIONS
@given(noise=st.binary(min_size=1, max_size=80))
def test_any_bytes_on_the_wire_end_or_wait(server: Server, noise: bytes) -> None:
    """Bytes that are no WebSocket frames end the connection, and nothing else."""
    stream = Stream(server.port)
    stream.socket.socket.sendall(noise)
    stream.cut()
    server.wait_until(lambda: server.streams.open_count == 0)
    assert server.reports == []
