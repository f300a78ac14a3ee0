# Made from shell/blocking/producing.py by `make sdk`; change that one.
"""Enqueueing."""

from collections.abc import Sequence
from os import urandom
from typing import Any, Unpack

from corvo_sdk.protocol.endpoints import producing
from corvo_sdk.shell.awaiting.running import Runner
from corvo_sdk.types.jobs import Enqueued, EnqueuedMany, EnqueueOptions, NewJob


class Producing(Runner):
    """Calls of producers."""

    async def enqueue(
        self, queue: str, payload: Any = None, **options: Unpack[EnqueueOptions]
    ) -> Enqueued:
        """Enqueue a job; a payload of None is the empty object.

        The call is repeated when the connection breaks, and makes one job all the same.
        """
        job = NewJob(queue, payload, **options)
        return await self._run(producing.enqueue(job, key=urandom(16).hex()))

    async def enqueue_many(
        self,
        jobs: Sequence[NewJob],
        *,
        is_batch: bool = False,
        callback_queue: str | None = None,
        callback_payload: Any = None,
        idempotency_key: str | None = None,
    ) -> EnqueuedMany:
        """Enqueue up to 5,000 jobs, all or none; a callback or `is_batch` makes them a batch."""
        call = producing.enqueue_many(
            jobs,
            key=idempotency_key or urandom(16).hex(),
            is_batch=is_batch,
            callback_queue=callback_queue,
            callback_payload=callback_payload,
        )
        return await self._run(call)
