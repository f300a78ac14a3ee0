"""Copies of records for those who keep a picture of the store elsewhere.

The same functions read the state of a running machine (caches first, nothing is cached anew, so
that a reader of everything does not evict what the hot path needs) and a checkpoint of its store.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from corvo.keys import codec, space
from corvo.keys.order import successor
from corvo.machine import documents, schedules, webhooks
from corvo.machine.kv import Reader
from corvo.machine.state import State
from corvo.model import job as jb
from corvo.model.copied import JobCopy, ScheduleCopy, WebhookCopy
from corvo.model.event import EventBlock
from corvo.model.job import Batch, Job, JobError, Spec
from corvo.model.queue import QueueRecord
from corvo.model.webhook import WebhookView

Get = Callable[[bytes], bytes | None]

SCAN_KEYS = 2_000
_NEEDS_SPEC = jb.FLAG_UNIQUE | jb.FLAG_MEMBER | jb.FLAG_COUNTED


def copy_job(
    state: State, ns: int, job_id: bytes, *, has_spec: bool, errors_since_ms: int
) -> JobCopy | None:
    """Copy a job, doomed or not; with the errors recorded since a moment, and always the last."""
    job = state.jobs.get(job_id) or state.jobs_old.get(job_id)
    if job is None:
        raw = state.store.get(space.job_key(ns, job_id))
        if raw is None:
            return None
        job = codec.decode_job(raw)
    if job.ns != ns:
        return None
    copy = JobCopy(state.queues[job.queue_id].record.name, job)
    if has_spec or job.flags & _NEEDS_SPEC:
        spec = state.specs.get(job_id) or state.specs_old.get(job_id)
        if spec is None:
            spec = _load_spec(state.store.get, job)
        _fill(state.store.get, copy, spec)
        copy.batch_id = spec.batch_id
        if has_spec:
            copy.spec = spec
    if job.flags or job.rare is not None:
        _fill_documents(state.store.get, copy)
        if job.flags & jb.FLAG_ERRORS:
            copy.errors = _errors_since(state.store.get, job, errors_since_ms)
    return copy


def copy_schedule(state: State, ns: int, schedule_id: bytes) -> ScheduleCopy | None:
    """Copy a schedule as it stands."""
    view = schedules.read_schedule(state, ns, schedule_id)
    return ScheduleCopy(view.spec, view.schedule) if view is not None else None


def copy_webhook(state: State, ns: int, webhook_id: bytes) -> WebhookCopy | None:
    """Copy a webhook, without its secret."""
    view = webhooks.read_webhook(state, ns, webhook_id)
    return _without_secret(view) if view is not None else None


def _without_secret(view: WebhookView) -> WebhookCopy:
    webhook, is_suspended = view.webhook, view.progress.suspended_ms > 0
    return WebhookCopy(replace(webhook, secret=""), bool(webhook.secret), is_suspended)


def _load_spec(get: Get, job: Job) -> Spec:
    raw = get(space.spec_key(job.ns, job.id))
    assert raw is not None, "a job without its spec"
    return codec.decode_spec(raw)


def _fill(get: Get, copy: JobCopy, spec: Spec) -> None:
    """Say until when the unique lock of the job holds."""
    job = copy.job
    if spec.unique is None or not job.flags & jb.FLAG_UNIQUE:
        return
    raw = get(space.unique_key(job.ns, job.queue_id, spec.unique.key))
    lock = codec.decode_unique(raw) if raw is not None else None
    if lock is not None and lock.owner == job.id:
        copy.lock_ms = lock.expires_ms


def _fill_documents(get: Get, copy: JobCopy) -> None:
    """Fetch the documents that do not lie in the record itself."""
    job = copy.job
    ns, job_id, flags = job.ns, job.id, job.flags
    if flags & jb.FLAG_CHECKPOINT_BLOB:
        copy.checkpoint = get(space.blob_key(ns, job_id, space.BLOB_CHECKPOINT))
    if flags & jb.FLAG_RESULT_BLOB:
        copy.result = get(space.blob_key(ns, job_id, space.BLOB_RESULT))
    if flags & jb.FLAG_PROGRESS_BLOB:
        copy.progress = get(space.blob_key(ns, job_id, space.BLOB_PROGRESS))
    if flags & jb.FLAG_USAGE_BLOB:
        copy.usage = get(space.blob_key(ns, job_id, space.BLOB_USAGE))


def _errors_since(get: Get, job: Job, since_ms: int) -> list[tuple[int, JobError]]:
    """Read errors from the last one back to a moment; the last one always."""
    found: list[tuple[int, JobError]] = []
    for number in reversed(documents.error_numbers(job)):
        raw = get(space.error_key(job.ns, job.id, number))
        if raw is None:
            continue
        record = codec.decode_error(raw)
        if found and record.at_ms < since_ms:
            break
        found.append((number, record))
    found.reverse()
    return found


# --- a whole store ----------------------------------------------------------------------------


def read_meta(reader: Reader) -> codec.Meta | None:
    """Read where the machine of this store stands; None when nothing was ever applied."""
    raw = reader.get(space.META)
    return codec.decode_meta(raw) if raw is not None else None


def queues_of(reader: Reader) -> list[QueueRecord]:
    """Read all queue records, those being deleted, too."""
    return [codec.decode_queue(value) for _, value in _pairs(reader, space.QUEUE)]


def batches_of(reader: Reader) -> Iterator[Batch]:
    """Read all batches."""
    for _, value in _pairs(reader, space.BATCH):
        yield codec.decode_batch(value)


def schedules_of(reader: Reader) -> Iterator[ScheduleCopy]:
    """Copy all schedules; specs and records lie in the same order under two prefixes."""
    specs = _pairs(reader, space.SCHEDULE_SPEC)
    for key, value in _pairs(reader, space.SCHEDULE):
        spec_key, raw = next(specs)
        assert spec_key[1:] == key[1:], "schedules and their specs are not paired"
        yield ScheduleCopy(codec.decode_schedule_spec(raw), codec.decode_schedule(value))


def webhooks_of(reader: Reader) -> Iterator[WebhookCopy]:
    """Copy all webhooks, without their secrets."""
    for key, value in _pairs(reader, space.WEBHOOK):
        webhook = codec.decode_webhook(value) if space.is_webhook(key) else None
        if webhook is not None:
            raw = reader.get(space.webhook_progress_key(webhook.ns, webhook.id))
            assert raw is not None, "a webhook without its progress"
            yield _without_secret(WebhookView(webhook, codec.decode_progress(raw)))


def jobs_of(reader: Reader, names: dict[int, str]) -> Iterator[JobCopy]:
    """Copy every job of a store; `names` are its queues by number.

    Cost: records and specs lie in the same order under two prefixes, so two scans walk side by side
    instead of one scan and a look-up for each job.
    """
    specs = _pairs(reader, space.SPEC)
    for _, value in _pairs(reader, space.JOB):
        job = codec.decode_job(value)
        spec = codec.decode_spec(next(specs)[1])
        assert spec.id == job.id, "records and specs are not paired"
        copy = JobCopy(names[job.queue_id], job, spec)
        _fill(reader.get, copy, spec)
        _fill_documents(reader.get, copy)
        if job.flags & jb.FLAG_ERRORS:
            copy.errors = _errors_since(reader.get, job, 0)
        yield copy


def blocks_of(reader: Reader, floor: int) -> Iterator[tuple[int, EventBlock]]:
    """Read the blocks of events that are kept."""
    for key, value in _pairs(reader, space.EVENT, space.event_key(floor)):
        yield int.from_bytes(key[1:], "big"), codec.decode_events(value)


def _pairs(reader: Reader, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    until = successor(prefix)
    start = start or prefix
    while True:
        found = reader.scan(start, until, SCAN_KEYS)
        yield from found
        if len(found) < SCAN_KEYS:
            return
        start = found[-1][0] + b"\x00"
