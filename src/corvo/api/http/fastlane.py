"""The fast lane: hot requests go from the parser to their handler without a scope, a task or a copy.

A connection keeps a deque of slots, one per unanswered hot request, and writes answers from its head
only. A general ASGI stack costs several times as much per request: bench/http_floor.py compares.
"""

import asyncio

import httptools
from uvicorn.config import Config

from corvo.api.http.cycles import BODY, HEAD, IDLE, StopParsing
from corvo.api.http.edge import Edge
from corvo.api.http.replies import (
    CONNECT_REFUSED,
    JSON_TYPE,
    MALFORMED,
    NOT_JSON,
    TOO_MANY_PIPELINED,
    TRUNCATED,
    UNKNOWN_EXPECTATION,
    body_too_large,
    head_too_large,
    is_json,
)
from corvo.api.http.slots import FastExchange, SlotProtocol
from corvo.api.http.upgrade import head_without_upgrade

# Lengths of the header names that matter to the transport: expect, connection, content-type,
# content-length. Cost: most headers are passed over without being lowered or compared.
_SPECIAL_NAME_SIZES = frozenset((6, 10, 12, 14))


class FastLaneProtocol(SlotProtocol):
    """A connection with both lanes."""

    def __init__(self, config: Config, edge: Edge, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(config, edge, loop)
        # Bytes since the parser last made progress, and the most that a head ending in this read can have.
        self.unparsed_bytes = 0
        self.head_bytes_bound = 0
        self.is_upgrade_ignored = False
        self.has_connection_header = False
        self.content_length = 0

    # Input.

    def data_received(self, data: bytes) -> None:
        """Parse what came; hot requests are handled before this returns."""
        edge = self.edge
        size = len(data)
        edge.bytes_in += size
        if self.is_discarding:
            self.discard(size)
            return
        self.unparsed_bytes = self.head_bytes_bound = self.unparsed_bytes + size
        self.is_feeding = True
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.on_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self.on_parser_error(error)
        finally:
            self.is_feeding = False
        if self.has_ready_slots:
            self.flush_slots()
        if self.unparsed_bytes > edge.limits.head_bytes_max:
            self.refuse(head_too_large(edge.limits.head_bytes_max))
        if len(self.slots) >= edge.limits.pipelined_pause_count and self.parked_count == 0:
            self.pause_reading()

    def discard(self, size: int) -> None:
        """Throw away what a refused client still sends, within a limit."""
        self.discarded_bytes += size
        if self.discarded_bytes > self.edge.limits.discarded_bytes_max:
            self.abort()

    def on_parser_error(self, error: httptools.HttpParserError) -> None:
        """Refuse what the parser could not read; tell our own mistakes from the client's."""
        if self.is_discarding:
            return
        cause = error.__context__
        if isinstance(error, httptools.HttpParserCallbackError) and cause is not None:
            # A callback of ours failed: a bug, and not the client's fault.
            self.edge.fail(cause)
            self.abort()
            return
        self.refuse(MALFORMED)

    def on_upgrade(self, rest: bytes) -> None:
        """Switch to WebSocket, or go on as if the client had not asked for another protocol."""
        if not self.is_upgrade_ignored:
            self.edge.leave(self)
            self.handle_websocket_upgrade()
            return
        # Safety: the parser skips the body of a request that asks for an upgrade, although a server is
        # free to ignore the wish (RFC 9110 §7.8) and some clients send it with every first request. So
        # the head is parsed again without it, and the body with it.
        head = head_without_upgrade(
            self.parser.get_method(), self.url, self.parser.get_http_version(), self.headers
        )
        self.is_upgrade_ignored = False
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.phase = IDLE
        self.is_feeding = False
        self.edge.bytes_in -= len(head) + len(rest)
        self.data_received(head + rest)

    def eof_received(self) -> bool | None:
        """Answer what a client sent before closing its sending side, unless it waits for work.

        Safety: a client that left and one that only finished sending look the same here. A parked
        request is treated as left, since a job given to nobody is lost until its lease ends; any other
        is being decided already, and its answer costs nothing but a write.
        """
        if self.is_finished or self.parked_count > 0:
            return None
        self.is_half_closed = True
        self.since_tick = self.edge.tick
        if self.phase != IDLE:
            self.refuse(TRUNCATED)
        self.settle()
        return self.is_writable

    # Parser callbacks.

    def on_message_begin(self) -> None:
        """Begin a request."""
        if self.is_discarding:
            raise StopParsing
        self.url = b""
        self.headers = []
        self.phase = HEAD
        self.since_tick = self.edge.tick

    def on_url(self, url: bytes) -> None:
        """Take a piece of the request target."""
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers are dropped, because nothing may depend on them."""
        if self.phase == HEAD:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Choose the lane."""
        edge = self.edge
        self.unparsed_bytes = self.body_bytes = 0
        if self.head_bytes_bound > edge.limits.head_bytes_max:
            self.check_head_size()
        self.read_special_headers()
        parser = self.parser
        if self.has_connection_header and parser.should_upgrade() and not self.may_upgrade():
            self.is_upgrade_ignored = True
            return
        url = self.url
        route = edge.routes.exact.get(url)
        found = (route, url, "", b"") if route is not None else edge.routes.find(url)
        limit = edge.limits.body_bytes_max if found is None else found[0].body_bytes_max
        self.body_bytes_max = limit
        if self.content_length > limit:
            self.stop(body_too_large(limit))
        if (
            found is None
            or self.is_slow_pending
            or not edge.is_fast_lane_on
            or parser.get_method() != b"POST"
        ):
            self.choose_slow()
            return
        exchange = self.exchange = FastExchange(self, *found)
        if not parser.should_keep_alive() or (
            self.has_connection_header and parser.get_http_version() == "1.0"
        ):
            exchange.closes = True
        self.phase = BODY
        if self.is_continue_expected and not self.slots:
            self.send_continue()

    def choose_slow(self) -> None:
        """Send the request down the slow lane."""
        if self.parser.get_method() == b"CONNECT":
            self.stop(CONNECT_REFUSED)
        if len(self.pipeline) >= self.edge.limits.pipelined_count_max:
            self.stop(TOO_MANY_PIPELINED)
        self.begin_slow(is_continue_expected=self.is_continue_expected)
        self.phase = BODY

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self.unparsed_bytes = 0
        self.body_bytes += len(body)
        if self.body_bytes > self.body_bytes_max:
            self.stop(body_too_large(self.body_bytes_max))
        exchange = self.exchange
        if exchange is None:
            self.on_slow_body(body)
            if self.held_bytes > self.edge.limits.held_bytes_max:
                self.stop(TOO_MANY_PIPELINED)
        elif not exchange.body:
            exchange.body = body
        elif self.body_rest is None:
            # Cost: bytes grow by copying the whole, which a client could make quadratic.
            self.body_rest = bytearray(body)
        else:
            self.body_rest += body

    def on_message_complete(self) -> None:
        """Hand a hot request to its handler."""
        self.unparsed_bytes = 0
        if self.is_upgrade_ignored:
            return
        exchange = self.exchange
        if exchange is None:
            self.phase = IDLE
            self.on_slow_complete()
            return
        if self.body_rest is not None:
            exchange.body += self.body_rest
            self.body_rest = None
        slots = self.slots
        if slots:
            self.check_pipeline()
        self.exchange = None
        self.phase = IDLE
        exchange.held_bytes = self.body_bytes
        self.held_bytes += self.body_bytes
        slots.append(exchange)
        if exchange.closes:
            self.is_discarding = True
        if exchange.body and not exchange.is_json:
            exchange.reply(NOT_JSON.status, NOT_JSON.body())
            return
        try:
            exchange.route.handler(exchange)
        except Exception as error:  # noqa: BLE001 - reported, and answered with 500.
            self.on_handler_error(exchange, error)

    # Steps of the callbacks.

    def check_head_size(self) -> None:
        """Count a head that came in large reads exactly."""
        bytes_max = self.edge.limits.head_bytes_max
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > bytes_max:
            self.stop(head_too_large(bytes_max))

    def read_special_headers(self) -> None:
        """Note the few headers that the transport itself obeys."""
        self.is_json = self.is_continue_expected = self.has_connection_header = False
        self.content_length = 0
        for name, value in self.headers:
            if len(name) not in _SPECIAL_NAME_SIZES:
                continue
            lowered = name.lower()
            if lowered == b"content-type":
                self.is_json = value == JSON_TYPE or is_json(value)
            elif lowered == b"content-length":
                # The parser has checked that this is a number.
                self.content_length = int(value)
            elif lowered == b"connection":
                self.has_connection_header = True
            elif lowered == b"expect" and self.parser.get_http_version() != "1.0":
                if value.lower() != b"100-continue":
                    self.stop(UNKNOWN_EXPECTATION)
                self.is_continue_expected = True

    def may_upgrade(self) -> bool:
        """Return whether the connection can become a WebSocket: wanted, supported, nothing pending."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            # Not ignored, because it is refused.
            return True
        if self.slots or self.is_slow_pending or method != b"GET":
            return False
        headers = self.headers
        self.headers = [(name.lower(), value) for name, value in headers]
        is_wanted = self._should_upgrade()
        self.headers = headers
        return is_wanted

    def check_pipeline(self) -> None:
        """Refuse the request just received if too much waits before it."""
        limits = self.edge.limits
        if (
            len(self.slots) >= limits.pipelined_count_max
            or self.held_bytes + self.body_bytes > limits.held_bytes_max
        ):
            self.stop(TOO_MANY_PIPELINED)
