"""The synchronous transport: urllib3 with a pool of kept-alive connections per server."""

import os
import ssl
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ReadTimeoutError
from urllib3.response import BaseHTTPResponse

from corvo_sdk.errors import ConnectionFailedError, DeadlineExceededError
from corvo_sdk.protocol.call import Reply, Request
from corvo_sdk.transport.ports import StreamReply, Tls
from corvo_sdk.transport.tls import context_of

_CONNECT_S_MAX: Final = 5.0
_CHUNK_BYTES: Final = 64 * 1024


class PooledTransport:
    """Connections to any number of servers, shared by threads; a forked process makes its own."""

    def __init__(self, *, tls: Tls | None = None, connections: int = 32) -> None:
        self._tls = None if tls is None else context_of(tls)
        self._connections = connections
        self._pools = self._made()
        self._process_id = os.getpid()

    def _made(self) -> urllib3.PoolManager:
        # Beyond `connections` threads at once, further connections are made and not kept.
        return urllib3.PoolManager(num_pools=16, maxsize=self._connections, ssl_context=self._tls)

    def send(self, base_url: str, request: Request) -> Reply:
        until_s = time.monotonic() + request.timeout_s
        response = self._open(base_url, request)
        try:
            # The time-out of a socket counts from its last byte, so a server that dribbles would
            # hold a caller for ever; what counts here is the whole answer.
            pieces: list[bytes] = []
            for piece in _chunks(base_url, response):
                pieces.append(piece)
                if time.monotonic() > until_s:
                    raise _late(base_url)
        except ConnectionFailedError:
            response.close()
            raise
        finally:
            response.release_conn()
        return Reply(response.status, _headers(response), b"".join(pieces))

    @contextmanager
    def stream(self, base_url: str, request: Request) -> Generator[StreamReply, None, None]:
        response = self._open(base_url, request)
        try:
            yield StreamReply(response.status, _headers(response), _chunks(base_url, response))
        finally:
            response.close()  # what was not read can not be left on a connection
            response.release_conn()

    def close(self) -> None:
        self._pools.clear()

    def _open(self, base_url: str, request: Request) -> BaseHTTPResponse:
        timeout_s = request.timeout_s
        if self._process_id != os.getpid():
            # Two processes on one connection would read each other's answers.
            self._pools, self._process_id = self._made(), os.getpid()
        try:
            return self._pools.request(
                request.method,
                base_url + request.path,
                body=request.body,
                headers=request.headers,
                timeout=urllib3.Timeout(connect=min(timeout_s, _CONNECT_S_MAX), read=timeout_s),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except HTTPError as error:
            raise _failure(base_url, error) from error


def _headers(response: BaseHTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _chunks(base_url: str, response: BaseHTTPResponse) -> Iterator[bytes]:
    try:
        while chunk := response.read1(_CHUNK_BYTES):
            yield chunk
    except HTTPError as error:
        raise _failure(base_url, error) from error


def _late(base_url: str) -> DeadlineExceededError:
    return DeadlineExceededError(f"no answer from {base_url} in time", was_sent=True)


def _failure(base_url: str, error: HTTPError) -> ConnectionFailedError:
    if isinstance(error, ReadTimeoutError):
        return _late(base_url)
    # A connection that was never made carried nothing. Everything else may have.
    is_untrusted = isinstance(error.__context__, ssl.SSLCertVerificationError)
    if isinstance(error, NewConnectionError | ConnectTimeoutError) or is_untrusted:
        return ConnectionFailedError(
            f"can not reach {base_url}: {error}",
            was_sent=False,
            hint="Is the server running? CORVO_URL or the client's url names another.",
        )
    return ConnectionFailedError(f"the connection to {base_url} broke: {error}", was_sent=True)
