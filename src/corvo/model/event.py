"""Things that have happened. An event holds type, job, time and small changed fields.

It never holds payload, result or checkpoint: whoever needs those joins the current record. The
events of one entry are stored as one block; an event's `seq` is its own counter, dense over the
history.
"""

from typing import Any

from msgspec import Struct

EVENT_NAMES = (
    "enqueued",
    "scheduled",
    "promoted",
    "started",
    "progress",
    "checkpoint",
    "completed",
    "failed",
    "retrying",
    "dead",
    "cancelled",
    "cancelling",
    "released",
    "snoozed",
    "reclaimed",
    "expired",
    "held",
    "approved",
    "rejected",
    "moved",
    "priority_changed",
    "deleted",
    "purged",
    "retried",
    "requeued",
    "replaced",
    "unblocked",
    "queue.created",
    "queue.paused",
    "queue.resumed",
    "queue.draining",
    "queue.cleared",
    "queue.deleted",
    "queue.configured",
    "batch.created",
    "batch.completed",
    "batch.purged",
    "chain.advanced",
    "chain.completed",
    "chain.exited",
    "chain.failed",
    "limit.set",
    "limit.deleted",
    "machine.fault",
    "machine.upgraded",
    "history.started",
    "imported",
    "schedule.created",
    "schedule.updated",
    "schedule.deleted",
    "schedule.paused",
    "schedule.resumed",
    "schedule.fired",
    "schedule.skipped",
    "schedule.missed",
    "restored",
    "bulk.started",
    "bulk.progress",
    "bulk.completed",
    "bulk.aborted",
    "bulk.failed",
    "bulk.undone",
    "bulk.purged",
    "webhook.created",
    "webhook.updated",
    "webhook.deleted",
    "webhook.suspended",
    "webhook.resumed",
    "iterated",
)
(
    ENQUEUED,
    SCHEDULED,
    PROMOTED,
    STARTED,
    PROGRESS,
    CHECKPOINT,
    COMPLETED,
    FAILED,
    RETRYING,
    DEAD,
    CANCELLED,
    CANCELLING,
    RELEASED,
    SNOOZED,
    RECLAIMED,
    EXPIRED,
    HELD,
    APPROVED,
    REJECTED,
    MOVED,
    PRIORITY_CHANGED,
    DELETED,
    PURGED,
    RETRIED,
    REQUEUED,
    REPLACED,
    UNBLOCKED,
    QUEUE_CREATED,
    QUEUE_PAUSED,
    QUEUE_RESUMED,
    QUEUE_DRAINING,
    QUEUE_CLEARED,
    QUEUE_DELETED,
    QUEUE_CONFIGURED,
    BATCH_CREATED,
    BATCH_COMPLETED,
    BATCH_PURGED,
    CHAIN_ADVANCED,
    CHAIN_COMPLETED,
    CHAIN_EXITED,
    CHAIN_FAILED,
    LIMIT_SET,
    LIMIT_DELETED,
    MACHINE_FAULT,
    MACHINE_UPGRADED,
    HISTORY_STARTED,
    IMPORTED,
    SCHEDULE_CREATED,
    SCHEDULE_UPDATED,
    SCHEDULE_DELETED,
    SCHEDULE_PAUSED,
    SCHEDULE_RESUMED,
    SCHEDULE_FIRED,
    SCHEDULE_SKIPPED,
    SCHEDULE_MISSED,
    RESTORED,
    BULK_STARTED,
    BULK_PROGRESS,
    BULK_COMPLETED,
    BULK_ABORTED,
    BULK_FAILED,
    BULK_UNDONE,
    BULK_PURGED,
    WEBHOOK_CREATED,
    WEBHOOK_UPDATED,
    WEBHOOK_DELETED,
    WEBHOOK_SUSPENDED,
    WEBHOOK_RESUMED,
    ITERATED,
) = range(len(EVENT_NAMES))


class Event(Struct, frozen=True, array_like=True, gc=False):
    """One thing that happened, without its sequence number and time (they are the block's)."""

    type: int
    job: bytes  # empty for events about a queue, a batch or the machine
    queue: str
    attempt: int = 0
    data: dict[str, Any] | None = None
    ns: int = 0  # last, since blocks written before it was there lack it


class EventBlock(Struct, frozen=True, array_like=True, gc=False):
    """All events of one entry; event i has sequence number first_seq + i."""

    first_seq: int
    at_ms: int
    events: list[Event]
