"""From the items of a frame to commands, and from outcomes to results, item by item.

The rules are those of the HTTP calls (`work`, `translate`); what differs is that a malformed item
is refused alone, since the others of its frame are about other jobs.
"""

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

from msgspec import Raw, Struct
from msgspec.json import encode

from corvo.api import errors, translate, wire, work
from corvo.api.stream.frames import (
    AnswerFrame,
    BeatItem,
    ClientFrame,
    FailItem,
    HoldItem,
    Job,
    Problem,
    ReleaseItem,
    Result,
    SnoozeItem,
)
from corvo.api.values import check_text, maybe_document, maybe_instant, render_instant
from corvo.errors import CorvoError, OverloadedError, RequestError
from corvo.model import limits
from corvo.model.command import Command, HeartbeatJob, HoldJob, Idempotency
from corvo.model.ids import JOB, parse_id, render_id
from corvo.model.job import PENDING, SETTLED, STATE_NAMES, TIER_NAMES
from corvo.model.outcome import (
    BEAT_LOST,
    BEAT_NAMES,
    BEAT_OK,
    NOT_FOUND,
    Beaten,
    Claim,
    Duplicate,
    Ended,
    Enqueued,
    JobChanged,
    Outcome,
    Rejected,
    Replayed,
)

Document = Callable[[bytes], Raw]

# Lists of a frame in the order their items enter the log: reports first, so that what they free is
# there for what follows.
ENDING_LISTS: Final = ("acks", "fails", "releases", "snoozes", "holds")
LISTS: Final = (*ENDING_LISTS, "heartbeats", "enqueues")
_REJECTED: Final = "rejected"


class Sent(Struct):
    """One item on its way: where its result goes, and what it is about."""

    kind: str
    position: int
    name: str  # of the job, as the worker wrote it
    command: Command


class Translator:
    """Makes commands of items, for one namespace."""

    def __init__(self, ns: int, context: translate.Context) -> None:
        self._ns = ns
        self._context = context
        self._most_bytes = context.payload_bytes_max
        self._makers: dict[str, Callable[[Any], Command]] = {
            "acks": self._ack,
            "fails": self._fail,
            "releases": self._release,
            "snoozes": self._snooze,
            "holds": self._hold,
            "heartbeats": self._heartbeat,
            "enqueues": self.enqueue,
        }

    def translate(self, frame: ClientFrame, answer: AnswerFrame) -> list[Sent]:
        """Make the commands of a frame; what is malformed is refused in the answer at once."""
        sent: list[Sent] = []
        for kind in LISTS:
            items: list[Any] | None = getattr(frame, kind)
            if not items:
                continue
            results: list[Result] = []
            setattr(answer, kind, results)
            make = self._makers[kind]
            for position, item in enumerate(items):
                name: str = "" if kind == "enqueues" else item.job_id
                try:
                    sent.append(Sent(kind, position, name, make(item)))
                    results.append(_PENDING)
                except CorvoError as error:
                    is_lost = kind == "heartbeats" and error.code == NOT_FOUND
                    results.append(_lost(name) if is_lost else refused(name, error))
        return sent

    def _identify(self, name: str) -> bytes:
        identifier = parse_id(JOB, name)
        if identifier is None:
            # A text that is no identifier names no job.
            raise RequestError("there is no such job", code=NOT_FOUND, status=404)
        return identifier

    def _ack(self, item: wire.AckItem) -> Command:
        return work.ack(item, self._ns, self._identify(item.job_id), self._most_bytes)

    def _fail(self, item: FailItem) -> Command:
        return work.fail(item, self._ns, self._identify(item.job_id), self._most_bytes)

    def _release(self, item: ReleaseItem) -> Command:
        return work.release(item, self._ns, self._identify(item.job_id), self._most_bytes)

    def _snooze(self, item: SnoozeItem) -> Command:
        return work.snooze(item, self._ns, self._identify(item.job_id), self._most_bytes)

    def _hold(self, item: HoldItem) -> Command:
        if not item.lease_token:
            message = "a worker holds a job with its token"
            raise RequestError(message, field="lease_token")
        reason, timeout_ms, action = translate.hold_terms(item)
        checkpoint = maybe_document(item.checkpoint, "checkpoint", self._most_bytes)
        identifier = self._identify(item.job_id)
        token = item.lease_token
        return HoldJob(
            self._ns,
            identifier,
            token=token,
            reason=reason,
            timeout_ms=timeout_ms,
            timeout_action=action,
            checkpoint=checkpoint,
        )

    def _heartbeat(self, item: BeatItem) -> Command:
        return HeartbeatJob(
            self._ns,
            self._identify(item.job_id),
            item.lease_token or 0,
            maybe_document(item.progress, "progress", limits.PROGRESS_BYTES_MAX),
            maybe_document(item.checkpoint, "checkpoint", self._most_bytes),
            maybe_document(item.usage, "usage", limits.USAGE_BYTES_MAX),
        )

    def enqueue(self, item: wire.EnqueueRequest) -> Command:
        """Make the command of one new job."""
        key = item.idempotency_key
        idempotency = None
        if key is not None:
            check_text(key, "idempotency_key", limits.IDEMPOTENCY_KEY_BYTES_MAX)
            # The same job gives the same text, however its frame was written.
            fingerprint = blake2b(encode(item), digest_size=16).digest()
            idempotency = Idempotency(key, fingerprint)
        return translate.enqueue(item, self._ns, self._context, idempotency)


_PENDING: Final = Result()
# Cost: formatting a date takes 1.5 µs, and jobs that came in one entry have one instant.
_instant: Final = lru_cache(maxsize=256)(render_instant)


def _lost(name: str) -> Result:
    return Result(job_id=name, status=BEAT_NAMES[BEAT_LOST])


def refused(name: str, error: CorvoError) -> Result:
    """The result of an item that the edge or the engine did not take."""
    problem = problem_of(error)
    return Result(
        job_id=name,
        status=_REJECTED,
        error=problem.error,
        code=problem.code,
        field=problem.field,
        hint=problem.hint,
        retry_after_ms=problem.retry_after_ms,
    )


def problem_of(error: CorvoError) -> Problem:
    """The envelope of an error, as HTTP would have it."""
    known = errors.CODES.get(error.code)
    retry_after_ms = known.retry_after_ms if known is not None else 0
    if isinstance(error, OverloadedError):
        retry_after_ms = max(1, error.retry_after_ms)
    return Problem(
        error=error.message,
        code=error.code,
        field=error.field,
        hint=error.hint or (known.hint if known is not None else None) or None,
        retry_after_ms=retry_after_ms,
    )


def result_of(kind: str, name: str, outcome: Outcome, document: Document) -> Result:
    """The result of an item that went through the log."""
    if isinstance(outcome, Ended):
        return _ended(kind, name, outcome)
    if isinstance(outcome, Beaten):
        at_ms = outcome.lease_until_ms if outcome.status == BEAT_OK else 0
        status = BEAT_NAMES[outcome.status]
        return Result(job_id=name, status=status, lease_expires_at=maybe_instant(at_ms))
    if isinstance(outcome, JobChanged):
        return Result(job_id=name, status=STATE_NAMES[outcome.state])
    if isinstance(outcome, Rejected):
        return _rejected(name, outcome)
    replayed = None
    if isinstance(outcome, Replayed):
        replayed, outcome = True, outcome.answer
    assert isinstance(outcome, Enqueued | Duplicate)
    result = _enqueued(outcome, document)
    result.replayed = replayed
    return result


def _ended(kind: str, name: str, outcome: Ended) -> Result:
    state = outcome.state
    result = Result(job_id=name, status=STATE_NAMES[state])
    if kind == "fails":
        # A failure without delay is pending at once, which is still a retry.
        result.status = "retrying" if state == PENDING else STATE_NAMES[state]
        result.next_attempt_at = maybe_instant(outcome.next_ms)
        result.attempts_remaining = outcome.attempts_remaining
    elif kind == "snoozes" and state not in SETTLED:
        result.scheduled_at = maybe_instant(outcome.next_ms)
    return result


def _enqueued(outcome: Enqueued | Duplicate, document: Document) -> Result:
    name = render_id(JOB, outcome.id)
    if isinstance(outcome, Enqueued):
        return Result(job_id=name, status=STATE_NAMES[outcome.state], unique_existing=False)
    return Result(
        job_id=name,
        status="duplicate",
        unique_existing=True,
        state=STATE_NAMES[outcome.state],
        result=None if outcome.result is None else document(outcome.result),
        replaced=outcome.is_replaced or None,
    )


def _rejected(name: str, outcome: Rejected) -> Result:
    known = errors.CODES.get(outcome.code)
    return Result(
        job_id=name,
        status=_REJECTED,
        error=outcome.message,
        code=outcome.code,
        field=outcome.field or None,
        hint=outcome.hint or (known.hint if known is not None else None) or None,
        state=STATE_NAMES[outcome.state] if outcome.state >= 0 else None,
        unique_job_id=render_id(JOB, outcome.holder) if outcome.holder else None,
    )


def job_of(claim: Claim, document: Document) -> Job:
    """A job as it is handed to a worker."""
    spec = claim.spec
    return Job(
        job_id=render_id(JOB, spec.id),
        queue=claim.queue,
        payload=document(spec.payload),
        attempt=claim.attempt,
        max_retries=claim.max_attempts,
        # Safety: rounded down; a worker that believes its lease to be shorter is on the safe side.
        lease_duration=claim.lease_ms // 1_000,
        lease_token=claim.token,
        priority=TIER_NAMES[claim.tier],
        checkpoint=None if claim.checkpoint is None else document(claim.checkpoint),
        tags=spec.tags or {},
        group=spec.group or None,
        created_at=_instant(claim.created_ms),
        scheduled_at=maybe_instant(spec.scheduled_ms),
        trace=None if spec.trace is None else document(spec.trace),
    )


def size_of(claim: Claim) -> int:
    """About how many bytes a claim adds to a frame."""
    return len(claim.spec.payload) + len(claim.checkpoint or b"") + 400
