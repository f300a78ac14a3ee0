"""From outcomes and records to JSON bytes.

The answers of the hot routes are put together from bytes: identifiers and names need no escaping
(their alphabet has no quote), documents are JSON already. Everything else goes through the encoder.
"""

from functools import lru_cache
from typing import Any, Final

from msgspec import Raw
from msgspec.json import Encoder
from ulid_transform import bytes_to_ulid

from corvo.api.errors import envelope
from corvo.api.values import render_instant
from corvo.model.ids import BATCH, render_id
from corvo.model.job import PENDING, SETTLED, STATE_NAMES, TIER_NAMES
from corvo.model.outcome import (
    BEAT_NAMES,
    BEAT_OK,
    BatchEnqueued,
    Beaten,
    Claim,
    Duplicate,
    Ended,
    Enqueued,
    Outcome,
    Rejected,
)

STATES: Final = tuple(name.encode() for name in STATE_NAMES)
_TIERS: Final = tuple(name.encode() for name in TIER_NAMES)
_RETRYING: Final = b"retrying"

encode: Final = Encoder().encode


def raw(document: bytes | None) -> Raw | None:
    """Embed a stored JSON document as it is; None becomes null."""
    return None if document is None else Raw(document)


@lru_cache(maxsize=4)
def index_header(index: int) -> bytes:
    """Header line that tells how far the log was; all answers of one entry share it."""
    return b"x-corvo-index: %d\r\n" % index


def enqueued(outcome: Enqueued | Duplicate, index: int) -> tuple[int, bytes]:
    """Status and body of `POST /enqueue`."""
    if type(outcome) is Enqueued:
        body = b'{"job_id":"job_%b","status":"%b","unique_existing":false,"index":%d}' % (
            bytes_to_ulid(outcome.id).encode(),
            STATES[outcome.state],
            index,
        )
        return 201, body
    return 200, b'%b,"index":%d}' % (_result(outcome)[:-1], index)


def batch_enqueued(outcome: BatchEnqueued, index: int) -> bytes:
    """Body of `POST /enqueue/batch`."""
    identifiers = b",".join(
        [b'"job_%b"' % bytes_to_ulid(item.id).encode() for item in outcome.results]
    )
    batch = b"null"
    if outcome.batch_id is not None:
        batch = b'"%b"' % render_id(BATCH, outcome.batch_id).encode()
    results = b",".join([_result(item) for item in outcome.results])
    return b'{"job_ids":[%b],"batch_id":%b,"results":[%b],"index":%d}' % (
        identifiers,
        batch,
        results,
        index,
    )


def _result(item: Enqueued | Duplicate) -> bytes:
    identifier = bytes_to_ulid(item.id).encode()
    if type(item) is Enqueued:
        return b'{"job_id":"job_%b","status":"%b","unique_existing":false}' % (
            identifier,
            STATES[item.state],
        )
    assert isinstance(item, Duplicate)
    extra = b"" if item.result is None else b',"result":%b' % item.result
    if item.is_replaced:
        extra += b',"replaced":true'
    return b'{"job_id":"job_%b","status":"duplicate","unique_existing":true,"state":"%b"%b}' % (
        identifier,
        STATES[item.state],
        extra,
    )


def claim(item: Claim, tail: bytes = b"") -> bytes:
    """One fetched job; `tail` holds further members, each with a comma in front."""
    spec = item.spec
    return (
        b'{"job_id":"job_%b","queue":"%b","payload":%b,"attempt":%d,"max_retries":%d,'
        b'"lease_duration":%d,"lease_token":%d,"priority":"%b","checkpoint":%b,"tags":%b,'
        b'"group":%b,"created_at":"%b","scheduled_at":%b,"trace":%b%b}'
    ) % (
        bytes_to_ulid(spec.id).encode(),
        item.queue.encode(),
        spec.payload,
        item.attempt,
        item.max_attempts,
        # Safety: rounded down; a worker that believes its lease to be shorter is on the safe side.
        item.lease_ms // 1_000,
        item.token,
        _TIERS[item.tier],
        item.checkpoint or b"null",
        encode(spec.tags) if spec.tags else b"{}",
        b'"%b"' % spec.group.encode() if spec.group else b"null",
        _instant(item.created_ms),
        b'"%b"' % _instant(spec.scheduled_ms) if spec.scheduled_ms else b"null",
        spec.trace or b"null",
        tail,
    )


_SECONDS_KEPT: Final = 512
_seconds: dict[int, bytes] = {}


def _instant(at_ms: int) -> bytes:
    # Cost: formatting a date takes 1.5 µs and jobs come in the order of their creation, so the
    # seconds last seen are kept. Bounded: when full it starts again.
    second, fraction_ms = divmod(at_ms, 1_000)
    head = _seconds.get(second)
    if head is None:
        if len(_seconds) >= _SECONDS_KEPT:
            _seconds.clear()
        head = _seconds[second] = render_instant(at_ms)[:-4].encode()
    return b"%b%03dZ" % (head, fraction_ms)


def ended(outcome: Ended, index: int) -> bytes:
    """Body of ack and release: the state the job is in now."""
    return b'{"status":"%b","index":%d}' % (STATES[outcome.state], index)


def failed(outcome: Ended, index: int) -> bytes:
    """Body of fail. A failure without delay is pending at once, which is still a retry."""
    state = outcome.state
    return b'{"status":"%b","next_attempt_at":%b,"attempts_remaining":%d,"index":%d}' % (
        _RETRYING if state == PENDING else STATES[state],
        b'"%b"' % _instant(outcome.next_ms) if outcome.next_ms else b"null",
        outcome.attempts_remaining,
        index,
    )


def snoozed(outcome: Ended, index: int) -> bytes:
    """Body of snooze."""
    until = outcome.next_ms if outcome.state not in SETTLED else 0
    return b'{"status":"%b","scheduled_at":%b,"index":%d}' % (
        STATES[outcome.state],
        b'"%b"' % _instant(until) if until else b"null",
        index,
    )


def acked(names: list[str], outcomes: list[Outcome], index: int) -> bytes:
    """Body of `POST /ack/batch`: one result per item, in order."""
    results: list[bytes] = []
    count = 0
    for name, outcome in zip(names, outcomes, strict=True):
        if isinstance(outcome, Ended):
            count += 1
            results.append(
                b'{"job_id":"%b","status":"%b"}' % (name.encode(), STATES[outcome.state])
            )
        else:
            assert isinstance(outcome, Rejected)
            results.append(_rejected_item(name, outcome))
    return b'{"acked":%d,"results":[%b],"index":%d}' % (count, b",".join(results), index)


def _rejected_item(name: str, outcome: Rejected) -> bytes:
    inner = envelope(outcome.code, outcome.message, state=outcome.state)
    return b'{"job_id":"%b","status":"rejected",%b' % (name.encode(), inner[1:])


def beaten(names: list[str], outcomes: list[Outcome], unknown: list[str], index: int) -> bytes:
    """Body of `POST /heartbeat`: per job ok, cancel or lost."""
    jobs: dict[str, dict[str, Any]] = {}
    for name, outcome in zip(names, outcomes, strict=True):
        if not isinstance(outcome, Beaten):
            jobs[name] = {"status": "lost"}
            continue
        jobs[name] = {"status": BEAT_NAMES[outcome.status]}
        if outcome.status == BEAT_OK and outcome.lease_until_ms:
            jobs[name]["lease_expires_at"] = render_instant(outcome.lease_until_ms)
    for name in unknown:
        jobs[name] = {"status": "lost"}
    return encode({"jobs": jobs, "index": index})
