"""The closed set of things that can be asked of the machine.

Commands are frozen values and the log's payload: their tags and field order are a disk format.
Format: a new field goes last and has a default; a changed meaning is a new command, never an edit.
Batch calls of the API are several of these in one entry, except where atomicity is the point
(`EnqueueBatch`: all or nothing; `FetchJobs`: one claim decision for several jobs).
"""

from msgspec import Struct

from corvo.model import limits
from corvo.model.bulk_command import AbortBulk, FillBulk, StartBulk, StepBulk, UndoBulk
from corvo.model.job import HOLD_NONE, BatchSpec, Spec
from corvo.model.queue import Rate, SettingsPatch
from corvo.model.record_command import ImportRecords, SetEpoch
from corvo.model.schedule_command import (
    BackfillSchedule,
    DeleteSchedule,
    FireSchedule,
    PauseSchedule,
    ResumeSchedule,
    RunSchedule,
    SetSchedule,
)
from corvo.model.webhook_command import (
    CreateWebhook,
    DeleteWebhook,
    RecordDeliveries,
    ReplaceWebhook,
)

ANY_STATE = -1  # `expected_state` of a command that does not care


class Idempotency(Struct, frozen=True, array_like=True, gc=False):
    """A client's key and the fingerprint of what it asked with it."""

    key: str
    fingerprint: bytes


class EnqueueJob(Struct, frozen=True, array_like=True, gc=False, tag=1):
    """Accept one job, or answer with the duplicate that holds its unique key."""

    spec: Spec
    idempotency: Idempotency | None = None


class EnqueueBatch(Struct, frozen=True, array_like=True, gc=False, tag=2):
    """Accept many jobs at once, all or none, optionally as a batch with a callback."""

    specs: list[Spec]
    batch: BatchSpec | None = None
    idempotency: Idempotency | None = None


class FetchJobs(Struct, frozen=True, array_like=True, gc=False, tag=3):
    """Claim up to `count` jobs of the named queues for a worker."""

    ns: int
    queues: list[str]
    worker: str
    host: str = ""
    count: int = 1
    lease_ms: int = 0  # 0: the queue's setting, else the default
    rotation: int = 0  # where rotation among queues of equal tier starts


class AckJob(Struct, frozen=True, array_like=True, gc=False, tag=4):
    """The work is done."""

    ns: int
    id: bytes
    token: int = 0  # 0: none given; allowed while the lease is live unless the queue requires one
    result: bytes | None = None
    checkpoint: bytes | None = None
    is_exit: bool = False  # step_status "exit": skip the rest of the chain
    usage: bytes | None = None


class FailJob(Struct, frozen=True, array_like=True, gc=False, tag=5):
    """The attempt failed."""

    ns: int
    id: bytes
    token: int = 0
    error: str = ""
    backtrace: str = ""
    is_retryable: bool = True
    retry_after_ms: int | None = None  # overrides the backoff
    checkpoint: bytes | None = None
    usage: bytes | None = None


class ReleaseJob(Struct, frozen=True, array_like=True, gc=False, tag=6):
    """Give a job back without burning an attempt."""

    ns: int
    id: bytes
    token: int = 0
    checkpoint: bytes | None = None


class SnoozeJob(Struct, frozen=True, array_like=True, gc=False, tag=7):
    """Give a job back and ask for it later, without burning an attempt."""

    ns: int
    id: bytes
    token: int = 0
    delay_ms: int = 0
    until_ms: int = 0  # wins over delay_ms when given
    checkpoint: bytes | None = None


class HeartbeatJob(Struct, frozen=True, array_like=True, gc=False, tag=8):
    """The worker is alive: extend the lease by the job's own lease, keep what it reports."""

    ns: int
    id: bytes
    token: int = 0
    progress: bytes | None = None
    checkpoint: bytes | None = None
    usage: bytes | None = None


class CancelJob(Struct, frozen=True, array_like=True, gc=False, tag=9):
    """Cancel: at once when nobody works on it, cooperatively when somebody does."""

    ns: int
    id: bytes
    expected_state: int = ANY_STATE


class RetryJob(Struct, frozen=True, array_like=True, gc=False, tag=10):
    """Run again with attempts reset; scheduled and retrying jobs run now."""

    ns: int
    id: bytes
    expected_state: int = ANY_STATE


class RequeueJob(Struct, frozen=True, array_like=True, gc=False, tag=11):
    """Run a dead job again, keeping its history; it may try as often again."""

    ns: int
    id: bytes
    expected_state: int = ANY_STATE


class MoveJob(Struct, frozen=True, array_like=True, gc=False, tag=12):
    """Put a job into another queue."""

    ns: int
    id: bytes
    queue: str
    reset_attempts: bool = False
    keep_priority: bool = True
    expected_state: int = ANY_STATE


class DeleteJob(Struct, frozen=True, array_like=True, gc=False, tag=13):
    """Remove a job and all it left behind."""

    ns: int
    id: bytes
    expected_state: int = ANY_STATE


class ChangePriority(Struct, frozen=True, array_like=True, gc=False, tag=14):
    """Put a job into another tier."""

    ns: int
    id: bytes
    tier: int
    expected_state: int = ANY_STATE


class HoldJob(Struct, frozen=True, array_like=True, gc=False, tag=15):
    """Set a job aside until somebody approves or rejects it; an active one loses its lease."""

    ns: int
    id: bytes
    token: int = 0  # 0: an operator holds it; else the worker that has it
    reason: str = ""
    timeout_ms: int = 0
    timeout_action: int = HOLD_NONE
    checkpoint: bytes | None = None
    expected_state: int = ANY_STATE


class ApproveJob(Struct, frozen=True, array_like=True, gc=False, tag=16):
    """Let a held job run."""

    ns: int
    id: bytes
    by: str = ""
    note: str = ""
    expected_state: int = ANY_STATE


class RejectJob(Struct, frozen=True, array_like=True, gc=False, tag=17):
    """Refuse a held job: it is dead, with the reason kept."""

    ns: int
    id: bytes
    by: str = ""
    reason: str = ""
    expected_state: int = ANY_STATE


class PauseQueue(Struct, frozen=True, array_like=True, gc=False, tag=18):
    """Stop handing out jobs; creates the queue when it is unknown."""

    ns: int
    queue: str


class ResumeQueue(Struct, frozen=True, array_like=True, gc=False, tag=19):
    """Hand out jobs again."""

    ns: int
    queue: str


class DrainQueue(Struct, frozen=True, array_like=True, gc=False, tag=20):
    """Pause, and say how many jobs are still active."""

    ns: int
    queue: str


class ClearQueue(Struct, frozen=True, array_like=True, gc=False, tag=21):
    """Remove pending, blocked, scheduled and retrying jobs."""

    ns: int
    queue: str
    operation_id: bytes
    undo_ms: int = 0  # how long the jobs can be brought back; 0: not at all


class DeleteQueue(Struct, frozen=True, array_like=True, gc=False, tag=22):
    """Remove a queue and every job in it."""

    ns: int
    queue: str
    operation_id: bytes


class ConfigureQueue(Struct, frozen=True, array_like=True, gc=False, tag=23):
    """Change settings; creates the queue when it is unknown."""

    ns: int
    queue: str
    patch: SettingsPatch
    operation_id: bytes = b""  # used when a change of priority mode must re-index


class SetLimit(Struct, frozen=True, array_like=True, gc=False, tag=24):
    """Create or replace a named limit."""

    ns: int
    name: str
    max: int = 0
    rate: Rate | None = None


class DeleteLimit(Struct, frozen=True, array_like=True, gc=False, tag=25):
    """Remove a named limit; jobs that name it are no longer held back by it."""

    ns: int
    name: str


class PromoteJobs(Struct, frozen=True, array_like=True, gc=False, tag=26):
    """Time passed: scheduled and retrying jobs that are due become pending."""

    limit: int = limits.SWEEP_LIMIT


class ReclaimLeases(Struct, frozen=True, array_like=True, gc=False, tag=27):
    """Time passed: jobs whose lease ran out come back, counted as a failed attempt."""

    limit: int = limits.SWEEP_LIMIT


class FireDeadlines(Struct, frozen=True, array_like=True, gc=False, tag=28):
    """Time passed: expiries, hold time-outs, unique windows, idempotency keys, idle gates."""

    limit: int = limits.SWEEP_LIMIT


class PurgeSettled(Struct, frozen=True, array_like=True, gc=False, tag=29):
    """Remove settled jobs past the retention of their queue, by age and by count."""

    retention_ms: int = limits.RETENTION_MS_DEFAULT
    limit: int = limits.SWEEP_LIMIT


class TrimEvents(Struct, frozen=True, array_like=True, gc=False, tag=30):
    """Forget events past their retention, by age and by count."""

    keep_ms: int = limits.EVENTS_MS_DEFAULT
    keep_count: int = limits.EVENTS_COUNT_DEFAULT
    keep_from: int = 0  # first index a consumer still needs; 0: none does


class StepOperations(Struct, frozen=True, array_like=True, gc=False, tag=31):
    """Go on with clearing, deleting, re-indexing, resolving: one bounded step."""

    limit: int = limits.SWEEP_LIMIT


class UpgradeMachine(Struct, frozen=True, array_like=True, gc=False, tag=32):
    """Raise the machine version once every node supports it."""

    version: int


Command = (
    EnqueueJob
    | EnqueueBatch
    | FetchJobs
    | AckJob
    | FailJob
    | ReleaseJob
    | SnoozeJob
    | HeartbeatJob
    | CancelJob
    | RetryJob
    | RequeueJob
    | MoveJob
    | DeleteJob
    | ChangePriority
    | HoldJob
    | ApproveJob
    | RejectJob
    | PauseQueue
    | ResumeQueue
    | DrainQueue
    | ClearQueue
    | DeleteQueue
    | ConfigureQueue
    | SetLimit
    | DeleteLimit
    | PromoteJobs
    | ReclaimLeases
    | FireDeadlines
    | PurgeSettled
    | TrimEvents
    | StepOperations
    | UpgradeMachine
    | SetEpoch
    | StartBulk
    | FillBulk
    | StepBulk
    | AbortBulk
    | UndoBulk
    | SetSchedule
    | DeleteSchedule
    | PauseSchedule
    | ResumeSchedule
    | FireSchedule
    | RunSchedule
    | BackfillSchedule
    | CreateWebhook
    | ReplaceWebhook
    | DeleteWebhook
    | RecordDeliveries
    | ImportRecords
)


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """One element of the log: commands of one group commit, and the time they happen at."""

    version: int  # machine version the proposer spoke
    now_ms: int  # stamped by the proposer; never goes back
    commands: list[Command]
