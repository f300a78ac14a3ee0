"""Reads of applied state: what everything above the engine may look at, never change."""

from collections.abc import Callable

from corvo.machine import Machine
from corvo.model.bulk import Bulk
from corvo.model.queue import Gate, Limit
from corvo.model.view import BatchView, JobView, QueueView, WhyView
from corvo.runtime.clock import Clock


class Reads:
    """The machine without its `apply`. Every answer is of the last applied entry, and a copy."""

    __slots__ = ("_clock", "_machine", "batch", "job", "limit", "limits", "queue", "queues")

    def __init__(self, machine: Machine, clock: Clock) -> None:
        self._machine = machine
        self._clock = clock
        # Cost: bound methods kept as fields, so that a read costs no second call.
        self.job: Callable[[int, bytes], JobView | None] = machine.job
        self.queue: Callable[[int, str], QueueView | None] = machine.queue
        self.queues: Callable[[int], list[QueueView]] = machine.queues
        self.limits: Callable[[int], list[tuple[Limit, Gate]]] = machine.limits
        self.limit: Callable[[int, str], tuple[Limit, Gate] | None] = machine.limit
        self.batch: Callable[[int, bytes], BatchView | None] = machine.batch

    def why(self, ns: int, job_id: bytes) -> WhyView | None:
        """Explain why a job is not running, as of now."""
        now_ms = max(self._clock.now_ms(), self._machine.now_ms)
        return self._machine.why(ns, job_id, now_ms)

    def bulk(self, ns: int, bulk_id: bytes) -> Bulk | None:
        """Return a bulk operation."""
        return self._machine.bulk(ns, bulk_id)

    def bulk_preview(self, ns: int, job_id: bytes, action: int, expected: int) -> tuple[str, int]:
        """Say why a bulk action would skip a job now ("" when it would not), and its state."""
        return self._machine.bulk_preview(ns, job_id, action, expected)

    def bulks_unfinished(self) -> list[tuple[int, bytes]]:
        """Return namespace and id of the bulk operations that have something left to do."""
        return self._machine.bulks_unfinished()

    @property
    def index(self) -> int:
        """The last applied entry."""
        return self._machine.index

    @property
    def now_ms(self) -> int:
        """The stamp of the last applied entry."""
        return self._machine.now_ms

    @property
    def chain(self) -> bytes:
        """The hash over all effects so far."""
        return self._machine.chain
