"""A light closed-loop load generator: each connection sends its next request when it has an answer.

Cost: one small protocol per connection and no HTTP library, so that the client stays cheaper than
the server it measures. It reads only what the server sends: a status line, lower-case header names,
`content-length`. It is no general HTTP client.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol, cast

import msgspec
import uvloop

from corvo.cli.failure import UnreachableError

IDLE_SECONDS_MAX = 90  # a run in which nothing is answered for this long has failed


class Script(Protocol):
    """What one connection says: the next request, or None when it has finished."""

    def next_request(self) -> bytes | None:
        """Return the bytes of the next request."""
        ...

    def take_answer(self, status: int, body: bytes) -> None:
        """Look at the answer to the last request."""
        ...


class Run(msgspec.Struct, frozen=True):
    """What a run did; the latencies are in seconds, sorted."""

    requests: int
    seconds: float
    latencies: list[float]

    def latency_ms(self, fraction: float) -> float:
        """Return the latency that this fraction of the requests did not exceed."""
        if not self.latencies:
            return 0.0
        position = min(len(self.latencies) - 1, int(len(self.latencies) * fraction))
        return self.latencies[position] * 1_000


def post(path: str, body: bytes) -> bytes:
    """Build the bytes of one POST request."""
    return (
        b"POST %b HTTP/1.1\r\nhost: corvo\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%b" % (path.encode(), len(body), body)
    )


def drive(address: tuple[str, int], scripts: Sequence[Script], seconds: float | None = None) -> Run:
    """Run every script on its own connection until all finish, or for a while."""
    return uvloop.run(_drive(address, scripts, seconds))


class _Connection(asyncio.Protocol):
    """One connection in lock step: a request, its answer, the next request."""

    def __init__(self, load: "_Load", script: Script) -> None:
        self._load = load
        self._script = script
        self._buffer = b""
        self._sent_at = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Safety: uvloop's transports have the interface and not the base class.
        self._transport = cast("asyncio.Transport", transport)
        self._send_next()

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        size = _content_length(self._buffer, end)
        if len(self._buffer) < end + 4 + size:
            return
        status = int(self._buffer[9:12])
        body = self._buffer[end + 4 : end + 4 + size]
        self._buffer = b""
        self._load.record(time.perf_counter() - self._sent_at)
        self._script.take_answer(status, body)
        self._send_next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.finish(exc)

    def _send_next(self) -> None:
        assert self._transport is not None
        request = None if self._load.is_over else self._script.next_request()
        if request is None:
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(request)


class _Load:
    """The connections of a run, and what they measured."""

    def __init__(self, connections: int) -> None:
        self.is_over = False
        self.latencies: list[float] = []
        self.failure: Exception | None = None
        self.finished = asyncio.Event()
        self._open = connections

    def record(self, seconds: float) -> None:
        self.latencies.append(seconds)

    def finish(self, exc: Exception | None) -> None:
        self.failure = self.failure or exc
        self._open -= 1
        if self._open == 0:
            self.finished.set()


def _content_length(buffer: bytes, end: int) -> int:
    start = buffer.find(b"content-length: ", 0, end)
    if start < 0:
        return 0
    start += 16
    stop = buffer.find(b"\r\n", start, end + 2)
    return int(buffer[start:stop])


async def _drive(address: tuple[str, int], scripts: Sequence[Script], seconds: float | None) -> Run:
    loop = asyncio.get_running_loop()
    load = _Load(len(scripts))
    started = time.perf_counter()
    for script in scripts:
        try:
            await loop.create_connection(lambda script=script: _Connection(load, script), *address)
        except OSError as error:
            raise UnreachableError(f"no answer from {address[0]}:{address[1]}: {error}") from error
    if seconds is not None:
        loop.call_later(seconds, lambda: setattr(load, "is_over", True))
    await _finish(load)
    took = time.perf_counter() - started
    if load.failure is not None:
        raise UnreachableError(f"a connection was lost: {load.failure}")
    load.latencies.sort()
    return Run(requests=len(load.latencies), seconds=took, latencies=load.latencies)


async def _finish(load: _Load) -> None:
    answered = -1
    while not load.finished.is_set():
        if len(load.latencies) == answered:
            raise UnreachableError(f"nothing was answered for {IDLE_SECONDS_MAX} seconds")
        answered = len(load.latencies)
        try:
            async with asyncio.timeout(IDLE_SECONDS_MAX):
                await load.finished.wait()
        except TimeoutError:
            continue
