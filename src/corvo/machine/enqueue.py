"""Enqueue: one job, or many at once, all or none."""

from msgspec.structs import replace

from corvo.keys import codec, space
from corvo.machine import batches, chains, depends, places, settle, unique
from corvo.machine.admit import admit
from corvo.machine.state import Queue, State, is_doomed
from corvo.model import event as ev
from corvo.model import ids, limits, outcome
from corvo.model import job as jb
from corvo.model.command import EnqueueBatch, EnqueueJob, Idempotency
from corvo.model.job import Job, Remembered, Spec
from corvo.model.outcome import BatchEnqueued, Duplicate, Enqueued, Rejected, Replayed


def enqueue_job(state: State, command: EnqueueJob) -> Enqueued | Duplicate | Replayed | Rejected:
    """Accept one job, or answer with the duplicate that holds its unique key."""
    spec = command.spec
    remembered = command.idempotency
    if remembered is not None:
        seen = recall(state, spec.ns, remembered)
        if seen is not None:
            return seen
    refusal = check(state, spec, ())
    if refusal is not None:
        return refusal
    answer = accept(state, spec)
    if remembered is not None:
        remember(state, spec.ns, remembered, answer)
    return answer


def enqueue_batch(state: State, command: EnqueueBatch) -> BatchEnqueued | Replayed | Rejected:
    """Accept many jobs at once, all or none, optionally as a batch with a callback."""
    ns = command.specs[0].ns
    if command.idempotency is not None:
        seen = recall(state, ns, command.idempotency)
        if seen is not None:
            return seen
    siblings = tuple(spec.id for spec in command.specs)
    for position, spec in enumerate(command.specs):
        refusal = check(state, spec, siblings[:position])
        if refusal is not None:
            return replace(refusal, field=f"jobs[{position}].{refusal.field}")
    answer = _accept_all(state, ns, command)
    if command.idempotency is not None:
        remember(state, ns, command.idempotency, answer)
    return answer


def _accept_all(state: State, ns: int, command: EnqueueBatch) -> BatchEnqueued:
    batch_id = command.batch.id if command.batch is not None else None
    if command.batch is not None:
        batches.create(state, ns, command.batch, len(command.specs))
    results: list[Enqueued | Duplicate] = []
    owners: dict[bytes, bytes] = {}
    for spec in command.specs:
        known = spec
        if known.depends_on and owners:
            depends_on = tuple(owners.get(parent, parent) for parent in known.depends_on)
            known = replace(known, depends_on=depends_on)
        if batch_id is not None:
            known = replace(known, batch_id=batch_id)
        answer = accept(state, known)
        if answer.id != spec.id:
            owners[spec.id] = answer.id
        results.append(answer)
    if batch_id is not None:
        duplicates = sum(isinstance(answer, Duplicate) for answer in results)
        batches.seal(state, ns, batch_id, duplicates)
    return BatchEnqueued(results, batch_id)


def check(state: State, spec: Spec, siblings: tuple[bytes, ...]) -> Rejected | None:
    """Refuse what the edge cannot know: missing dependencies, a queue's own payload limit."""
    queue = state.names.get((spec.ns, spec.queue))
    if queue is not None and not spec.depends_on and not queue.record.settings.max_payload:
        return None
    if queue is None:
        if len(state.names) >= limits.QUEUES_MAX:
            return Rejected(
                outcome.TOO_MANY_QUEUES,
                f"there are already {limits.QUEUES_MAX} queues",
                field="queue",
                hint="delete queues that are no longer used",
            )
    elif 0 < queue.record.settings.max_payload < len(spec.payload):
        return Rejected(
            outcome.PAYLOAD_TOO_LARGE,
            f"the payload has {len(spec.payload)} bytes, "
            f"queue {spec.queue} accepts {queue.record.settings.max_payload}",
            field="payload",
        )
    for position, parent in enumerate(spec.depends_on):
        if parent not in siblings and find(state, spec.ns, parent) is None:
            return Rejected(
                outcome.DEPENDENCY_NOT_FOUND,
                f"there is no job {ids.render_id(ids.JOB, parent)} to depend on",
                field=f"depends_on[{position}]",
            )
    return None


def find(state: State, ns: int, job_id: bytes) -> Job | None:
    """Return a job that exists for its users: not one a clear or delete has taken away."""
    job = state.job(ns, job_id)
    if job is None or is_doomed(state.queues[job.queue_id], job):
        return None
    return job


def accept(state: State, spec: Spec) -> Enqueued | Duplicate:
    """Create the job unless its unique key is taken."""
    queue = state.names.get((spec.ns, spec.queue))
    if queue is None:
        queue = state.open_queue(spec.ns, spec.queue)
    if spec.unique is not None:
        duplicate = unique.duplicate_of(state, queue, spec)
        if duplicate is not None:
            return duplicate
    if spec.chain is not None:
        spec = chains.resolve(spec)
    job = _accept_child(state, queue, spec) if spec.depends_on else admit(state, queue, spec)
    return Enqueued(spec.id, job.state)


def _accept_child(state: State, queue: Queue, spec: Spec) -> Job:
    """Create a job with dependencies; parents that failed already decide its fate at once."""
    waiting = 0
    has_failed = False
    for parent_id in dict.fromkeys(spec.depends_on):
        parent = find(state, spec.ns, parent_id)
        assert parent is not None, "checked before"
        if parent.state not in jb.SETTLED:
            waiting += 1
            depends.link(state, spec.ns, parent, spec.id)
        elif parent.state != jb.COMPLETED:
            has_failed = True
    job = admit(state, queue, spec, waiting=waiting)
    if has_failed and spec.on_dependency_failure == jb.DEPENDENCY_FAIL:
        settle.settle(state, queue, job, jb.DEAD, reason="dependency_failed")
    elif has_failed and spec.on_dependency_failure == jb.DEPENDENCY_HOLD and job.state != jb.HELD:
        places.leave(state, queue, job)
        places.rare(job).hold_reason = "dependency_failed"
        places.enter_held(state, queue, job)
        state.emit(ev.HELD, job, queue.record.name, {"reason": "dependency_failed"})
    return job


def recall(state: State, ns: int, call: Idempotency) -> Replayed | Rejected | None:
    """Answer a call whose idempotency key was seen before."""
    raw = state.get(space.idempotency_key(ns, call.key))
    if raw is None:
        return None
    seen = codec.decode_remembered(raw)
    if seen.expires_ms <= state.now_ms:
        return None
    if seen.fingerprint != call.fingerprint:
        return Rejected(
            outcome.IDEMPOTENCY_MISMATCH,
            f"idempotency key {call.key!r} was used with another request",
            field="idempotency_key",
            hint="use a new key for a new request",
        )
    return Replayed(codec.decode_answer(seen.answer))


def remember(
    state: State, ns: int, call: Idempotency, answer: Enqueued | Duplicate | BatchEnqueued
) -> None:
    """Keep the answer for as long as the key is valid."""
    key = space.idempotency_key(ns, call.key)
    old = state.get(key)
    if old is not None:
        expired_ms = codec.decode_remembered(old).expires_ms
        state.drop_deadline(expired_ms, space.DEADLINE_IDEMPOTENCY, ns, call.key.encode())
    expires_ms = state.now_ms + limits.IDEMPOTENCY_MS
    seen = Remembered(call.fingerprint, expires_ms, codec.encode(answer))
    state.writes[key] = codec.encode(seen)
    state.add_deadline(expires_ms, space.DEADLINE_IDEMPOTENCY, ns, call.key.encode())
