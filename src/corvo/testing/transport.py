"""The SDK's two transports, served by a house instead of a socket.

Requests and answers are the bytes that would have gone over the wire, so whatever a payload loses
on its way through JSON is lost here too.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager

from corvo.testing.house import House, HouseReply, Pipe
from corvo_sdk.errors import ConnectionFailedError
from corvo_sdk.protocol.call import Reply, Request
from corvo_sdk.transport.ports import AsyncStreamReply, StreamReply

URL = "http://corvo.test"  # never resolved: nothing is sent anywhere

# Called with every request that was served: True when its answer shall be lost on the way back.
After = Callable[[Request], bool]
AsyncAfter = Callable[[Request], Awaitable[bool]]


class HouseTransport:
    """For `corvo_sdk.Client`."""

    def __init__(self, house: House, after: After) -> None:
        self._house = house
        self._after = after

    def send(self, base_url: str, request: Request) -> Reply:  # noqa: ARG002 - the port's signature
        served = self._house.serve(request.method, request.path, request.headers, request.body)
        answer = self._house.run(served)
        return _delivered(answer, is_lost=answer.status < 300 and self._after(request))

    @contextmanager
    def stream(self, base_url: str, request: Request) -> Generator[StreamReply]:  # noqa: ARG002
        house = self._house
        opened = house.open(request.method, request.path, request.headers, request.body)
        pipe = house.run(opened)
        try:
            head = pipe.reply()
            yield StreamReply(head.status, head.headers, self._chunks(pipe))
        finally:
            house.run(pipe.leave())

    def _chunks(self, pipe: Pipe) -> Iterator[bytes]:
        while chunk := self._house.run(pipe.next()):
            yield chunk

    def close(self) -> None:
        """The house belongs to the kit."""


class AsyncHouseTransport:
    """For `corvo_sdk.AsyncClient`."""

    def __init__(self, house: House, after: AsyncAfter) -> None:
        self._house = house
        self._after = after

    async def send(self, base_url: str, request: Request) -> Reply:  # noqa: ARG002 - as above
        served = self._house.serve(request.method, request.path, request.headers, request.body)
        answer = await self._house.arun(served)
        return _delivered(answer, is_lost=answer.status < 300 and await self._after(request))

    @asynccontextmanager
    async def stream(self, base_url: str, request: Request) -> AsyncGenerator[AsyncStreamReply]:  # noqa: ARG002
        house = self._house
        opened = house.open(request.method, request.path, request.headers, request.body)
        pipe = await house.arun(opened)
        try:
            head = pipe.reply()
            yield AsyncStreamReply(head.status, head.headers, self._chunks(pipe))
        finally:
            await house.arun(pipe.leave())

    async def _chunks(self, pipe: Pipe) -> AsyncIterator[bytes]:
        while chunk := await self._house.arun(pipe.next()):
            yield chunk

    async def close(self) -> None:
        """The house belongs to the kit."""


def _delivered(served: HouseReply, *, is_lost: bool) -> Reply:
    if is_lost:
        raise ConnectionFailedError("the answer was lost on its way back", was_sent=True)
    return Reply(served.status, served.headers, served.body)
