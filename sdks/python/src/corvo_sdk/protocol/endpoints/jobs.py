"""Single jobs.

What moves a job from one state to another is not repeated when it may have arrived: the second call
would be refused, or would undo what happened in between (a retry of a job that has just completed).
"""

from collections.abc import Sequence
from typing import Any, Final

from corvo_sdk.protocol.call import Call, Repeat
from corvo_sdk.protocol.endpoints.making import command, given, maybe, read, reader, write
from corvo_sdk.types.jobs import Batch, Enqueued, Job, JobChange, Jobs, NewJob, Why
from corvo_sdk.values import Duration, duration_text, maybe_duration, seconds_of, segment

_JOB: Final = reader(Job)
_MAYBE_JOB: Final = maybe(_JOB)
_JOBS: Final = reader(Jobs)
_CHANGE: Final = reader(JobChange)
_WHY: Final = reader(Why)
_ENQUEUED: Final = reader(Enqueued)
_BATCH: Final = reader(Batch)


def get_job(job_id: str) -> Call[Job]:
    """`GET /jobs/{id}`."""
    return read(f"/jobs/{segment(job_id)}", _JOB)


def get_jobs(job_ids: Sequence[str]) -> Call[Jobs]:
    """`POST /jobs/bulk-get`."""
    body = {"job_ids": list(job_ids)}
    return write("POST", "/jobs/bulk-get", body, _JOBS, repeat=Repeat.ALWAYS)


def wait(job_id: str, timeout: Duration) -> Call[Job | None]:
    """`GET /jobs/{id}/wait`."""
    query = {"timeout": duration_text(timeout)}
    path = f"/jobs/{segment(job_id)}/wait"
    return read(path, _MAYBE_JOB, query=query, wait_s=seconds_of(timeout))


def why(job_id: str) -> Call[Why]:
    """`GET /jobs/{id}/why`."""
    return read(f"/jobs/{segment(job_id)}/why", _WHY)


def delete_job(job_id: str) -> Call[JobChange]:
    """`DELETE /jobs/{id}`."""
    return command("DELETE", f"/jobs/{segment(job_id)}", _CHANGE)


def retry(job_id: str) -> Call[JobChange]:
    """`POST /jobs/{id}/retry`."""
    return command("POST", f"/jobs/{segment(job_id)}/retry", _CHANGE)


def requeue(job_id: str) -> Call[JobChange]:
    """`POST /jobs/{id}/requeue`."""
    return command("POST", f"/jobs/{segment(job_id)}/requeue", _CHANGE)


def cancel(job_id: str) -> Call[JobChange]:
    """`POST /jobs/{id}/cancel`."""
    return command("POST", f"/jobs/{segment(job_id)}/cancel", _CHANGE)


def move(
    job_id: str, queue: str, *, reset_attempts: bool | None, keep_priority: bool | None
) -> Call[JobChange]:
    """`POST /jobs/{id}/move`."""
    body = given(queue=queue, reset_attempts=reset_attempts, keep_priority=keep_priority)
    return write("POST", f"/jobs/{segment(job_id)}/move", body, _CHANGE)


def set_priority(job_id: str, priority: str) -> Call[JobChange]:
    """`PUT /jobs/{id}/priority`."""
    body = {"priority": priority}
    path = f"/jobs/{segment(job_id)}/priority"
    return write("PUT", path, body, _CHANGE, repeat=Repeat.ALWAYS)


def hold(
    job_id: str,
    *,
    reason: str | None = None,
    timeout: Duration | None = None,
    timeout_action: str | None = None,
    lease_token: int | None = None,
    checkpoint: Any = None,
) -> Call[JobChange]:
    """`POST /jobs/{id}/hold`."""
    body = given(
        reason=reason,
        timeout=maybe_duration(timeout),
        timeout_action=timeout_action,
        lease_token=lease_token,
        checkpoint=checkpoint,
    )
    return write("POST", f"/jobs/{segment(job_id)}/hold", body, _CHANGE)


def approve(job_id: str, *, by: str | None, note: str | None) -> Call[JobChange]:
    """`POST /jobs/{id}/approve`."""
    return write("POST", f"/jobs/{segment(job_id)}/approve", given(by=by, note=note), _CHANGE)


def reject(job_id: str, *, by: str | None, reason: str | None, note: str | None) -> Call[JobChange]:
    """`POST /jobs/{id}/reject`."""
    body = given(by=by, reason=reason, note=note)
    return write("POST", f"/jobs/{segment(job_id)}/reject", body, _CHANGE)


def clone(job_id: str, overrides: NewJob, *, key: str) -> Call[Enqueued]:
    """`POST /jobs/{id}/clone`; a queue of "" keeps the original's."""
    if overrides.idempotency_key is None:
        overrides.idempotency_key = key
    if overrides.queue == "":
        # The queue is the one field that a new job must have and a clone need not.
        fields = {name: getattr(overrides, name) for name in overrides.__struct_fields__}
        body: object = given(**{**fields, "queue": None})
    else:
        body = overrides
    path = f"/jobs/{segment(job_id)}/clone"
    return write("POST", path, body, _ENQUEUED, repeat=Repeat.ALWAYS)


def batch(batch_id: str) -> Call[Batch]:
    """`GET /batches/{id}`."""
    return read(f"/batches/{segment(batch_id)}", _BATCH)
