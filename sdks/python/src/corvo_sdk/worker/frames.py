"""Frames of the worker stream as structs; `spec/stream.md` says what they mean.

Format: JSON, one object a message. Fields this version does not know are left out when read, and
nothing that is absent is written.
"""

from collections.abc import Callable

import msgspec
from msgspec import Raw, Struct

from corvo_sdk.types import FetchedJob
from corvo_sdk.worker.links import Delivery, Report, ReportResult
from corvo_sdk.worker.verdict import Completed, Failed, Held, Lost, Released, Snoozed

PROTOCOL = "corvo.v1.json"
ITEMS_MAX = 1_000
BYTES_MAX = 3 * 1024 * 1024  # the server takes 4 MiB
LOST_CODES = frozenset({"NOT_FOUND", "NOT_ACTIVE", "LEASE_LOST"})
# Refusals that are about the moment and not about the report.
LATER_CODES = frozenset({"OVERLOADED", "DRAINING", "DISK_FULL", "UNAVAILABLE", "INTERNAL_ERROR"})


class Item(Struct, kw_only=True, omit_defaults=True, gc=False):
    """One report; which fields are set depends on the list it is in."""

    job_id: str
    lease_token: int
    result: Raw | None = None
    checkpoint: Raw | None = None
    usage: Raw | None = None
    error: str | None = None
    backtrace: str | None = None
    retryable: bool | None = None
    retry_after: str | None = None
    delay: str | None = None
    until: str | None = None
    reason: str | None = None
    timeout: str | None = None
    timeout_action: str | None = None


class Credit(Struct, kw_only=True, omit_defaults=True):
    """Places for the jobs of a set of queues, in all."""

    queues: list[str]
    slots: int
    lease_duration: str | None = None


class HeldJob(Struct, kw_only=True):
    """A job and the token it is ours by."""

    job_id: str
    lease_token: int


class Resume(Struct, kw_only=True):
    """What a worker knows of a stream that broke."""

    stream_id: str
    received: int
    jobs: list[HeldJob]


class Outgoing(Struct, kw_only=True, omit_defaults=True):
    """What the worker sends."""

    request_id: int
    worker_id: str | None = None
    hostname: str | None = None
    version: str | None = None
    draining: bool | None = None
    resume: Resume | None = None
    credits: list[Credit] = []
    acks: list[Item] = []
    fails: list[Item] = []
    releases: list[Item] = []
    snoozes: list[Item] = []
    holds: list[Item] = []


class Refusal(Struct):
    """Why something was not done."""

    error: str = ""
    code: str = ""
    hint: str | None = None


class ItemResult(Struct):
    """What became of one item."""

    job_id: str = ""
    status: str = ""
    error: str | None = None
    code: str | None = None
    state: str | None = None
    retry_after_ms: int | None = None


class StreamFacts(Struct):
    """The stream itself, in the answer to its first frame."""

    stream_id: str
    resumed: bool = False
    held: list[HeldJob] = []
    lost: list[HeldJob] = []


class Incoming(Struct):
    """What the server sends: an answer, or a push."""

    request_id: int = 0
    push: int = 0
    error: Refusal | None = None
    stream: StreamFacts | None = None
    acks: list[ItemResult] = []
    fails: list[ItemResult] = []
    releases: list[ItemResult] = []
    snoozes: list[ItemResult] = []
    holds: list[ItemResult] = []
    credits: list[ItemResult] = []
    jobs: list[FetchedJob] = []
    cancels: list[HeldJob] = []
    lost: list[HeldJob] = []
    drain: Refusal | None = None
    closing: Refusal | None = None


encode: Callable[[Outgoing], bytes] = msgspec.json.Encoder().encode
decode: Callable[[bytes | str], Incoming] = msgspec.json.Decoder(Incoming).decode


def put(frame: Outgoing, report: Report) -> str:
    """Add a report to a frame; returns the name of the list it is in."""
    verdict = report.verdict
    item = Item(job_id=report.job_id, lease_token=report.lease_token)
    item.checkpoint, item.usage = raw(report.checkpoint), raw(report.usage)
    match verdict:
        case Completed():
            item.result = raw(verdict.result)
            frame.acks.append(item)
            return "acks"
        case Failed():
            item.error, item.backtrace = verdict.error, verdict.backtrace
            item.retryable = verdict.retryable
            item.retry_after = _milliseconds(verdict.retry_after_ms)
            frame.fails.append(item)
            return "fails"
        case Snoozed():
            item.usage, item.until = None, verdict.until
            item.delay = None if verdict.until else _milliseconds(verdict.delay_ms)
            frame.snoozes.append(item)
            return "snoozes"
        case Held():
            item.usage, item.reason = None, verdict.reason or None
            item.timeout = _milliseconds(verdict.timeout_ms)
            item.timeout_action = verdict.timeout_action
            frame.holds.append(item)
            return "holds"
        case Released():
            item.usage = None
            frame.releases.append(item)
            return "releases"
        case Lost():
            raise AssertionError("a lost job has nothing to report")


def result_of(item: ItemResult) -> ReportResult:
    """Read what became of a report."""
    if item.status != "rejected":
        return ReportResult(Delivery.DONE, item.status)
    error = f"{item.code}: {item.error}"
    if item.code in LOST_CODES:
        return ReportResult(Delivery.LOST, item.state or "", error)
    if item.code in LATER_CODES:
        return ReportResult(Delivery.UNDELIVERED, "", error, item.retry_after_ms or 1_000)
    return ReportResult(Delivery.REFUSED, item.state or "", error)


def size_of(report: Report) -> int:
    """About how many bytes a report takes in a frame."""
    verdict = report.verdict
    size = 256 + len(report.checkpoint or b"") + len(report.usage or b"")
    if isinstance(verdict, Completed):
        size += len(verdict.result or b"")
    elif isinstance(verdict, Failed):
        size += 2 * (len(verdict.error) + len(verdict.backtrace or ""))
    return size


def raw(document: bytes | None) -> Raw | None:
    return None if document is None else Raw(document)


def _milliseconds(value: int | None) -> str | None:
    return None if value is None else f"{value}ms"
