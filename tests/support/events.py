"""A reader of event streams, as a browser would read them."""

import http.client
from types import TracebackType
from typing import Any, Self

import msgspec


class Message(msgspec.Struct):
    """One block of a stream: an event, a comment, or a bare id."""

    event: str = ""
    id: str = ""
    data: Any = None
    comment: str = ""


class EventReader:
    """One open stream. `seen` is the last id it got, as a client keeps it."""

    def __init__(
        self, port: int, query: str = "", *, last: str | int | None = None, timeout: float = 20
    ) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        headers = {} if last is None else {"last-event-id": str(last)}
        self._connection.request("GET", "/api/v1/events" + query, headers=headers)
        self.response = self._connection.getresponse()
        self.status = self.response.status
        self.seen = ""
        if self.status == 200:
            self.opening = self.read()

    def read(self) -> Message | None:
        """Wait for the next block; None at the end of the stream."""
        message = Message()
        is_empty = True
        while True:
            line = self.response.readline().decode()
            if not line:
                return None
            text = line.rstrip("\n")
            if not text:
                if is_empty:
                    continue
                if message.id:
                    self.seen = message.id
                return message
            is_empty = False
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if name == "":
                message.comment = value
            elif name == "data":
                message.data = msgspec.json.decode(value)
            elif name in ("event", "id"):
                setattr(message, name, value)

    def event(self) -> Message:
        """Wait for the next event, past comments."""
        while True:
            message = self.read()
            assert message is not None, "the stream ended"
            if message.event:
                return message

    def events(self, count: int) -> list[Message]:
        """Wait for so many events."""
        return [self.event() for _ in range(count)]

    def close(self) -> None:
        self.response.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
