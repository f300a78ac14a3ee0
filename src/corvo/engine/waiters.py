"""Parked fetches: a worker that finds nothing waits here, in memory, and costs nothing.

A fetch is proposed to the log only when the machine's `claimable` says that it could find a job;
otherwise its ticket sits at the desk of each queue it names until something happens:

    an entry touched the queue   `after_apply` asks `claimable` again and calls as many tickets
    time made it claimable       one alarm per desk, at the instant `claimable` named
    an enqueue is submitted      the ticket's fetch follows it in the same batch: one sync from
                                 enqueue to worker
    the wait is over             one wheel for all tickets; the answer is empty
    the client is gone           `Ticket.drop`

Invariant: a parked ticket sits at every desk it names and in the wheel; on any of the above it
leaves all of them at once. Only the machine decides: a proposed fetch that comes back empty parks
again, in front. No wake-up is lost, because parking and applying share one thread, and every desk
whose queue was touched, or whose fetches in flight returned with jobs, is asked again after each
entry.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace

from corvo.engine.desk import DONE, DROPPED, PARKED, PROPOSED, Desk, OnFetched, Ticket
from corvo.engine.wheel import Wheel
from corvo.errors import OverloadedError
from corvo.model import limits
from corvo.model.command import Command, FetchJobs, ReleaseJob
from corvo.model.job import Spec
from corvo.model.outcome import Claim, Fetched, Outcome
from corvo.runtime.clock import Clock

EMPTY = Fetched([])
PARKED_RETRY_MS = 1_000
REFUSED_RETRY_MS = 1_000
ALARM_MS_MIN = 1
DESKS_IDLE_MAX = 1_024


class Claims(Protocol):
    """The two facts of the machine that parking depends on."""

    @property
    def index(self) -> int:
        """The last applied entry."""
        ...

    def claimable(self, ns: int, queue: str, now_ms: int) -> tuple[int, int]:
        """Upper bound of what a fetch could claim now, and when that may rise (0: not by time)."""
        ...


class WaitingRoom:
    """All desks and tickets of one engine."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        machine: Claims,
        propose: Callable[[Command, Callable[[Outcome, int], None]], None],
        on_reply_failed: Callable[[BaseException], None],
        parked_max: int = limits.PARKED_MAX_DEFAULT,
        inflight_max: int = limits.FETCH_INFLIGHT_MAX_DEFAULT,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._machine = machine
        self._claimable = machine.claimable
        self._submit = propose
        self._on_reply_failed = on_reply_failed
        self._parked_max = parked_max
        self._inflight_max = inflight_max
        self._desks: dict[tuple[int, str], Desk] = {}
        self._wheel: Wheel[Ticket] = Wheel(loop, self._on_timeout)
        self._again: dict[Desk, None] = {}  # desks to ask after the next entry
        self._dry: dict[Desk, None] = {}  # desks where a fetch of the current entry found nothing
        self._rotation = 0
        self._is_closed = False
        self.parked_count = 0
        self.empty_count = 0  # fetches of the current entry that found nothing
        self.proposed_total = 0
        self.returned_empty_total = 0

    # --- coming and going ---------------------------------------------------------------------

    def fetch(
        self, command: FetchJobs, timeout_ms: int, on_done: OnFetched, *, has_room: bool
    ) -> Ticket:
        """Claim now, or wait up to `timeout_ms` for something to claim.

        The answer may come before this returns: at once, when there is nothing and no wait. With
        `has_room` false the pipeline is full, and even a fetch that could claim waits its turn.
        """
        desks = self._desks_of(command)
        if len(desks) > 1:
            # Rotation among queues of equal tier starts one further each time, so none starves.
            self._rotation += 1
            command = replace(command, rotation=self._rotation % len(desks))
        ticket = Ticket(self, command, desks, on_done, timeout_ms)
        if self._may_claim(ticket, has_room=has_room):
            self._propose(ticket)
        elif timeout_ms <= 0 or self._is_closed:
            self._finish(ticket)
        else:
            if self.parked_count >= self._parked_max:
                raise OverloadedError(
                    "as many fetches are waiting as the server admits",
                    retry_after_ms=PARKED_RETRY_MS,
                )
            self._park(ticket, in_front=False)
        return ticket

    def drop(self, ticket: Ticket) -> None:
        """Forget a ticket whose client is gone."""
        if ticket.state == PARKED:
            self._leave(ticket)
            ticket.state = DONE
        elif ticket.state == PROPOSED:
            ticket.state = DROPPED

    def give_back(self, ns: int, claims: list[Claim]) -> None:
        """Release jobs that were claimed for somebody who is gone."""
        for claim in claims:
            self._submit(ReleaseJob(ns, claim.spec.id, claim.token), _ignore)

    def close(self) -> None:
        """Answer every parked fetch empty and park none from now on."""
        self._is_closed = True
        for desk in list(self._desks.values()):
            self._disarm(desk)
            while desk.tickets:
                ticket, _ = desk.tickets.popitem(last=False)
                self._leave(ticket)
                self._finish_guarded(ticket)
        self._wheel.close()

    def _desks_of(self, command: FetchJobs) -> list[Desk]:
        queues = command.queues
        if len(queues) == 1:
            return [self._desk((command.ns, queues[0]))]
        return [self._desk((command.ns, queue)) for queue in dict.fromkeys(queues)]

    def _desk(self, key: tuple[int, str]) -> Desk:
        desk = self._desks.get(key)
        if desk is None:
            desk = self._desks[key] = Desk(key)
        return desk

    # --- deciding -----------------------------------------------------------------------------

    def _may_claim(self, ticket: Ticket, *, has_room: bool) -> bool:
        """Whether one of the queues could have a job that no fetch in flight will take."""
        now_ms = self._clock.now_ms()
        for desk in ticket.desks:
            ns, queue = desk.key
            bound, next_ms = self._claimable(ns, queue, now_ms)
            if bound > desk.wanted:
                if has_room and desk.proposed < self._inflight_max:
                    return True
                # Permits are out: something in flight comes back and the desk is asked again.
                self._again[desk] = None
            if next_ms and ticket.timeout_ms > 0:
                self._arm(desk, next_ms, now_ms)
        return False

    def follow(self, spec: Spec, count: int = 1) -> None:
        """An enqueue was just submitted: let waiting fetches follow it in the same batch.

        On suspicion only. When such a fetch comes back empty (the queue is paused or gated, the job
        a duplicate) the desk stops doing this until a claim succeeds again, so a paused queue with
        a thousand waiters costs no extra entries.
        """
        desk = self._desks.get((spec.ns, spec.queue))
        if desk is None or not desk.is_eager:
            return
        if spec.scheduled_ms or spec.depends_on or spec.hold is not None:
            return
        while count > 0 and desk.tickets and desk.proposed < self._inflight_max:
            ticket = next(iter(desk.tickets))
            count -= ticket.command.count
            self._leave(ticket)
            self._propose(ticket)

    def follow_batch(self, specs: list[Spec]) -> None:
        """Like `follow`, for jobs enqueued together: as many fetches as there are jobs a queue."""
        first: dict[str, Spec] = {}
        counts: dict[str, int] = {}
        for spec in specs:
            first.setdefault(spec.queue, spec)
            counts[spec.queue] = counts.get(spec.queue, 0) + 1
        for queue, spec in first.items():
            self.follow(spec, counts[queue])

    def after_apply(self, touched: list[tuple[int, str]], commands_count: int) -> None:
        """Ask again at every desk that the entry may have changed."""
        empty_count, self.empty_count = self.empty_count, 0
        again = self._again
        dry = self._dry
        if self.parked_count == 0 and not again:
            dry.clear()
            return
        # An entry of nothing but fetches that all came back empty changed nothing for anybody. If
        # it counted as a touch, an upper bound that is too high would make the log grow for ever.
        if empty_count < commands_count:
            for key in touched:
                desk = self._desks.get(key)
                if desk is not None and desk.tickets:
                    again[desk] = None
        if again or dry:
            self._again = {}
            self._dry = {}
            now_ms = self._clock.now_ms()
            for desk in again:
                self._serve(desk, now_ms)
            for desk in dry:
                if desk not in again:
                    self._watch(desk, now_ms)

    def _serve(self, desk: Desk, now_ms: int) -> None:
        if not desk.tickets:
            return
        bound, next_ms = self._claimable(*desk.key, now_ms)
        spare = bound - desk.wanted
        while spare > 0 and desk.tickets and desk.proposed < self._inflight_max:
            ticket = next(iter(desk.tickets))
            spare -= ticket.command.count
            self._leave(ticket)
            self._propose(ticket)
        if next_ms and desk.tickets:
            self._arm(desk, next_ms, now_ms)

    def _watch(self, desk: Desk, now_ms: int) -> None:
        """Set the alarm of a desk whose fetch just found nothing, and propose nothing."""
        _, next_ms = self._claimable(*desk.key, now_ms)
        if next_ms and desk.tickets:
            self._arm(desk, next_ms, now_ms)

    # --- the log and back ---------------------------------------------------------------------

    def _propose(self, ticket: Ticket) -> None:
        ticket.state = PROPOSED
        wanted = ticket.command.count
        for desk in ticket.desks:
            desk.proposed += 1
            desk.wanted += wanted
        self.proposed_total += 1
        self._submit(ticket.command, ticket.answer)

    def answer(self, ticket: Ticket, outcome: Outcome, index: int) -> None:
        """A proposed fetch was applied (or refused with its batch)."""
        wanted = ticket.command.count
        for desk in ticket.desks:
            desk.proposed -= 1
            desk.wanted -= wanted
        if not isinstance(outcome, Fetched):
            self._return_refused(ticket)
            return
        fetched = outcome
        if fetched.claims:
            self._deliver(ticket, fetched, index)
        elif ticket.state == DROPPED:
            ticket.state = DONE
        elif fetched.more:
            self._propose(ticket)
        else:
            self._return_empty(ticket)

    def _deliver(self, ticket: Ticket, fetched: Fetched, index: int) -> None:
        for desk in ticket.desks:
            desk.is_eager = True
            if desk.tickets:
                self._again[desk] = None
        if ticket.state == DROPPED:
            self.give_back(ticket.command.ns, fetched.claims)
            ticket.state = DONE
            return
        ticket.state = DONE
        ticket.on_done(fetched, index)

    def _return_empty(self, ticket: Ticket) -> None:
        self.empty_count += 1
        self.returned_empty_total += 1
        for desk in ticket.desks:
            desk.is_eager = False
            self._dry[desk] = None
        self._wait_on(ticket)

    def _return_refused(self, ticket: Ticket) -> None:
        # A fault of the machine or a full disk: the worker waits on instead of asking again at
        # once, and the desk is asked a little later, since no entry may touch it before.
        self.empty_count += 1
        now_ms = self._clock.now_ms()
        for desk in ticket.desks:
            self._arm(desk, now_ms + REFUSED_RETRY_MS, now_ms)
        if ticket.state == DROPPED:
            ticket.state = DONE
        else:
            self._wait_on(ticket)

    def _wait_on(self, ticket: Ticket) -> None:
        is_over = ticket.slot != 0 and self._wheel.is_past(ticket.slot)
        if ticket.timeout_ms <= 0 or is_over or self._is_closed:
            self._finish(ticket)
        else:
            self._park(ticket, in_front=True)

    def _finish(self, ticket: Ticket) -> None:
        ticket.state = DONE
        ticket.on_done(EMPTY, self._machine.index)

    def _finish_guarded(self, ticket: Ticket) -> None:
        # Safety: one reply that fails must not keep the others of this turn waiting.
        try:
            self._finish(ticket)
        except Exception as error:  # noqa: BLE001 - reported, and the rest is answered
            self._on_reply_failed(error)

    # --- places -------------------------------------------------------------------------------

    def _park(self, ticket: Ticket, *, in_front: bool) -> None:
        ticket.state = PARKED
        if ticket.slot == 0:
            ticket.slot = self._wheel.slot_after(ticket.timeout_ms)
        for desk in ticket.desks:
            desk.tickets[ticket] = None
            if in_front:
                desk.tickets.move_to_end(ticket, last=False)
        self._wheel.add(ticket.slot, ticket)
        self.parked_count += 1

    def _leave(self, ticket: Ticket) -> None:
        for desk in ticket.desks:
            desk.tickets.pop(ticket, None)
        self._wheel.remove(ticket.slot, ticket)
        self.parked_count -= 1

    def _on_timeout(self, ticket: Ticket) -> None:
        if ticket.state != PARKED:
            return
        self._leave(ticket)
        self._finish_guarded(ticket)

    def _arm(self, desk: Desk, at_ms: int, now_ms: int) -> None:
        if desk.alarm is not None:
            if desk.alarm_ms <= at_ms:
                return
            desk.alarm.cancel()
        desk.alarm_ms = at_ms
        delay_ms = max(at_ms - now_ms, ALARM_MS_MIN)
        desk.alarm = self._loop.call_later(delay_ms / 1000, self._on_alarm, desk)

    def _disarm(self, desk: Desk) -> None:
        if desk.alarm is not None:
            desk.alarm.cancel()
            desk.alarm = None

    def _on_alarm(self, desk: Desk) -> None:
        desk.alarm = None
        self._serve(desk, self._clock.now_ms())

    # --- looking ------------------------------------------------------------------------------

    def waiting(self, ns: int, queue: str) -> int:
        """How many parked fetches listen to a queue."""
        desk = self._desks.get((ns, queue))
        return 0 if desk is None else len(desk.tickets)

    def tidy(self) -> None:
        """Forget desks nobody is at. Called now and then."""
        if len(self._desks) <= DESKS_IDLE_MAX:
            return
        for key in [key for key, desk in self._desks.items() if desk.is_idle]:
            desk = self._desks.pop(key)
            self._disarm(desk)
            self._again.pop(desk, None)
            self._dry.pop(desk, None)

    def statistics(self) -> dict[str, int]:
        return {
            "parked_count": self.parked_count,
            "desks_count": len(self._desks),
            "proposed_total": self.proposed_total,
            "returned_empty_total": self.returned_empty_total,
        }


def _ignore(_outcome: Outcome, _index: int) -> None:
    """Nobody waits for this outcome."""
