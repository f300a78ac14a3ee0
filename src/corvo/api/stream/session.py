"""One stream: frames in, answers and pushes out, whatever carries them.

    take ─▶ items ─▶ engine.submit_many ─▶ results ─▶ answer, in the order of the frames
         └▶ credits ─▶ supply ─▶ parked fetches ─▶ pushes

A session outlives its connection: it keeps what it holds until the leases end, or until another
connection resumes it.
"""

import secrets
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec import Struct

from corvo.api import translate
from corvo.api.stream import items, signals
from corvo.api.stream.frames import (
    AnswerFrame,
    ClientFrame,
    CreditItem,
    Problem,
    PushFrame,
    Result,
    ResumeFields,
    StreamInfo,
)
from corvo.api.stream.held import Held, Home, Outlet
from corvo.api.stream.supply import Supply
from corvo.api.values import check_name, check_text, parse_duration
from corvo.engine.desk import Ticket
from corvo.errors import CorvoError, RequestError
from corvo.model import limits
from corvo.model.command import FetchJobs
from corvo.model.outcome import (
    BEAT_LOST,
    LEASE_LOST,
    NOT_ACTIVE,
    NOT_FOUND,
    Beaten,
    Claim,
    Fetched,
    Outcome,
    Rejected,
)

IDLE_FETCH_MS: Final = 100  # how long a frame that only fetches, the old way, waits for a job
CLOSE_UNREADABLE: Final = 1008
CLOSE_DRAINED: Final = 1001
_GONE_CODES: Final = frozenset({LEASE_LOST, NOT_ACTIVE, NOT_FOUND})
DRAINING: Final = Problem(
    error="the server is shutting down; report what you hold, nothing new is handed out",
    code="DRAINING",
    hint="connect again shortly, or to another server",
)


Begin = Callable[["Session", ResumeFields | None], StreamInfo]


class Pending(Struct):
    """A frame whose answer is being put together."""

    answer: AnswerFrame
    waits: int = 1  # parts that are not there yet; the frame itself is one
    sent: list[items.Sent] = []


class Session:
    """The state of one stream."""

    def __init__(
        self,
        home: Home,
        outlet: Outlet,
        ns: int,
        context: translate.Context,
        begin: "Begin",
    ) -> None:
        self._home = home
        self._begin_stream = begin
        self._engine = home.engine
        self._translator = items.Translator(ns, context)
        self._unanswered: deque[Pending] = deque()
        self._tickets: dict[int, Ticket] = {}  # of fetches asked for the old way
        self._tickets_count = 0
        self._unreadable_count = 0
        self._queues: list[str] = []
        self._lease_ms = 0
        self._is_drain_told = False
        self.received = 0
        self.ns = ns
        self.id = "str_" + secrets.token_hex(16)
        self.is_fresh = True  # no frame came yet
        self.supply = Supply(home, self, ns)
        self.supply.outlet = outlet

    @property
    def outlet(self) -> Outlet | None:
        return self.supply.outlet

    @property
    def is_full(self) -> bool:
        """Whether as many frames are on their way as one stream may have."""
        return len(self._unanswered) >= limits.STREAM_UNANSWERED_MAX

    # --- frames ---------------------------------------------------------------------------------

    def refuse(self, request_id: int, error: RequestError) -> None:
        """Answer a frame that could not be read."""
        self._home.frames_total += 1
        self._unreadable_count += 1
        pending = self._begin(request_id)
        pending.answer.error = items.problem_of(error)
        self._finish(pending)
        outlet = self.outlet
        if outlet is not None and self._unreadable_count >= limits.STREAM_UNREADABLE_MAX:
            message = f"{self._unreadable_count} frames in a row could not be read"
            outlet.close(CLOSE_UNREADABLE, Problem(error=message, code="VALIDATION_ERROR"))

    def take(self, frame: ClientFrame) -> None:
        """Handle one frame; its answer comes when everything in it is decided."""
        try:
            count = self._check(frame)
        except RequestError as error:
            self.refuse(frame.request_id or 0, error)
            return
        self._unreadable_count = 0
        self._home.frames_total += 1
        self._home.items_total += count
        pending = self._begin(frame.request_id or 0)
        self._remember(frame)
        if self.is_fresh:
            self.is_fresh = False
            pending.answer.stream = self._begin_stream(self, frame.resume)
        if count:
            pending.sent = self._translator.translate(frame, pending.answer)
            self._submit(pending)
        if frame.heartbeats and self.supply.worker:
            held_count = len(self.supply.held)
            self._engine.workers.observe_heartbeat(self.ns, self.supply.worker, held_count)
        if frame.credits:
            pending.answer.credits = [self._grant(item) for item in frame.credits]
        self.supply.pump()
        if frame.fetch_count is not None:
            self._fetch(pending, frame.fetch_count, has_others=count > 0)
        self._finish(pending)

    def _check(self, frame: ClientFrame) -> int:
        """Refuse a frame as a whole, before anything of it happens; count its items."""
        count = sum(len(getattr(frame, kind) or ()) for kind in items.LISTS)
        count += len(frame.credits or ())
        if count > limits.STREAM_ITEMS_MAX:
            raise RequestError(f"a frame holds at most {limits.STREAM_ITEMS_MAX} items")
        for name, most in (
            ("worker_id", limits.WORKER_ID_BYTES_MAX),
            ("hostname", limits.HOSTNAME_BYTES_MAX),
            ("version", limits.NAME_BYTES_MAX),
        ):
            text: str | None = getattr(frame, name)
            if text:
                check_text(text, name, most)
        for position, name in enumerate(frame.queues or ()):
            check_name(name, f"queues[{position}]")
        if frame.lease_duration is not None:
            least_ms, most_ms = limits.LEASE_MS_MIN, limits.LEASE_MS_MAX
            field = "lease_duration"
            parse_duration(frame.lease_duration, field, least_ms=least_ms, most_ms=most_ms)
        if frame.fetch_count:
            if not (frame.worker_id or self.supply.worker):
                raise RequestError("a fetch needs a worker", field="worker_id")
            if not (frame.queues or self._queues):
                raise RequestError("a fetch needs queues", field="queues")
        if frame.resume is not None:
            if not self.is_fresh:
                raise RequestError("only the first frame of a connection resumes", field="resume")
            check_text(frame.resume.stream_id, "resume.stream_id", limits.STREAM_ID_BYTES_MAX)
        return count

    def _remember(self, frame: ClientFrame) -> None:
        supply = self.supply
        supply.worker = frame.worker_id or supply.worker
        supply.host = frame.hostname or supply.host
        supply.version = frame.version or supply.version
        if frame.draining is not None:
            supply.is_draining = frame.draining
        if frame.queues:
            self._queues = list(dict.fromkeys(frame.queues))
        if frame.lease_duration is not None:
            self._lease_ms = parse_duration(frame.lease_duration, "lease_duration")
        if frame.received is not None:
            self.received = max(self.received, frame.received)

    def _grant(self, item: CreditItem) -> Result:
        try:
            return self.supply.grant(item)
        except CorvoError as error:
            result = items.refused("", error)
            result.queues = item.queues
            return result

    # --- items ----------------------------------------------------------------------------------

    def _submit(self, pending: Pending) -> None:
        """Send all items to the engine together; when it refuses new jobs, the reports alone."""
        try:
            self._submit_all(pending)
        except CorvoError as error:
            others = [each for each in pending.sent if each.kind != "enqueues"]
            if len(others) == len(pending.sent) or not others:
                self._refuse_all(pending, pending.sent, error)
                return
            refused = [each for each in pending.sent if each.kind == "enqueues"]
            self._refuse_all(pending, refused, error)
            pending.sent = others
            try:
                self._submit_all(pending)
            except CorvoError as second:
                self._refuse_all(pending, others, second)

    def _submit_all(self, pending: Pending) -> None:
        if not pending.sent:
            return
        commands = [each.command for each in pending.sent]
        pending.waits += 1
        try:
            self._engine.submit_many(commands, partial(self._settle, pending))
        except CorvoError:
            pending.waits -= 1
            raise

    def _refuse_all(self, pending: Pending, sent: list[items.Sent], error: CorvoError) -> None:
        for each in sent:
            getattr(pending.answer, each.kind)[each.position] = items.refused(each.name, error)

    def _settle(self, pending: Pending, outcomes: list[Outcome], index: int) -> None:
        """Everything a frame asked for is on disk: put the results in, and free the slots."""
        answer = pending.answer
        answer.index = index
        outlet = self.outlet
        for each, outcome in zip(pending.sent, outcomes, strict=True):
            if each.kind != "enqueues":
                self._observe(each, outcome)
            if outlet is not None:
                result = items.result_of(each.kind, each.name, outcome, outlet.codec.document)
                getattr(answer, each.kind)[each.position] = result
        answer.acked = sum(1 for result in answer.acks if result.code is None)
        self._finish(pending)
        self.supply.pump()

    def _observe(self, each: items.Sent, outcome: Outcome) -> None:
        """Note what an item means for the job in flight."""
        command = each.command
        held = self.supply.held.get(getattr(command, "id", b""))
        token: int = getattr(command, "token", 0)
        if held is None or (token and token != held.token):
            return
        held.is_touched = True
        if isinstance(outcome, Beaten):
            if outcome.status == BEAT_LOST:
                self.supply.drop(held)
            else:
                held.lease_until_ms = outcome.lease_until_ms
                held.is_warned = False
                self.supply.expect_warning(held)
        elif not isinstance(outcome, Rejected) or outcome.code in _GONE_CODES:
            self.supply.drop(held)

    # --- the old style --------------------------------------------------------------------------

    def _fetch(self, pending: Pending, wanted: int, *, has_others: bool) -> None:
        count = min(wanted, limits.FETCH_COUNT_MAX, self.supply.room)
        pending.answer.jobs = []
        if count <= 0 or not self._queues:
            return
        supply = self.supply
        command = FetchJobs(
            self.ns, self._queues, supply.worker, supply.host, count, self._lease_ms
        )
        self._engine.workers.observe_fetch(command, supply.version)
        self._tickets_count += 1
        number = self._tickets_count
        pending.waits += 1
        timeout_ms = 0 if has_others else IDLE_FETCH_MS
        try:
            ticket = self._engine.fetch(
                command, timeout_ms, partial(self._hand_out, pending, number)
            )
        except CorvoError as error:
            pending.waits -= 1
            pending.answer.error = items.problem_of(error)
            return
        if pending.waits > 1:
            self._tickets[number] = ticket

    def _hand_out(self, pending: Pending, number: int, outcome: Fetched, index: int) -> None:
        self._tickets.pop(number, None)
        outlet = self.outlet
        claims = outcome.claims
        fitting = self._fitting(claims) if outlet is not None else 0
        if fitting < len(claims):
            self._engine.give_back(self.ns, claims[fitting:])
            claims = claims[:fitting]
        if outlet is not None and claims:
            for claim in claims:
                self.supply.hold(claim)
            document = outlet.codec.document
            pending.answer.jobs = [items.job_of(claim, document) for claim in claims]
            pending.answer.index = max(pending.answer.index, index)
        self._finish(pending)

    def _fitting(self, claims: list[Claim]) -> int:
        """How many of these fit into one answer and into what the stream may hold."""
        size = 0
        for count, claim in enumerate(claims[: self.supply.room]):
            size += items.size_of(claim)
            if size > limits.STREAM_FRAME_BYTES_MAX and count:
                return count
        return min(len(claims), self.supply.room)

    # --- answers --------------------------------------------------------------------------------

    def _begin(self, request_id: int) -> Pending:
        pending = Pending(AnswerFrame(request_id=request_id))
        self._unanswered.append(pending)
        return pending

    def _finish(self, pending: Pending) -> None:
        """A part of an answer is there; answers leave in the order of their frames."""
        pending.waits -= 1
        outlet = self.outlet
        if outlet is None:
            return
        unanswered = self._unanswered
        while unanswered and unanswered[0].waits == 0:
            answer = unanswered.popleft().answer
            if not answer.index:
                answer.index = self._engine.index
            outlet.send(answer)
            if outlet.unsent_bytes > self._home.limits.buffer_bytes_max:
                self._home.close_slow(outlet)
        outlet.answered()
        self._leave_if_drained()

    # --- signals --------------------------------------------------------------------------------

    def lose(self, held: Held, reason: str) -> None:
        """Say that a job is gone; its slot is free."""
        frame = PushFrame()
        signals.lose(self.supply, held, reason, frame)
        self.supply.send(frame)

    # --- endings --------------------------------------------------------------------------------

    def drain(self) -> None:
        """Tell the worker that the server shuts down; the stream ends when it holds nothing."""
        if not self._is_drain_told and self.outlet is not None:
            self._is_drain_told = True
            self.supply.send(PushFrame(drain=DRAINING))
        self._leave_if_drained()

    def _leave_if_drained(self) -> None:
        outlet = self.outlet
        is_idle = not self.supply.held and not self._unanswered
        if self._is_drain_told and outlet is not None and is_idle:
            outlet.close(CLOSE_DRAINED, DRAINING)

    def stop(self) -> None:
        """The connection is gone: give up what waits, keep what is held."""
        self._unanswered.clear()
        tickets, self._tickets = self._tickets, {}
        for ticket in tickets.values():
            ticket.drop()
        self.supply.stop()
