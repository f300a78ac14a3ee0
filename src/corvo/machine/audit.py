"""Every cross-table invariant as a function. Tests, the simulator and `corvo fsck` run them.

Each returns sentences about what is wrong; an empty list means the state is sound. They read the
store only, slowly and obviously: nothing here shares code with the rules it checks, beyond the keys
and codecs.
"""

from collections import Counter

from corvo.keys import codec, space
from corvo.keys.order import unpack_u16, unpack_u32, unpack_u64
from corvo.machine.audit_bulk import bulks, cleared_spaces, tombstones
from corvo.machine.audit_gating import groups, lanes, slots
from corvo.machine.audit_schedules import schedules
from corvo.machine.audit_schedules import slots as schedule_slots
from corvo.machine.audit_webhooks import webhooks
from corvo.machine.kv import Reader
from corvo.machine.picture import Picture, pairs
from corvo.model import job as jb


def audit(store: Reader) -> list[str]:
    """Check everything; returns what is wrong."""
    picture = Picture(store)
    checks = (
        halves,
        locations,
        counters,
        slots,
        lanes,
        groups,
        batches,
        locks,
        dependencies,
        settled_blocks,
        deadlines,
        meta,
        namespaces,
        schedules,
        schedule_slots,
        bulks,
        tombstones,
        cleared_spaces,
        webhooks,
    )
    return [problem for check in checks for problem in check(picture)]


def halves(picture: Picture) -> list[str]:
    """A job has both halves, and its queue exists."""
    found = [f"job {i.hex()} has no spec" for i in picture.jobs if i not in picture.specs]
    found += [f"spec {i.hex()} has no job" for i in picture.specs if i not in picture.jobs]
    for job_id, job in picture.jobs.items():
        if job.queue_id not in picture.queues:
            found.append(f"job {job_id.hex()} is in queue {job.queue_id}, which does not exist")
    return found


_FAMILY = {
    jb.PENDING: (space.READY, space.WAITING),
    jb.SCHEDULED: (space.DUE,),
    jb.RETRYING: (space.DUE,),
    jb.ACTIVE: (space.ACTIVE,),
    jb.HELD: (space.HELD,),
}


def locations(picture: Picture) -> list[str]:
    """Every live job is in exactly one index, the one its record names; settled ones in none."""
    found: list[str] = []
    places: dict[bytes, list[bytes]] = {}
    for family in (space.READY, space.WAITING, space.DUE, space.ACTIVE, space.HELD):
        for key, _ in pairs(picture.store, family):
            places.setdefault(key[-16:], []).append(key)
    for job_id, job in picture.jobs.items():
        keys = places.pop(job_id, [])
        expected = [job.at] if job.at else []
        if keys != expected:
            found.append(f"job {job_id.hex()} is at {keys}, its record says {expected}")
        if (job.state in jb.SETTLED) == bool(job.at):
            found.append(f"job {job_id.hex()} in state {job.state} has place {job.at!r}")
        if job.at and job.at[:1] not in _FAMILY[job.state]:
            found.append(f"job {job_id.hex()} in state {job.state} lies under {job.at[:1]!r}")
    found += [f"index entry of unknown job {job_id.hex()}" for job_id in places]
    # A doomed job is left where it was, whatever becomes of its parents.
    for job in picture.members():
        is_waiting = job.rare is not None and job.rare.waiting > 0
        if job.state == jb.PENDING and (job.at[:1] == space.WAITING) != is_waiting:
            found.append(f"job {job.id.hex()} waits for dependencies and is at {job.at!r}")
    return found


def counters(picture: Picture) -> list[str]:
    """Counters per queue and state equal what is stored."""
    counts: Counter[tuple[int, int]] = Counter()
    waiting: Counter[int] = Counter()
    locks: Counter[int] = Counter()
    for job in picture.members():
        counts[job.queue_id, job.state] += 1
        waiting[job.queue_id] += job.at[:1] == space.WAITING
    for key, _ in pairs(picture.store, space.UNIQUE):
        locks[unpack_u32(key, 3)[0]] += 1
    found: list[str] = []
    for queue in picture.queues.values():
        if queue.deleted:
            continue
        real = [counts[queue.id, state] for state in range(jb.STATE_COUNT)]
        if real != queue.counts:
            found.append(f"queue {queue.name} counts {queue.counts}, there are {real}")
        if waiting[queue.id] != queue.waiting:
            found.append(f"queue {queue.name} says {queue.waiting} wait, {waiting[queue.id]} do")
        if locks[queue.id] != queue.locks:
            found.append(
                f"queue {queue.name} says {queue.locks} locks, there are {locks[queue.id]}"
            )
    return found


def batches(picture: Picture) -> list[str]:
    """Pending of a batch equals its unsettled members; the sum is the total."""
    members: Counter[bytes] = Counter()
    for job in picture.jobs.values():
        batch_id = picture.specs[job.id].batch_id
        if batch_id is not None and job.flags & jb.FLAG_MEMBER:
            members[batch_id] += 1
    found: list[str] = []
    for _, value in pairs(picture.store, space.BATCH):
        batch = codec.decode_batch(value)
        if batch.pending != members.pop(batch.id, 0):
            found.append(f"batch {batch.id.hex()} says {batch.pending} pending, not so")
        ended = batch.succeeded + batch.failed + batch.cancelled
        if batch.pending + ended != batch.total:
            found.append(f"batch {batch.id.hex()} does not add up to {batch.total}")
        if bool(batch.finished_ms) != (not batch.pending):
            found.append(f"batch {batch.id.hex()} finished: {batch.finished_ms}")
    found += [f"members of unknown batch {batch_id.hex()}" for batch_id in members]
    return found


def locks(picture: Picture) -> list[str]:
    """The owner of a unique lock exists, knows it, and is not settled outside its window."""
    found: list[str] = []
    owners: list[bytes] = []
    for key, value in pairs(picture.store, space.UNIQUE):
        lock = codec.decode_unique(value)
        owner = picture.jobs.get(lock.owner)
        owners.append(lock.owner)
        if owner is None:
            found.append(f"lock {key!r} belongs to a job that does not exist")
        elif not owner.flags & jb.FLAG_UNIQUE:
            found.append(f"lock {key!r} belongs to a job that does not know it")
        elif owner.state in jb.SETTLED and lock.mode != jb.UNIQUE_WINDOW:
            found.append(f"lock {key!r} belongs to a settled job")
    for job in picture.jobs.values():
        if job.flags & jb.FLAG_UNIQUE and job.id not in owners:
            found.append(f"job {job.id.hex()} thinks it owns a lock")
    return found


def dependencies(picture: Picture) -> list[str]:
    """A child waits for as many parents as the reverse index says."""
    waiting: Counter[bytes] = Counter()
    found: list[str] = []
    for key, _ in pairs(picture.store, space.DEPENDANT):
        waiting[key[-16:]] += 1
        if key[-16:] not in picture.jobs:
            found.append(f"an unknown job waits: {key!r}")
    for job in picture.jobs.values():
        says = job.rare.waiting if job.rare is not None else 0
        if says != waiting[job.id]:
            found.append(f"job {job.id.hex()} says it waits for {says}, {waiting[job.id]} parents")
    return found


def settled_blocks(picture: Picture) -> list[str]:
    """Every settled job is listed in the retention block its record names."""
    listed: set[tuple[int, int, bytes]] = set()
    for key, value in pairs(picture.store, space.SETTLED):
        queue_id, index = unpack_u32(key, 3)[0], unpack_u64(key, 7)[0]
        listed.update((queue_id, index, job_id) for job_id in codec.decode_settled(value).ids)
    return [
        f"settled job {job.id.hex()} is in no retention block"
        for job in picture.jobs.values()
        if job.state in jb.SETTLED and (job.queue_id, job.settled_index, job.id) not in listed
    ]


def deadlines(picture: Picture) -> list[str]:
    """Live jobs that can expire or time out have their deadline armed, unless it is due."""
    armed = {key for key, _ in pairs(picture.store, space.DEADLINE)}
    raw = picture.store.get(space.META)
    now_ms = codec.decode_meta(raw).now_ms if raw is not None else 0
    found: list[str] = []
    for job in picture.members():
        rare = job.rare
        if rare is None or job.state in jb.SETTLED:
            continue
        for due_ms, kind in (
            (rare.expire_ms, space.DEADLINE_EXPIRE),
            (rare.hold_until_ms, space.DEADLINE_HOLD),
        ):
            key = space.deadline_key(due_ms, kind, job.ns, job.id)
            if due_ms > now_ms and key not in armed:
                found.append(f"job {job.id.hex()} has deadline {due_ms} that is not armed")
    for key in armed:
        kind, rest = key[9], key[12:]
        if kind in (space.DEADLINE_EXPIRE, space.DEADLINE_HOLD) and rest not in picture.jobs:
            found.append(f"a deadline of an unknown job {rest.hex()}")
    return sorted(found)


def meta(picture: Picture) -> list[str]:
    """Events end where the machine stands, and every queue number was given out."""
    raw = picture.store.get(space.META)
    if raw is None:
        return ["there is no meta record"] if picture.jobs else []
    stands = codec.decode_meta(raw)
    found = [
        f"queue {queue.name} has number {queue.id} or space {queue.space} never given out"
        for queue in picture.queues.values()
        if max(queue.id, queue.space) > stands.numbers
    ]
    following = stands.event_floor_seq
    for key, value in pairs(picture.store, space.EVENT):
        block = codec.decode_events(value)
        if block.first_seq != following:
            found.append(
                f"events of entry {unpack_u64(key, 1)[0]} start at {block.first_seq}, "
                f"not {following}"
            )
        following = block.first_seq + len(block.events)
    if following != stands.seq + 1:
        found.append(f"events end at {following - 1}, the machine at {stands.seq}")
    names = Counter((q.ns, q.name) for q in picture.queues.values() if not q.deleted)
    found += [f"two queues are named {name}" for (_, name), n in names.items() if n > 1]
    return found


def namespaces(picture: Picture) -> list[str]:
    """Every job lies in the namespace its record names."""
    return [
        f"job {key[3:].hex()} lies in another namespace"
        for key, value in pairs(picture.store, space.JOB)
        if codec.decode_job(value).ns != unpack_u16(key, 1)[0]
    ]
