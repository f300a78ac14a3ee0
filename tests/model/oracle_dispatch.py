"""Which job may be handed out next: the gates and the order, by looking at every job each time."""

from corvo.model.command import FetchJobs
from corvo.model.job import ACTIVE, END_OPEN
from corvo.model.outcome import Claim, Fetched
from corvo.model.queue import TOTAL_STARTED, Rate
from tests.model.oracle_settle import release_lock_at_start
from tests.model.oracle_state import (
    THOUSANDTHS,
    Bucket,
    ReferenceJob,
    ReferenceQueue,
    World,
    lease_of,
)

Rank = tuple[int, int]


def fetch(world: World, command: FetchJobs, given: Fetched) -> list[str]:
    """Follow the machine claim by claim; return what it did that the rules do not allow."""
    rotation = command.rotation
    for claim in given.claims:
        queue, allowed = choices(world, command, rotation)
        if claim.spec.id not in {job.id for job in allowed}:
            names = [job.spec.id.hex() for job in allowed]
            return [f"claimed {claim.spec.id.hex()} of {claim.queue}; allowed: {names} of {queue}"]
        job = world.jobs[claim.spec.id]
        problems = start(world, job, command, claim)
        if problems:
            return problems
        rotation = command.queues.index(job.queue) + 1
    if len(given.claims) > command.count:
        return [f"{len(given.claims)} claims, {command.count} asked"]
    if len(given.claims) < command.count and not given.more:
        queue, allowed = choices(world, command, rotation)
        if allowed:
            return [f"not handed out: {[job.spec.id.hex() for job in allowed]} of {queue}"]
    return []


def choices(world: World, command: FetchJobs, rotation: int) -> tuple[str, list[ReferenceJob]]:
    """Return the queue that is next and the jobs of it that may be.

    One job, unless the queue has groups: which group is next is a matter of fairness and judged over
    many claims, so the best job of every group is allowed.
    """
    best: tuple[int, int, str, list[ReferenceJob]] | None = None
    names = list(dict.fromkeys(command.queues))
    for position, name in enumerate(names):
        heads = runnable_heads(world, name)
        if not heads:
            continue
        distance = (position - rotation) % len(names)
        tier = min(rank(world, job)[0] for job in heads)
        if best is None or (tier, distance) < best[:2]:
            best = (tier, distance, name, [j for j in heads if rank(world, j)[0] == tier])
    if best is None:
        return "", []
    _, _, name, heads = best
    groups: dict[str, ReferenceJob] = {}
    for job in sorted(heads, key=lambda j: rank(world, j)):
        groups.setdefault(job.spec.group, job)
    return name, list(groups.values())


def rank(world: World, job: ReferenceJob) -> Rank:
    """Return what a job is ordered by within its queue, lowest first."""
    aging_ms = world.queues[job.queue].settings.aging_ms
    if aging_ms:
        return 0, job.ready_ms + job.tier * aging_ms
    return job.tier, job.order


def runnable_heads(world: World, name: str) -> list[ReferenceJob]:
    """Return the first job of every lane of a queue that no gate stops."""
    queue = world.queues.get(name)
    if queue is None or queue.paused:
        return []
    most = queue.settings.max_concurrency
    if most and world.active(name) >= most:
        return []
    lanes: dict[object, ReferenceJob] = {}
    ready = [job for job in world.jobs.values() if job.queue == name and job.is_ready]
    for job in sorted(ready, key=lambda j: (rank(world, j), j.order)):
        lanes.setdefault(job.lane, job)
    rate = queue.settings.rate
    heads = list(lanes.values())
    if rate is not None:
        heads = [job for job in heads if has_tokens(queue.bucket, rate, job, world.now_ms)]
    return [job for job in heads if passes_gates(world, queue, job)]


def passes_gates(world: World, queue: ReferenceQueue, job: ReferenceJob) -> bool:
    """Whether limit key and named limits let a job through."""
    settings = queue.settings
    key = job.spec.limit_key
    if key:
        if settings.key_concurrency and used_by_key(world, queue, key) >= settings.key_concurrency:
            return False
        rate = settings.key_rate
        bucket = world.buckets.get((queue.name, key))
        if rate is not None and not has_tokens(bucket, rate, job, world.now_ms):
            return False
    for name in dict.fromkeys(job.spec.limits):
        limit = world.limits.get(name)
        if limit is None:
            continue
        if limit.max and used_by_limit(world, name) >= limit.max:
            return False
        bucket = world.buckets.get(("", name))
        if limit.rate is not None and not has_tokens(bucket, limit.rate, job, world.now_ms):
            return False
    return True


def has_tokens(bucket: Bucket | None, rate: Rate, job: ReferenceJob, now_ms: int) -> bool:
    """Whether a bucket pays for a job; a cost above the burst needs a full bucket."""
    level = rate.burst * THOUSANDTHS if bucket is None else bucket.level(rate, now_ms)
    return level >= min(job.spec.cost, rate.burst) * THOUSANDTHS


def used_by_key(world: World, queue: ReferenceQueue, key: str) -> int:
    """Count the active jobs of a queue with a limit key."""
    jobs = world.visible(queue.name)
    return sum(job.state == ACTIVE and job.spec.limit_key == key for job in jobs)


def used_by_limit(world: World, name: str) -> int:
    """Count the active jobs that name a limit, in whichever queue."""
    return sum(job.state == ACTIVE and name in job.spec.limits for job in world.jobs.values())


def pay(bucket: Bucket | None, rate: Rate, job: ReferenceJob, now_ms: int) -> Bucket:
    """Take the cost of a job out of a bucket."""
    level = rate.burst * THOUSANDTHS if bucket is None else bucket.level(rate, now_ms)
    return Bucket(level - min(job.spec.cost, rate.burst) * THOUSANDTHS, now_ms)


def start(world: World, job: ReferenceJob, command: FetchJobs, claim: Claim) -> list[str]:
    """Hand a job to a worker and compare what the worker was told."""
    queue = world.queues[job.queue]
    settings, now_ms = queue.settings, world.now_ms
    if settings.rate is not None:
        queue.bucket = pay(queue.bucket, settings.rate, job, now_ms)
    key = (queue.name, job.spec.limit_key)
    if settings.key_rate is not None and job.spec.limit_key:
        world.buckets[key] = pay(world.buckets.get(key), settings.key_rate, job, now_ms)
    for name in dict.fromkeys(job.spec.limits):
        limit = world.limits.get(name)
        if limit is not None and limit.rate is not None:
            gate = ("", name)
            world.buckets[gate] = pay(world.buckets.get(gate), limit.rate, job, now_ms)
    previous = job.token
    release_lock_at_start(world, job)
    queue.totals[TOTAL_STARTED] += 1
    job.state, job.attempt, job.ended, job.answer = ACTIVE, job.attempt + 1, END_OPEN, None
    job.started_ms, job.worker = now_ms, command.worker
    job.lease_ms = lease_of(queue, command.lease_ms)
    job.lease_until_ms = now_ms + job.lease_ms
    job.token = claim.token
    expected = (job.queue, job.tier, job.attempt, job.run, job.max_attempts, job.lease_ms)
    found = (claim.queue, claim.tier, claim.attempt, claim.run, claim.max_attempts, claim.lease_ms)
    problems: list[str] = []
    if expected != found:
        problems.append(f"claim says {found}, expected {expected}")
    if claim.checkpoint != job.checkpoint or claim.created_ms != job.created_ms:
        problems.append("claim carries another checkpoint or creation time")
    if not previous < claim.token < 1 << 53 or claim.token >> 20 != world.index:
        problems.append(f"token {claim.token} does not rise from {previous}")
    if claim.spec.payload != job.spec.payload and not job.spec.parent_id:
        problems.append("claim carries another payload")
    return problems
