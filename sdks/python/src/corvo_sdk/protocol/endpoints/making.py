"""How a call is put together; the endpoints only say what differs."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from corvo_sdk.protocol.call import Call, Reader, Repeat, Reply, Request
from corvo_sdk.values import API, with_query

T = TypeVar("T")

_JSON_HEADERS: Final = {"content-type": "application/json"}
_encode: Final = msgspec.json.Encoder().encode


def reader(kind: type[T]) -> Reader[T]:
    """How an answer of this type is read; made once per endpoint, at import."""
    return Reader(kind)


def read(
    path: str,
    answer: Reader[T],
    *,
    query: Mapping[str, Any] | None = None,
    wait_s: float = 0.0,
) -> Call[T]:
    """A call that changes nothing."""
    target = with_query(API + path, query) if query else API + path
    return Call(Request("GET", target), answer, Repeat.ALWAYS, wait_s)


def write(
    method: str,
    path: str,
    body: object,
    answer: Reader[T],
    *,
    repeat: Repeat = Repeat.UNLESS_SENT,
    wait_s: float = 0.0,
) -> Call[T]:
    """A call with a body; fields that are None are left out by the caller."""
    request = Request(method, f"{API}{path}?strict=true", _JSON_HEADERS, _encode(body))
    return Call(request, answer, repeat, wait_s)


def command(
    method: str, path: str, answer: Reader[T], *, repeat: Repeat = Repeat.UNLESS_SENT
) -> Call[T]:
    """A call that changes something and needs no body."""
    return Call(Request(method, API + path), answer, repeat)


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def maybe(answer: Reader[T]) -> "MaybeReader[T]":
    return MaybeReader(answer)


class MaybeReader(Reader[T | None]):
    """Reads an answer that may have no body: 204 is None."""

    def __init__(self, answer: Reader[T]) -> None:
        self._answer = answer

    def __call__(self, reply: Reply) -> T | None:
        return None if reply.status == 204 else self._answer(reply)
