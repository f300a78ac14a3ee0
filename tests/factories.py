"""Factories for records and commands: a test names only the fields it is about."""

from typing import Any

from corvo.model import command as c
from corvo.model.ids import make_id
from corvo.model.job import BatchSpec, Chain, Spec, Step
from corvo.model.queue import SettingsPatch
from corvo.model.retry import RetryPolicy

START_MS = 1_800_000_000_000  # a whole number, so that a failing test is easy to read


def make_job_id(number: int) -> bytes:
    """Return the identifier of the n-th job of a test."""
    return make_id(START_MS, 0, number)


def make_other_id(number: int) -> bytes:
    """Return an identifier for a batch, a chain or an operation, apart from those of jobs."""
    return make_id(START_MS, 0, 1 << 40 | number)


def make_spec(number: int, queue: str = "mail", **fields: Any) -> Spec:
    """Return what a producer asks for; `fields` overrides any field of `Spec`."""
    defaults: dict[str, Any] = {"ns": 0, "payload": b'{"n":%d}' % number}
    return Spec(id=make_job_id(number), queue=queue, **(defaults | fields))


def make_enqueue(number: int, queue: str = "mail", **fields: Any) -> c.EnqueueJob:
    """Return the command that enqueues the n-th job of a test."""
    return c.EnqueueJob(make_spec(number, queue, **fields))


def make_batch(
    number: int, specs: list[Spec], callback_queue: str = "done", payload: bytes | None = None
) -> c.EnqueueBatch:
    """Return the command that enqueues several jobs as one batch."""
    return c.EnqueueBatch(specs, BatchSpec(make_other_id(number), callback_queue, payload))


def make_fetch(*queues: str, count: int = 1, **fields: Any) -> c.FetchJobs:
    """Return a fetch of up to `count` jobs by worker w1."""
    defaults: dict[str, Any] = {"ns": 0, "worker": "w1"}
    return c.FetchJobs(queues=list(queues) or ["mail"], count=count, **(defaults | fields))


def make_chain(number: int, *steps: Step, step: int = 0, **fields: Any) -> Chain:
    """Return a chain of the given steps."""
    return Chain(make_other_id(number), steps, step=step, **fields)


def make_retry(attempts: int = 3, backoff: int = 1, base_ms: int = 1_000) -> RetryPolicy:
    """Return a policy with a fixed backoff of one second unless told otherwise."""
    return RetryPolicy(max_attempts=attempts, backoff=backoff, base_ms=base_ms, max_ms=600_000)


def make_configure(queue: str, number: int = 0, **patch: Any) -> c.ConfigureQueue:
    """Return a change of the settings named in `patch`."""
    return c.ConfigureQueue(0, queue, SettingsPatch(**patch), make_other_id(number))
