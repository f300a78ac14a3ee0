"""Random commands that mean something: they name jobs, queues, keys and tokens that exist.

A `Writer` draws from a `random.Random`. Hypothesis hands in one whose every draw it can shrink; the
tests of determinism and grouping hand in one with a fixed seed.
"""

from collections.abc import Callable
from random import Random

from msgspec import structs

from corvo.model import command as c
from corvo.model import job as j
from corvo.model.queue import Rate, SettingsPatch
from corvo.model.retry import RetryPolicy
from tests.factories import make_job_id, make_other_id
from tests.model.oracle_state import World
from tests.model.schedule_histories import draw_schedule

QUEUES = ("mail", "video", "bill")
KEYS = ("", "", "tenant-1", "tenant-2")
GROUPS = ("", "", "red", "blue")
LIMITS = ("api", "gpu")
RATES = (Rate(2, 10_000, 2), Rate(1, 5_000, 1), Rate(5, 1_000, 3), Rate(3, 7_000, 6))
DELAYS_MS = (1, 500, 1_000, 5_000, 30_000, 90_000)


class Writer:
    """Draws commands for a world; ids of new jobs are numbered."""

    def __init__(self, world: World, chance: Random) -> None:
        self.world = world
        self.chance = chance
        self.jobs = 0
        self.others = 0
        self.fresh: list[bytes] = []  # jobs of the entry being written: the world has not seen them

    # --- small draws --------------------------------------------------------------------------

    def maybe(self, percent: int) -> bool:
        """Return True that often."""
        return self.chance.randrange(100) < percent

    def queue(self) -> str:
        """Name a queue, seldom one nobody has used."""
        return "nowhere" if self.maybe(2) else self.chance.choice(QUEUES)

    def other_id(self) -> bytes:
        """Return a new id for a batch, chain or operation."""
        self.others += 1
        return make_other_id(self.others)

    def some_job(self, *states: int) -> bytes:
        """Name a job, mostly one in one of the given states."""
        if self.fresh and self.maybe(15):
            return self.chance.choice(self.fresh)
        known = list(self.world.jobs.values())
        fitting = [job for job in known if job.state in states] if states else known
        if fitting and self.maybe(85):
            return self.chance.choice(fitting).id
        return self.chance.choice(known).id if known and self.maybe(80) else make_job_id(10**6)

    def token(self, job_id: bytes) -> int:
        """Return the token of a job's last lease, none, or one that never was."""
        job = self.world.jobs.get(job_id)
        if job is None or self.maybe(25):
            return 0
        return job.token if self.maybe(90) else max(0, job.token - 1)

    # --- producing ----------------------------------------------------------------------------

    def spec(self) -> j.Spec:
        """Draw a job; most have few of the fields."""
        self.jobs += 1
        job_id = make_job_id(self.jobs)
        fields: dict[str, object] = {}
        if self.maybe(40):
            fields["tier"] = self.chance.randrange(3)
        if self.maybe(60):
            fields["retry"] = RetryPolicy(
                self.chance.randrange(4), self.chance.randrange(4), 1_000, 8_000, 0
            )
        if self.maybe(20):
            fields["scheduled_ms"] = self.world.now_ms + self.chance.choice((-5, 1, 1_000, 20_000))
        if self.maybe(20):
            fields["expire_after_ms"] = self.chance.choice((1, 2_000, 40_000))
        fields |= self.gating() | self.relations()
        spec = j.Spec(id=job_id, ns=self.world.ns, queue=self.queue(), payload=b'{"n":1}', **fields)
        if self.maybe(10):
            spec = self.with_chain(spec)
        self.fresh.append(job_id)
        return spec

    def gating(self) -> dict[str, object]:
        """Draw what decides about fairness and limits."""
        fields: dict[str, object] = {}
        if self.maybe(50):
            fields["limit_key"] = self.chance.choice(KEYS)
        if self.maybe(30):
            fields["group"] = self.chance.choice(GROUPS)
        if self.maybe(30):
            names = [name for name in LIMITS if self.maybe(50)]
            fields["limits"] = tuple(names)
        if self.maybe(20):
            fields["cost"] = self.chance.randint(1, 4)
        return fields

    def relations(self) -> dict[str, object]:
        """Draw what ties a job to others and to people."""
        fields: dict[str, object] = {}
        if self.maybe(20):
            period_ms = self.chance.choice((1_000, 60_000))
            key, mode = self.chance.choice(("u1", "u2")), self.chance.randrange(4)
            fields["unique"] = j.Unique(key, period_ms, mode)
        if self.maybe(20):
            count = self.chance.randint(1, 2)
            fields["depends_on"] = tuple(dict.fromkeys(self.some_job() for _ in range(count)))
            fields["on_dependency_failure"] = self.chance.randrange(3)
        if self.maybe(10):
            timeout_ms = self.chance.choice((0, 3_000))
            fields["hold"] = j.Hold("look", timeout_ms, self.chance.randrange(3))
        if self.maybe(10):
            fields["checkpoint"] = b'{"at":0}'
        if self.maybe(10):
            fields["tags"] = {"team": "core"}
        return fields

    def with_chain(self, spec: j.Spec) -> j.Spec:
        """Make a job the first step of a chain."""
        count = self.chance.randint(1, 3)
        steps = (j.Step(spec.queue), *(self.step() for _ in range(count - 1)))
        on_failure = self.step() if self.maybe(50) else None
        on_exit = self.step() if self.maybe(50) else None
        chain = j.Chain(self.other_id(), steps, on_failure, on_exit)
        return structs.replace(spec, chain=chain)

    def step(self) -> j.Step:
        """Draw a step of a chain."""
        payload = self.chance.choice((None, b'{"step":1}', b"[1,2]"))
        tier = self.chance.choice((None, 0, 2))
        return j.Step(self.queue(), payload, tier)

    def produce(self) -> c.Command:
        """Enqueue one or several."""
        idempotency = None
        if self.maybe(10):
            key = self.chance.choice(("i1", "i2"))
            idempotency = c.Idempotency(key, self.chance.choice((b"f1", b"f2")))
        if self.maybe(70):
            return c.EnqueueJob(self.spec(), idempotency)
        specs = [self.spec() for _ in range(self.chance.randint(1, 4))]
        batch = None
        if self.maybe(70):
            queue = self.queue() if self.maybe(80) else ""
            payload = self.chance.choice((None, b'{"why":1}', b"7"))
            batch = j.BatchSpec(self.other_id(), queue, payload)
        return c.EnqueueBatch(specs, batch, idempotency)

    # --- working ------------------------------------------------------------------------------

    def fetch(self) -> c.Command:
        """Ask for work."""
        queues = list(QUEUES)
        self.chance.shuffle(queues)
        queues = queues[: self.chance.randint(1, 3)]
        return c.FetchJobs(
            self.world.ns,
            queues,
            f"w{self.chance.randint(1, 3)}",
            count=self.chance.choice((1, 1, 2, 5)),
            lease_ms=self.chance.choice((0, 1_000, 20_000)),
            rotation=self.chance.randrange(4),
        )

    def work(self) -> c.Command:
        """Report on a job, mostly one that is active."""
        ns, job_id = self.world.ns, self.some_job(j.ACTIVE)
        token = self.token(job_id)
        checkpoint = b'{"at":%d}' % self.chance.randrange(3) if self.maybe(20) else None
        result = self.chance.choice((None, b'{"ok":true}', b"[%s]" % (b"1," * 200 + b"1")))
        after_ms = self.chance.choice((None, None, 0, 4_000))
        delay_ms = self.chance.choice(DELAYS_MS)
        retryable = self.maybe(85)
        kind = self.chance.randrange(10)
        if kind < 4:
            is_exit = self.maybe(20)
            return c.AckJob(ns, job_id, token, result, checkpoint, is_exit=is_exit)
        if kind < 7:
            return c.FailJob(
                ns, job_id, token, "boom", "", retryable, after_ms, checkpoint=checkpoint
            )
        if kind == 7:
            return c.ReleaseJob(ns, job_id, token, checkpoint)
        if kind == 8:
            return c.SnoozeJob(ns, job_id, token, delay_ms, checkpoint=checkpoint)
        return c.HeartbeatJob(ns, job_id, token, b"50", checkpoint)

    # --- operating ----------------------------------------------------------------------------

    def operate(self) -> c.Command:
        """Change one job by hand."""
        ns = self.world.ns
        action_ms = self.chance.choice((0, 2_000))
        hold_action = self.chance.randrange(3)
        waiting = (j.PENDING, j.SCHEDULED, j.RETRYING, j.HELD)
        draws: list[Callable[[], c.Command]] = [
            lambda: c.CancelJob(ns, self.some_job(*waiting, j.ACTIVE)),
            lambda: c.RetryJob(ns, self.some_job(*j.SETTLED, j.SCHEDULED, j.RETRYING)),
            lambda: c.RequeueJob(ns, self.some_job(j.DEAD)),
            lambda: c.MoveJob(
                ns, self.some_job(), self.queue(), self.maybe(30), not self.maybe(30)
            ),
            lambda: c.DeleteJob(ns, self.some_job()),
            lambda: c.ChangePriority(ns, self.some_job(*waiting), self.chance.randrange(3)),
            lambda: self.hold(action_ms, hold_action),
            lambda: c.ApproveJob(ns, self.some_job(j.HELD), "ann", "fine"),
            lambda: c.RejectJob(ns, self.some_job(j.HELD), "ann", "no"),
        ]
        return self.chance.choice(draws)()

    def hold(self, timeout_ms: int, action: int) -> c.Command:
        """Hold a job as an operator or as the worker that has it."""
        job_id = self.some_job(j.PENDING, j.ACTIVE, j.RETRYING)
        token = self.token(job_id) if self.maybe(40) else 0
        return c.HoldJob(self.world.ns, job_id, token, "wait", timeout_ms, action)

    def configure(self) -> c.Command:
        """Change a queue or a limit."""
        ns, queue = self.world.ns, self.queue()
        limit = self.chance.choice(LIMITS)
        draws: list[Callable[[], c.Command]] = [
            lambda: c.PauseQueue(ns, queue),
            lambda: c.ResumeQueue(ns, queue),
            lambda: c.ResumeQueue(ns, queue),
            lambda: c.DrainQueue(ns, queue),
            lambda: self.patch(queue),
            lambda: self.patch(queue),
            lambda: self.patch(queue),
            lambda: c.SetLimit(ns, limit, self.chance.randrange(3), self.maybe_rate()),
            lambda: c.SetLimit(ns, limit, self.chance.randrange(3), self.maybe_rate()),
            lambda: c.DeleteLimit(ns, limit),
        ]
        if self.maybe(15):
            draws = [
                lambda: c.ClearQueue(ns, queue, self.other_id()),
                lambda: c.DeleteQueue(ns, queue, self.other_id()),
            ]
        return self.chance.choice(draws)()

    def maybe_rate(self) -> Rate | None:
        """Draw a token bucket or none."""
        return self.chance.choice((None, *RATES))

    def patch(self, queue: str) -> c.Command:
        """Change one setting."""
        name, value = self.chance.choice(
            (
                ("max_concurrency", self.chance.choice((None, 1, 2))),
                ("key_concurrency", self.chance.choice((None, 1, 2))),
                ("rate", self.maybe_rate()),
                ("key_rate", self.maybe_rate()),
                ("weights", self.chance.choice((None, {"red": 3, "blue": 1}))),
                ("lease_ms", self.chance.choice((None, 5_000))),
                ("require_token", self.maybe(50)),
                ("retention_ms", self.chance.choice((None, 10_000))),
                ("retention_count", self.chance.choice((None, 2))),
                ("aging_ms", self.chance.choice((None, 3_000))),
            )
        )
        patch = SettingsPatch(**{name: value})
        return c.ConfigureQueue(self.world.ns, queue, patch, self.other_id())

    def sweep(self) -> c.Command:
        """Say that time passed."""
        return self.chance.choice(
            (
                c.PromoteJobs(),
                c.PromoteJobs(),
                c.ReclaimLeases(),
                c.ReclaimLeases(),
                c.FireDeadlines(),
                c.FireDeadlines(),
                c.PurgeSettled(retention_ms=60_000),
                c.StepOperations(),
            )
        )

    def schedule(self) -> c.Command:
        """Change or fire a schedule."""
        return draw_schedule(self.world, self.chance, self.spec)

    def anything(self) -> c.Command:
        """Draw any command, in the proportions of a busy server."""
        kind = self.chance.randrange(100)
        if kind < 30:
            return self.produce()
        if kind < 50:
            return self.fetch()
        if kind < 70:
            return self.work()
        if kind < 82:
            return self.operate()
        if kind < 90:
            return self.configure()
        if kind < 97:
            return self.sweep()
        return self.schedule()

    def advance_ms(self) -> int:
        """Draw how much time passes before the next entry."""
        return self.chance.choice((0, 0, 1, 100, 1_000, 2_500, 30_000))
