"""The short way of a plain enqueue says what the ordinary way says, or nothing."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.api import translate, wire
from corvo.api.decode import Reader
from corvo.api.values import check_name
from corvo.model.command import EnqueueJob

READER = Reader(wire.EnqueueRequest)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


def context(payload_bytes_max: int = 4096) -> translate.Context:
    """Give out one identifier for ever, so that commands can be compared."""
    return translate.Context(lambda: bytes(16), payload_bytes_max, lambda: 0)


def ordinary(body: bytes) -> EnqueueJob:
    """Translate the way every call can go."""
    return translate.enqueue(READER.read(body, b""), 0, context(), None)


@given(JSON)
def test_a_plain_call_becomes_the_same_command_on_both_ways(payload: object) -> None:
    """Queue and payload alone: the short way may be taken and changes nothing."""
    check_name("known", "queue")
    body = msgspec.json.encode({"queue": "known", "payload": payload})
    short = translate.PlainReader(context()).read(body, 0)
    assert short is None or short == ordinary(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"queue":"known"}',
        b'{"queue":"known","payload":{},"priority":"high"}',
        b'{"queue":"never seen before","payload":{}}',
        b'{"queue":"known","payload":{"a":NaN}}',
        b'{"queue":"known","payload":' + b"[" * 65 + b"]" * 65 + b"}",
        b'{"queue":"known","payload":"' + b"x" * 5000 + b'"}',
        b'{"queue":"known","payload":"\xc3\xa9"}',
        b'{"queue":"known","payload":{}',
        b'{"queue":7,"payload":{}}',
    ],
)
def test_anything_else_is_left_to_the_ordinary_way(body: bytes) -> None:
    """Further fields, unknown names, limits and mistakes are decided and explained there."""
    check_name("known", "queue")
    assert translate.PlainReader(context()).read(body, 0) is None


def test_it_stops_trying_when_calls_are_not_plain() -> None:
    """A producer that always sends more fields does not pay for a second decoding each time."""
    check_name("known", "queue")
    reader = translate.PlainReader(context())
    plain = b'{"queue":"known","payload":{}}'
    for _ in range(translate.PLAIN_LUCK_MAX):
        reader.read(b'{"queue":"known","payload":{},"priority":"high"}', 0)
    assert reader.read(plain, 0) is None
    answers = [reader.read(plain, 0) for _ in range(translate.PLAIN_PAUSE)]
    assert answers[-1] is not None
