"""The link over plain HTTP: long polls for jobs, one call for many acknowledgements.

The client below repeats a call when the connection breaks; what it gives up on comes back here as
`UNDELIVERED` and is sent again by the reporter, with the same token.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, assert_never

from msgspec import Raw

from corvo_sdk.aio import AsyncClient
from corvo_sdk.errors import (
    ConflictError,
    ConnectionFailedError,
    CorvoError,
    InternalError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
)
from corvo_sdk.types import Ack, AckResult, FetchedJob
from corvo_sdk.worker.links import DONE, Delivery, Report, ReportResult, Signals
from corvo_sdk.worker.verdict import Completed, Failed, Held, Lost, Released, Snoozed

SINGLE_CALLS_MAX = 16  # reports other than acknowledgements that are under way at once
REPORT_BYTES_MAX = 3 * 1024 * 1024  # a body has at most 4 MiB
_LOST_CODES = frozenset({"NOT_FOUND", "NOT_ACTIVE", "LEASE_LOST"})


class Identity:
    """Who the worker is, as the server shows it to operators."""

    __slots__ = ("concurrency", "hostname", "version", "worker_id")

    def __init__(self, worker_id: str, hostname: str, version: str, concurrency: int) -> None:
        self.worker_id = worker_id
        self.hostname = hostname
        self.version = version
        self.concurrency = concurrency


class HttpLink:
    """Talks to the server with the calls everybody can make."""

    def __init__(self, client: AsyncClient, identity: Identity) -> None:
        self._client = client
        self._identity = identity
        self._singles = asyncio.Semaphore(SINGLE_CALLS_MAX)

    async def open(self, signals: Signals) -> None:
        """Nothing is pushed here: heartbeats bring every signal."""

    async def fetch(
        self, queues: Sequence[str], count: int, wait_s: float, *, lease_ms: int | None = None
    ) -> list[FetchedJob]:
        """Ask for jobs and wait for the first."""
        identity = self._identity
        return await self._client.fetch_many(
            queues,
            count,
            worker_id=identity.worker_id,
            timeout=wait_s,
            lease_duration=None if lease_ms is None else f"{lease_ms}ms",
            hostname=identity.hostname,
            version=identity.version,
            concurrency=identity.concurrency,
        )

    def ready(self, queues: Sequence[str]) -> int:  # noqa: ARG002 - the port's
        """Nothing comes unasked."""
        return 0

    async def drain(self) -> list[FetchedJob]:
        """Nothing comes unasked."""
        return []

    async def report(self, reports: Sequence[Report]) -> list[ReportResult]:
        """Acknowledge together, tell the rest one by one and side by side."""
        results: dict[int, ReportResult] = {}
        acks: list[tuple[int, Report]] = []
        others: list[tuple[int, Report]] = []
        for position, report in enumerate(reports):
            is_ack = isinstance(report.verdict, Completed)
            (acks if is_ack else others).append((position, report))
        work = [self._acknowledge(part, results) for part in _parts(acks)]
        work += [self._single(position, report, results) for position, report in others]
        if len(work) == 1:
            await work[0]
        else:
            await asyncio.gather(*work)
        return [results[position] for position in range(len(reports))]

    async def close(self) -> None:
        """The client belongs to whoever made it."""

    async def _acknowledge(
        self, part: list[tuple[int, Report]], results: dict[int, ReportResult]
    ) -> None:
        if len(part) == 1:
            await self._single(part[0][0], part[0][1], results)
            return
        try:
            answer = await self._client.ack_many([_ack(report) for _, report in part])
        except CorvoError as error:
            result = of_error(error)
            if result.delivery is Delivery.REFUSED:
                # One of them made the whole call fail; alone, only that one does.
                await asyncio.gather(
                    *(self._single(position, report, results) for position, report in part)
                )
                return
            results.update((position, result) for position, _ in part)
            return
        for (position, _), item in zip(part, answer.results, strict=True):
            results[position] = DONE if item.status == "completed" else _of_item(item)

    async def _single(
        self, position: int, report: Report, results: dict[int, ReportResult]
    ) -> None:
        async with self._singles:
            try:
                answer = await self._call(report)
            except CorvoError as error:
                results[position] = of_error(error)
            else:
                results[position] = ReportResult(Delivery.DONE, _status(answer))

    def _call(self, report: Report) -> Awaitable[Any]:
        client, job_id, token = self._client, report.job_id, report.lease_token
        checkpoint, usage = _raw(report.checkpoint), _raw(report.usage)
        verdict = report.verdict
        match verdict:
            case Completed():
                result = _raw(verdict.result)
                return client.ack(job_id, token, result=result, checkpoint=checkpoint, usage=usage)
            case Failed():
                after_ms = verdict.retry_after_ms
                return client.fail(
                    job_id,
                    token,
                    error=verdict.error,
                    backtrace=verdict.backtrace,
                    retryable=verdict.retryable,
                    retry_after=None if after_ms is None else f"{after_ms}ms",
                    checkpoint=checkpoint,
                    usage=usage,
                )
            case Snoozed():
                delay = f"{verdict.delay_ms}ms" if verdict.until is None else None
                return client.snooze(
                    job_id, token, delay=delay, until=verdict.until, checkpoint=checkpoint
                )
            case Held():
                return client.request(
                    "POST",
                    f"/api/v1/jobs/{job_id}/hold",
                    body=_hold(verdict, token, checkpoint),
                    is_repeatable=True,
                )
            case Released():
                return client.release(job_id, token, checkpoint=checkpoint)
            case Lost():
                raise AssertionError("a lost job has nothing to report")
            case _:
                assert_never(verdict)


def _status(answer: Any) -> str:
    status = answer.status
    return status if isinstance(status, str) else "held"


def _raw(document: bytes | None) -> Raw | None:
    return None if document is None else Raw(document)


def _hold(verdict: Held, token: int, checkpoint: Raw | None) -> dict[str, Any]:
    timeout_ms = verdict.timeout_ms
    fields = {
        "lease_token": token,
        "reason": verdict.reason or None,
        "timeout": None if timeout_ms is None else f"{timeout_ms}ms",
        "timeout_action": verdict.timeout_action,
        "checkpoint": checkpoint,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _ack(report: Report) -> Ack:
    verdict = report.verdict
    assert isinstance(verdict, Completed)
    return Ack(
        job_id=report.job_id,
        lease_token=report.lease_token,
        result=_raw(verdict.result),
        checkpoint=_raw(report.checkpoint),
        usage=_raw(report.usage),
    )


def _parts(acks: list[tuple[int, Report]]) -> list[list[tuple[int, Report]]]:
    """Cut the acknowledgements of large results into calls the server takes."""
    parts: list[list[tuple[int, Report]]] = []
    size = REPORT_BYTES_MAX
    for entry in acks:
        report = entry[1]
        verdict = report.verdict
        assert isinstance(verdict, Completed)
        own = len(verdict.result or b"") + len(report.checkpoint or b"") + 512
        if size + own > REPORT_BYTES_MAX:
            parts.append([])
            size = 0
        parts[-1].append(entry)
        size += own
    return parts


def _of_item(item: AckResult) -> ReportResult:
    if item.status != "rejected":
        return ReportResult(Delivery.DONE, item.status)
    error = f"{item.code}: {item.error}"
    if item.code in _LOST_CODES:
        return ReportResult(Delivery.LOST, item.state or "", error)
    return ReportResult(Delivery.REFUSED, item.state or "", error)


def of_error(error: CorvoError) -> ReportResult:
    """Read what a failed call means for the report it carried."""
    text = str(error)
    match error:
        case OverloadedError() | UnavailableError() | ConnectionFailedError():
            return ReportResult(Delivery.UNDELIVERED, "", text, error.retry_after_ms)
        case NotFoundError() | ConflictError():
            return ReportResult(Delivery.LOST, error.state or "", text)
        case InternalError():
            return ReportResult(Delivery.UNDELIVERED, "", text, 1_000)
        case _ if error.status >= 500 or error.status in {0, 401, 403, 408}:
            # A gateway, a key that is being replaced: none of it is about this job.
            return ReportResult(Delivery.UNDELIVERED, "", text, 1_000)
        case _:
            return ReportResult(Delivery.REFUSED, "", text)
