"""The SDK's two transports, served by a house instead of a socket.

Requests and answers are the bytes that would have gone over the wire, so whatever a payload loses
on its way through JSON is lost here too.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from corvo_sdk.errors import ConnectionFailedError
from corvo_sdk.protocol.call import Reply, Request
from corvo_sdk.transport.ports import AsyncStreamReply, StreamReply

from corvo.testing.house import House, HouseReply, Pipe

URL = "http://corvo.test"  # never resolved: nothing is sent anywhere

# Called with every request that was served: True when its answer shall be lost on the way back.
LosesAnswer = Callable[[Request], bool]


class HouseTransport:
    """For `corvo_sdk.Client`."""

    def __init__(self, house: House, loses_answer: LosesAnswer) -> None:
        self._house = house
        self._loses_answer = loses_answer

    def send(self, base_url: str, request: Request) -> Reply:  # noqa: ARG002 - the port's signature
        served = self._house.serve(request.method, request.path, request.headers, request.body)
        return _delivered(self._house.run(served), request, self._loses_answer)

    @contextmanager
    def stream(self, base_url: str, request: Request) -> Iterator[StreamReply]:  # noqa: ARG002
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

    def __init__(self, house: House, loses_answer: LosesAnswer) -> None:
        self._house = house
        self._loses_answer = loses_answer

    async def send(self, base_url: str, request: Request) -> Reply:  # noqa: ARG002 - as above
        served = self._house.serve(request.method, request.path, request.headers, request.body)
        return _delivered(await self._house.arun(served), request, self._loses_answer)

    @asynccontextmanager
    async def stream(self, base_url: str, request: Request) -> AsyncIterator[AsyncStreamReply]:  # noqa: ARG002
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


def _delivered(served: HouseReply, request: Request, loses_answer: LosesAnswer) -> Reply:
    if loses_answer(request):
        raise ConnectionFailedError("the answer was lost on its way back", was_sent=True)
    return Reply(served.status, served.headers, served.body)
