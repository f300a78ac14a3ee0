"""How a call is put together; the endpoints only say what differs."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

import msgspec

from corvo_sdk.protocol.call import Call, Reader, Repeat, Reply, Request
from corvo_sdk.values import API, duration_text, instant_text, with_query

T = TypeVar("T")

_DURATIONS: Final = frozenset(
    "aging_step expire_after jitter lease_duration period retention retry_base_delay"
    " retry_max_delay timeout unique_period".split()
)
_INSTANTS: Final = frozenset({"end_at", "scheduled_at", "start_at"})
_NESTED: Final = frozenset({"hold", "key_rate", "rate"})  # objects with such fields inside
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
    query: Mapping[str, Any] | None = None,
    repeat: Repeat = Repeat.UNLESS_SENT,
    wait_s: float = 0.0,
) -> Call[T]:
    """A call with a body; fields that are None are left out by the caller."""
    target = f"{API}{path}?strict=true"
    if query:
        target = with_query(API + path, {"strict": True, **query})
    request = Request(method, target, _JSON_HEADERS, _encode(body))
    return Call(request, answer, repeat, wait_s)


def command(
    method: str,
    path: str,
    answer: Reader[T],
    *,
    repeat: Repeat = Repeat.UNLESS_SENT,
    wait_s: float = 0.0,
) -> Call[T]:
    """A call that changes something and needs no body."""
    return Call(Request(method, API + path), answer, repeat, wait_s)


def rendered(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a request with durations and instants in the server's form; a None stays."""
    return {name: _rendered(name, value) for name, value in fields.items()}


def _rendered(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _DURATIONS:
        return duration_text(value)
    if name in _INSTANTS:
        return instant_text(value)
    if name in _NESTED and isinstance(value, Mapping):
        return rendered(cast("Mapping[str, Any]", value))
    return value


def filter_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The filter of a search; there, what ends in after or before is an instant."""
    return {
        name: instant_text(value) if name.endswith(("_after", "_before")) else value
        for name, value in fields.items()
        if value is not None
    }


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def maybe(answer: Reader[T]) -> "MaybeReader[T]":
    return MaybeReader(answer)


class MaybeReader(Reader[T | None]):
    """Reads an answer that may have no body: 204 is None."""

    def __init__(self, answer: Reader[T]) -> None:
        self._answer = answer
        self.kind = answer.kind

    def __call__(self, reply: Reply) -> T | None:
        return None if reply.status == 204 else self._answer(reply)
