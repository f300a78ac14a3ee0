"""Following a stream of events across broken connections, as a pure state machine.

A shell opens the stream with `headers()`, feeds what comes, and after a break asks `lost` how long
to wait. The id the stream named last goes along with the next request, so nothing is missed and
nothing comes twice.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

from corvo_sdk.errors import ConnectionFailedError, CorvoError, ProtocolError
from corvo_sdk.sse import SseEvent, SseParser
from corvo_sdk.types.search import Bulk
from corvo_sdk.types.server import Event

T = TypeVar("T")

# The server speaks at least every 15 seconds; silence for three times as long is a dead connection.
SILENCE_S: Final = 45.0
_BACKOFF_FIRST_S: Final = 0.1
_BACKOFF_MAX_S: Final = 5.0


class Following(Generic[T]):
    """One stream, however many connections it takes."""

    def __init__(
        self,
        read: Callable[[SseEvent], T | None],
        *,
        last_event_id: int | None = None,
        patience_s: float,
        now_s: float,
    ) -> None:
        self._read = read
        self._last_event_id = "" if last_event_id is None else str(last_event_id)
        self._patience_s = patience_s
        self._heard_at_s = now_s
        self._failures = 0
        self._parser = SseParser()

    def headers(self) -> dict[str, str]:
        """The headers of the next connection, which starts with a clean parser."""
        self._parser = SseParser()
        sent = {"accept": "text/event-stream", "cache-control": "no-store"}
        if self._last_event_id:
            sent["last-event-id"] = self._last_event_id
        return sent

    def feed(self, chunk: bytes, now_s: float) -> list[T]:
        """Take what came; returns what is complete."""
        self._heard_at_s = now_s
        self._failures = 0
        found: list[T] = []
        for event in self._parser.feed(chunk):
            value = self._read(event)
            if value is not None:
                found.append(value)
        # Safety: the caller gets all of these before the connection can break again.
        self._last_event_id = self._parser.last_event_id or self._last_event_id
        return found

    def lost(self, error: CorvoError | None, now_s: float, chance: float) -> float:
        """How long to wait before the next try. Raises when nobody was heard for too long."""
        if now_s - self._heard_at_s >= self._patience_s:
            raise error or ConnectionFailedError("the stream ended", was_sent=True)
        self._failures += 1
        longest_s: float = min(_BACKOFF_MAX_S, _BACKOFF_FIRST_S * 2.0**self._failures)
        if error is not None and error.retry_after_ms:
            longest_s = max(longest_s, error.retry_after_ms / 1_000)
        return longest_s * (0.5 + chance / 2)


def read_event(event: SseEvent) -> Event | None:
    """What an event of `GET /events` says; the one that ends a stream says nothing more."""
    if event.type == "closed":
        return None
    if event.type == "reset":
        seq = int(event.id) if event.id.isdecimal() else 0
        return Event(seq=seq, type="reset", data=_decoded(event.data, dict[str, Any]))
    return _decoded(event.data, Event)


def read_bulk(event: SseEvent) -> Bulk | None:
    """What an event of `GET /bulk/{id}/progress` says."""
    return _decoded(event.data, Bulk)


def _decoded(data: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"an event can not be read: {error}") from error
