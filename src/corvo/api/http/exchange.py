"""One request and its one answer, as a hot handler sees them on either lane."""

import re
from collections.abc import Callable, Mapping

import msgspec

Handler = Callable[["Exchange"], None]

# Times of answers: place n counts those that took less than 2ⁿ nanoseconds, and no less than half
# of that; the last place holds their sum.
TIMES_SUM = 64


def new_times() -> list[int]:
    """Make the counts of nothing."""
    return [0] * (TIMES_SUM + 1)


def observe_time(times: list[int], elapsed_ns: int) -> None:
    """Count one answer. The fast lane has its own copy of these lines."""
    times[elapsed_ns.bit_length()] += 1
    times[TIMES_SUM] += elapsed_ns


class Exchange:
    """A complete request, and the duty to answer it exactly once, now or later.

    A handler is synchronous: it reads the request, then either calls `reply` or keeps the exchange
    and replies from a later callback. A handler that parks the exchange (waits for work instead of
    for its own commit) must set `on_gone`: that is how the transport knows that a client which
    closed its sending side is not worth waiting for, and that reading must go on.
    """

    __slots__ = ("argument", "body", "is_gone", "on_gone", "path", "query")

    method: str
    # Path without the query, as sent.
    path: bytes
    query: bytes
    body: bytes
    # What stood in place of `{...}` in the route's pattern; "" for routes without one.
    argument: str
    # Called once if the client goes before the answer; never after `reply`.
    on_gone: Callable[[], None] | None
    # True from the moment the client is known to be gone; a reply is then dropped.
    is_gone: bool

    def header(self, name: bytes) -> bytes | None:
        """Return the first value of the header with this lower-case name."""
        raise NotImplementedError

    def reply(self, status: int, body: bytes, extra: bytes = b"") -> None:
        r"""Answer with JSON. `extra` holds finished header lines: b"x-corvo-index: 5\r\n"."""
        raise NotImplementedError

    @property
    def is_replied(self) -> bool:
        """Whether `reply` was called."""
        raise NotImplementedError


class Route(msgspec.Struct, frozen=True):
    """A hot route: always POST, always JSON."""

    handler: Handler
    body_bytes_max: int
    # Answers by status, from both lanes; only rises.
    answers: dict[int, int] = msgspec.field(default_factory=dict)
    # How long answers of the fast lane took, from the end of the headers to the reply.
    times: list[int] = msgspec.field(default_factory=new_times)


class RouteTable:
    """Hot routes by path, for a parser that has bytes and no time.

    A pattern is a literal path ("/api/v1/enqueue") or one ending in a parameter
    ("/api/v1/ack/{id}"). A literal wins over a parameter, so "/api/v1/ack/batch" can stand beside
    it.
    """

    # Anything outside this set (an escape, a fragment, a slash) takes the slow lane, which decodes
    # it.
    _PLAIN_ARGUMENT = re.compile(rb"[A-Za-z0-9._~:-]+")

    def __init__(self, routes: Mapping[str, Route]) -> None:
        # Cost: a literal path without a query is found whole, in one look-up, by the parser itself.
        self.exact: dict[bytes, tuple[Route, bytes, str, bytes]] = {}
        self._prefixed: dict[bytes, Route] = {}
        for pattern, route in routes.items():
            literal, brace, parameter = pattern.encode("ascii").partition(b"{")
            if brace == b"":
                self.exact[literal] = (route, literal, "", b"")
            else:
                assert literal.endswith(b"/"), f"a parameter fills a whole segment: {pattern}"
                assert parameter.endswith(b"}"), f"a parameter comes last: {pattern}"
                assert b"/" not in parameter, f"a parameter comes last: {pattern}"
                self._prefixed[literal] = route

    def find(self, url: bytes) -> tuple[Route, bytes, str, bytes] | None:
        """Return route, path, argument and query of a request target, or None if it is not hot."""
        path, _, query = url.partition(b"?")
        found = self.exact.get(path)
        if found is not None:
            return found[0], path, "", query
        cut = path.rfind(b"/") + 1
        route = self._prefixed.get(path[:cut])
        if route is None:
            return None
        argument = path[cut:]
        if self._PLAIN_ARGUMENT.fullmatch(argument) is None:
            return None
        return route, path, argument.decode("ascii"), query
