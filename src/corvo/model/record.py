"""Records that an export writes and an import brings back: jobs with their history, and the rest.

A record holds what belongs to the thing itself and nothing of the server it was on: no places, no
lease, no log positions. Format: these are part of the log (`ImportRecords`); they grow at their end
and only with defaults.
"""

from msgspec import Struct, field

from corvo.model.job import HOLD_NONE, JobError, Spec
from corvo.model.queue import DEFAULT_SETTINGS, Rate, Settings
from corvo.model.schedule import ScheduleSpec


class QueueImport(Struct, frozen=True, array_like=True, gc=False, tag=1):
    """A queue: its switches, settings and totals."""

    name: str
    created_ms: int
    paused: bool = False
    draining: bool = False
    settings: Settings = DEFAULT_SETTINGS
    totals: list[int] = field(default_factory=lambda: [0] * 5)


class LimitImport(Struct, frozen=True, array_like=True, gc=False, tag=2):
    """A named limit."""

    name: str
    max: int = 0
    rate: Rate | None = None
    created_ms: int = 0


class JobImport(Struct, frozen=True, array_like=True, gc=False, tag=3):
    """A job: what was asked for, where it stands and what happened to it."""

    spec: Spec
    queue: str  # the queue it is in now
    state: int
    tier: int
    created_ms: int
    max_attempts: int
    attempt: int = 0
    run: int = 0
    due_ms: int = 0
    started_ms: int = 0
    finished_ms: int = 0
    worker: str = ""
    host: str = ""
    checkpoint: bytes | None = None
    result: bytes | None = None
    progress: bytes | None = None
    usage: bytes | None = None
    errors: list[JobError] = field(default_factory=list[JobError])
    errors_total: int = 0
    waiting_for: tuple[bytes, ...] = ()  # dependencies that have not settled yet
    lock_until_ms: int = 0  # end of the unique lock it owns; 0: it owns none
    expire_ms: int = 0
    failed_ms: int = 0
    cancel_ms: int = 0
    hold_until_ms: int = 0
    hold_action: int = HOLD_NONE
    hold_reason: str = ""
    dead_reason: str = ""
    decided_by: str = ""
    decided_note: str = ""
    extra_attempts: int = 0
    is_counted: bool = False  # its ending was counted in its batch
    has_failed_parent: bool = False  # a dependency was being removed and it was not yet told


class BatchImport(Struct, frozen=True, array_like=True, gc=False, tag=4):
    """A batch and those of its members that have not ended; comes after its jobs."""

    id: bytes
    total: int
    succeeded: int
    failed: int
    cancelled: int
    members: list[bytes]
    callback_queue: str = ""
    callback_payload: bytes | None = None
    callback_id: bytes | None = None
    created_ms: int = 0
    finished_ms: int = 0


class ScheduleImport(Struct, frozen=True, array_like=True, gc=False, tag=5):
    """A schedule, its id in the template; the slot it goes on with is worked out on import."""

    spec: ScheduleSpec
    created_ms: int
    updated_ms: int
    next_ms: int = 0  # first slot from the moment of the import on; 0: none, or paused
    paused_ms: int = 0
    paused_reason: str = ""
    last_slot_ms: int = 0
    last_fired_ms: int = 0
    last_job: bytes = b""
    fired: int = 0
    skipped: int = 0
    runs: int = 0


class WebhookImport(Struct, frozen=True, array_like=True, gc=False, tag=6):
    """A webhook without its secret; it goes on with what happens after the import."""

    id: bytes
    url: str
    events: tuple[str, ...]
    queues: tuple[str, ...]
    is_enabled: bool
    has_secret: bool  # it had one, which must be set again
    retry_limit: int
    timeout_ms: int
    created_ms: int
    delivered: int = 0
    failed: int = 0
    skipped: int = 0
    disabled_reason: str = ""
