"""Both clients of the SDK behind one face, so that every fact is proven for both."""

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from corvo_sdk import AsyncClient, Client

SHELLS = ("sync", "async")
_END = object()


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, awaitable: Any) -> Any:
        async def body() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(body(), self._loop).result(60)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Blocking:
    """An `AsyncClient` used as if it were a `Client`."""

    def __init__(self, make: Callable[[], AsyncClient]) -> None:
        self._loop = Loop()

        async def made() -> AsyncClient:
            return make()

        self._client: AsyncClient = self._loop.run(made())

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._client, name)
        if not callable(value):
            return value

        def call(*arguments: Any, **named: Any) -> Any:
            result = value(*arguments, **named)
            if inspect.isawaitable(result):
                return self._loop.run(result)
            if isinstance(result, AsyncIterator):
                return self._iterate(result)
            return result

        return call

    def _iterate(self, source: Any) -> Iterator[Any]:
        async def following() -> Any:
            return await anext(source, _END)

        try:
            while (item := self._loop.run(following())) is not _END:
                yield item
        finally:
            self._loop.run(source.aclose())

    @contextmanager
    def open(self, *arguments: Any, **named: Any) -> Iterator[Any]:
        manager = self._client.open(*arguments, **named)
        stream = self._loop.run(manager.__aenter__())

        class Seen:
            status, headers, chunks = stream.status, stream.headers, self._iterate(stream.chunks)

        try:
            yield Seen
        finally:
            self._loop.run(manager.__aexit__(None, None, None))

    def close(self) -> None:
        self._loop.run(self._client.close())
        self._loop.close()


@contextmanager
def client_of(shell: str, url: Any, **options: Any) -> Iterator[Any]:
    """A client of either kind, closed at the end."""
    if shell == "sync":
        client: Any = Client(url, **options)
    else:
        client = Blocking(lambda: AsyncClient(url, **options))
    try:
        yield client
    finally:
        client.close()
