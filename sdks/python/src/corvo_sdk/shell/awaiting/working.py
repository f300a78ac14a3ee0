# Made from shell/blocking/working.py by `make sdk`; change that one.
"""What workers call."""

from collections.abc import Mapping, Sequence
from typing import Any

from corvo_sdk.protocol.endpoints import working
from corvo_sdk.shell.awaiting.running import Runner
from corvo_sdk.types.work import (
    Ack,
    AckedMany,
    Ended,
    FailedAttempt,
    FetchedJob,
    Heartbeat,
    HeartbeatAnswer,
    Snoozed,
)
from corvo_sdk.values import Duration, Instant


class Working(Runner):
    """Calls of workers."""

    async def fetch(
        self,
        queues: str | Sequence[str],
        *,
        worker_id: str,
        timeout: Duration = 30,
        lease_duration: Duration | None = None,
        hostname: str | None = None,
        version: str | None = None,
        concurrency: int | None = None,
        draining: bool | None = None,
    ) -> FetchedJob | None:
        """Take a job, or wait up to `timeout` for one; None when there was none.

        Not repeated when the connection breaks after it was sent.
        """
        call = working.fetch(
            queues,
            worker_id=worker_id,
            timeout=timeout,
            lease_duration=lease_duration,
            hostname=hostname,
            version=version,
            concurrency=concurrency,
            draining=draining,
        )
        return await self._run(call)

    async def fetch_many(
        self,
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
    ) -> list[FetchedJob]:
        """Take up to `count` jobs as soon as there is one; none when the time passed."""
        call = working.fetch_many(
            queues,
            count,
            worker_id=worker_id,
            timeout=timeout,
            lease_duration=lease_duration,
            hostname=hostname,
            version=version,
            concurrency=concurrency,
            draining=draining,
        )
        return (await self._run(call)).jobs

    async def ack(
        self,
        job_id: str,
        lease_token: int | None = None,
        *,
        result: Any = None,
        checkpoint: Any = None,
        step_status: str | None = None,
        usage: Any = None,
    ) -> Ended:
        """Report a job as done; `step_status` "exit" ends a chain here."""
        call = working.ack(
            job_id,
            lease_token,
            result=result,
            checkpoint=checkpoint,
            step_status=step_status,
            usage=usage,
        )
        return await self._run(call)

    async def ack_many(self, acks: Sequence[Ack]) -> AckedMany:
        """Report up to 512 jobs as done; one that is refused does not stop the others."""
        return await self._run(working.ack_many(acks))

    async def fail(
        self,
        job_id: str,
        lease_token: int | None = None,
        *,
        error: str | None = None,
        backtrace: str | None = None,
        retryable: bool | None = None,
        retry_after: Duration | None = None,
        checkpoint: Any = None,
        usage: Any = None,
    ) -> FailedAttempt:
        """Report an attempt as failed; the answer tells what becomes of the job."""
        call = working.fail(
            job_id,
            lease_token,
            error=error,
            backtrace=backtrace,
            retryable=retryable,
            retry_after=retry_after,
            checkpoint=checkpoint,
            usage=usage,
        )
        return await self._run(call)

    async def release(
        self, job_id: str, lease_token: int | None = None, *, checkpoint: Any = None
    ) -> Ended:
        """Give a job back at once, without burning an attempt."""
        return await self._run(working.release(job_id, lease_token, checkpoint=checkpoint))

    async def snooze(
        self,
        job_id: str,
        lease_token: int | None = None,
        *,
        delay: Duration | None = None,
        until: Instant | None = None,
        checkpoint: Any = None,
    ) -> Snoozed:
        """Give a job back and ask for it later; exactly one of `delay` and `until`."""
        call = working.snooze(job_id, lease_token, delay=delay, until=until, checkpoint=checkpoint)
        return await self._run(call)

    async def heartbeat(
        self, jobs: Mapping[str, Heartbeat] | None = None, *, worker_id: str | None = None
    ) -> HeartbeatAnswer:
        """Extend the leases of up to 1,000 jobs and hear of those that are cancelled or lost."""
        return await self._run(working.heartbeat(jobs, worker_id=worker_id))
