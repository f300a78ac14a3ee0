"""How the clients look to a type checker; read by mypy and basedpyright, never run."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from msgspec import Raw

from corvo_sdk import AsyncClient, Client, CorvoError, FetchedJob, Job, NewJob
from corvo_sdk.errors import ConnectionFailedError, LeaseLostError
from corvo_sdk.protocol.session import Answer
from corvo_sdk.types import (
    Bulk,
    BulkResult,
    Ended,
    Enqueued,
    EnqueuedMany,
    Event,
    JobSummary,
    Queue,
    Schedule,
    SettingsChange,
)


def blocking(client: Client) -> None:
    assert_type(client.enqueue("q", {"a": 1}, priority="high", expire_after=5), Enqueued)
    assert_type(client.enqueue_many([NewJob("q", 1, tags={"a": "b"})]), EnqueuedMany)
    job = client.fetch(["q"], worker_id="w", timeout=timedelta(seconds=5))
    assert_type(job, FetchedJob | None)
    if job is not None:
        assert_type(job.payload, Raw)
        assert_type(job.checkpoint, Raw | None)
        assert_type(job.created_at, datetime | None)
        assert_type(client.ack(job.job_id, job.lease_token, result=1), Ended)
    assert_type(client.get_job("x"), Job)
    assert_type(client.wait("x", timeout="5s"), Job | None)
    assert_type(client.queues(), list[Queue])
    assert_type(client.configure_queue("q", max_concurrency=None), SettingsChange)
    assert_type(client.search(queue="q", created_after=datetime.now(UTC)), Iterator[JobSummary])
    assert_type(client.bulk("retry", matching={"queue": "q"}), BulkResult)
    assert_type(client.bulk_progress("x"), Iterator[Bulk])
    assert_type(client.events(), Iterator[Event])
    assert_type(client.schedules(), Iterator[Schedule])
    assert_type(client.request("GET", "/x"), Answer)
    assert_type(client.cluster_status(), dict[str, Any])
    with client.open("GET", "/x") as stream:
        assert_type(stream.chunks, Iterator[bytes])


async def awaiting(client: AsyncClient) -> None:
    assert_type(await client.enqueue("q", {"a": 1}, max_retries=3), Enqueued)
    assert_type(await client.fetch("q", worker_id="w"), FetchedJob | None)
    assert_type(await client.fetch_many("q", 5, worker_id="w"), list[FetchedJob])
    assert_type(await client.get_job("x"), Job)
    assert_type(client.search(queue="q"), AsyncIterator[JobSummary])
    assert_type(client.events(), AsyncIterator[Event])
    async for event in client.events(queue="q"):
        assert_type(event, Event)
    async with client.open("GET", "/x") as stream:
        assert_type(stream.chunks, AsyncIterator[bytes])


def refused(client: Client) -> None:
    """Each of these lines is an error, and a checker that does not see it is told so."""
    client.enqueue("q", priority="urgent")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    client.enqueue("q", retries=3)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    client.fetch("q")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    client.bulk("explode")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    client.search(no="x")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def errors(error: CorvoError) -> None:
    assert_type(error.retry_after_ms, int | None)
    assert isinstance(error, ConnectionFailedError | LeaseLostError)
    if isinstance(error, ConnectionFailedError):
        assert_type(error.was_sent, bool)
