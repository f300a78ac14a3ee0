"""What workers call.

A report with its lease token may come twice and is answered alike, so it is repeated at will; one
without a token is not. A fetch is not repeated when it may have arrived: the server gives back a
job whose claim it could not deliver, or the lease of that job runs out, and asking again would only
claim a second one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from corvo_sdk.protocol.call import Call, Repeat
from corvo_sdk.protocol.endpoints.making import given, maybe, reader, write
from corvo_sdk.types.work import (
    Ack,
    AckedMany,
    Ended,
    FailedAttempt,
    FetchedJob,
    FetchedMany,
    Heartbeat,
    HeartbeatAnswer,
    Snoozed,
)
from corvo_sdk.values import (
    Duration,
    Instant,
    duration_text,
    maybe_duration,
    maybe_instant,
    seconds_of,
    segment,
)

_FETCHED: Final = maybe(reader(FetchedJob))
_FETCHED_MANY: Final = reader(FetchedMany)
_ENDED: Final = reader(Ended)
_ACKED_MANY: Final = reader(AckedMany)
_FAILED: Final = reader(FailedAttempt)
_SNOOZED: Final = reader(Snoozed)
_BEATEN: Final = reader(HeartbeatAnswer)


def fetch(
    queues: str | Sequence[str],
    *,
    worker_id: str,
    timeout: Duration = 30,
    lease_duration: Duration | None = None,
    hostname: str | None = None,
    version: str | None = None,
    concurrency: int | None = None,
    draining: bool | None = None,
) -> Call[FetchedJob | None]:
    """`POST /fetch`."""
    body = given(
        queues=_names(queues),
        worker_id=worker_id,
        timeout=duration_text(timeout),
        lease_duration=maybe_duration(lease_duration),
        hostname=hostname,
        version=version,
        concurrency=concurrency,
        draining=draining,
    )
    return write("POST", "/fetch", body, _FETCHED, wait_s=seconds_of(timeout))


def fetch_many(
    queues: str | Sequence[str],
    count: int,
    *,
    worker_id: str,
    timeout: Duration = 30,
    lease_duration: Duration | None = None,
    hostname: str | None = None,
    version: str | None = None,
    concurrency: int | None = None,
    draining: bool | None = None,
) -> Call[FetchedMany]:
    """`POST /fetch/batch`."""
    body = given(
        queues=_names(queues),
        count=count,
        worker_id=worker_id,
        timeout=duration_text(timeout),
        lease_duration=maybe_duration(lease_duration),
        hostname=hostname,
        version=version,
        concurrency=concurrency,
        draining=draining,
    )
    return write("POST", "/fetch/batch", body, _FETCHED_MANY, wait_s=seconds_of(timeout))


def ack(
    job_id: str,
    lease_token: int | None = None,
    *,
    result: Any = None,
    checkpoint: Any = None,
    step_status: str | None = None,
    usage: Any = None,
) -> Call[Ended]:
    """`POST /ack/{id}`."""
    body = given(
        lease_token=lease_token,
        result=result,
        checkpoint=checkpoint,
        step_status=step_status,
        usage=usage,
    )
    return write("POST", f"/ack/{segment(job_id)}", body, _ENDED, repeat=_repeat(lease_token))


def ack_many(acks: Sequence[Ack]) -> Call[AckedMany]:
    """`POST /ack/batch`."""
    is_safe = all(ack.lease_token is not None for ack in acks)
    repeat = Repeat.ALWAYS if is_safe else Repeat.UNLESS_SENT
    return write("POST", "/ack/batch", {"acks": acks}, _ACKED_MANY, repeat=repeat)


def fail(
    job_id: str,
    lease_token: int | None = None,
    *,
    error: str | None = None,
    backtrace: str | None = None,
    retryable: bool | None = None,
    retry_after: Duration | None = None,
    checkpoint: Any = None,
    usage: Any = None,
) -> Call[FailedAttempt]:
    """`POST /fail/{id}`."""
    body = given(
        lease_token=lease_token,
        error=error,
        backtrace=backtrace,
        retryable=retryable,
        retry_after=maybe_duration(retry_after),
        checkpoint=checkpoint,
        usage=usage,
    )
    return write("POST", f"/fail/{segment(job_id)}", body, _FAILED, repeat=_repeat(lease_token))


def release(job_id: str, lease_token: int | None = None, *, checkpoint: Any = None) -> Call[Ended]:
    """`POST /release/{id}`."""
    body = given(lease_token=lease_token, checkpoint=checkpoint)
    return write("POST", f"/release/{segment(job_id)}", body, _ENDED, repeat=_repeat(lease_token))


def snooze(
    job_id: str,
    lease_token: int | None = None,
    *,
    delay: Duration | None = None,
    until: Instant | None = None,
    checkpoint: Any = None,
) -> Call[Snoozed]:
    """`POST /snooze/{id}`; exactly one of delay and until."""
    body = given(
        lease_token=lease_token,
        delay=maybe_duration(delay),
        until=maybe_instant(until),
        checkpoint=checkpoint,
    )
    return write("POST", f"/snooze/{segment(job_id)}", body, _SNOOZED, repeat=_repeat(lease_token))


def heartbeat(
    jobs: Mapping[str, Heartbeat] | None = None, *, worker_id: str | None = None
) -> Call[HeartbeatAnswer]:
    """`POST /heartbeat`; extending a lease twice is extending it once, a little later."""
    body = given(jobs=jobs or {}, worker_id=worker_id)
    return write("POST", "/heartbeat", body, _BEATEN, repeat=Repeat.ALWAYS)


def _names(queues: str | Sequence[str]) -> list[str]:
    return [queues] if isinstance(queues, str) else list(queues)


def _repeat(lease_token: int | None) -> Repeat:
    return Repeat.UNLESS_SENT if lease_token is None else Repeat.ALWAYS
