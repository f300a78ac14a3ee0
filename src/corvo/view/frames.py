"""Frames on a stream: four bytes of length, then a message.

Format: the length is big-endian and does not count itself.
"""

import asyncio
import socket
from typing import Final

FRAME_BYTES_MAX: Final = 256 * 1024 * 1024  # one job's documents and a long answer fit many times
HEAD_BYTES: Final = 4


class ClosedError(Exception):
    """The other process is gone, or says what can not be."""


def pack(message: bytes) -> bytes:
    """Put the length in front of a message."""
    assert len(message) <= FRAME_BYTES_MAX
    return len(message).to_bytes(HEAD_BYTES, "big") + message


def _checked_length(head: bytes) -> int:
    length = int.from_bytes(head, "big")
    if length > FRAME_BYTES_MAX:
        raise ClosedError(f"a frame of {length} bytes")
    return length


async def read(reader: asyncio.StreamReader) -> bytes:
    """Read one message. Raises `ClosedError` at the end of the stream."""
    try:
        head = await reader.readexactly(HEAD_BYTES)
        return await reader.readexactly(_checked_length(head))
    except (asyncio.IncompleteReadError, OSError) as error:
        raise ClosedError("the stream ended") from error


class BlockingFrames:
    """Frames on a socket that blocks; one reader and, guarded by its caller, one writer."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, message: bytes) -> None:
        """Send one message. Raises `ClosedError`."""
        try:
            self._socket.sendall(pack(message))
        except OSError as error:
            raise ClosedError("the stream ended") from error

    def receive(self) -> bytes:
        """Wait for one message. Raises `ClosedError` at the end of the stream."""
        return self._exactly(_checked_length(self._exactly(HEAD_BYTES)))

    def _exactly(self, count: int) -> bytes:
        # Safety: a frame is taken in as it comes, so a length that lies costs no memory.
        parts: list[bytes] = []
        while count:
            try:
                part = self._socket.recv(min(count, 1 << 20))
            except OSError as error:
                raise ClosedError("the stream ended") from error
            if not part:
                raise ClosedError("the stream ended")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)
