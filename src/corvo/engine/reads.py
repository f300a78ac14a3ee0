"""Reads of applied state: what everything above the engine may look at, never change."""

from collections.abc import Callable

from corvo.machine import Machine
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

    def queue_names(self, ns: int) -> list[str]:
        """The names of all queues of a namespace, in order."""
        return self._machine.queue_names(ns)

    def state_counts(self, ns: int) -> list[int]:
        """Jobs of a namespace by state."""
        return self._machine.state_counts(ns)

    def why(self, ns: int, job_id: bytes) -> WhyView | None:
        """Explain why a job is not running, as of now."""
        now_ms = max(self._clock.now_ms(), self._machine.now_ms)
        return self._machine.why(ns, job_id, now_ms)

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
