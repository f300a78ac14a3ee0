"""What the reference queue remembers: plain dicts and lists, nothing derived is stored."""

from dataclasses import dataclass, field

from corvo.model import limits
from corvo.model.job import ACTIVE, END_OPEN, HOLD_NONE, PENDING, SETTLED, STATE_COUNT, Spec
from corvo.model.outcome import Ended, Rejected
from corvo.model.queue import DEFAULT_SETTINGS, Limit, Rate, Settings
from corvo.model.schedule import ScheduleSpec

TOKEN = 1_000_000  # a token, in the millionths that buckets count
ANSWER_IS_FREE = object()  # the specification does not fix this outcome; effects are compared


@dataclass
class Bucket:
    """A token bucket as it stood at `at_ms`; in debt after a job dearer than the burst."""

    tokens: int
    at_ms: int

    def level(self, rate: Rate, now_ms: int) -> int:
        """Return the tokens there are now, without touching anything."""
        gained = (now_ms - self.at_ms) * rate.rate * TOKEN // rate.period_ms
        return min(self.tokens + gained, rate.burst * TOKEN)


@dataclass
class ReferenceJob:
    """One job: what was asked and where it stands."""

    spec: Spec
    queue: str
    tier: int
    order: int
    created_ms: int
    max_attempts: int
    state: int = PENDING
    attempt: int = 0
    run: int = 0
    token: int = 0
    ended: int = END_OPEN
    answer: Ended | None = None
    lease_ms: int = 0
    lease_until_ms: int = 0
    lease_looked_ms: int = 0  # when a sweep looks at the lease next; heartbeats leave it alone
    due_ms: int = 0
    started_ms: int = 0
    finished_ms: int = 0
    settled_order: int = 0
    settled_ms: int = 0  # since when it is listed among the settled jobs of its queue
    worker: str = ""
    checkpoint: bytes | None = None
    result: bytes | None = None
    progress: bytes | None = None
    usage: bytes | None = None
    expire_ms: int = 0
    cancel_ms: int = 0
    waiting: list[bytes] = field(default_factory=list[bytes])
    errors: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    hold_until_ms: int = 0
    hold_action: int = HOLD_NONE
    hold_reason: str = ""
    dead_reason: str = ""
    is_member: bool = False
    is_counted: bool = False  # its ending was counted in its batch
    is_doomed: bool = False  # cleared or deleted with its queue; settled by a later step

    @property
    def id(self) -> bytes:
        """The job's identifier."""
        return self.spec.id

    @property
    def is_settled(self) -> bool:
        """Whether it has ended."""
        return self.state in SETTLED

    @property
    def is_ready(self) -> bool:
        """Whether only gates stand between it and a worker."""
        return self.state == PENDING and not self.waiting and not self.is_doomed

    @property
    def ready_ms(self) -> int:
        """Since when it might have run: what aging counts from."""
        return max(self.created_ms, self.spec.scheduled_ms)

    def is_expired(self, now_ms: int) -> bool:
        """Whether its time to live is over."""
        return 0 < self.expire_ms <= now_ms

    @property
    def remaining(self) -> int:
        """Attempts it may still make."""
        return max(0, self.max_attempts - self.attempt)

    @property
    def lane(self) -> tuple[str, str, tuple[str, ...]]:
        """What decides which gates it must pass."""
        return self.spec.group, self.spec.limit_key, tuple(sorted(set(self.spec.limits)))


@dataclass
class ReferenceQueue:
    """One queue: switches, settings, and the totals that only rise."""

    name: str
    paused: bool = False
    draining: bool = False
    settings: Settings = DEFAULT_SETTINGS
    bucket: Bucket | None = None
    is_reindexing: bool = False  # settings changed; until `StepOperations` the order may be mixed
    totals: list[int] = field(default_factory=lambda: [0] * 5)


@dataclass
class ReferenceLock:
    """Who owns a unique key, in which mode, until when."""

    owner: bytes
    mode: int
    expires_ms: int


@dataclass
class ReferenceBatch:
    """Counts of a batch; pending is never stored but counted."""

    id: bytes
    total: int
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    callback_queue: str = ""
    callback_payload: bytes | None = None
    callback_id: bytes | None = None
    finished_ms: int = 0
    is_filling: bool = False  # its members are still being accepted


@dataclass
class ReferenceSchedule:
    """One schedule: what was asked and how far it has come."""

    id: bytes
    spec: ScheduleSpec
    next_ms: int = 0
    is_paused: bool = False
    revision: int = 1
    decided_ms: int = 0  # newest slot decided on
    last_job: bytes = b""
    fired: int = 0
    skipped: int = 0
    runs: int = 0


@dataclass
class World:
    """Everything of one namespace. Invariant: nothing in here is an index of something else."""

    ns: int = 0
    now_ms: int = 0
    index: int = 0
    orders: int = 0
    is_sweeping: bool = False  # in which order an operation ends jobs is the machine's business
    jobs: dict[bytes, ReferenceJob] = field(default_factory=dict[bytes, ReferenceJob])
    queues: dict[str, ReferenceQueue] = field(default_factory=dict[str, ReferenceQueue])
    limits: dict[str, Limit] = field(default_factory=dict[str, Limit])
    buckets: dict[tuple[str, str], Bucket] = field(default_factory=dict[tuple[str, str], Bucket])
    locks: dict[tuple[str, str], ReferenceLock] = field(
        default_factory=dict[tuple[str, str], ReferenceLock]
    )
    batches: dict[bytes, ReferenceBatch] = field(default_factory=dict[bytes, ReferenceBatch])
    remembered: dict[str, tuple[bytes, int, object]] = field(
        default_factory=dict[str, tuple[bytes, int, object]]
    )
    chains: dict[bytes, Spec] = field(default_factory=dict[bytes, Spec])  # first job of each
    schedules: dict[bytes, ReferenceSchedule] = field(
        default_factory=dict[bytes, ReferenceSchedule]
    )
    # What the events of the current command say: where claims and expiries happened.
    starts: list[int] = field(default_factory=list[int])
    expired: list[tuple[int, bytes]] = field(default_factory=list[tuple[int, bytes]])
    cascade: list[tuple[bytes, bool]] = field(default_factory=list[tuple[bytes, bool]])

    def draw_order(self) -> int:
        """Return the next place in line; what one step of operations does shares a place."""
        self.orders += not self.is_sweeping
        return self.orders

    def queue(self, name: str) -> ReferenceQueue:
        """Return a queue, creating it when it is unknown."""
        return self.queues.setdefault(name, ReferenceQueue(name))

    def job(self, job_id: bytes) -> ReferenceJob | None:
        """Return a job that a client may still see."""
        found = self.jobs.get(job_id)
        return None if found is None or found.is_doomed else found

    def visible(self, queue: str) -> list[ReferenceJob]:
        """Return the jobs of a queue that counters show."""
        return [j for j in self.jobs.values() if j.queue == queue and not j.is_doomed]

    def counts(self, queue: str) -> list[int]:
        """Count the jobs of a queue by state."""
        counts = [0] * STATE_COUNT
        for job in self.visible(queue):
            counts[job.state] += 1
        return counts

    def active(self, queue: str) -> int:
        """Count the jobs of a queue that workers have."""
        return sum(j.state == ACTIVE for j in self.visible(queue))

    def pending_members(self, batch_id: bytes) -> int:
        """Count the unsettled members of a batch."""
        return sum(j.is_member and j.spec.batch_id == batch_id for j in self.jobs.values())


def lease_of(queue: ReferenceQueue, asked_ms: int) -> int:
    """Return how long a lease lasts: the request, else the queue's setting, else the default."""
    return asked_ms or queue.settings.lease_ms or limits.LEASE_MS_DEFAULT


def refuse(code: str, job: ReferenceJob | None = None, holder: bytes = b"") -> Rejected:
    """Return a rejection; the sentence is not compared."""
    return Rejected(code, "", state=-1 if job is None else job.state, holder=holder)
