"""The slow side of a connection: uvicorn's protocol, with our order, limits and endings.

What is changed in uvicorn's protocol, and why:
- no keep-alive timer per answer (`edge.Sweep` does it for all connections);
- a request behind unanswered fast ones is queued until they are answered;
- reading is not paused behind a queued request, because paused reading hides a client that left;
- the cycle that runs is told when the client leaves, not only the cycle that came last;
- an answer given before the request was wholly read ends with a lingering close, because a plain
  close would reset the connection and destroy the answer on its way;
- nothing is written to a transport that is closing.
"""

import asyncio

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from corvo.api.http.edge import Edge
from corvo.api.http.replies import CLOSE_LINE, MALFORMED, TIMED_OUT, Refusal

# Where the parser stands: between requests, in request line or headers, or behind the headers.
IDLE, HEAD, BODY = range(3)


class StopParsing(Exception):  # noqa: N818 - a signal through the parser's callbacks, not an error.
    """Ends the parser's run after the connection has settled what happens next."""


class CycleTransport(asyncio.Transport):
    """The transport an ASGI cycle sees: silent once the connection has ended."""

    def __init__(self, connection: "CycleProtocol") -> None:
        super().__init__()
        self._connection = connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send unless nobody can receive it."""
        self._connection.send(bytes(data))

    def close(self) -> None:
        """End the connection after what was written, without destroying it."""
        self._connection.finish()

    def is_closing(self) -> bool:
        """Return whether writing is pointless."""
        return not self._connection.is_writable


class CycleProtocol(HttpToolsProtocol):
    """A connection that can serve the ASGI application; the fast lane is added by a subclass."""

    # Cost: uvicorn's attributes live in a dict, which Python reads fast up to thirty keys; ours are
    # slots, here and in the subclasses, so that both stay fast.
    __slots__ = (
        "body_bytes",
        "body_bytes_max",
        "cycle_transport",
        "discarded_bytes",
        "edge",
        "fields",
        "final_answer",
        "has_sequel",
        "held_bytes",
        "is_discarding",
        "is_finished",
        "is_half_closed",
        "is_slow_pending",
        "phase",
        "running_cycle",
        "since_tick",
        "target",
        "unsent_bytes",
        "unsent_tick",
    )

    def __init__(self, config: Config, edge: Edge, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(config, edge.server_state, {}, loop)
        self.edge = edge
        # Request target and headers as sent, of the request being received.
        self.target = b""
        self.fields: list[tuple[bytes, bytes]] = []
        self.phase = IDLE
        # When the current phase began, or when the last answer left, in ticks of the sweep.
        self.since_tick = edge.tick
        self.body_bytes = 0
        self.body_bytes_max = 0
        # At least the bytes held for requests that wait: their bodies, and answers that wait for
        # earlier ones. Grows with each and is counted anew when it reaches the limit
        # (`is_holding_too_much`).
        self.held_bytes = 0
        self.is_slow_pending = False
        self.running_cycle: RequestResponseCycle | None = None
        self.is_half_closed = False
        # What else the client sends is thrown away.
        self.is_discarding = False
        self.discarded_bytes = 0
        # The last answer was written; only the client's own end is awaited.
        self.is_finished = False
        # A refusal, to be written when everything before it is answered.
        self.final_answer: bytes | None = None
        # Something waits for the last fast answer: a queued request, an invitation to send a body,
        # an ending, or a paused flow. Cost: one look per answer instead of seven.
        self.has_sequel = False
        self.cycle_transport = CycleTransport(self)
        # The write buffer as the sweep last saw it, and since when it looks like that.
        self.unsent_bytes = 0
        self.unsent_tick = 0

    @property
    def is_writable(self) -> bool:
        """Whether an answer can still be sent."""
        return not (self.is_finished or self.transport.is_closing())

    @property
    def has_fast_pending(self) -> bool:
        """Whether requests of the fast lane are unanswered."""
        return False

    def send(self, data: bytes) -> None:
        """Write to the client unless it is gone."""
        if self.is_writable:
            self.edge.bytes_out += len(data)
            self.transport.write(data)

    # Requests of the slow lane.

    def begin_slow(self, *, is_continue_expected: bool) -> None:
        """Hand the request whose headers are complete to the ASGI application."""
        HttpToolsProtocol.on_message_begin(self)
        self.url = self.target
        self.headers.extend([(name.lower(), value) for name, value in self.fields])
        self.expect_100_continue = is_continue_expected
        try:
            super().on_headers_complete()
        except (httptools.HttpParserInvalidURLError, UnicodeDecodeError):
            self.stop(MALFORMED)
        if self.is_upgrading:
            return
        self.is_slow_pending = True
        self.cycle.transport = self.cycle_transport
        if self.edge.is_draining:
            self.cycle.keep_alive = False
        # uvicorn pauses reading behind an unfinished request; the limits on what is held replace
        # that.
        self.resume_reading()

    @property
    def is_upgrading(self) -> bool:
        """Whether uvicorn will hand this connection to its WebSocket protocol."""
        parser = self.parser
        assert parser is not None, "uvicorn drops the parser only when the connection is lost"
        return parser.should_upgrade() and self._should_upgrade()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        if self.has_fast_pending:
            self.pipeline.appendleft((cycle, app))
            self.has_sequel = True
            return
        self.running_cycle = cycle
        super()._start_asgi_task(cycle, app)

    def start_queued(self) -> None:
        """Run the oldest queued slow request."""
        cycle, app = self.pipeline.pop()
        self._start_asgi_task(cycle, app)

    def on_slow_body(self, body: bytes) -> None:
        """Give the application a piece of a body."""
        if self.cycle is self.running_cycle or self.cycle.response_complete:
            super().on_body(body)
            return
        # A queued body is held without pausing; the caller bounds what is held.
        self.held_bytes += len(body)
        self.cycle.body += body
        self.cycle.message_event.set()

    def is_holding_too_much(self) -> bool:
        """Count what is held exactly, once the running figure has passed the limit."""
        if self.held_bytes <= self.edge.limits.held_bytes_max:
            return False
        self.held_bytes = self.count_held_bytes()
        return self.held_bytes > self.edge.limits.held_bytes_max

    def count_held_bytes(self) -> int:
        """Return the bytes held for requests that wait."""
        return sum(len(cycle.body) for cycle, _ in self.pipeline)

    def on_slow_complete(self) -> None:
        """Tell the application that the body is complete."""
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request once the application has answered one."""
        self.edge.requests_count += 1
        self.since_tick = self.edge.tick
        self.running_cycle = None
        if not self.is_writable:
            return
        self.resume_reading()
        if self.pipeline:
            self.start_queued()
            return
        self.is_slow_pending = False
        self.settle()

    # Endings.

    def stop(self, refusal: Refusal) -> None:
        """Refuse from within a parser callback: nothing further is parsed."""
        self.refuse(refusal)
        raise StopParsing

    def refuse(self, refusal: Refusal) -> None:
        """Answer the current request with an error, in its turn, and end the connection."""
        if self.is_discarding:
            return
        self.is_discarding = self.has_sequel = True
        if self.phase == BODY and not self.drop_received():
            self.finish()
            return
        self.final_answer = self.edge.heads.render(refusal.status, refusal.body(), CLOSE_LINE)
        self.settle()

    def drop_received(self) -> bool:
        """Forget the request being received; return False if its answer is already on its way."""
        cycle = self.cycle
        if cycle.response_started:
            return False
        if cycle is self.running_cycle:
            self.detach(cycle)
            self.running_cycle = None
            self.is_slow_pending = False
        elif self.pipeline and self.pipeline[0][0] is cycle:
            self.pipeline.popleft()
            self.is_slow_pending = self.running_cycle is not None or bool(self.pipeline)
        return True

    def detach(self, cycle: RequestResponseCycle) -> None:
        """Tell a cycle that its client is gone: it stops waiting and its answer is dropped."""
        if not cycle.response_complete:
            cycle.disconnected = True
        cycle.message_event.set()

    def settle(self) -> None:
        """End the connection if everything is answered and nothing more may come."""
        if self.is_slow_pending or self.has_fast_pending:
            return
        if self.final_answer is not None:
            self.send(self.final_answer)
            self.edge.requests_count += 1
            self.finish()
        elif self.is_half_closed or (self.edge.is_draining and self.phase == IDLE):
            self.finish()

    def finish(self) -> None:
        """End the connection after what was written.

        Safety: closing a socket with unread input makes the kernel reset it, which can destroy an
        answer the client has not read yet. So a client that may still be sending only sees our side
        end; its input is thrown away until it closes, or until the sweep has waited long enough.
        """
        if not self.is_writable:
            return
        is_client_sending = not self.is_half_closed and (
            self.phase != IDLE or self.final_answer is not None
        )
        self.is_finished = self.is_discarding = True
        self.since_tick = self.edge.tick
        if self.running_cycle is not None:
            self.detach(self.running_cycle)
        if is_client_sending:
            self.resume_reading()
            self.transport.write_eof()
        else:
            self.transport.close()

    def abort(self) -> None:
        """End the connection at once, whatever is unsent."""
        self.is_finished = self.is_discarding = True
        if self.running_cycle is not None:
            self.detach(self.running_cycle)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Take a new connection in."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=self.edge.limits.write_pause_bytes)
        self.has_sequel = self.edge.is_draining
        self.edge.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everyone who waits on this connection that it is over."""
        self.is_finished = self.is_discarding = True
        self.edge.leave(self)
        if self.running_cycle is not None:
            self.detach(self.running_cycle)
            self.running_cycle = None
        self.pipeline.clear()
        super().connection_lost(exc)

    # Flow.

    def pause_reading(self) -> None:
        """Read no more for now."""
        if not self.transport.is_closing():
            self.has_sequel = True
            self.flow.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if not self.transport.is_closing():
            self.flow.resume_reading()

    # What the sweep and the listener ask.

    def check_deadlines(self) -> None:
        """End the connection if it is past one of its time-outs."""
        edge = self.edge
        if self.is_reader_stuck():
            self.abort()
            return
        waited_ticks = edge.tick - self.since_tick
        if self.is_finished:
            if self.unsent_bytes == 0 and waited_ticks > edge.linger_ticks:
                self.abort()
        elif self.phase == HEAD:
            if waited_ticks > edge.head_ticks:
                self.refuse(TIMED_OUT)
        elif self.phase == BODY:
            # A body that nobody reads is the application's delay, not the client's.
            if not self.flow.read_paused and waited_ticks > edge.body_ticks(self.body_bytes):
                self.refuse(TIMED_OUT)
        elif self.is_slow_pending:
            if self.is_half_closed and waited_ticks > edge.half_close_ticks:
                self.finish()
        elif not self.has_fast_pending and waited_ticks > edge.keep_alive_ticks:
            self.finish()

    def is_reader_stuck(self) -> bool:
        """Return whether the client has not taken a byte of what waits for it for too long."""
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes != self.unsent_bytes:
            self.unsent_bytes = unsent_bytes
            self.unsent_tick = self.edge.tick
            return False
        return unsent_bytes > 0 and self.edge.tick - self.unsent_tick > self.edge.write_ticks

    def start_drain(self) -> None:
        """End the connection now if it is idle, otherwise after its last answer."""
        self.has_sequel = True
        if self.is_slow_pending:
            self.cycle.keep_alive = False
        self.settle()

    @property
    def open_count(self) -> int:
        """Requests that came and are not answered."""
        return len(self.pipeline) + (self.running_cycle is not None)

    @property
    def parked_count(self) -> int:
        """Of these, how many wait for work."""
        return 0
