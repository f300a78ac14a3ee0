"""The asynchronous transport: aiohttp with one session, made on the loop that uses it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
from yarl import URL

from corvo_sdk.errors import ConnectionFailedError, DeadlineExceededError
from corvo_sdk.protocol.call import Reply, Request
from corvo_sdk.transport.ports import AsyncStreamReply, Tls
from corvo_sdk.transport.tls import context_of

_CONNECT_S_MAX: Final = 5.0
_KEPT_S: Final = (
    60.0  # less than the server keeps an idle connection, so that it rarely closes first
)

_UNSENT: Final = (
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientConnectorError,
    aiohttp.ClientConnectorCertificateError,
)


class LoopTransport:
    """Connections to any number of servers, for one event loop at a time."""

    def __init__(self, *, tls: Tls | None = None, connections: int = 256) -> None:
        self._tls = None if tls is None else context_of(tls)
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(self, base_url: str, request: Request) -> Reply:
        timeout = aiohttp.ClientTimeout(
            total=request.timeout_s, sock_connect=min(request.timeout_s, _CONNECT_S_MAX)
        )
        try:
            async with await self._request(base_url, request, timeout) as response:
                body = await response.read()
                return Reply(response.status, _headers(response), body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure(base_url, error) from error

    @asynccontextmanager
    async def stream(
        self, base_url: str, request: Request
    ) -> AsyncGenerator[AsyncStreamReply, None]:
        timeout = aiohttp.ClientTimeout(
            total=None,
            sock_connect=min(request.timeout_s, _CONNECT_S_MAX),
            sock_read=request.timeout_s,
        )
        try:
            response = await self._request(base_url, request, timeout)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure(base_url, error) from error
        try:
            chunks = _chunks(base_url, response)
            yield AsyncStreamReply(response.status, _headers(response), chunks)
        finally:
            response.close()  # what was not read can not be left on a connection

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _request(
        self, base_url: str, request: Request, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            await self._start(loop)
        assert self._session is not None
        return await self._session.request(
            request.method,
            URL(base_url + request.path, encoded=True),
            data=request.body,
            headers=request.headers,
            timeout=timeout,
            allow_redirects=False,
        )

    async def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._session is not None:
            if self._loop is not None and not self._loop.is_closed():
                raise ConnectionFailedError(
                    "this client belongs to another event loop",
                    was_sent=False,
                    hint="Make one AsyncClient per loop, or use Client from threads.",
                )
            # A loop that is over took its connections along: closing only says so.
            await self.close()
        self._loop = loop
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._connections,
                keepalive_timeout=_KEPT_S,
                ssl=True if self._tls is None else self._tls,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("accept-encoding",),
        )
        # Safety: aiohttp would send GET, PUT and DELETE a second time when a connection breaks, and
        # has no setting against it. A test drops a DELETE and counts what arrives.
        self._session._retry_connection = False  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


async def _chunks(base_url: str, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _failure(base_url, error) from error


def _failure(base_url: str, error: Exception) -> ConnectionFailedError:
    # A connection that was never made carried nothing. Everything else may have.
    if isinstance(error, _UNSENT):
        return ConnectionFailedError(
            f"can not reach {base_url}: {error}",
            was_sent=False,
            hint="Is the server running? CORVO_URL or the client's url names another.",
        )
    if isinstance(error, TimeoutError):
        return DeadlineExceededError(f"no answer from {base_url} in time", was_sent=True)
    text = str(error) or type(error).__name__
    return ConnectionFailedError(f"the connection to {base_url} broke: {text}", was_sent=True)
