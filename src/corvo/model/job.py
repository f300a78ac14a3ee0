"""Jobs: what never changes (`Spec`) and what does (`Job`).

The split keeps a large payload from being rewritten on every state change: `Spec` is written once
at enqueue, `Job` is the small record each transition rewrites. `Job.at` names the one index key
the job currently sits under; moving a job deletes exactly that key.
"""

from msgspec import Struct

from corvo.model.retry import DEFAULT_RETRY, RetryPolicy

SCHEDULED, PENDING, ACTIVE, RETRYING, HELD, COMPLETED, DEAD, CANCELLED = range(8)
STATE_NAMES = (
    "scheduled",
    "pending",
    "active",
    "retrying",
    "held",
    "completed",
    "dead",
    "cancelled",
)
STATE_COUNT = len(STATE_NAMES)
SETTLED = (COMPLETED, DEAD, CANCELLED)

TIER_NAMES = ("critical", "high", "normal")
TIER_NORMAL = 2

UNIQUE_UNTIL_DONE, UNIQUE_UNTIL_START, UNIQUE_WINDOW, UNIQUE_REPLACE = range(4)
UNIQUE_MODE_NAMES = ("until_done", "until_start", "window", "replace")

DEPENDENCY_FAIL, DEPENDENCY_RUN, DEPENDENCY_HOLD = range(3)
DEPENDENCY_POLICY_NAMES = ("fail", "run", "hold")

HOLD_NONE, HOLD_CANCEL, HOLD_APPROVE = range(3)
HOLD_ACTION_NAMES = ("none", "cancel", "approve")

# How the last lease ended (`Job.ended`); OPEN while it is held or before the first one.
END_OPEN, END_ACK, END_FAIL, END_RELEASE, END_SNOOZE, END_LOST, END_TAKEN = range(7)

# Flags of `Job.flags`.
FLAG_UNIQUE = 1  # owns the unique lock of its queue and key
FLAG_MEMBER = 2  # counted in its batch as unsettled
FLAG_CHECKPOINT_BLOB = 4  # the checkpoint lies under its own key
FLAG_RESULT_BLOB = 8
FLAG_PROGRESS_BLOB = 16
FLAG_PARENT = 32  # others wait for this job: the reverse index has entries
FLAG_GATED = 64  # holds slots of limit keys while active
FLAG_USAGE_BLOB = 128
FLAG_LANED = 256  # has a group, a limit key or named limits: the spec says which
FLAG_CHAIN = 512  # part of a chain: the spec says where
FLAG_DEADLINE = 1024  # has an expiry or a hold time-out
FLAG_ERRORS = 2048  # has error records
FLAG_COUNTED = 4096  # its ending was counted in its batch
FLAG_CHILD = 8192  # was enqueued with dependencies


class Unique(Struct, frozen=True, array_like=True, gc=False):
    """A lock on (queue, key) that keeps equal jobs from piling up."""

    key: str
    period_ms: int
    mode: int = UNIQUE_UNTIL_DONE


class Hold(Struct, frozen=True, array_like=True, gc=False):
    """Enqueue held: a person decides, or the time-out does."""

    reason: str = ""
    timeout_ms: int = 0  # 0: wait for ever
    timeout_action: int = HOLD_NONE


class Step(Struct, frozen=True, array_like=True, gc=False):
    """One step of a chain, or one of its handlers. None inherits from the first job."""

    queue: str
    payload: bytes | None = None
    tier: int | None = None
    retry: RetryPolicy | None = None
    tags: dict[str, str] | None = None
    group: str | None = None
    limit_key: str | None = None
    limits: tuple[str, ...] | None = None
    cost: int | None = None


class Chain(Struct, frozen=True, array_like=True, gc=False):
    """A sequential pipeline; each job of it carries the whole, and its own position."""

    id: bytes
    steps: tuple[Step, ...]
    on_failure: Step | None = None
    on_exit: Step | None = None
    step: int = 0  # index into steps; ON_EXIT or ON_FAILURE for a handler


ON_EXIT = -1
ON_FAILURE = -2


class Spec(Struct, frozen=True, array_like=True, gc=False):
    """What a producer asked for. Written once; only unique mode `replace` may swap the payload."""

    id: bytes
    ns: int
    queue: str  # as enqueued; the queue it is in now is in `Job`
    payload: bytes  # JSON text, byte for byte as received
    tier: int = TIER_NORMAL
    retry: RetryPolicy = DEFAULT_RETRY
    tags: dict[str, str] | None = None
    unique: Unique | None = None
    scheduled_ms: int = 0  # 0: now
    expire_after_ms: int = 0  # 0: never
    group: str = ""
    limit_key: str = ""
    limits: tuple[str, ...] = ()
    cost: int = 1
    checkpoint: bytes | None = None  # initial one; later ones are in `Job` or its blob
    parent_id: bytes | None = None
    depends_on: tuple[bytes, ...] = ()
    on_dependency_failure: int = DEPENDENCY_FAIL
    chain: Chain | None = None
    batch_id: bytes | None = None
    hold: Hold | None = None
    trace: bytes | None = None  # JSON text
    cloned_from: bytes | None = None
    schedule_id: bytes | None = None  # made by this schedule; scheduled_ms is its slot, 0 by hand


class Rare(Struct, array_like=True, gc=False):
    """Fields most jobs never use, apart from the hot record so that they cost nothing there."""

    expire_ms: int = 0  # 0: never
    waiting: int = 0  # dependencies not yet settled
    cancel_ms: int = 0  # when cancellation of the active job was asked for
    failed_ms: int = 0  # when the last attempt failed
    errors: int = 0  # error records ever written; the key of the next one
    hold_until_ms: int = 0
    hold_action: int = HOLD_NONE
    hold_reason: str = ""
    dead_reason: str = ""
    decided_by: str = ""  # who approved or rejected
    decided_note: str = ""
    progress: bytes | None = None
    usage: bytes | None = None
    answer: tuple[int, int, int] | None = None  # (state, next_ms, remaining) given when lease ended
    extra_attempts: int = 0  # added by requeue


class Job(Struct, array_like=True, gc=False):
    """What changes. Cost: edited in place and encoded once per entry, hence not frozen.

    Safety: a command that fails half-way drops the machine's caches and the entry is applied again
    without it, so an edit can never outlive the entry it was made in.
    """

    id: bytes
    ns: int
    state: int
    queue_id: int
    tier: int
    order: int  # position of the enqueue: first come, first served within tier and lane
    at: bytes  # key of the index entry it sits under; empty once settled
    created_ms: int
    max_attempts: int
    attempt: int = 0
    run: int = 0  # raised by retry and requeue; part of derived ids
    lane: int = 0
    flags: int = 0
    token: int = 0  # of the current or the last lease
    ended: int = END_OPEN
    lease_ms: int = 0
    lease_until_ms: int = 0
    due_ms: int = 0  # scheduled and retrying: when it becomes pending
    started_ms: int = 0
    finished_ms: int = 0
    settled_index: int = 0  # names the retention block it is listed in
    worker: str = ""
    host: str = ""
    checkpoint: bytes | None = None
    result: bytes | None = None
    rare: Rare | None = None


class JobError(Struct, frozen=True, array_like=True, gc=False):
    """One failed attempt."""

    attempt: int
    run: int
    error: str
    backtrace: str
    at_ms: int
    started_ms: int
    worker: str
    duration_ms: int


class BatchSpec(Struct, frozen=True, array_like=True, gc=False):
    """A group of jobs and the callback that fires once all of them ended."""

    id: bytes
    callback_queue: str = ""
    callback_payload: bytes | None = None


class Batch(Struct, array_like=True, gc=False):
    """Counts of a batch. Invariant: pending equals its unsettled members (audit.batches)."""

    id: bytes
    ns: int
    total: int
    pending: int
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    callback_queue: str = ""
    callback_payload: bytes | None = None
    callback_id: bytes | None = None
    created_ms: int = 0
    finished_ms: int = 0  # 0 while open


class UniqueLock(Struct, array_like=True, gc=False):
    """Who owns (queue, key), and until when a finished owner still counts (mode window)."""

    owner: bytes
    mode: int
    expires_ms: int  # end of the period, from the owner's enqueue


class Remembered(Struct, frozen=True, array_like=True, gc=False):
    """The answer to an idempotent enqueue, and the fingerprint of the request that got it."""

    fingerprint: bytes
    expires_ms: int
    answer: bytes  # the encoded outcome
