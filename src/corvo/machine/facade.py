"""The machine as the engine sees it: apply, read, and what is due."""

from hashlib import blake2b

from corvo.keys.order import pack_u32
from corvo.machine import (
    bulk,
    dispatch,
    export,
    extract,
    read,
    schedules,
    standing,
    sweep,
    webhooks,
    why,
)
from corvo.machine.apply import Applied, Applier
from corvo.machine.kv import Reader, Store
from corvo.machine.sweep import SweepPolicy
from corvo.model.bulk import Bulk
from corvo.model.command import Command, Entry
from corvo.model.copied import JobCopy, ScheduleCopy, WebhookCopy
from corvo.model.event import EventBlock
from corvo.model.outcome import Outcome
from corvo.model.queue import Gate, Limit, QueueRecord
from corvo.model.record import (
    BatchImport,
    JobImport,
    LimitImport,
    QueueImport,
    ScheduleImport,
    WebhookImport,
)
from corvo.model.view import BatchView, JobView, QueueView, ScheduleView, WhyView
from corvo.model.webhook import DeadLetter, Try, WebhookView


class Machine:
    """One state machine over one store."""

    def __init__(self, store: Store) -> None:
        self._applier = Applier(store)
        self._state = self._applier.state

    @property
    def index(self) -> int:
        """Last applied entry."""
        return self._state.index

    @property
    def now_ms(self) -> int:
        """Time of the last applied entry."""
        return self._state.now_ms

    @property
    def chain(self) -> bytes:
        """Hash over all effects so far."""
        return self._state.chain

    @property
    def epoch(self) -> bytes:
        """Name of this history; zeros when it was never named."""
        return self._state.epoch

    @property
    def version(self) -> int:
        """Machine version in force."""
        return self._state.version

    @property
    def seq(self) -> int:
        """Sequence number of the last event."""
        return self._state.seq

    @property
    def event_floor(self) -> int:
        """First index whose events are kept."""
        return self._state.event_floor

    @property
    def event_floor_seq(self) -> int:
        """Sequence number of the first event that is kept."""
        return self._state.event_floor_seq

    def apply(self, index: int, raw: bytes, entry: Entry) -> Applied:
        """Apply one entry and write its effects."""
        return self._applier.apply(index, raw, entry)

    def apply_stepwise(self, index: int, raw: bytes, entry: Entry) -> list[Outcome]:
        """Apply one entry the slow, obvious way (for tests)."""
        return self._applier.apply_stepwise(index, raw, entry)

    def forget(self) -> None:
        """Drop every cache; answers stay the same."""
        self._state.forget()

    # --- what is due --------------------------------------------------------------------------

    def claimable(self, ns: int, queue: str, now_ms: int) -> tuple[int, int]:
        """Upper bound of jobs a fetch could claim now, and when that may rise (0: unknown)."""
        found = self._state.names.get((ns, queue))
        return dispatch.claimable(self._state, found, now_ms) if found is not None else (0, 0)

    def due(self, now_ms: int) -> list[Command]:
        """Sweeps of time (promote, reclaim, deadlines, operations) that would find work now."""
        return sweep.due_commands(self._state, now_ms)

    def due_upkeep(self, now_ms: int, policy: SweepPolicy) -> list[Command]:
        """Sweeps of retention that would find work now; look at these every few seconds."""
        return sweep.due_upkeep(self._state, now_ms, policy)

    def next_due_ms(self, now_ms: int) -> int:
        """Earliest instant at which `due` may find work; 0: none known."""
        return sweep.next_due_ms(self._state, now_ms)

    def due_schedules(self, now_ms: int, limit: int) -> list[ScheduleView]:
        """Schedules whose next slot is to be fired now, the longest due first."""
        return schedules.due_schedules(self._state, now_ms, limit)

    def next_schedule_ms(self, now_ms: int) -> int:
        """Earliest instant at which `due_schedules` may find one; 0: none known."""
        return schedules.next_schedule_ms(self._state, now_ms)

    # --- export: of a copy at rest, never of the machine that runs ----------------------------

    def export_queues(self, ns: int) -> list[QueueImport]:
        """All queues of a namespace as records."""
        return export.queues(self._state, ns)

    def export_limits(self, ns: int, after: str, limit: int) -> list[LimitImport]:
        """Named limits that follow a name, as records."""
        return export.limits(self._state, ns, after, limit)

    def export_jobs(
        self, ns: int, after: bytes, limit: int, *, is_waiting: bool
    ) -> tuple[list[JobImport], list[tuple[bytes, bytes]], bytes]:
        """Jobs that follow an id, as records; open memberships in batches; where to go on."""
        return export.jobs(self._state, ns, after, limit, is_waiting=is_waiting)

    def export_batches(
        self, ns: int, after: bytes, limit: int, members: dict[bytes, list[bytes]]
    ) -> list[BatchImport]:
        """Batches that follow an id, as records."""
        found = export.batches(self._state, ns, after, limit)
        return [export.batch_record(batch, members.get(batch.id, [])) for batch in found]

    def export_schedules(self, ns: int, after: bytes, limit: int) -> list[ScheduleImport]:
        """Schedules that follow an id, as records."""
        return standing.export_schedules(self._state, ns, after, limit)

    def export_webhooks(self, ns: int) -> list[WebhookImport]:
        """All webhooks of a namespace as records, without secrets."""
        return standing.export_webhooks(self._state, ns)

    # --- reads --------------------------------------------------------------------------------

    def job(self, ns: int, job_id: bytes) -> JobView | None:
        """Return a job with everything that is kept about it."""
        return read.read_job(self._state, ns, job_id)

    def queue(self, ns: int, name: str) -> QueueView | None:
        """Return a queue with its counters."""
        return read.read_queue(self._state, ns, name)

    def queues(self, ns: int) -> list[QueueView]:
        """Return all queues of a namespace, by name."""
        return read.read_queues(self._state, ns)

    def queue_names(self, ns: int) -> list[str]:
        """Return the names of all queues of a namespace, in order."""
        return read.read_queue_names(self._state, ns)

    def state_counts(self, ns: int) -> list[int]:
        """Return the jobs of a namespace by state."""
        return read.read_state_counts(self._state, ns)

    def limits(self, ns: int) -> list[tuple[Limit, Gate]]:
        """Return all named limits with how much of them is used."""
        return read.read_limits(self._state, ns)

    def limit(self, ns: int, name: str) -> tuple[Limit, Gate] | None:
        """Return a named limit with how much of it is used."""
        return read.read_limit(self._state, ns, name)

    def why(self, ns: int, job_id: bytes, now_ms: int) -> WhyView | None:
        """Explain why a job is not running."""
        return why.explain(self._state, ns, job_id, now_ms)

    def batch(self, ns: int, batch_id: bytes) -> BatchView | None:
        """Return a batch."""
        return read.read_batch(self._state, ns, batch_id)

    def schedule(self, ns: int, schedule_id: bytes) -> ScheduleView | None:
        """Return a schedule."""
        return schedules.read_schedule(self._state, ns, schedule_id)

    def schedule_named(self, ns: int, name: str) -> ScheduleView | None:
        """Return a schedule by its name."""
        return schedules.find_schedule(self._state, ns, name)

    def schedules(self, ns: int, after: str, limit: int) -> list[ScheduleView]:
        """Return schedules by name, those after a name."""
        return schedules.read_schedules(self._state, ns, after, limit)

    def bulk(self, ns: int, bulk_id: bytes) -> Bulk | None:
        """Return a bulk operation."""
        return bulk.load_bulk(self._state, ns, bulk_id)

    def bulk_ids(self, ns: int, after: bytes, until: bytes, limit: int) -> list[bytes]:
        """Return ids of bulk operations between two ids, oldest first."""
        return bulk.read_ids(self._state, ns, after, until, limit)

    def bulk_preview(self, ns: int, job_id: bytes, action: int, expected: int) -> tuple[str, int]:
        """Say why a bulk action would skip a job now ("" when it would not), and its state."""
        return bulk.preview(self._state, ns, job_id, action, expected)

    def bulks_unfinished(self) -> list[tuple[int, bytes]]:
        """Return namespace and id of the bulk operations that have something left to do."""
        return bulk.read_unfinished(self._state)

    def webhooks(self, ns: int) -> list[WebhookView]:
        """Return all webhooks of a namespace, oldest first."""
        return webhooks.read_webhooks(self._state, ns)

    def webhook(self, ns: int, webhook_id: bytes) -> WebhookView | None:
        """Return a webhook."""
        return webhooks.read_webhook(self._state, ns, webhook_id)

    def dead_letters(self, ns: int, webhook_id: bytes, limit: int) -> list[DeadLetter]:
        """Return what could not be delivered, oldest first."""
        return webhooks.read_letters(self._state, ns, webhook_id, limit)

    def webhook_tries(self, ns: int, webhook_id: bytes) -> list[Try]:
        """Return the delivery log of a webhook, newest first."""
        return webhooks.read_tries(self._state, ns, webhook_id)

    def events(self, after_index: int, limit: int) -> list[tuple[int, EventBlock]]:
        """Return event blocks after an index, oldest first."""
        return read.read_events(self._state, after_index, limit)

    def copy_job(
        self, ns: int, job_id: bytes, *, has_spec: bool, errors_since_ms: int
    ) -> JobCopy | None:
        """Copy a job for a reader elsewhere; valid until the next entry."""
        return extract.copy_job(
            self._state, ns, job_id, has_spec=has_spec, errors_since_ms=errors_since_ms
        )

    def copy_schedule(self, ns: int, schedule_id: bytes) -> ScheduleCopy | None:
        """Copy a schedule for a reader elsewhere."""
        return extract.copy_schedule(self._state, ns, schedule_id)

    def copy_webhook(self, ns: int, webhook_id: bytes) -> WebhookCopy | None:
        """Copy a webhook for a reader elsewhere, without its secret."""
        return extract.copy_webhook(self._state, ns, webhook_id)

    def queue_record(self, ns: int, name: str) -> QueueRecord | None:
        """Return the record of a queue itself; valid until the next entry."""
        queue = self._state.names.get((ns, name))
        return queue.record if queue is not None else None


def digest(store: Reader) -> bytes:
    """Digest of the whole state, key by key."""
    total = blake2b(digest_size=16)
    start = b""
    while found := store.scan(start, b"\xff", 5_000):
        for key, value in found:
            total.update(pack_u32(len(key)) + key + pack_u32(len(value)) + value)
        start = found[-1][0] + b"\x00"
    return total.digest()
