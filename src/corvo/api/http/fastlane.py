"""The fast lane: hot requests go from the parser to their handler, without a scope or a task.

A connection keeps a deque of slots, one per unanswered hot request, and writes answers from its
head only. A general ASGI stack costs several times as much per request: bench/http_floor.py
compares.
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

# Header names are told by their lengths before they are compared.
_CONTENT_TYPE_SIZE = len("content-type")
_CONTENT_LENGTH_SIZE = len("content-length")
# A length of so few digits is below any sensible limit and need not be read before the body.
_SMALL_DIGITS_COUNT = 6
_SPECIAL_NAMES = frozenset((b"connection", b"expect"))
_SPECIAL_SIZES = frozenset(len(name) for name in _SPECIAL_NAMES)


class FastLaneProtocol(SlotProtocol):
    """A connection with both lanes."""

    __slots__ = (
        "content_type",
        "head_bytes_bound",
        "is_plain",
        "is_upgrade_ignored",
        "unparsed_bytes",
    )

    def __init__(self, config: Config, edge: Edge, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(config, edge, loop)
        # Bytes since the parser last made progress, and the most that a head ending in this read
        # can have.
        self.unparsed_bytes = 0
        self.head_bytes_bound = 0
        self.is_upgrade_ignored = False
        self.content_type = b""
        # The last request was hot and its headers asked nothing special of the transport.
        self.is_plain = False

    # Input.

    def data_received(self, data: bytes) -> None:
        """Parse what came; hot requests are handled before this returns."""
        edge = self.edge
        size = len(data)
        edge.bytes_in += size
        if self.is_discarding:
            self.discard(size)
            return
        is_fresh = self.phase == IDLE and not self.unparsed_bytes and edge.is_fast_lane_on
        if is_fresh and not self.is_slow_pending and self.take_known(data):
            return
        self.is_plain = False
        self.unparsed_bytes = self.head_bytes_bound = self.unparsed_bytes + size
        self.is_feeding = True
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.on_upgrade(memoryview(data)[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            self.on_parser_error(error)
        finally:
            self.is_feeding = False
        if is_fresh and self.is_plain:
            edge.known_heads.learn(data, self.fields)
        if self.has_ready_slots:
            self.flush_slots()
        if self.unparsed_bytes > edge.head_bytes_max:
            self.refuse(head_too_large(edge.head_bytes_max))
        if len(self.slots) >= edge.pipelined_pause_count and self.parked_count == 0:
            self.pause_reading()

    def take_known(self, data: bytes) -> bool:
        """Handle a read that is one hot request whose headers were parsed before, byte for byte.

        Cost: a client repeats its headers; looking them up whole saves the parser's calls back
        into Python, a third of what a request costs here. Everything else goes to the parser.
        """
        edge = self.edge
        known = edge.known_heads.find(data)
        if known is None:
            return False
        target, head, body_at = known
        found = edge.exact_routes.get(target) or edge.routes.find(target)
        if found is None:
            return False
        route, path, argument, query = found
        body = data[body_at:]
        slots = self.slots
        if len(body) > route.body_bytes_max or slots or query:
            return False
        self.since_tick = edge.tick
        exchange = FastExchange(self, path, argument, query, route)
        exchange.fields = head
        exchange.body = body
        slots.append(exchange)
        self.is_feeding = True
        try:
            route.handler(exchange)
        except Exception as error:  # noqa: BLE001 - reported, and answered with 500.
            self.on_handler_error(exchange, error)
        finally:
            self.is_feeding = False
        if self.has_ready_slots:
            self.flush_slots()
        return True

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

    def on_upgrade(self, rest: memoryview) -> None:
        """Switch to WebSocket, or go on as if the client had not asked for another protocol.

        Safety: the parser skips the body of a request that asks for an upgrade, although a server
        is free to ignore the wish (RFC 9110 §7.8) and some clients send it with every first
        request. So the head is parsed again without it, and the body behind it.
        """
        try:
            # A loop and views, so that thousands of such requests in one read cost neither stack
            # nor copies.
            while self.is_upgrade_ignored:
                upgraded_at = self.feed_without_upgrade(rest)
                if upgraded_at is None:
                    return
                rest = rest[upgraded_at:]
        except httptools.HttpParserError as error:
            self.on_parser_error(error)
            return
        self.edge.leave(self)
        self.handle_websocket_upgrade()

    def feed_without_upgrade(self, rest: memoryview) -> int | None:
        """Parse the last head again without its wish; return where `rest` has another such."""
        head = head_without_upgrade(
            self.parser.get_method(), self.target, self.parser.get_http_version(), self.fields
        )
        self.is_upgrade_ignored = False
        self.phase = IDLE
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.parser.feed_data(head)
        try:
            self.parser.feed_data(rest)
        except httptools.HttpParserUpgrade as upgrade:
            return upgrade.args[0]
        return None

    def eof_received(self) -> bool | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Answer what a client sent before closing its sending side, unless it waits for work.

        Safety: a client that left and one that only finished sending look the same here. A parked
        request is treated as left, since a job given to nobody is lost until its lease ends; any
        other is being decided already, and its answer costs nothing but a write.
        """
        if self.is_finished or self.parked_count > 0:
            return None
        self.is_half_closed = self.has_sequel = True
        self.since_tick = self.edge.tick
        if self.phase != IDLE:
            self.refuse(TRUNCATED)
        self.settle()
        return self.is_writable

    # Parser callbacks.

    # Cost: a request begins with the first piece of its target, which saves a call per request.
    on_message_begin = None  # pyright: ignore[reportAssignmentType]

    def on_url(self, url: bytes) -> None:
        """Begin a request, or take a further piece of its target."""
        if self.phase == HEAD:
            self.target += url
            return
        if self.is_discarding:
            raise StopParsing
        self.target = url
        self.fields = []
        self.phase = HEAD
        self.since_tick = self.edge.tick

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers are dropped, because nothing may depend on them."""
        if self.phase == HEAD:
            self.fields.append((name, value))

    def on_headers_complete(self) -> None:
        """Choose the lane."""
        edge = self.edge
        self.unparsed_bytes = self.body_bytes = 0
        if self.head_bytes_bound > edge.head_bytes_max:
            self.check_head_size()
        # Cost: most headers are told by their length alone; names are lowered only if it fits.
        self.content_type = b""
        is_special = False
        for name, value in self.fields:
            size = len(name)
            if size == _CONTENT_TYPE_SIZE:
                if name.lower() == b"content-type":
                    self.content_type = value
            elif size == _CONTENT_LENGTH_SIZE:
                is_special = is_special or len(value) > _SMALL_DIGITS_COUNT
            elif size in _SPECIAL_SIZES and name.lower() in _SPECIAL_NAMES:
                is_special = True
        found = edge.exact_routes.get(self.target) or edge.routes.find(self.target)
        self.body_bytes_max = edge.body_bytes_max if found is None else found[0].body_bytes_max
        closes = is_special and self.obey_special_headers()
        if self.is_upgrade_ignored:
            return
        parser = self.parser
        if (
            found is None
            or self.is_slow_pending
            or not edge.is_fast_lane_on
            or parser.get_method() != b"POST"
        ):
            self.choose_slow()
            return
        route, path, argument, query = found
        exchange = self.exchange = FastExchange(self, path, argument, query, route)
        self.handler = route.handler
        exchange.closes = closes or not parser.should_keep_alive()
        self.is_plain = not (is_special or exchange.closes)
        self.phase = BODY
        if self.is_continue_expected:
            if self.slots:
                self.has_sequel = True
            else:
                self.send_continue()

    def choose_slow(self) -> None:
        """Send the request down the slow lane."""
        if self.parser.get_method() == b"CONNECT":
            self.stop(CONNECT_REFUSED)
        if len(self.pipeline) >= self.edge.limits.pipelined_count_max:
            self.stop(TOO_MANY_PIPELINED)
        self.begin_slow(is_continue_expected=self.is_continue_expected)
        self.is_continue_expected = False
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
            if self.is_holding_too_much():
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
        self.is_continue_expected = False
        slots.append(exchange)
        if exchange.closes:
            self.is_discarding = True
        content_type = self.content_type
        if content_type != JSON_TYPE and exchange.body and not is_json(content_type):
            self.is_plain = False
            exchange.reply(NOT_JSON.status, NOT_JSON.body())
            return
        handler = self.handler
        assert handler is not None, "a hot request has a handler"
        try:
            handler(exchange)
        except Exception as error:  # noqa: BLE001 - reported, and answered with 500.
            self.on_handler_error(exchange, error)

    # Steps of the callbacks.

    def check_head_size(self) -> None:
        """Count a head that came in large reads exactly."""
        bytes_max = self.edge.limits.head_bytes_max
        size = len(self.target) + sum(len(name) + len(value) + 4 for name, value in self.fields)
        if size > bytes_max:
            self.stop(head_too_large(bytes_max))

    def obey_special_headers(self) -> bool:
        """Obey what rare headers ask of the transport; return whether this request is the last."""
        is_old = self.parser.get_http_version() == "1.0"
        has_connection_header = False
        for name, value in self.fields:
            lowered = name.lower()
            if lowered == b"content-length":
                # The parser has checked that this is a number.
                if int(value) > self.body_bytes_max:
                    self.stop(body_too_large(self.body_bytes_max))
            elif lowered == b"connection":
                has_connection_header = True
            elif lowered == b"expect" and not is_old:
                if value.lower() != b"100-continue":
                    self.stop(UNKNOWN_EXPECTATION)
                self.is_continue_expected = True
        if has_connection_header and self.parser.should_upgrade() and not self.may_upgrade():
            self.is_upgrade_ignored = True
            self.is_continue_expected = False
        return is_old

    def may_upgrade(self) -> bool:
        """Return whether an upgrade is wanted, supported and possible now."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            # Not ignored, because it is refused.
            return True
        if self.slots or self.is_slow_pending or method != b"GET":
            return False
        self.headers = [(name.lower(), value) for name, value in self.fields]
        return self._should_upgrade()

    def check_pipeline(self) -> None:
        """Refuse the request just received if too much waits before it."""
        if len(self.slots) == 1:
            self.held_bytes = len(self.slots[0].body)
        self.held_bytes += self.body_bytes
        if len(self.slots) >= self.edge.limits.pipelined_count_max or self.is_holding_too_much():
            self.stop(TOO_MANY_PIPELINED)
