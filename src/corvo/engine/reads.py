"""Reads of applied state: what everything above the engine may look at, never change."""

from collections.abc import Callable

from corvo.machine import Machine
from corvo.model.bulk import Bulk
from corvo.model.queue import Gate, Limit, QueueRecord
from corvo.model.view import BatchView, JobView, QueueView, ScheduleView, WhyView
from corvo.model.webhook import DeadLetter, Try, WebhookView
from corvo.runtime.clock import Clock


class Reads:
    """The machine without its `apply`. Every answer is of the last applied entry, and a copy."""

    __slots__ = (
        "_clock",
        "_machine",
        "batch",
        "copy_job",
        "copy_schedule",
        "copy_webhook",
        "dead_letters",
        "job",
        "limit",
        "limits",
        "queue",
        "queue_record",
        "queues",
        "queues",
        "webhook",
        "webhook_tries",
        "webhooks",
    )

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
        # These hand out the machine's own objects: encode them before the next entry.
        self.copy_job = machine.copy_job
        self.queue_record: Callable[[int, str], QueueRecord | None] = machine.queue_record
        self.copy_schedule = machine.copy_schedule
        self.copy_webhook = machine.copy_webhook
        self.webhooks: Callable[[int], list[WebhookView]] = machine.webhooks
        self.webhook: Callable[[int, bytes], WebhookView | None] = machine.webhook
        self.dead_letters: Callable[[int, bytes, int], list[DeadLetter]] = machine.dead_letters
        self.webhook_tries: Callable[[int, bytes], list[Try]] = machine.webhook_tries

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

    def schedule(self, ns: int, schedule_id: bytes) -> ScheduleView | None:
        """Return a schedule."""
        return self._machine.schedule(ns, schedule_id)

    def schedule_named(self, ns: int, name: str) -> ScheduleView | None:
        """Return a schedule by its name."""
        return self._machine.schedule_named(ns, name)

    def schedules(self, ns: int, after: str, limit: int) -> list[ScheduleView]:
        """Return schedules by name, those after a name."""
        return self._machine.schedules(ns, after, limit)

    def bulk(self, ns: int, bulk_id: bytes) -> Bulk | None:
        """Return a bulk operation."""
        return self._machine.bulk(ns, bulk_id)

    def bulk_ids(self, ns: int, after: bytes, until: bytes, limit: int) -> list[bytes]:
        """Return ids of bulk operations between two ids, oldest first."""
        return self._machine.bulk_ids(ns, after, until, limit)

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
    def epoch(self) -> bytes:
        """The name of this history; it changes when a backup is restored."""
        return self._machine.epoch

    @property
    def chain(self) -> bytes:
        """The hash over all effects so far."""
        return self._machine.chain
