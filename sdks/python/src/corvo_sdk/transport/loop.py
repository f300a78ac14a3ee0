"""The asynchronous transport: aiohttp with one session, made on the loop that first uses it."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
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


class LoopTransport:
    """Connections to any number of servers, for one event loop."""

    def __init__(self, *, tls: Tls | None = None, connections: int = 256) -> None:
        self._tls = None if tls is None else context_of(tls)
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def send(self, base_url: str, request: Request) -> Reply:
        timeout = aiohttp.ClientTimeout(
            total=request.timeout_s, sock_connect=min(request.timeout_s, _CONNECT_S_MAX)
        )
        try:
            async with self._request(base_url, request, timeout) as response:
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
        manager = self._request(base_url, request, timeout)
        try:
            response = await manager.__aenter__()
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

    def _request(
        self, base_url: str, request: Request, timeout: aiohttp.ClientTimeout
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=self._connections,
                    keepalive_timeout=_KEPT_S,
                    ssl=True if self._tls is None else self._tls,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("accept-encoding",),
            )
        return self._session.request(
            request.method,
            URL(base_url + request.path, encoded=True),
            data=request.body,
            headers=request.headers,
            timeout=timeout,
            allow_redirects=False,
        )


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
    if isinstance(error, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError):
        return ConnectionFailedError(
            f"can not reach {base_url}: {error}",
            was_sent=False,
            hint="Is the server running? CORVO_URL or the client's url names another.",
        )
    if isinstance(error, TimeoutError):
        return DeadlineExceededError(f"no answer from {base_url} in time", was_sent=True)
    text = str(error) or type(error).__name__
    return ConnectionFailedError(f"the connection to {base_url} broke: {text}", was_sent=True)
