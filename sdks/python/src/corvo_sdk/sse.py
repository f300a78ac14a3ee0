"""Server-sent events out of bytes that come in any pieces. Pure."""

from typing import Final

from msgspec import Struct

from corvo_sdk.errors import ProtocolError

EVENT_BYTES_MAX: Final = 4 * 1024 * 1024  # of one event that is not complete yet


class SseEvent(Struct, frozen=True):
    """One event: its type, its data, and the last id the stream has named."""

    type: str
    data: str
    id: str


class SseParser:
    """Takes pieces of a stream and gives the events that are complete.

    Follows the standard: lines end in CR, LF or both; a line with a colon in front is a comment; an
    event ends at an empty line and counts only when it has data. An id holds until the next one,
    also when it came without data, which is how a quiet stream moves on.
    """

    def __init__(self) -> None:
        self.last_event_id = ""
        self.retry_ms: int | None = None
        self._rest = b""  # of a line without its end
        self._is_after_cr = False  # a piece ended in CR: an LF next belongs to it
        self._is_first = True
        self._id = ""
        self._type = ""
        self._data: list[str] = []
        self._data_size = 0

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next piece. Raises ProtocolError for an event beyond all bounds."""
        if self._is_after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._is_after_cr = False
        if not chunk:
            return []
        text = self._rest + chunk
        if text.endswith(b"\r"):
            self._is_after_cr = True
        lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        found: list[SseEvent] = []
        for line in lines:
            self._take(line, found)
        if len(self._rest) + self._data_size > EVENT_BYTES_MAX:
            raise ProtocolError(f"an event is longer than {EVENT_BYTES_MAX} bytes")
        return found

    def _take(self, line: bytes, found: list[SseEvent]) -> None:
        if self._is_first:
            line = line.removeprefix(b"\xef\xbb\xbf")
            self._is_first = False
        if not line:
            # An id counts from here on: before, its event is not complete and would be missed.
            self.last_event_id = self._id
            if self._data:
                found.append(SseEvent(self._type, "\n".join(self._data), self.last_event_id))
            self._type, self._data, self._data_size = "", [], 0
            return
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", "replace")
        match name:
            case b"event":
                self._type = text
            case b"data":
                self._data.append(text)
                self._data_size += len(value)
            case b"id" if "\0" not in text:
                self._id = text
            case b"retry" if text.isdecimal() and len(text) < 8:
                self.retry_ms = int(text)
            case _:
                pass  # a comment, or a field nobody knows
