"""Queues, their settings and counters; lanes, gates and named limits."""

from msgspec import UNSET, Struct, UnsetType, field

from corvo.model.job import STATE_COUNT


class Rate(Struct, frozen=True, array_like=True, gc=False):
    """A token bucket: `rate` tokens per `period_ms`, at most `burst` saved up.

    One window may therefore see up to rate + burst; `burst` defaults to `rate`.
    """

    rate: int
    period_ms: int
    burst: int


class Settings(Struct, frozen=True, array_like=True, gc=False):
    """What an operator may set on a queue. Zero or None means: no limit, or the default."""

    max_concurrency: int = 0
    key_concurrency: int = 0
    rate: Rate | None = None
    key_rate: Rate | None = None
    weights: dict[str, int] | None = None  # fair share of a group; 1 unless named
    aging_ms: int = 0  # 0: strict tiers; else a tier is worth this much waiting time
    lease_ms: int = 0
    retention_ms: int | None = None  # None: the server's default
    retention_count: int | None = None
    require_token: bool = False
    max_payload: int = 0
    webhook_secret: str = ""


class SettingsPatch(Struct, frozen=True, gc=False, omit_defaults=True):
    """A change of settings: absent fields stay, null removes."""

    max_concurrency: int | UnsetType | None = UNSET
    key_concurrency: int | UnsetType | None = UNSET
    rate: Rate | UnsetType | None = UNSET
    key_rate: Rate | UnsetType | None = UNSET
    weights: dict[str, int] | UnsetType | None = UNSET
    aging_ms: int | UnsetType | None = UNSET
    lease_ms: int | UnsetType | None = UNSET
    retention_ms: int | UnsetType | None = UNSET
    retention_count: int | UnsetType | None = UNSET
    require_token: bool | UnsetType | None = UNSET
    max_payload: int | UnsetType | None = UNSET
    webhook_secret: str | UnsetType | None = UNSET


DEFAULT_SETTINGS = Settings()

# Indexes into `QueueRecord.totals`: counters that only rise.
TOTAL_ENQUEUED, TOTAL_STARTED, TOTAL_COMPLETED, TOTAL_FAILED, TOTAL_DEAD = range(5)
TOTAL_NAMES = ("enqueued", "started", "completed", "failed", "dead")


class QueueRecord(Struct, array_like=True, gc=False):
    """A queue with its counters. Invariant: counts equal index sizes (audit.counters).

    `space` is the storage id under which its ready, scheduled and waiting jobs lie. Clearing a
    queue gives it a new space: the old jobs are out of reach at once and are removed in bounded
    steps.
    """

    id: int
    ns: int
    name: str
    space: int
    created_ms: int
    paused: bool = False
    draining: bool = False
    deleted: bool = False  # out of the name registry; its jobs are being removed
    settings: Settings = DEFAULT_SETTINGS
    counts: list[int] = field(default_factory=lambda: [0] * STATE_COUNT)
    waiting: int = 0  # pending jobs that wait for dependencies
    runnable: int = 0  # pending jobs in lanes no gate has stopped
    locks: int = 0  # unique locks held
    totals: list[int] = field(default_factory=lambda: [0] * 5)
    commits: int = 0  # entries that changed this queue: dense and gapless
    tokens: int = 0  # of the queue's rate, in millionths
    tokens_ms: int = 0  # when `tokens` was last brought up to date
    laned: bool = False  # has ever had a job with a group or a limit key
    grouped: bool = False  # has ever had a job with a group
    lanes: int = 0  # last lane number given out
    clock: int = 0  # virtual time of fair queueing between groups


class Lane(Struct, array_like=True, gc=False):
    """Jobs of a queue with equal group and limit keys: a gated head stops exactly its lane.

    `at` names the one index the lane is in: runnable, waiting for a slot, waiting for tokens;
    empty when it has no ready job.
    """

    number: int
    space: int
    queue_id: int
    group: str
    gates: tuple[bytes, ...]  # keys of the gates its jobs must pass
    count: int = 0  # ready jobs
    at: bytes = b""
    gate: bytes = b""  # the gate it waits for, while it does


class Group(Struct, array_like=True, gc=False):
    """Fair-queueing state of one group of a queue."""

    name: str
    number: int
    finish: int = 0  # virtual finish time of its last claim
    lanes: int = 0  # lanes with ready jobs
    at: bytes = b""  # key in the index of runnable groups; empty when none of its lanes may run
    cleanup_ms: int = 0  # deadline after which an idle group is forgotten


class Gate(Struct, array_like=True, gc=False):
    """State of one limit key or named limit. Invariant: used equals its active jobs."""

    used: int = 0
    tokens: int = 0  # in millionths
    tokens_ms: int = 0  # when `tokens` was last brought up to date; 0: never, the bucket is full
    lanes: int = 0  # lanes that wait behind this gate
    timers: dict[int, bytes] = field(default_factory=dict[int, bytes])  # by space: whose turn it is
    cleanup_ms: int = 0  # deadline after which an idle gate is forgotten


class Limit(Struct, frozen=True, array_like=True, gc=False):
    """A server-wide named limit."""

    name: str
    max: int = 0  # 0: no limit on concurrency
    rate: Rate | None = None
    created_ms: int = 0


CLEAR, DELETE, REINDEX, RESOLVE = range(4)


class Operation(Struct, array_like=True, gc=False):
    """Work too large for one command, done in bounded steps that survive a restart."""

    id: bytes
    kind: int
    ns: int
    queue_id: int
    space: int = 0
    phase: int = 0
    cursor: bytes = b""
    job_id: bytes = b""  # RESOLVE: the settled job whose dependants are told
    succeeded: bool = False  # RESOLVE: how that job ended
    done: int = 0
