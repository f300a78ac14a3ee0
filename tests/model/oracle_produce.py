"""Enqueue in the reference queue: one job, many jobs, unique keys, idempotent calls."""

import msgspec

from corvo.model import command as c
from corvo.model import job as j
from corvo.model import limits
from corvo.model import outcome as o
from tests.model import oracle_settle as ending
from tests.model.oracle_state import ReferenceBatch, World, refuse


def remembered(world: World, asked: c.Idempotency | None) -> o.Outcome | None:
    """Return the answer to an idempotent call seen before, or the refusal of a changed one."""
    if asked is None or asked.key not in world.remembered:
        return None
    fingerprint, expires_ms, answer = world.remembered[asked.key]
    if world.now_ms >= expires_ms:
        return None
    if fingerprint != asked.fingerprint:
        return refuse(o.IDEMPOTENCY_MISMATCH)
    assert isinstance(answer, o.Enqueued | o.Duplicate | o.BatchEnqueued)
    return o.Replayed(answer)


def remember(world: World, asked: c.Idempotency | None, answer: o.Outcome) -> None:
    """Keep the answer to an idempotent call for a day."""
    if asked is not None:
        expires_ms = world.now_ms + limits.IDEMPOTENCY_MS
        world.remembered[asked.key] = (asked.fingerprint, expires_ms, answer)


def refusal(world: World, spec: j.Spec, siblings: set[bytes]) -> o.Rejected | None:
    """Return why a job cannot be accepted, if it cannot."""
    queue = world.queues.get(spec.queue)
    most = 0 if queue is None else queue.settings.max_payload
    if most and len(spec.payload) > most:
        return refuse(o.PAYLOAD_TOO_LARGE)
    for parent_id in spec.depends_on:
        if world.job(parent_id) is None and parent_id not in siblings:
            return refuse(o.DEPENDENCY_NOT_FOUND)
    return None


def accept(world: World, spec: j.Spec, *, is_member: bool) -> o.Enqueued | o.Duplicate:
    """Accept a job or answer with the owner of its key."""
    if spec.unique is not None:
        lock = ending.live_lock(world, spec.queue, spec.unique.key)
        if lock is not None:
            return duplicate(world, spec, lock.owner)
        world.locks.pop((spec.queue, spec.unique.key), None)
    if spec.chain is not None:
        world.chains[spec.chain.id] = spec
    job = ending.admit(world, spec, is_member=is_member)
    return o.Enqueued(job.id, job.state)


def duplicate(world: World, spec: j.Spec, owner_id: bytes) -> o.Duplicate:
    """Answer for a taken key; mode replace swaps the payload of an owner that never started."""
    owner = world.jobs[owner_id]
    assert spec.unique is not None
    is_replaced = spec.unique.mode == j.UNIQUE_REPLACE and owner.attempt == 0 and owner.run == 0
    is_replaced = is_replaced and owner.state in (j.PENDING, j.SCHEDULED, j.HELD)
    if is_replaced:
        owner.spec = msgspec.structs.replace(owner.spec, payload=spec.payload)
    is_window = owner.spec.unique is not None and owner.spec.unique.mode == j.UNIQUE_WINDOW
    result = owner.result if is_window and owner.state == j.COMPLETED else None
    return o.Duplicate(owner.id, owner.state, result, is_replaced)


def enqueue_job(world: World, command: c.EnqueueJob) -> o.Outcome:
    """Accept one job."""
    known = remembered(world, command.idempotency)
    if known is not None:
        return known
    refused = refusal(world, command.spec, set())
    if refused is not None:
        return refused
    answer = accept(world, command.spec, is_member=False)
    remember(world, command.idempotency, answer)
    return answer


def enqueue_batch(world: World, command: c.EnqueueBatch) -> o.Outcome:
    """Accept all jobs or none."""
    known = remembered(world, command.idempotency)
    if known is not None:
        return known
    siblings: set[bytes] = set()
    for spec in command.specs:
        refused = refusal(world, spec, siblings)
        if refused is not None:
            return refused
        siblings.add(spec.id)
    batch = command.batch
    if batch is not None:
        world.batches[batch.id] = ReferenceBatch(
            batch.id,
            total=0,
            callback_queue=batch.callback_queue,
            callback_payload=batch.callback_payload,
            is_filling=True,
        )
    results: list[o.Enqueued | o.Duplicate] = []
    owners: dict[bytes, bytes] = {}  # a sibling that was a duplicate stands for its owner
    for spec in command.specs:
        parents = tuple(owners.get(parent, parent) for parent in spec.depends_on)
        batch_id = spec.batch_id if batch is None else batch.id
        known = msgspec.structs.replace(spec, depends_on=parents, batch_id=batch_id)
        answer = accept(world, known, is_member=batch is not None)
        owners[spec.id] = answer.id
        results.append(answer)
    if batch is not None:
        world.batches[batch.id].total = sum(isinstance(r, o.Enqueued) for r in results)
        world.batches[batch.id].is_filling = False
        ending.maybe_finish_batch(world, batch.id)
    answer = o.BatchEnqueued(results, None if batch is None else batch.id)
    remember(world, command.idempotency, answer)
    return answer
