"""Records as they are copied out of the store, for those who keep a picture of it elsewhere.

`machine.extract` fills these from the state of a running machine or from a checkpoint of its store;
the view makes rows of them. They are messages between two processes of one version, not a disk
format.
"""

from msgspec import Struct

from corvo.model.job import Batch, Job, JobError, Spec
from corvo.model.queue import QueueRecord
from corvo.model.schedule import Schedule, ScheduleSpec
from corvo.model.webhook import Webhook


class JobCopy(Struct, array_like=True, gc=False):
    """One job as it stands. Cost: holds the machine's own objects; encode before the next entry."""

    queue: str  # the queue it is in now
    job: Job
    spec: Spec | None = None  # only when asked for: it hardly ever changes
    checkpoint: bytes | None = None
    result: bytes | None = None
    progress: bytes | None = None
    usage: bytes | None = None
    errors: list[tuple[int, JobError]] | None = None  # (number, record), those asked for
    batch_id: bytes | None = None  # the batch it is counted in, open or not
    lock_ms: int = 0  # when the unique lock it owns runs out; 0: it owns none


class ScheduleCopy(Struct, array_like=True, gc=False):
    """One schedule: what was asked for, and how far it has come."""

    spec: ScheduleSpec
    schedule: Schedule


class WebhookCopy(Struct, array_like=True, gc=False):
    """One webhook. Safety: made by `machine.extract` only, which takes the secret out."""

    webhook: Webhook  # its secret is empty
    has_secret: bool
    is_suspended: bool  # the rest of its progress changes without an event and is not copied


class Copies(Struct, array_like=True, gc=False, tag="copies"):
    """What was asked for, and what of it does not exist (any more)."""

    jobs: list[JobCopy]
    queues: list[QueueRecord]
    batches: list[Batch]
    gone_jobs: list[bytes]
    gone_queues: list[tuple[int, str]]
    gone_batches: list[bytes]
    schedules: list[ScheduleCopy] = []
    webhooks: list[WebhookCopy] = []
    gone_schedules: list[bytes] = []
    gone_webhooks: list[bytes] = []
