"""From body bytes to a request, or to a refusal that names the field."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.api import wire
from corvo.api.decode import Reader, is_strict
from corvo.errors import RequestError

ENQUEUE = Reader(wire.EnqueueRequest)
BATCH = Reader(wire.EnqueueBatchRequest)


def refusal(reader: Reader[Any], body: bytes, query: bytes = b""):
    with pytest.raises(RequestError) as caught:
        reader.read(body, query)
    return caught.value


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (b"", "VALIDATION_ERROR", "queue"),
        (b"{", "PARSE_ERROR", None),
        (b"hello", "PARSE_ERROR", None),
        (b"[]", "VALIDATION_ERROR", None),
        (b"null", "VALIDATION_ERROR", None),
        (b'{"queue":"q"} x', "PARSE_ERROR", None),
        (b'{"queue":"q",}', "PARSE_ERROR", "queue"),
        (b'{"queue":5}', "VALIDATION_ERROR", "queue"),
        (b'{"queue":"q","priority":"low"}', "VALIDATION_ERROR", "priority"),
        (b'{"queue":"q","retry_backoff":"cubic"}', "VALIDATION_ERROR", "retry_backoff"),
        (b'{"queue":"q","max_retries":-1}', "VALIDATION_ERROR", "max_retries"),
        (b'{"queue":"q","max_retries":1.5}', "VALIDATION_ERROR", "max_retries"),
        (b'{"queue":"q","cost":0}', "VALIDATION_ERROR", "cost"),
        (b'{"queue":"q","payload":{"a":NaN}}', "PARSE_ERROR", "payload.a"),
        (b'{"queue":"q","payload":[1,-Infinity]}', "PARSE_ERROR", "payload[1]"),
        (b'{"queue":"q","payload":{"a":["x","\\ud800"]}}', "PARSE_ERROR", "payload.a[1]"),
        (b'{"queue":"q","payload":"\\udc00x"}', "PARSE_ERROR", "payload"),
        (b'{"queue":"q","payload":"\xff"}', "PARSE_ERROR", "payload"),
        (b'{"queue":"q","payload":"\xed\xa0\x80"}', "PARSE_ERROR", "payload"),
        (b'{"queue":"\\ud800"}', "PARSE_ERROR", "queue"),
        (b'{"queue":"q","payload":"a\x01b"}', "PARSE_ERROR", "payload"),
        (b'{"queue":"q","payload":01}', "PARSE_ERROR", "payload"),
        (b'{"queue":"q","tags":{"a":1}}', "VALIDATION_ERROR", "tags[...]"),
        (b'{"queue":"q","hold":{"timeout_action":"x"}}', "VALIDATION_ERROR", "hold.timeout_action"),
        (b'{"queue":"q","chain":{"steps":[{}]}}', "VALIDATION_ERROR", "chain.steps[0].queue"),
        (b'\xef\xbb\xbf{"queue":"q"}', "PARSE_ERROR", None),
    ],
)
def test_a_malformed_body_is_refused_with_its_field(body: bytes, code: str, field: str | None):
    """Every kind of malformed body is a 400 that names the field as far as there is one."""
    error = refusal(ENQUEUE, body)
    assert (error.status, error.code, error.field) == (400, code, field)


def test_the_item_of_a_list_is_named():
    """The path of a refusal inside a list has the position."""
    error = refusal(BATCH, b'{"jobs":[{"queue":"q"},{"queue":"q","priority":"low"}]}')
    assert error.field == "jobs[1].priority"
    assert error.hint == "one of: critical, high, normal"


def test_a_document_too_deep_for_the_decoder_is_a_refusal():
    """A nesting that exhausts the decoder's stack is a 400 naming the field, not a crash."""
    for depth in (2_000, 200_000):
        body = b'{"queue":"q","payload":' + b"[" * depth + b"]" * depth + b"}"
        assert refusal(ENQUEUE, body).field == "payload"


def test_unknown_fields_are_ignored_unless_strict():
    """Without strict an unknown field has no effect; with it, it is refused at any depth."""
    body = b'{"queue":"q","colour":1,"chain":{"steps":[{"queue":"q"}]}}'
    assert ENQUEUE.read(body, b"").queue == "q"
    assert refusal(ENQUEUE, body, b"strict=true").field == "colour"
    nested = b'{"queue":"q","chain":{"steps":[{"queue":"q","colour":1}]}}'
    assert ENQUEUE.read(nested, b"x=1").queue == "q"
    assert refusal(ENQUEUE, nested, b"x=1&strict=true").field == "chain.steps[0].colour"
    held = b'{"queue":"q","hold":{"colour":1}}'
    assert refusal(ENQUEUE, held, b"strict=1").field == "hold.colour"


def test_strict_accepts_every_declared_field():
    """The strict twin of a shape knows the same fields as the shape."""
    body = json.dumps(dict.fromkeys(wire.JobFields.__struct_fields__) | {"queue": "q"}).encode()
    strict = ENQUEUE.read(body, b"strict=true")
    assert isinstance(strict, wire.EnqueueRequest)


@pytest.mark.parametrize(
    "query", [b"", b"strict=false", b"strict=0", b"restrict=true", b"a=strict"]
)
def test_strict_must_be_asked_for(query: bytes):
    """Only the parameter strict turns it on."""
    assert not is_strict(query)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.booleans())
def test_a_document_survives_byte_for_byte(document: object, is_ascii: bool):
    """The payload a request holds is exactly the bytes that were sent."""
    try:
        text = json.dumps(document, ensure_ascii=is_ascii).encode()
    except UnicodeEncodeError:
        return  # a lone surrogate, which the generator of text may hold
    body = b'{"payload": ' + text + b' ,"queue":"q"}'
    try:
        payload = bytes(ENQUEUE.read(body, b"").payload)
    except RequestError as error:
        assert "surrogate" in error.message  # noqa: PT017 - only this refusal is expected
        return
    assert payload == text


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_raise_anything_else(body: bytes):
    """Whatever comes in is a request or a refusal."""
    try:
        ENQUEUE.read(body, b"")
    except RequestError as error:
        assert error.status == 400  # noqa: PT017 - both ends are fine


@given(JSON, st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_damaged_json_is_a_request_or_a_refusal(document: object, position: int, damage: bytes):
    """A document with a few bytes overwritten never makes anything else than a refusal."""
    body = bytearray(json.dumps({"queue": "q", "payload": document}).encode())
    position %= len(body)
    body[position : position + len(damage)] = damage
    try:
        ENQUEUE.read(bytes(body), b"")
    except RequestError as error:
        assert error.status == 400  # noqa: PT017
