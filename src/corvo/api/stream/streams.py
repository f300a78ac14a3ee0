"""All streams of a server: who holds which job, what is told to whom, and who comes back.

Signals come from the feed: the hub tells of every event once, and an event about a job in flight
makes its holder look at the job itself. Nothing is polled and nothing is queued.
"""

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from corvo.api import translate
from corvo.api.stream.frames import (
    HeldItem,
    Problem,
    PushFrame,
    ResumeFields,
    Signal,
    StreamInfo,
    StreamLimits,
)
from corvo.api.stream.held import Bounds, Held, Outlet
from corvo.api.stream.session import CLOSE_DRAINED, DRAINING, Session
from corvo.api.stream.signals import is_cancelled, look, signal_of, warn
from corvo.api.stream.supply import chunks
from corvo.api.values import maybe_instant
from corvo.engine import Watcher
from corvo.errors import OverloadedError, UnavailableError
from corvo.model import event as ev
from corvo.model import limits
from corvo.model.event import EventBlock
from corvo.model.ids import JOB, parse_id
from corvo.model.job import ACTIVE
from corvo.model.outcome import Claim
from corvo.model.view import JobView

if TYPE_CHECKING:
    from corvo.engine import Engine

SWEEP_S: Final = 0.2  # the shortest lease is a second, and a third of it is left at its warning
FULL_RETRY_MS: Final = 5_000
CLOSE_SLOW: Final = 4008
CLOSE_REPLACED: Final = 4009
_SLOW: Final = Problem(
    error="the client does not read what it is sent",
    code="OVERLOADED",
    hint="read faster, grant fewer slots, then connect again and resume",
)
_REPLACED: Final = Problem(
    error="another connection resumed this stream",
    code="STATE_CHANGED",
    hint="one worker has one connection",
)
# Whatever may end a lease or ask for it; whoever is told looks at the job itself.
_TELLING: Final = frozenset(
    {
        ev.COMPLETED,
        ev.RETRYING,
        ev.DEAD,
        ev.CANCELLED,
        ev.CANCELLING,
        ev.RELEASED,
        ev.SNOOZED,
        ev.RECLAIMED,
        ev.EXPIRED,
        ev.HELD,
        ev.DELETED,
        ev.PURGED,
    }
)


class Streams:
    """Every session, with and without a connection. Run `run` beside it, and feed `observe`."""

    def __init__(
        self, engine: "Engine", context: translate.Context, bounds: Bounds | None = None
    ) -> None:
        self.engine = engine
        self.limits = bounds if bounds is not None else Bounds()
        self._context = context
        self._open: set[Session] = set()
        # Broken ones that still hold something, the longest broken first; bounded like open ones.
        self._broken: OrderedDict[str, Session] = OrderedDict()
        self._by_id: dict[str, Session] = {}
        self._holders: dict[bytes, Held] = {}
        self.is_draining = False
        self.opened_total = 0
        self.resumed_total = 0
        self.frames_total = 0
        self.items_total = 0
        self.pushed_total = 0
        self.slow_total = 0
        self.refused_total = 0
        engine.watch(Watcher(_nothing, self.drain))

    # --- coming and going -----------------------------------------------------------------------

    def admit(self) -> None:
        """Refuse a further stream when there are enough, or none any more."""
        if self.is_draining or not self.engine.is_serving:
            raise UnavailableError("the server is draining", hint="connect again shortly")
        if len(self._open) >= self.limits.open_max:
            self.refused_total += 1
            message = f"there are {self.limits.open_max} streams already"
            raise OverloadedError(message, retry_after_ms=FULL_RETRY_MS)

    def open(self, outlet: Outlet, ns: int) -> Session:
        """Begin a stream over a connection. Raises what `admit` raises."""
        self.admit()
        session = Session(self, outlet, ns, self._context, self._begin)
        self._open.add(session)
        self.opened_total += 1
        return session

    def leave(self, held: Held) -> None:
        """Forget who held a job."""
        if self._holders.get(held.id) is held:
            del self._holders[held.id]

    def enter(self, held: Held) -> None:
        """Note who holds a job; whoever held it before has lost it."""
        before = self._holders.get(held.id)
        self._holders[held.id] = held
        if before is not None and before.token != held.token:
            before.holder.lose(before, "lease_expired")

    def disconnect(self, session: Session) -> None:
        """The connection of a session is gone; leases stay. Harmless when repeated."""
        if session not in self._open:
            return
        self._open.discard(session)
        session.stop()
        if not session.supply.held:
            self._by_id.pop(session.id, None)
            return
        self._broken[session.id] = session
        if len(self._broken) > self.limits.open_max:
            _, oldest = self._broken.popitem(last=False)
            self._forget(oldest)

    def _forget(self, session: Session) -> None:
        self._by_id.pop(session.id, None)
        self._broken.pop(session.id, None)
        for held in list(session.supply.held.values()):
            self.leave(held)
        session.supply.held.clear()

    # --- resuming -------------------------------------------------------------------------------

    def _begin(self, session: Session, resume: ResumeFields | None) -> StreamInfo:
        """Name a stream, or let it go on; called for the first frame of a connection."""
        held: list[Signal] = []
        lost: list[Signal] = []
        is_resumed = False
        if resume is not None:
            known = self._by_id.get(resume.stream_id)
            if known is not None and known.ns == session.ns and known is not session:
                is_resumed = True
                self._take_over(session, known)
            lost = self._adopt(session, resume.jobs or [])
            held = self._hand_over(session, resume)
        self._by_id[session.id] = session
        bounds = self.limits
        told = StreamLimits(
            frame_bytes_max=bounds.frame_bytes_max,
            frame_items_max=limits.STREAM_ITEMS_MAX,
            in_flight_max=bounds.in_flight_max,
            unanswered_max=limits.STREAM_UNANSWERED_MAX,
            idle_timeout_ms=bounds.idle_ms,
        )
        return StreamInfo(
            stream_id=session.id, resumed=is_resumed, held=held, lost=lost, limits=told
        )

    def _take_over(self, session: Session, known: Session) -> None:
        self.resumed_total += 1
        self._broken.pop(known.id, None)
        outlet = known.outlet
        if known in self._open:
            self._open.discard(known)
            known.stop()
        supply, before = session.supply, known.supply
        session.id = known.id
        session.received = max(session.received, known.received)
        supply.pushed = before.pushed
        supply.next_warning_ms = before.next_warning_ms
        supply.held, before.held = before.held, {}
        for held in supply.held.values():
            held.holder = session
            held.grant = None
        if outlet is not None:
            outlet.close(CLOSE_REPLACED, _REPLACED)

    def _adopt(self, session: Session, named: list[HeldItem]) -> list[Signal]:
        """Take jobs in that a worker says it holds; answer those that are not its own any more."""
        lost: list[Signal] = []
        for item in named:
            identifier = parse_id(JOB, item.job_id)
            view = None if identifier is None else self.engine.read.job(session.ns, identifier)
            if view is None or view.job.state != ACTIVE or view.job.token != item.lease_token:
                lost.append(Signal(job_id=item.job_id, lease_token=item.lease_token))
                continue
            held = session.supply.held.get(view.job.id)
            if held is None and session.supply.room > 0:
                session.supply.hold(_claim_of(view))
                held = session.supply.held[view.job.id]
            if held is not None:
                held.is_touched = True
        return lost

    def _hand_over(self, session: Session, resume: ResumeFields) -> list[Signal]:
        """List what a stream holds, and push again what its worker can not have seen."""
        supply = session.supply
        received = max(session.received, resume.received or 0)
        found: list[Signal] = []
        again: list[Claim] = []
        cancelled = PushFrame()
        for held in list(supply.held.values()):
            view = self.engine.read.job(session.ns, held.id)
            if view is None or view.job.state != ACTIVE or view.job.token != held.token:
                supply.drop(held)
                continue
            held.lease_until_ms = view.job.lease_until_ms
            held.is_warned = False
            supply.expect_warning(held)
            if is_cancelled(view.job):
                held.is_cancel_sent = True
                cancelled.cancels.append(signal_of(held))
            found.append(signal_of(held, expires_at=maybe_instant(held.lease_until_ms)))
            if not held.is_touched and held.push > received:
                again.append(_claim_of(view))
        for claims in chunks(again):
            for claim in claims:
                supply.held[claim.spec.id].push = supply.pushed + 1
            supply.send_jobs(claims)
        if cancelled.cancels:
            supply.send(cancelled)
        return found

    # --- signals --------------------------------------------------------------------------------

    def observe(self, blocks: list[EventBlock]) -> None:
        """Tell holders what happened to their jobs. Cost: nothing while nothing is held."""
        holders = self._holders
        if not holders:
            return
        frames: dict[Session, PushFrame] = {}
        for block in blocks:
            for event in block.events:
                if event.type in _TELLING and event.job in holders:
                    self._tell(holders[event.job], frames)
        for session, frame in frames.items():
            if frame.cancels or frame.lost:
                session.supply.send(frame)
            session.supply.pump()
            if session.id in self._broken and not session.supply.held:
                self._forget(session)
            elif self.is_draining:
                session.drain()

    def _tell(self, held: Held, frames: dict[Session, PushFrame]) -> None:
        session = held.holder
        assert isinstance(session, Session)
        view = self.engine.read.job(session.ns, held.id)
        look(session.supply, held, view, frames.setdefault(session, PushFrame()))

    def sweep(self, now_ms: int) -> None:
        """Warn of leases that end soon; try again where the engine took no fetch."""
        for session in list(self._open):
            supply = session.supply
            if supply.next_warning_ms and supply.next_warning_ms <= now_ms:
                warn(self.engine, session.ns, supply, now_ms)
            if supply.is_starved:
                supply.is_starved = False
                supply.pump()

    async def run(self) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            self.sweep(self.engine.now_ms)

    # --- endings --------------------------------------------------------------------------------

    def close_slow(self, outlet: Outlet) -> None:
        """End a connection whose client does not read."""
        self.slow_total += 1
        outlet.close(CLOSE_SLOW, _SLOW)

    def drain(self) -> None:
        """Tell every worker; a stream that holds nothing ends at once. May be repeated."""
        self.is_draining = True
        for session in list(self._open):
            session.drain()

    def close(self) -> None:
        """End every stream: the time is over."""
        self.is_draining = True
        for session in list(self._open):
            outlet = session.outlet
            if outlet is not None:
                outlet.close(CLOSE_DRAINED, DRAINING)

    @property
    def open_count(self) -> int:
        return len(self._open)

    def statistics(self) -> dict[str, int]:
        return {
            "open_count": len(self._open),
            "broken_count": len(self._broken),
            "in_flight_count": len(self._holders),
            "opened_total": self.opened_total,
            "resumed_total": self.resumed_total,
            "frames_total": self.frames_total,
            "items_total": self.items_total,
            "pushed_total": self.pushed_total,
            "slow_total": self.slow_total,
            "refused_total": self.refused_total,
        }


def _claim_of(view: JobView) -> Claim:
    """A claim as it was, from what is stored."""
    job = view.job
    return Claim(
        spec=view.spec,
        queue=view.queue,
        tier=job.tier,
        attempt=job.attempt,
        run=job.run,
        max_attempts=job.max_attempts,
        token=job.token,
        lease_ms=job.lease_ms,
        created_ms=job.created_ms,
        checkpoint=view.checkpoint,
    )


def _nothing() -> None:
    """The hub tells of events; the engine need not."""
