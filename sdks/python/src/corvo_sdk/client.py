"""The synchronous client: does what `protocol.exchange` says, with a transport and a clock."""

import os
import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Self, TypeVar, assert_never

from msgspec.structs import replace

from corvo_sdk.errors import ConnectionFailedError, ProtocolError
from corvo_sdk.protocol.call import Call, Reply, Request
from corvo_sdk.protocol.exchange import Exchange, Failed, Finished, Policy, Refresh, Send, Wait
from corvo_sdk.protocol.session import JSON, Answer, raw_call, session_of
from corvo_sdk.shell.blocking.producing import Producing
from corvo_sdk.shell.blocking.working import Working
from corvo_sdk.transport.ports import StreamReply, Tls, Transport

T = TypeVar("T")

_REFUSAL_BYTES_MAX: Final = 64 * 1024  # read of a refusal, where an endless body was asked for


class Client(Producing, Working):
    """Calls of one server, or of several that stand for each other. Safe to share by threads.

    `url` is one address, several with commas, or a list; without it CORVO_URL, else the server on
    this machine. `api_key` comes from CORVO_API_KEY when it is left out. `token_provider` is asked
    for a bearer token, and again when the server refuses it. `timeout_s` bounds one try beyond the
    time a long poll waits, `deadline_s` the whole call, `retries` the tries after the first.
    """

    def __init__(
        self,
        url: str | Sequence[str] | None = None,
        *,
        api_key: str | None = None,
        bearer_token: str | None = None,
        token_provider: Callable[[], str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
        deadline_s: float | None = None,
        retries: int = 4,
        transport: Transport | None = None,
        tls: Tls | None = None,
        user_agent: str | None = None,
    ) -> None:
        deadline_s = 3 * timeout_s if deadline_s is None else deadline_s
        self._session = session_of(
            url,
            os.environ,
            api_key=api_key,
            bearer_token=bearer_token,
            has_token_provider=token_provider is not None,
            headers=headers,
            user_agent=user_agent,
            policy=Policy(timeout_s, deadline_s, retries),
        )
        self._token_provider = token_provider
        self._token: str | None = None
        self._transport = _pooled(tls) if transport is None else transport

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses, the one in use first."""
        servers = self._session.servers
        return servers.urls[servers.index :] + servers.urls[: servers.index]

    def close(self) -> None:
        self._transport.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        content_type: str = JSON,
        is_repeatable: bool | None = None,
    ) -> Answer:
        """Call anything; `path` is from the root, as in "/api/v1/queues".

        A refusal is raised. Unless `is_repeatable` says so, GET, HEAD, PUT, PATCH and what has an
        Idempotency-Key header are repeated when the connection breaks.
        """
        call = raw_call(
            method,
            path,
            query=query,
            body=body,
            headers=headers,
            content_type=content_type,
            is_repeatable=is_repeatable,
        )
        return self._run(call, timeout_s)

    @contextmanager
    def open(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        content_type: str = JSON,
    ) -> Generator[StreamReply, None, None]:
        """Call anything and read the answer piece by piece; `timeout_s` is between two pieces."""
        call = raw_call(
            method, path, query=query, body=body, headers=headers, content_type=content_type
        )
        opened: list[StreamReply] = []
        with ExitStack() as held:

            def send(base_url: str, request: Request) -> Reply:
                with ExitStack() as tried:
                    stream = tried.enter_context(self._transport.stream(base_url, request))
                    if stream.status >= 400:
                        return Reply(stream.status, stream.headers, _refusal_of(stream))
                    held.push(tried.pop_all())
                    opened.append(stream)
                    return Reply(stream.status, stream.headers, b"")

            self._exchange(call, timeout_s, send)
            yield opened[0]

    def _run(self, call: Call[T], timeout_s: float | None = None) -> T:
        return call.read(self._exchange(call, timeout_s, self._transport.send))

    def _exchange(
        self, call: Call[T], timeout_s: float | None, send: Callable[[str, Request], Reply]
    ) -> Reply:
        session, clock = self._session, time.monotonic
        if session.has_token_provider and self._token is None:
            self._refresh()
        exchange = Exchange(
            session.servers,
            session.policy,
            repeat=call.repeat,
            now_s=clock(),
            chance=random.random,
            timeout_s=timeout_s,
            wait_s=call.wait_s,
            has_token_provider=session.has_token_provider,
        )
        step = exchange.start(clock())
        while True:
            match step:
                case Send():
                    headers = session.headers_of(call.request.headers, self._token)
                    request = replace(call.request, headers=headers, timeout_s=step.timeout_s)
                    try:
                        reply = send(step.base_url, request)
                    except ConnectionFailedError as error:
                        step = exchange.on_failure(error, clock())
                    else:
                        step = exchange.on_reply(reply, clock())
                case Wait():
                    time.sleep(step.seconds)
                    step = exchange.on_waited(clock())
                case Refresh():
                    self._refresh()
                    step = exchange.on_refreshed(clock())
                case Finished():
                    return step.reply
                case Failed():
                    raise step.error
                case _:
                    assert_never(step)

    def _refresh(self) -> None:
        assert self._token_provider is not None
        self._token = self._token_provider()


def _refusal_of(stream: StreamReply) -> bytes:
    body = b""
    for chunk in stream.chunks:
        body += chunk
        if len(body) > _REFUSAL_BYTES_MAX:
            raise ProtocolError("the refusal is too long", status=stream.status)
    return body


def _pooled(tls: Tls | None) -> Transport:
    # Imported late: a program that uses the other client never loads urllib3.
    from corvo_sdk.transport.pooled import PooledTransport  # noqa: PLC0415

    return PooledTransport(tls=tls)
