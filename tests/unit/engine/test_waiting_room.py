"""The waiting room alone, against claims that are wrong on purpose.

The machine's `claimable` is an upper bound. These tests give the room bounds that are too high, and
instants that come late, and check that it neither floods the log nor forgets anybody.
"""

import asyncio
from collections.abc import Callable

from corvo.engine.desk import Ticket
from corvo.engine.waiters import WaitingRoom
from corvo.model.command import Command, FetchJobs
from corvo.model.outcome import Fetched, Outcome, Rejected
from corvo.runtime.clock import SystemClock
from tests.support.rig import turns

Reply = Callable[[Outcome, int], None]


class Hall:
    """A room whose claims and log are the test's."""

    def __init__(self) -> None:
        self.index = 7
        self.bound = 0
        self.next_ms = 0
        self.clock = SystemClock()
        self.proposed: list[tuple[Command, Reply]] = []
        self.has_proposed = asyncio.Event()
        self.answers: list[Fetched] = []
        self.room = WaitingRoom(
            loop=asyncio.get_running_loop(),
            clock=self.clock,
            machine=self,
            propose=self._propose,
            on_reply_failed=print,
        )

    def claimable(self, _ns: int, _queue: str, _now_ms: int) -> tuple[int, int]:
        return self.bound, self.next_ms

    def _propose(self, command: Command, reply: Reply) -> None:
        self.proposed.append((command, reply))
        self.has_proposed.set()

    def fetch(self, timeout_ms: int = 60_000) -> Ticket:
        command = FetchJobs(0, ["q"], "w")
        return self.room.fetch(
            command, timeout_ms, lambda fetched, _: self.answers.append(fetched), has_room=True
        )

    def apply(self, outcome: Outcome) -> None:
        """Answer all that was proposed as one entry that touched the queue."""
        batch, self.proposed = self.proposed, []
        for _, reply in batch:
            reply(outcome, 8)
        self.room.after_apply([(0, "q")], len(batch))


def test_a_bound_that_is_too_high_does_not_make_the_log_grow():
    """An empty fetch is not proposed again because its own entry touched the queue."""

    async def run() -> None:
        hall = Hall()
        hall.bound = 1
        hall.fetch()
        assert len(hall.proposed) == 1
        for _ in range(10):
            hall.apply(Fetched([]))
        assert hall.proposed == []
        assert hall.room.parked_count == 1
        # Somebody else's entry does touch it.
        hall.room.after_apply([(0, "q")], 1)
        assert len(hall.proposed) == 1
        hall.room.close()

    asyncio.run(run())


def test_an_empty_return_sets_the_alarm_its_queue_names():
    """After an empty fetch the room learns when to look again, although nothing was touched."""

    async def run() -> None:
        hall = Hall()
        hall.bound = 1
        hall.fetch()
        hall.bound, hall.next_ms = 0, hall.clock.now_ms() + 20
        hall.apply(Fetched([]))
        assert hall.proposed == []
        hall.has_proposed.clear()
        hall.bound, hall.next_ms = 1, 0
        await asyncio.wait_for(hall.has_proposed.wait(), 5)
        hall.room.close()

    asyncio.run(run())


def test_an_unfinished_search_is_proposed_again_at_once():
    """`more` without jobs means: go on looking."""

    async def run() -> None:
        hall = Hall()
        hall.bound = 1
        hall.fetch()
        hall.apply(Fetched([], more=True))
        assert len(hall.proposed) == 1
        assert hall.answers == []
        hall.room.close()

    asyncio.run(run())


def test_a_refused_fetch_waits_and_is_looked_at_again():
    """A fetch refused with its batch is parked, not lost, and an alarm is set for it."""

    async def run() -> None:
        hall = Hall()
        hall.bound = 1
        hall.fetch()
        hall.apply(Rejected("DISK_FULL", "no room"))
        assert hall.room.parked_count == 1
        (desk,) = hall.room._desks.values()
        assert desk.alarm is not None
        hall.room.close()

    asyncio.run(run())


def test_a_fetch_without_waiting_time_never_parks():
    """Empty or refused, such a fetch is answered at once."""

    async def run() -> None:
        hall = Hall()
        hall.bound = 1
        hall.fetch(0)
        hall.apply(Fetched([]))
        hall.fetch(0)
        hall.apply(Rejected("INTERNAL_ERROR", "a fault"))
        assert [fetched.claims for fetched in hall.answers] == [[], []]
        assert hall.room.parked_count == 0
        hall.room.close()

    asyncio.run(run())


def test_idle_desks_are_forgotten_and_busy_ones_kept():
    """Many queue names asked for once do not stay in memory."""

    async def run() -> None:
        hall = Hall()
        hall.fetch()
        for number in range(3_000):
            command = FetchJobs(0, [f"once-{number}"], "w")
            hall.room.fetch(command, 0, lambda _f, _i: None, has_room=True)
        hall.room.tidy()
        assert hall.room.statistics()["desks_count"] == 1
        assert hall.room.waiting(0, "q") == 1
        hall.room.close()
        await turns()

    asyncio.run(run())
