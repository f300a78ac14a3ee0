"""From what a worker sends to commands: fetch, ack, fail, release, snooze, heartbeat."""

from msgspec import Raw

from corvo.api import wire
from corvo.api.decode import under
from corvo.api.translate import refuse_unbuilt
from corvo.api.values import (
    check_id,
    check_name,
    check_text,
    cut_text,
    maybe_document,
    parse_duration,
    parse_instant,
)
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.command import AckJob, FailJob, FetchJobs, HeartbeatJob, ReleaseJob, SnoozeJob
from corvo.model.ids import JOB, parse_id


def fetch(request: wire.FetchRequest, ns: int, count: int) -> tuple[FetchJobs, int]:
    """Make the command of a fetch, and how long it may wait for work."""
    queues = request.queues
    if len(queues) == 1:
        check_name(queues[0], "queues[0]")
    else:
        for position, name in enumerate(queues):
            check_name(name, f"queues[{position}]")
        # A queue named twice would take two turns in the rotation.
        queues = list(dict.fromkeys(queues))
    worker = check_text(request.worker_id, "worker_id", limits.WORKER_ID_BYTES_MAX)
    host, lease, timeout = request.hostname, request.lease_duration, request.timeout
    if host:
        check_text(host, "hostname", limits.HOSTNAME_BYTES_MAX)
    if request.version:
        check_text(request.version, "version", limits.NAME_BYTES_MAX)
    lease_ms = 0
    if lease is not None:
        lease_ms = parse_duration(
            lease, "lease_duration", least_ms=limits.LEASE_MS_MIN, most_ms=limits.LEASE_MS_MAX
        )
    timeout_ms = limits.FETCH_TIMEOUT_MS_DEFAULT
    if timeout is not None:
        timeout_ms = parse_duration(timeout, "timeout", most_ms=limits.FETCH_TIMEOUT_MS_MAX)
    return FetchJobs(ns, queues, worker, host or "", count, lease_ms), timeout_ms


def ack(request: wire.AckRequest, ns: int, identifier: bytes, most_bytes: int) -> AckJob:
    """Make the command of an acknowledgement."""
    if request.agent_status is not wire.ABSENT:
        refuse_unbuilt(request.agent_status, "agent_status")
    return AckJob(
        ns,
        identifier,
        request.lease_token or 0,
        _maybe(request.result, "result", most_bytes),
        _maybe(request.checkpoint, "checkpoint", most_bytes),
        request.step_status == "exit",
        _maybe(request.usage, "usage", limits.USAGE_BYTES_MAX),
    )


def ack_batch(request: wire.AckBatchRequest, ns: int, most_bytes: int) -> list[AckJob]:
    """Make the commands of `POST /ack/batch`: one each, in order."""
    commands: list[AckJob] = []
    for position, item in enumerate(request.acks):
        try:
            commands.append(ack(item, ns, check_id(JOB, item.job_id, "job_id"), most_bytes))
        except RequestError as error:
            raise under(f"acks[{position}]", error) from error
    return commands


def fail(request: wire.FailRequest, ns: int, identifier: bytes, most_bytes: int) -> FailJob:
    """Make the command of a failure; long reports are cut, never refused."""
    after = request.retry_after
    return FailJob(
        ns,
        identifier,
        request.lease_token or 0,
        cut_text(request.error, limits.ERROR_BYTES_MAX),
        cut_text(request.backtrace, limits.BACKTRACE_BYTES_MAX),
        request.retryable is not False,
        None if after is None else parse_duration(after, "retry_after"),
        _maybe(request.checkpoint, "checkpoint", most_bytes),
        _maybe(request.usage, "usage", limits.USAGE_BYTES_MAX),
    )


def release(
    request: wire.ReleaseRequest, ns: int, identifier: bytes, most_bytes: int
) -> ReleaseJob:
    """Make the command that gives a job back."""
    checkpoint = _maybe(request.checkpoint, "checkpoint", most_bytes)
    return ReleaseJob(ns, identifier, request.lease_token or 0, checkpoint)


def snooze(request: wire.SnoozeRequest, ns: int, identifier: bytes, most_bytes: int) -> SnoozeJob:
    """Make the command that gives a job back for later."""
    delay, until = request.delay, request.until
    if (delay is None) == (until is None):
        raise RequestError("send exactly one of delay and until", field="delay")
    return SnoozeJob(
        ns,
        identifier,
        request.lease_token or 0,
        0 if delay is None else parse_duration(delay, "delay"),
        0 if until is None else parse_instant(until, "until"),
        _maybe(request.checkpoint, "checkpoint", most_bytes),
    )


def heartbeat(
    request: wire.HeartbeatRequest, ns: int, most_bytes: int
) -> tuple[list[str], list[HeartbeatJob], list[str]]:
    """Make the commands of a heartbeat: names and commands in order, then the names of no job.

    A name that is no identifier is answered `lost`, not refused: the other jobs of the worker must
    keep their leases.
    """
    names: list[str] = []
    commands: list[HeartbeatJob] = []
    unknown: list[str] = []
    for name, item in request.jobs.items():
        identifier = parse_id(JOB, name)
        if identifier is None:
            unknown.append(name)
            continue
        try:
            progress = _maybe(item.progress, "progress", limits.PROGRESS_BYTES_MAX)
            checkpoint = _maybe(item.checkpoint, "checkpoint", most_bytes)
            usage = _maybe(item.usage, "usage", limits.USAGE_BYTES_MAX)
        except RequestError as error:
            raise under(f"jobs.{name}", error) from error
        names.append(name)
        commands.append(
            HeartbeatJob(ns, identifier, item.lease_token or 0, progress, checkpoint, usage)
        )
    return names, commands, unknown


def _maybe(raw: Raw, field: str, most_bytes: int) -> bytes | None:
    # Cost: a document that was not sent is recognised without being copied.
    return None if raw is wire.ABSENT else maybe_document(raw, field, most_bytes)
