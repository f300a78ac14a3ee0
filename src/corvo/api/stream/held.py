"""What a stream holds: jobs in flight, and the slots granted for a set of queues."""

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from corvo.api.stream.codecs import Codec
from corvo.api.stream.frames import Problem, ServerFrame
from corvo.model import limits

if TYPE_CHECKING:
    from corvo.engine import Engine
    from corvo.engine.desk import Ticket

UNSEEN = 1 << 62  # `push` of a job that came in an answer, which has no number


class Outlet(Protocol):
    """The writing side of a connection, as a session sees it."""

    @property
    def codec(self) -> Codec:
        """How documents are embedded."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """What the client has not taken yet."""
        ...

    def send(self, frame: ServerFrame) -> None:
        """Write a frame; never waits, never fails."""
        ...

    def answered(self) -> None:
        """Frames were answered, so that more may be read."""
        ...

    def close(self, code: int, problem: Problem) -> None:
        """End the connection after what was written; harmless when repeated."""
        ...


class Bounds(Struct, frozen=True, kw_only=True):
    """What an operator may set, and what tests set lower."""

    in_flight_max: int = limits.STREAM_INFLIGHT_MAX
    open_max: int = limits.STREAM_OPEN_MAX
    buffer_bytes_max: int = limits.STREAM_BUFFER_BYTES_MAX
    frame_bytes_max: int = limits.STREAM_FRAME_BYTES_MAX
    idle_ms: int = limits.STREAM_IDLE_MS_DEFAULT
    write_ms: int = limits.STREAM_WRITE_MS


class Home(Protocol):
    """What one stream asks of all streams together."""

    engine: "Engine"
    limits: Bounds
    is_draining: bool
    frames_total: int
    items_total: int
    pushed_total: int

    def enter(self, held: "Held") -> None:
        """Note who holds a job."""
        ...

    def leave(self, held: "Held") -> None:
        """Forget who held a job."""
        ...

    def close_slow(self, outlet: Outlet) -> None:
        """End a connection whose client does not read."""
        ...


class Grant:
    """Slots for one set of queues. Invariant: in_flight is at most what slots were last above it.

    Lowering the slots takes no job away, so `in_flight` may exceed `slots` until enough are done;
    it never grows while it does.
    """

    __slots__ = ("answered", "asked", "in_flight", "lease_ms", "queues", "slots", "ticket")

    def __init__(self, queues: list[str]) -> None:
        self.queues = queues
        self.slots = 0
        self.in_flight = 0
        self.lease_ms = 0
        self.ticket: Ticket | None = None  # the one fetch that waits or is under way
        self.asked = 0  # fetches, counted, so that an answer finds out which one it belongs to
        self.answered = 0

    @property
    def free(self) -> int:
        return self.slots - self.in_flight


class Holder(Protocol):
    """Whoever holds a job."""

    def lose(self, held: "Held", reason: str) -> None:
        """Say that a job is gone."""
        ...


class Held(Struct, eq=False):
    """One job in flight."""

    holder: Holder
    id: bytes
    token: int
    queue: str
    lease_ms: int
    lease_until_ms: int
    push: int  # number of the frame it was pushed in
    grant: Grant | None = None  # None: fetched the old way, or of a set not granted yet
    is_touched: bool = False  # the worker has said something about it, so it was received
    is_cancel_sent: bool = False
    is_warned: bool = False

    @property
    def warn_at_ms(self) -> int:
        """When a third of the lease is left."""
        return self.lease_until_ms - self.lease_ms // 3
