"""One call over several servers, as a pure state machine.

    start ──▶ Send ──reply──▶ Finished
               ▲  │ └─────▶ Failed
               │  ├─ refused, or no answer ──▶ Wait ──▶ Send (the same or the next server)
               └──┴─ 401 with a token provider ──▶ Refresh ──▶ Send, once

A shell does what a step says and tells what came of it. Time and chance are arguments.

What is sent again:

- A refusal with a Corvo code and status 429 or 503 means that nothing was done: any call is sent
  again, not before the time the server named. When that lies beyond the deadline, the call fails at
  once instead of waiting in vain.
- A server that was never reached did nothing: any call is sent again, to the next server first.
- When the request may have arrived (the connection broke, the answer came too late, a proxy said
  502, 503 or 504), only calls that do no harm twice are sent again (`Repeat.ALWAYS`). The others
  fail with `was_sent`, and the caller decides.

Invariant: at most `retries + 1` requests are sent, a refreshed token aside, and none begins after
the deadline.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from corvo_sdk.errors import (
    ConnectionFailedError,
    CorvoError,
    DeadlineExceededError,
    OverloadedError,
    UnavailableError,
    error_of,
)
from corvo_sdk.protocol.call import Repeat, Reply

_BACKOFF_FIRST_S: Final = 0.1
_BACKOFF_MAX_S: Final = 5.0
_TRY_LEAST_S: Final = 0.05  # less time than this is not worth a request


class Send(Struct, frozen=True):
    """Send the request to this server and report the reply or the failure."""

    base_url: str
    timeout_s: float


class Wait(Struct, frozen=True):
    """Let this much time pass."""

    seconds: float


class Refresh(Struct, frozen=True):
    """The token was refused: get a new one."""


class Finished(Struct, frozen=True):
    """The call is answered."""

    reply: Reply


class Failed(Struct, frozen=True):
    """The call has failed for good."""

    error: CorvoError


Step = Send | Wait | Refresh | Finished | Failed


class Policy(Struct, frozen=True):
    """How patient a client is."""

    timeout_s: float = 10.0  # for one try
    deadline_s: float = 30.0  # for the whole call, with all tries and the time between them
    retries: int = 4


class Servers:
    """The addresses of one service, and which of them answered last."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        assert urls
        self.urls = urls
        # Safety: one attribute, read and written whole; two threads may at worst both move on.
        self.index = 0

    def url(self, index: int) -> str:
        return self.urls[index % len(self.urls)]


class Exchange:
    """The state of one call; not to be used for a second one."""

    def __init__(
        self,
        servers: Servers,
        policy: Policy,
        *,
        repeat: Repeat,
        now_s: float,
        chance: Callable[[], float],
        timeout_s: float | None = None,
        wait_s: float = 0.0,
        accepts: frozenset[int] = frozenset(),
        has_token_provider: bool = False,
    ) -> None:
        self._servers = servers
        self._repeat = repeat
        self._accepts = accepts
        self._chance = chance
        # A time-out of the call's own is granted in full to each try; the client's is cut at the
        # deadline.
        self._is_timeout_own = timeout_s is not None
        self._timeout_s = (policy.timeout_s if timeout_s is None else timeout_s) + wait_s
        self._deadline_at_s = now_s + policy.deadline_s + wait_s
        self._sends_left = policy.retries + 1
        self._rounds = 0  # how often every server was tried in vain
        self._index = servers.index
        self._first_index = servers.index
        self._can_refresh = has_token_provider
        self._error: CorvoError | None = None

    def start(self, now_s: float) -> Step:
        return self._send(now_s)

    def on_reply(self, reply: Reply, now_s: float) -> Step:
        if reply.status < 400 or reply.status in self._accepts:
            self._servers.index = self._index % len(self._servers.urls)
            return Finished(reply)
        error = error_of(reply.status, reply.headers, reply.body)
        if reply.status == 401 and self._can_refresh:
            self._can_refresh = False
            self._error = error
            return Refresh()
        if reply.status not in {429, 502, 503, 504}:
            return Failed(error)
        # A refusal in Corvo's own words came before anything was done. A proxy's says nothing.
        is_refusal = isinstance(error, OverloadedError | UnavailableError) and (
            not error.code.startswith("HTTP_") or reply.status == 429
        )
        if not is_refusal and self._repeat is not Repeat.ALWAYS:
            return Failed(error)
        return self._again(error, now_s, elsewhere=reply.status != 429)

    def on_failure(self, error: ConnectionFailedError, now_s: float) -> Step:
        if error.was_sent and self._repeat is not Repeat.ALWAYS:
            return Failed(error)
        return self._again(error, now_s, elsewhere=True)

    def on_waited(self, now_s: float) -> Step:
        return self._send(now_s)

    def on_refreshed(self, now_s: float) -> Step:
        # The refused request does not count: the new token has not been tried.
        self._sends_left += 1
        return self._send(now_s)

    def _send(self, now_s: float) -> Step:
        left_s = self._deadline_at_s - now_s
        if left_s < _TRY_LEAST_S:
            return Failed(self._error or _no_time())
        self._sends_left -= 1
        timeout_s = self._timeout_s if self._is_timeout_own else min(self._timeout_s, left_s)
        return Send(self._servers.url(self._index), timeout_s)

    def _again(self, error: CorvoError, now_s: float, *, elsewhere: bool) -> Step:
        self._error = error
        if self._sends_left <= 0:
            return Failed(error)
        count = len(self._servers.urls)
        if elsewhere:
            self._index += 1
            if (self._index - self._first_index) % count:
                return self._send(now_s)  # another server may do better, at once
        wait_s = self._wait_s(error)
        self._rounds += 1
        if now_s + wait_s + _TRY_LEAST_S > self._deadline_at_s:
            return Failed(error)
        return Wait(wait_s)

    def _wait_s(self, error: CorvoError) -> float:
        chance = self._chance()
        if error.retry_after_ms:
            # Never before the time named; spread, so that not all clients come back at once.
            return error.retry_after_ms / 1_000 * (1 + chance / 4)
        longest_s: float = min(_BACKOFF_MAX_S, _BACKOFF_FIRST_S * 2.0**self._rounds)
        return longest_s * (0.5 + chance / 2)


def _no_time() -> DeadlineExceededError:
    return DeadlineExceededError("there was no time for a request", was_sent=False)
