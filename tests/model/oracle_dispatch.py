"""Which job may be handed out next: the gates and the order, by looking at every job each time."""

from dataclasses import dataclass

from corvo.model.command import FetchJobs
from corvo.model.job import ACTIVE, DEAD, END_OPEN
from corvo.model.outcome import Claim, Fetched
from corvo.model.queue import TOTAL_STARTED, Rate
from tests.model.oracle_settle import document, release_lock_at_start, settle
from tests.model.oracle_state import TOKEN, Bucket, ReferenceJob, ReferenceQueue, World, lease_of


@dataclass
class Offer:
    """What a queue may hand out next: one of `jobs`; perhaps nothing unless it is sure."""

    jobs: list[ReferenceJob]
    is_sure: bool
    distance: int = 0  # from where the rotation starts


def fetch(world: World, command: FetchJobs, given: Fetched) -> list[str]:
    """Follow the machine claim by claim; return what it did that the rules do not allow."""
    rotation = command.rotation
    known = set(world.jobs)
    queues = [name for name in dict.fromkeys(command.queues) if name in world.queues]
    for claim in given.claims:
        expire_heads(world, command)
        world.starts.pop(0)
        allowed = choices(world, queues, rotation)[0]
        allowed += choices(world, queues, rotation, known)[0]
        if claim.spec.id not in {job.id for job in allowed}:
            names = [job.id.hex() for job in allowed]
            return [f"claimed {claim.spec.id.hex()} of {claim.queue}; allowed: {names}"]
        problems = start(world, world.jobs[claim.spec.id], command, claim)
        if problems:
            return problems
        rotation += 1
    if len(given.claims) > command.count:
        return [f"{len(given.claims)} claims, {command.count} asked"]
    if len(given.claims) < command.count:
        expire_heads(world, command)
        allowed, is_sure = choices(world, queues, rotation, known)
        if is_sure and not given.more:
            return [f"not handed out: {[job.id.hex() for job in allowed]}"]
    return []


def expire_heads(world: World, command: FetchJobs) -> None:
    """A fetch that meets a job whose time is over ends it; which ones it met, its events say.

    Only what the events put before the next claim counts.
    """
    until = world.starts[0] if world.starts else 1 << 60
    for item in list(world.expired):
        position, job_id = item
        job = world.jobs.get(job_id) if position < until else None
        if job is None or job.queue not in command.queues:
            continue
        if job.is_ready and job.is_expired(world.now_ms):
            world.expired.remove(item)
            settle(world, job, DEAD, reason="expired")


def choices(
    world: World, queues: list[str], rotation: int, known: set[bytes] | None = None
) -> tuple[list[ReferenceJob], bool]:
    """Return the jobs that may be next, and whether one of them must be.

    `known` restricts the view to jobs there were before the command: a handler that an expiry met
    by the fetch brings into being may be handed out by it, but need not.

    Tiers are compared across the listed queues, rotation decides among equals. One job is allowed
    unless a queue has groups: which group is next is a matter of fairness, judged over many claims.
    """
    offers: list[Offer] = []
    for position, name in enumerate(queues):
        offer = offer_of(world, name, known)
        offer.distance = (position - rotation) % len(queues)
        offers.append(offer)
    allowed: list[ReferenceJob] = []
    for offer in offers:
        for job in offer.jobs:
            key = (job.tier, offer.distance)
            if all(may_be_behind(other, key) for other in offers if other is not offer):
                allowed.append(job)
    return allowed, any(offer.is_sure for offer in offers)


def may_be_behind(offer: Offer, key: tuple[int, int]) -> bool:
    """Whether a queue may offer nothing, or something that comes later."""
    return not offer.is_sure or any((job.tier, offer.distance) > key for job in offer.jobs)


def offer_of(world: World, name: str, known: set[bytes] | None = None) -> Offer:
    """Return what a queue may hand out next."""
    queue = world.queues[name]
    heads = runnable_heads(world, name, known)
    if queue.is_reindexing:
        return Offer(heads, is_sure=False)
    groups: dict[str, list[ReferenceJob]] = {}
    for job in heads:
        groups.setdefault(job.spec.group, []).append(job)
    best: list[ReferenceJob] = []
    tiers: list[int] = []
    for members in groups.values():
        candidates = candidates_of(world, members, is_alone=len(groups) == 1)
        best += candidates
        tiers += [job.tier for job in candidates if len(groups) == 1 or not is_gated(job)]
    if not queue.settings.aging_ms and tiers:
        best = [job for job in best if job.tier <= min(tiers)]
    rate = queue.settings.rate
    if rate is None:
        return Offer(best, is_sure=bool(best))
    # The queue's own bucket is asked last, by the job whose turn it is.
    paid = [job for job in best if has_tokens(queue.bucket, rate, job, world.now_ms)]
    return Offer(paid, is_sure=bool(paid) and len(paid) == len(best))


def is_gated(job: ReferenceJob) -> bool:
    """Whether a job shares limits with others."""
    return bool(job.spec.limit_key or job.spec.limits)


def candidates_of(
    world: World, members: list[ReferenceJob], *, is_alone: bool
) -> list[ReferenceJob]:
    """Return the jobs of a group that may be its next.

    The best one; but where groups compete for room behind one gate, the room may be promised to a
    lane of another group when the turn comes to this one, which then goes on with its next lane.
    """
    found: list[ReferenceJob] = []
    for job in sorted(members, key=lambda job: rank(world, job)):
        is_equal = bool(found) and rank(world, job)[:2] == rank(world, found[-1])[:2]
        if found and not is_equal and (is_alone or not all(is_gated(x) for x in found)):
            break
        found.append(job)
    return found


def rank(world: World, job: ReferenceJob) -> tuple[int, int, bytes]:
    """Return what a job is ordered by within its queue; equal ones may go either way."""
    aging_ms = world.queues[job.queue].settings.aging_ms
    if aging_ms:
        return job.ready_ms + job.tier * aging_ms, 0, job.id
    return job.tier, job.order, job.id


def runnable_heads(world: World, name: str, known: set[bytes] | None = None) -> list[ReferenceJob]:
    """Return the first job of every lane of a queue that no gate stops."""
    queue = world.queues[name]
    most = queue.settings.max_concurrency
    if queue.paused or (most and world.active(name) >= most):
        return []
    lanes: dict[object, list[ReferenceJob]] = {}
    ready = [job for job in world.jobs.values() if job.queue == name and job.is_ready]
    ready = [job for job in ready if not job.is_expired(world.now_ms)]
    ready = [job for job in ready if known is None or job.id in known]
    for job in ready:
        lanes.setdefault(job.id if queue.is_reindexing else job.lane, []).append(job)
    heads: list[ReferenceJob] = []
    for jobs in lanes.values():
        first = min(rank(world, job) for job in jobs)
        heads += [job for job in jobs if rank(world, job)[:-1] == first[:-1]]
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
    level = rate.burst * TOKEN if bucket is None else bucket.level(rate, now_ms)
    return level >= min(job.spec.cost, rate.burst) * TOKEN


def used_by_key(world: World, queue: ReferenceQueue, key: str) -> int:
    """Count the active jobs of a queue with a limit key."""
    jobs = world.visible(queue.name)
    return sum(job.state == ACTIVE and job.spec.limit_key == key for job in jobs)


def used_by_limit(world: World, name: str) -> int:
    """Count the active jobs that name a limit, in whichever queue."""
    return sum(job.state == ACTIVE and name in job.spec.limits for job in world.jobs.values())


def pay(bucket: Bucket | None, rate: Rate, job: ReferenceJob, now_ms: int) -> Bucket:
    """Take the cost of a job out of a bucket."""
    level = rate.burst * TOKEN if bucket is None else bucket.level(rate, now_ms)
    return Bucket(level - job.spec.cost * TOKEN, now_ms)


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
    job.lease_until_ms = job.lease_looked_ms = now_ms + job.lease_ms
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
    if document(job.spec.payload) != document(claim.spec.payload):
        problems.append("claim carries another payload")
    return problems
