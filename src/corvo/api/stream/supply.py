"""The jobs of one stream: slots, fetches that fill them, pushes, and what is in flight.

A set of queues with free slots has one fetch at the engine, parked until there are jobs: nothing is
polled. Its count is what was free when it was made. What it brings is pushed; when slots were taken
back meanwhile, the surplus goes back to its queue.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from corvo.api.stream import items
from corvo.api.stream.frames import CreditItem, PushFrame, Result
from corvo.api.stream.held import UNSEEN, Grant, Held, Holder, Home, Outlet
from corvo.api.values import check_name, parse_duration
from corvo.engine.desk import PARKED
from corvo.errors import CorvoError, RequestError, UnavailableError
from corvo.model import limits
from corvo.model.command import FetchJobs
from corvo.model.outcome import Claim, Fetched

PARK_MS: Final = limits.FETCH_TIMEOUT_MS_DEFAULT  # then it parks again, and the worker was seen


class Supply:
    """Grants and jobs in flight of one stream."""

    def __init__(self, home: Home, holder: Holder, ns: int) -> None:
        self._home = home
        self._engine = home.engine
        self._holder = holder
        self._ns = ns
        self.outlet: Outlet | None = None
        self.worker = ""
        self.host = ""
        self.version = ""
        self.is_draining = False  # the worker takes nothing new
        self.is_starved = False  # the engine took no fetch; the next sweep tries again
        self.grants: dict[frozenset[str], Grant] = {}
        self.held: dict[bytes, Held] = {}
        self.pushed = 0  # number of the last pushed frame
        self.next_warning_ms = 0  # no lease needs a warning before this; 0: none at all

    # --- slots ----------------------------------------------------------------------------------

    @property
    def slots(self) -> int:
        return sum(grant.slots for grant in self.grants.values())

    def grant(self, item: CreditItem) -> Result:
        """Set the slots of a set of queues. Raises `CorvoError`; then nothing is changed."""
        for position, name in enumerate(item.queues):
            check_name(name, f"queues[{position}]")
        lease_ms = 0
        if item.lease_duration is not None:
            lease_ms = parse_duration(
                item.lease_duration,
                "lease_duration",
                least_ms=limits.LEASE_MS_MIN,
                most_ms=limits.LEASE_MS_MAX,
            )
        key = frozenset(item.queues)
        found = self.grants.get(key)
        self._check_grant(item, found)
        if found is None:
            found = self.grants[key] = Grant(list(dict.fromkeys(item.queues)))
            self._adopt(found)
        found.slots = item.slots
        if lease_ms != found.lease_ms or found.slots == 0:
            self._withdraw(found)
        found.lease_ms = lease_ms
        ticket = found.ticket
        if ticket is not None and ticket.state == PARKED and ticket.command.count > found.free:
            self._withdraw(found)
        result = Result(queues=found.queues, slots=found.slots, in_flight=found.in_flight)
        self._tidy(found)
        return result

    def _check_grant(self, item: CreditItem, found: Grant | None) -> None:
        if self._home.is_draining:
            raise UnavailableError("the server is draining", hint="connect again shortly")
        if not self.worker:
            message = "say who works before granting slots"
            raise RequestError(message, field="worker_id", hint="send worker_id in the frame")
        most = self._home.limits.in_flight_max
        others = self.slots - (found.slots if found is not None else 0)
        if others + item.slots > most:
            raise RequestError(f"a stream has at most {most} slots", field="slots")
        if found is None and len(self.grants) >= limits.STREAM_GRANTS_MAX:
            message = f"a stream has at most {limits.STREAM_GRANTS_MAX} sets of queues"
            raise RequestError(message, field="queues")

    def _adopt(self, grant: Grant) -> None:
        """Let jobs that were held before the grant take up its slots."""
        for held in self.held.values():
            if held.grant is None and held.queue in grant.queues:
                held.grant = grant
                grant.in_flight += 1

    def _withdraw(self, grant: Grant) -> None:
        """Take a parked fetch back; one under way comes back with what it found."""
        ticket = grant.ticket
        if ticket is not None and ticket.state == PARKED:
            ticket.drop()
            grant.ticket = None

    # --- fetching -------------------------------------------------------------------------------

    def pump(self) -> None:
        """See to it that every set with free slots has a fetch at the engine."""
        outlet = self.outlet
        if outlet is None or self.is_draining or self._home.is_draining:
            return
        if outlet.unsent_bytes >= limits.STREAM_PUSH_PAUSE_BYTES:
            return
        for grant in list(self.grants.values()):
            if grant.free > 0:
                self._fetch(grant)

    def _fetch(self, grant: Grant) -> None:
        count = min(grant.free, limits.FETCH_COUNT_MAX, self.room)
        ticket = grant.ticket
        if count <= 0:
            return
        if ticket is not None:
            # Cost: a parked fetch is replaced only when it could bring twice as much.
            if ticket.state != PARKED or count < 2 * ticket.command.count:
                return
            self._withdraw(grant)
        command = FetchJobs(self._ns, grant.queues, self.worker, self.host, count, grant.lease_ms)
        self._engine.workers.observe_fetch(command, self.version, self.slots)
        grant.asked += 1
        number = grant.asked
        try:
            ticket = self._engine.fetch(command, PARK_MS, partial(self._take, grant, number))
        except CorvoError:
            self.is_starved = True
            return
        # The answer may have come before the ticket did.
        if grant.answered != number:
            grant.ticket = ticket

    @property
    def room(self) -> int:
        """How many more jobs the stream may hold, whatever was granted."""
        return self._home.limits.in_flight_max - len(self.held)

    def _take(self, grant: Grant, number: int, outcome: Fetched, _index: int) -> None:
        grant.answered = number
        grant.ticket = None
        claims = outcome.claims
        outlet = self.outlet
        if outlet is None or self._home.is_draining:
            self._engine.give_back(self._ns, claims)
            return
        fitting = max(0, min(grant.free, self.room))
        if len(claims) > fitting:
            self._engine.give_back(self._ns, claims[fitting:])
            claims = claims[:fitting]
        self._push(outlet, grant, claims)
        self._tidy(grant)
        if grant.free > 0 and (claims or self._engine.is_serving):
            self.pump()

    def _push(self, outlet: Outlet, grant: Grant, claims: list[Claim]) -> None:
        pushed_count = 0
        for part in chunks(claims):
            if outlet.unsent_bytes > self._home.limits.buffer_bytes_max:
                # Nobody would read it: better somebody else gets the rest at once.
                self._engine.give_back(self._ns, claims[pushed_count:])
                self._home.close_slow(outlet)
                return
            self._push_frame(grant, part)
            pushed_count += len(part)

    def _push_frame(self, grant: Grant, claims: list[Claim]) -> None:
        for claim in claims:
            self._displace(claim)
        push = self.pushed + 1
        for claim in claims:
            self.hold(claim, push, grant)
        self.send_jobs(claims)
        self._home.pushed_total += len(claims)

    def send_jobs(self, claims: list[Claim]) -> None:
        """Push jobs that are counted in already."""
        outlet = self.outlet
        if outlet is not None:
            document = outlet.codec.document
            self.send(PushFrame(jobs=[items.job_of(claim, document) for claim in claims]))

    def send(self, frame: PushFrame) -> None:
        """Push a frame, with its number."""
        outlet = self.outlet
        if outlet is not None:
            self.pushed += 1
            frame.push = self.pushed
            outlet.send(frame)

    # --- in flight ------------------------------------------------------------------------------

    def _displace(self, claim: Claim) -> None:
        """A job that comes again was lost before, though the feed has not said so yet."""
        before = self.held.get(claim.spec.id)
        if before is not None:
            self._holder.lose(before, "lease_expired")

    def hold(self, claim: Claim, push: int = UNSEEN, grant: Grant | None = None) -> None:
        """Count a job in."""
        self._displace(claim)
        until_ms = self._engine.now_ms + claim.lease_ms
        held = Held(
            self._holder, claim.spec.id, claim.token, claim.queue, claim.lease_ms, until_ms, push
        )
        held.grant = grant
        if grant is not None:
            grant.in_flight += 1
        self.held[held.id] = held
        self.expect_warning(held)
        self._home.enter(held)

    def expect_warning(self, held: Held) -> None:
        """See to it that the lease is looked at in time."""
        at_ms = held.warn_at_ms
        if not self.next_warning_ms or at_ms < self.next_warning_ms:
            self.next_warning_ms = at_ms

    def drop(self, held: Held) -> None:
        """Count a job out; its slot is free."""
        if self.held.get(held.id) is not held:
            return
        del self.held[held.id]
        self._home.leave(held)
        grant = held.grant
        if grant is not None:
            grant.in_flight -= 1
            self._tidy(grant)

    def _tidy(self, grant: Grant) -> None:
        """Forget a set that was taken back and has nothing left."""
        if grant.slots == 0 and grant.in_flight == 0 and grant.ticket is None:
            self.grants.pop(frozenset(grant.queues), None)

    def stop(self) -> None:
        """Take every fetch back: nobody is there to be given jobs."""
        self.outlet = None
        for grant in self.grants.values():
            ticket, grant.ticket = grant.ticket, None
            if ticket is not None:
                # Parked it leaves; under way, what it claims is given back by the engine.
                ticket.drop()
                grant.asked += 1
            grant.slots = 0


def chunks(claims: list[Claim]) -> Iterator[list[Claim]]:
    """Split claims into what one pushed frame should hold."""
    start = size = 0
    for place, claim in enumerate(claims):
        size += items.size_of(claim)
        if size >= limits.STREAM_PUSH_BYTES_MAX:
            yield claims[start : place + 1]
            start, size = place + 1, 0
    if start < len(claims):
        yield claims[start:] if start else claims
