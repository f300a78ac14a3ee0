"""The synchronous client: does what `protocol.exchange` says, with a transport and a clock."""

import os
import random
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Self, TypeVar, assert_never

from msgspec.structs import replace

from corvo_sdk.errors import (
    ConnectionFailedError,
    CorvoError,
    OverloadedError,
    ProtocolError,
    UnavailableError,
)
from corvo_sdk.protocol.call import Call, Reply, Request
from corvo_sdk.protocol.endpoints import server
from corvo_sdk.protocol.endpoints.server import Names
from corvo_sdk.protocol.exchange import Exchange, Failed, Finished, Policy, Refresh, Send, Wait
from corvo_sdk.protocol.following import SILENCE_S, Following, read_bulk, read_event
from corvo_sdk.protocol.session import JSON, Answer, raw_call, session_of, stream_call
from corvo_sdk.shell.blocking.jobs import SingleJobs
from corvo_sdk.shell.blocking.producing import Producing
from corvo_sdk.shell.blocking.queues import Queues
from corvo_sdk.shell.blocking.schedules import Schedules
from corvo_sdk.shell.blocking.searching import Searching
from corvo_sdk.shell.blocking.server import Operating
from corvo_sdk.shell.blocking.webhooks import Webhooks
from corvo_sdk.shell.blocking.working import Working
from corvo_sdk.transport.ports import StreamReply, SupportsWrite, Tls, Transport
from corvo_sdk.types.search import Bulk
from corvo_sdk.types.server import Event

T = TypeVar("T")

_REFUSAL_BYTES_MAX: Final = 64 * 1024  # read of a refusal, where an endless body was asked for


class Client(Producing, Working, SingleJobs, Queues, Searching, Schedules, Webhooks, Operating):
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

    def headers(self) -> dict[str, str]:
        """What every request carries; for a protocol that begins with one, such as a WebSocket."""
        if self._session.has_token_provider:
            self._refresh()
        return self._session.headers_of({}, self._token)

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
        with self._open(call, timeout_s) as stream:
            yield stream

    def events(
        self,
        *,
        queue: Names | None = None,
        job_id: Names | None = None,
        event_type: Names | None = None,
        last_event_id: int | None = None,
        patience_s: float = 60.0,
    ) -> Iterator[Event]:
        """Events as they happen, without end; after `last_event_id`, or from now on.

        A connection that breaks is made anew and goes on where it was. When nobody is heard for
        `patience_s`, the error is raised; `math.inf` never gives up.
        """
        request = server.events(queue=queue, job_id=job_id, event_type=event_type)
        following = Following(
            read_event,
            last_event_id=last_event_id,
            patience_s=patience_s,
            now_s=time.monotonic(),
        )
        yield from self._follow(request, following)

    def bulk_progress(self, bulk_id: str, *, patience_s: float = 60.0) -> Iterator[Bulk]:
        """Follow a bulk operation until it is finished."""
        request = server.bulk_progress(bulk_id)
        following = Following(read_bulk, patience_s=patience_s, now_s=time.monotonic())
        for bulk in self._follow(request, following):
            yield bulk
            if bulk.is_finished:
                return

    def backup(self, file: SupportsWrite, *, timeout_s: float = 300.0) -> int:
        """Write a tar archive of everything into a file; returns its size in bytes.

        What was written before an error is raised is not a backup.
        """
        return self._download(server.backup(), file, timeout_s)

    def export(self, file: SupportsWrite, *, timeout_s: float = 300.0) -> int:
        """Write queues, limits, jobs and batches into a file as lines of JSON; returns its size."""
        return self._download(server.export(), file, timeout_s)

    def _follow(self, request: Request, following: Following[T]) -> Iterator[T]:
        while True:
            failure: CorvoError | None = None
            call = stream_call(request, following.headers())
            try:
                with self._open(call, SILENCE_S) as stream:
                    for chunk in stream.chunks:
                        yield from following.feed(chunk, time.monotonic())
            except (ConnectionFailedError, OverloadedError, UnavailableError) as error:
                failure = error
            time.sleep(following.lost(failure, time.monotonic(), random.random()))

    def _download(self, request: Request, file: SupportsWrite, timeout_s: float) -> int:
        size = 0
        with self._open(stream_call(request, {}), timeout_s) as stream:
            for chunk in stream.chunks:
                file.write(chunk)
                size += len(chunk)
        return size

    @contextmanager
    def _open(self, call: Call[T], timeout_s: float | None) -> Generator[StreamReply, None, None]:
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
            accepts=call.accepts,
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
