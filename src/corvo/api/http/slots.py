"""Unanswered hot requests of a connection, and the one place where their answers are written."""

import asyncio
from collections import deque
from time import monotonic_ns

from uvicorn.config import Config

from corvo.api.http.cycles import IDLE, CycleProtocol
from corvo.api.http.edge import Edge
from corvo.api.http.exchange import TIMES_SUM, Exchange, Handler, Route
from corvo.api.http.replies import CLOSE_LINE, CONTINUE, internal_error


class FastExchange(Exchange):
    """An exchange in a slot of its connection."""

    __slots__ = ("answer", "began_ns", "closes", "connection", "fields", "route")

    # Only POST is hot.
    method = "POST"

    def __init__(
        self,
        connection: "SlotProtocol",
        path: bytes,
        argument: str,
        query: bytes,
        route: Route,
    ) -> None:
        self.route = route
        self.began_ns = monotonic_ns()
        self.path = path
        self.query = query
        self.argument = argument
        self.body = b""
        self.on_gone = None
        self.is_gone = False
        self.connection = connection
        # Pairs as sent, or, of a head seen before, values by lower-case name.
        self.fields: list[tuple[bytes, bytes]] | dict[bytes, bytes] = connection.fields
        self.closes = False
        # The finished answer from `reply` on; None before.
        self.answer: bytes | None = None

    def header(self, name: bytes) -> bytes | None:
        """Return the first value of the header with this lower-case name."""
        fields = self.fields
        if isinstance(fields, dict):
            return fields.get(name)
        for sent_name, value in fields:
            if sent_name.lower() == name:
                return value
        return None

    def reply(self, status: int, body: bytes, extra: bytes = b"") -> None:
        """Answer; written at once if every earlier request of the connection is answered."""
        assert self.answer is None, "an exchange is answered exactly once"
        self.on_gone = None
        if self.is_gone:
            self.answer = b""
            return
        route = self.route
        answers = route.answers
        answers[status] = answers.get(status, 0) + 1
        # Cost: with the clock at both ends 0.25 µs (bench/request_times.py).
        elapsed_ns = monotonic_ns() - self.began_ns
        times = route.times
        times[elapsed_ns.bit_length()] += 1
        times[TIMES_SUM] += elapsed_ns
        connection = self.connection
        edge = connection.edge
        slots = connection.slots
        if edge.is_draining and slots[-1] is self and connection.phase == IDLE:
            self.closes = True
        if self.closes:
            extra += CLOSE_LINE
        self.answer = edge.heads.render(status, body, extra)
        if len(slots) == 1 and not self.closes and not connection.is_feeding:
            connection.write_only_answer(self.answer)
        elif slots[0] is self:
            if connection.is_feeding:
                # The parser is still at work on this read: answers to all of it leave in one write.
                connection.has_ready_slots = True
            else:
                connection.flush_slots()
        else:
            connection.held_bytes += len(self.answer)

    @property
    def is_replied(self) -> bool:
        """Whether `reply` was called."""
        return self.answer is not None


class SlotProtocol(CycleProtocol):
    """A connection that answers hot requests from a deque of slots."""

    __slots__ = (
        "body_rest",
        "exchange",
        "handler",
        "has_ready_slots",
        "is_continue_expected",
        "is_feeding",
        "slots",
    )

    def __init__(self, config: Config, edge: Edge, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(config, edge, loop)
        # Invariant: requests whose handler was called and whose answer is not written, oldest
        # first.
        self.slots: deque[FastExchange] = deque()
        # The hot request whose body is being received, and what came of it beyond the first piece.
        self.exchange: FastExchange | None = None
        self.body_rest: bytearray | None = None
        self.handler: Handler | None = None
        self.is_continue_expected = False
        # The parser is at work on a read; answers wait for its end to leave together.
        self.is_feeding = False
        self.has_ready_slots = False

    @property
    def has_fast_pending(self) -> bool:
        """Whether requests of the fast lane are unanswered."""
        return bool(self.slots)

    @property
    def open_count(self) -> int:
        """Requests that came and are not answered."""
        return len(self.slots) + super().open_count

    @property
    def parked_count(self) -> int:
        """Of these, how many wait for work."""
        return sum(exchange.on_gone is not None for exchange in self.slots)

    def count_held_bytes(self) -> int:
        """Return the bytes held for requests that wait."""
        held = sum(len(exchange.body) + len(exchange.answer or b"") for exchange in self.slots)
        if self.exchange is not None:
            held += self.body_bytes
        return held + super().count_held_bytes()

    def drop_received(self) -> bool:
        """Forget the request being received; return False if its answer is already on its way."""
        if self.exchange is None:
            return super().drop_received()
        self.exchange = self.body_rest = None
        return True

    def on_handler_error(self, exchange: FastExchange, error: Exception) -> None:
        """Answer for a handler that raised; its failure must not look like the client's."""
        request_id = self.edge.fail(error)
        if exchange.answer is None:
            body, line = internal_error(request_id)
            exchange.reply(500, body, line)

    def send_continue(self) -> None:
        """Invite the body; only once every earlier request is answered, so that order holds."""
        self.is_continue_expected = False
        self.send(CONTINUE)

    # Output.

    def write_only_answer(self, answer: bytes) -> None:
        """Write the answer of the one open request. Cost: nearly all answers; no list, no loop."""
        edge = self.edge
        edge.requests_count += 1
        self.slots.clear()
        transport = self.transport
        if self.is_finished or transport.is_closing():
            return
        edge.bytes_out += len(answer)
        transport.write(answer)
        self.since_tick = edge.tick
        if self.has_sequel:
            self.after_full_flush()

    def flush_slots(self) -> None:
        """Write every answer that is next in order, in one write."""
        self.has_ready_slots = False
        slots = self.slots
        exchange = slots.popleft()
        first = exchange.answer
        assert first is not None, "only an answered head is flushed"
        edge = self.edge
        edge.requests_count += 1
        ready = [first]
        while slots and not exchange.closes:
            following = slots[0].answer
            if following is None:
                break
            exchange = slots.popleft()
            edge.requests_count += 1
            ready.append(following)
        transport = self.transport
        if self.is_finished or transport.is_closing():
            return
        answer = first if len(ready) == 1 else b"".join(ready)
        edge.bytes_out += len(answer)
        transport.write(answer)
        self.since_tick = edge.tick
        if exchange.closes:
            self.finish()
        elif slots:
            self.after_partial_flush()
        elif self.has_sequel:
            self.after_full_flush()

    def after_full_flush(self) -> None:
        """Go on with whatever waited for the last answer."""
        flow = self.flow
        if flow.write_paused:
            self.check_unsent()
        elif flow.read_paused:
            self.resume_reading()
        if self.pipeline:
            self.start_queued()
        elif self.is_continue_expected and self.exchange is not None:
            self.send_continue()
        else:
            self.settle()
        self.has_sequel = (
            flow.write_paused
            or flow.read_paused
            or self.is_half_closed
            or self.is_discarding
            or self.edge.is_draining
            or bool(self.pipeline)
        )

    def after_partial_flush(self) -> None:
        """Read again once enough of a long pipeline is answered."""
        if self.flow.write_paused:
            self.check_unsent()
        elif len(self.slots) <= self.edge.limits.pipelined_pause_count // 2:
            self.resume_reading()

    def check_unsent(self) -> None:
        """Cut off a client that asks much and reads nothing."""
        if self.transport.get_write_buffer_size() > self.edge.limits.write_bytes_max:
            self.abort()

    def pause_writing(self) -> None:
        """Take no requests from a client that does not read, unless one is parked."""
        super().pause_writing()
        self.has_sequel = True
        if self.parked_count == 0:
            self.pause_reading()

    def resume_writing(self) -> None:
        """Take requests again."""
        super().resume_writing()
        self.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the handlers of unanswered requests that their client is gone."""
        slots = tuple(self.slots)
        self.slots.clear()
        self.has_ready_slots = False
        super().connection_lost(exc)
        for exchange in slots:
            if exchange.answer is not None:
                continue
            exchange.is_gone = True
            on_gone, exchange.on_gone = exchange.on_gone, None
            if on_gone is None:
                continue
            try:
                on_gone()
            except Exception as error:  # noqa: BLE001 - reported; the others must still be told.
                self.edge.fail(error)
