"""Enqueueing. Every call carries an idempotency key, so it may be sent again at will."""

from collections.abc import Sequence
from typing import Any, Final

from corvo_sdk.protocol.call import Call, Repeat
from corvo_sdk.protocol.endpoints.making import given, reader, write
from corvo_sdk.types.jobs import Enqueued, EnqueuedMany, NewJob

_ENQUEUED: Final = reader(Enqueued)
_ENQUEUED_MANY: Final = reader(EnqueuedMany)


def enqueue(job: NewJob, *, key: str) -> Call[Enqueued]:
    """`POST /enqueue`; `key` is used when the job has no idempotency key of its own."""
    # Cost: the key goes into the body. As a header it would make every header block a new one,
    # and the server's memory of parsed blocks useless.
    if job.idempotency_key is None:
        job.idempotency_key = key
    return write("POST", "/enqueue", job, _ENQUEUED, repeat=Repeat.ALWAYS)


def enqueue_many(
    jobs: Sequence[NewJob],
    *,
    key: str,
    is_batch: bool = False,
    callback_queue: str | None = None,
    callback_payload: Any = None,
) -> Call[EnqueuedMany]:
    """`POST /enqueue/batch`; all jobs or none. A callback makes it a batch."""
    body: dict[str, Any] = {"jobs": jobs, "idempotency_key": key}
    if is_batch or callback_queue is not None or callback_payload is not None:
        body["batch"] = given(callback_queue=callback_queue, callback_payload=callback_payload)
    return write("POST", "/enqueue/batch", body, _ENQUEUED_MANY, repeat=Repeat.ALWAYS)
