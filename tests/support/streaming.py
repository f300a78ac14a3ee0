"""A worker on a stream, with the stock WebSocket client: its frames, answers and pushes."""

import socket
import struct
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import msgspec
from websockets.sync.client import ClientConnection, connect

JSON = "corvo.v1.json"
MSGPACK = "corvo.v1.msgpack"
WAIT_SECONDS = 30


class Stream:
    """One connection. Frames that come are sorted into answers and pushes."""

    def __init__(self, port: int, protocol: str | None = JSON, **options: Any) -> None:
        protocols: Any = None if protocol is None else [protocol]
        self._stack = ExitStack()
        self.socket: ClientConnection = self._stack.enter_context(
            connect(
                f"ws://127.0.0.1:{port}/api/v1/stream",
                subprotocols=protocols,
                compression=None,
                **options,
            )
        )
        self.is_packed = protocol == MSGPACK
        self.answers: deque[Any] = deque()
        self.pushes: deque[Any] = deque()
        self.last_push = 0
        self._request_id = 0

    def send(self, **frame: Any) -> int:
        """Send a frame and return its number."""
        self._request_id += 1
        frame = {"request_id": self._request_id} | frame
        if self.is_packed:
            self.socket.send(msgspec.msgpack.encode(frame))
        else:
            self.socket.send(msgspec.json.encode(frame), text=True)
        return frame["request_id"]

    def call(self, **frame: Any) -> Any:
        """Send a frame and wait for its answer."""
        number = self.send(**frame)
        answer = self.answer()
        assert answer["request_id"] == number
        return answer

    def answer(self) -> Any:
        """The next answer."""
        while not self.answers:
            self._receive()
        return self.answers.popleft()

    def push(self) -> Any:
        """The next pushed frame."""
        while not self.pushes:
            self._receive()
        return self.pushes.popleft()

    def jobs(self, count: int) -> list[Any]:
        """Wait until so many jobs were pushed."""
        found: list[Any] = []
        while len(found) < count:
            found += self.push()["jobs"]
        assert len(found) == count
        return found

    def start(self, *queues: str, slots: int = 10, **fields: Any) -> Any:
        """Say who works and grant slots; returns the answer."""
        granted = [{"queues": list(queues) or ["q"], "slots": slots}]
        return self.call(worker_id="w", credits=granted, **fields)

    def _receive(self) -> None:
        message = self.socket.recv(timeout=WAIT_SECONDS)
        packed = isinstance(message, bytes)
        assert packed == self.is_packed
        frame = msgspec.msgpack.decode(message) if packed else msgspec.json.decode(message)
        if "request_id" in frame:
            self.answers.append(frame)
        else:
            assert "closing" in frame or frame["push"] == self.last_push + 1
            self.last_push = frame.get("push", self.last_push)
            self.pushes.append(frame)

    def close(self) -> None:
        """Say goodbye."""
        self._stack.close()

    def cut(self) -> None:
        """Vanish: the connection is reset without a word, as when a process is killed."""
        raw = self.socket.socket
        if raw.fileno() < 0:
            return
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # The reading thread of the client holds the descriptor, so the socket is shut down first.
        with suppress(OSError):  # the server may have ended it already
            raw.shutdown(socket.SHUT_RDWR)
        raw.close()


@contextmanager
def streaming(port: int, protocol: str | None = JSON, **options: Any) -> Iterator[Stream]:
    """A stream for a part of a test."""
    stream = Stream(port, protocol, **options)
    try:
        yield stream
    finally:
        stream.close()


def ack(job: Any) -> dict[str, Any]:
    """The item that reports a job done."""
    return {"job_id": job["job_id"], "lease_token": job["lease_token"]}
