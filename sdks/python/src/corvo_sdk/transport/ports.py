"""What a client needs of a transport."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

from msgspec import Struct

from corvo_sdk.protocol.call import Reply, Request


class StreamReply(Struct):
    """An answer whose body comes piece by piece."""

    status: int
    headers: dict[str, str]  # names in lower case
    chunks: Iterator[bytes]


class AsyncStreamReply(Struct):
    """An answer whose body comes piece by piece."""

    status: int
    headers: dict[str, str]  # names in lower case
    chunks: AsyncIterator[bytes]


class Transport(Protocol):
    """Sends requests from any thread."""

    def send(self, base_url: str, request: Request) -> Reply:
        """Send one request and read the whole answer. Raises ConnectionFailedError."""
        ...

    def stream(self, base_url: str, request: Request) -> AbstractContextManager[StreamReply]:
        """Send one request; the time-out holds for the head and between two pieces."""
        ...

    def close(self) -> None: ...


class AsyncTransport(Protocol):
    """Sends requests on one event loop."""

    async def send(self, base_url: str, request: Request) -> Reply:
        """Send one request and read the whole answer. Raises ConnectionFailedError."""
        ...

    def stream(
        self, base_url: str, request: Request
    ) -> AbstractAsyncContextManager[AsyncStreamReply]:
        """Send one request; the time-out holds for the head and between two pieces."""
        ...

    async def close(self) -> None: ...


class SupportsWrite(Protocol):
    """A file, as far as a download needs one."""

    def write(self, data: bytes, /) -> object: ...


class Tls(Struct, frozen=True):
    """How a server proves who it is, and how the client does."""

    ca_file: str | None = None  # PEM; None: what the system trusts
    verify: bool = True
    certificate_file: str | None = None  # PEM of the client, with `key_file`
    key_file: str | None = None
