"""Where fetches wait: a desk for each queue, and a ticket for each fetch. See `waiters`."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from corvo.model.command import FetchJobs
from corvo.model.outcome import Fetched, Outcome

FRESH, PARKED, PROPOSED, DROPPED, DONE = range(5)

OnFetched = Callable[[Fetched, int], None]


class Room(Protocol):
    """What a ticket asks of the room it waits in."""

    def drop(self, ticket: "Ticket") -> None:
        """Forget a ticket whose client is gone."""
        ...

    def answer(self, ticket: "Ticket", outcome: Outcome, index: int) -> None:
        """A proposed fetch was applied or refused."""
        ...


class Desk:
    """One queue that fetches wait at, and those of its fetches that are in flight."""

    __slots__ = ("alarm", "alarm_ms", "is_eager", "key", "proposed", "tickets", "wanted")

    def __init__(self, key: tuple[int, str]) -> None:
        self.key = key
        # Cost: an OrderedDict pops its first item in 0.2 µs; a dict that was popped from its front
        # often needs 8 to 21 µs to find it.
        self.tickets: OrderedDict[Ticket, None] = OrderedDict()
        self.proposed = 0  # fetches in the log or on the way to it
        self.wanted = 0  # jobs those could take
        self.is_eager = True  # whether fetches may follow an enqueue on suspicion
        self.alarm: asyncio.TimerHandle | None = None
        self.alarm_ms = 0

    @property
    def is_idle(self) -> bool:
        return not self.tickets and self.proposed == 0


class Ticket(Struct, eq=False):
    """One fetch on its way. Whoever holds it may only drop it.

    Cost: a struct is built in a third of the time of a class with an `__init__`; `eq=False` keeps
    identity as its equality and hash.
    """

    room: Room
    command: FetchJobs
    desks: list[Desk]
    on_done: OnFetched
    timeout_ms: int
    slot: int = 0  # when the wait is over; set when it first parks
    state: int = FRESH

    def drop(self) -> None:
        """The client is gone: leave, or give back what is claimed. After an answer: nothing."""
        self.room.drop(self)

    def answer(self, outcome: Outcome, index: int) -> None:
        """Be the reply of the proposed fetch."""
        self.room.answer(self, outcome, index)
