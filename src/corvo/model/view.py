"""What a reader sees: records joined for one answer. Built by `machine.read`, rendered by `api`."""

from msgspec import Struct

from corvo.model.job import Batch, Job, JobError, Spec
from corvo.model.queue import QueueRecord
from corvo.model.schedule import Schedule, ScheduleSpec


class JobView(Struct, frozen=True, gc=False):
    """One job with everything that is kept about it. `job` is a copy; reading it later is safe."""

    spec: Spec
    job: Job
    queue: str  # the queue it is in now
    errors: list[JobError]
    progress: bytes | None
    checkpoint: bytes | None
    result: bytes | None
    usage: bytes | None
    blocked_by: list[bytes]  # dependencies that have not settled yet


class QueueView(Struct, frozen=True, gc=False):
    """One queue with counters; `record` is a copy."""

    record: QueueRecord
    blocked: int  # pending jobs held back by dependencies or gates
    oldest_pending_ms: int  # creation time of the job at the head; 0 when none


class GateView(Struct, frozen=True, gc=False):
    """One condition a job must meet to be handed out, and how it stands."""

    gate: str
    ok: bool
    value: int | str | None = None
    limit: int | str | None = None
    changes_at_ms: int = 0  # 0: not known, or it needs somebody to act
    detail: str = ""


class WhyView(Struct, frozen=True, gc=False):
    """Why a job is not running. The engine adds who is waiting for it."""

    id: bytes
    state: int
    queue: str
    is_runnable: bool
    gates: list[GateView]


class ScheduleView(Struct, frozen=True, gc=False):
    """One schedule; `schedule` is a copy."""

    spec: ScheduleSpec
    schedule: Schedule


class BatchView(Struct, frozen=True, gc=False):
    """One batch; `batch` is a copy."""

    batch: Batch
