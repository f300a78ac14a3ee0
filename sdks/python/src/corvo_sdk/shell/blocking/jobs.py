"""Single jobs, and batches of them."""

from collections.abc import Sequence
from os import urandom
from typing import Any, Unpack

from corvo_sdk.protocol.endpoints import jobs
from corvo_sdk.shell.blocking.running import Runner
from corvo_sdk.types.jobs import (
    Batch,
    Enqueued,
    EnqueueOptions,
    HoldAction,
    Job,
    JobChange,
    Jobs,
    NewJob,
    Priority,
    Why,
)
from corvo_sdk.values import Duration


class SingleJobs(Runner):
    """Calls about one job."""

    def get_job(self, job_id: str) -> Job:
        """Read a job."""
        return self._run(jobs.get_job(job_id))

    def get_jobs(self, job_ids: Sequence[str]) -> Jobs:
        """Read up to 1,000 jobs; those that do not exist are named in `missing`."""
        return self._run(jobs.get_jobs(job_ids))

    def wait(self, job_id: str, timeout: Duration = 30) -> Job | None:
        """Wait up to sixty seconds until a job is settled; None when it is not by then."""
        return self._run(jobs.wait(job_id, timeout))

    def why(self, job_id: str) -> Why:
        """Explain why a job is not running."""
        return self._run(jobs.why(job_id))

    def retry(self, job_id: str) -> JobChange:
        """Run a job again, attempts reset."""
        return self._run(jobs.retry(job_id))

    def requeue(self, job_id: str) -> JobChange:
        """Run a dead job again, history kept."""
        return self._run(jobs.requeue(job_id))

    def cancel(self, job_id: str) -> JobChange:
        """Cancel a job; one that is being worked on is asked to stop."""
        return self._run(jobs.cancel(job_id))

    def move(
        self,
        job_id: str,
        queue: str,
        *,
        reset_attempts: bool | None = None,
        keep_priority: bool | None = None,
    ) -> JobChange:
        """Put a job into another queue."""
        call = jobs.move(job_id, queue, reset_attempts=reset_attempts, keep_priority=keep_priority)
        return self._run(call)

    def set_priority(self, job_id: str, priority: Priority) -> JobChange:
        """Change the priority of a job."""
        return self._run(jobs.set_priority(job_id, priority))

    def hold(
        self,
        job_id: str,
        *,
        reason: str | None = None,
        timeout: Duration | None = None,
        timeout_action: HoldAction | None = None,
        lease_token: int | None = None,
        checkpoint: Any = None,
    ) -> JobChange:
        """Set a job aside until somebody decides; a worker passes its lease token."""
        call = jobs.hold(
            job_id,
            reason=reason,
            timeout=timeout,
            timeout_action=timeout_action,
            lease_token=lease_token,
            checkpoint=checkpoint,
        )
        return self._run(call)

    def approve(self, job_id: str, *, by: str | None = None, note: str | None = None) -> JobChange:
        """Let a held job run."""
        return self._run(jobs.approve(job_id, by=by, note=note))

    def reject(
        self,
        job_id: str,
        *,
        by: str | None = None,
        reason: str | None = None,
        note: str | None = None,
    ) -> JobChange:
        """Refuse a held job."""
        return self._run(jobs.reject(job_id, by=by, reason=reason, note=note))

    def clone(
        self,
        job_id: str,
        *,
        queue: str | None = None,
        payload: Any = None,
        **overrides: Unpack[EnqueueOptions],
    ) -> Enqueued:
        """Enqueue a copy of a job with some things different."""
        job = NewJob(queue or "", payload, **overrides)
        return self._run(jobs.clone(job_id, job, key=urandom(16).hex()))

    def delete_job(self, job_id: str) -> JobChange:
        """Remove a job and all it left behind."""
        return self._run(jobs.delete_job(job_id))

    def batch(self, batch_id: str) -> Batch:
        """Read a batch."""
        return self._run(jobs.batch(batch_id))
