"""From records to rows: pure functions, so that every way to a row gives the same row.

A row of `jobs` has two halves, as the record has. `JOB_COLUMNS` change with the job; `SPEC_COLUMNS`
come with it and are written once.
"""

from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from corvo.model import job as jb
from corvo.model.copied import JobCopy
from corvo.model.ids import BATCH, CHAIN, JOB, render_id
from corvo.model.job import Batch, Chain, JobError, Rare, Spec
from corvo.model.queue import QueueRecord, Settings
from corvo.model.retry import BACKOFF_NAMES
from corvo.view.fingerprint import fingerprint

Row = tuple[Any, ...]

JOB_COLUMNS: Final = (
    "queue", "state", "priority", "attempt", "max_retries", "run",
    "started_ms", "completed_ms", "failed_ms", "settled_ms", "expire_ms", "cancel_requested_ms",
    "worker_id", "hostname", "hold_reason", "dead_reason", "decided_by",
    "error_count", "last_error", "error_fingerprint", "progress",
    "result_bytes", "checkpoint_bytes",
)  # fmt: skip
SPEC_COLUMNS: Final = (
    "id", "ns", "created_ms", "asked_ms", "unique_key", "batch_id", "parent_id", "chain_id",
    "chain_step", "cloned_from", "group_name", "limit_key",
)  # fmt: skip

_ERROR_COUNT: Final = JOB_COLUMNS.index("error_count")
LAST_ERROR: Final = JOB_COLUMNS.index("last_error")
_NOTHING_RARE: Final = Rare()
_USAGE_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "cache_creation_tokens",
    "cache_read_tokens",
)
_INTEGER_MAX: Final = 2**63 - 1
USAGE_PHASE: Final = "total"

_decode_usage = msgspec.json.Decoder(dict[str, Any]).decode
_encode_json = msgspec.json.Encoder().encode


def job_row(copy: JobCopy) -> Row:
    """Values of `JOB_COLUMNS`."""
    job = copy.job
    rare = job.rare or _NOTHING_RARE
    finished_ms = job.finished_ms if job.state in jb.SETTLED else 0
    error = copy.errors[-1][1].error if copy.errors else None
    return (
        copy.queue,
        jb.STATE_NAMES[job.state],
        job.tier,
        job.attempt,
        job.max_attempts,
        job.run,
        job.started_ms or None,
        finished_ms or None if job.state == jb.COMPLETED else None,
        rare.failed_ms or None,
        finished_ms or None,
        rare.expire_ms or None,
        rare.cancel_ms or None,
        job.worker or None,
        job.host or None,
        rare.hold_reason or None,
        rare.dead_reason or None,
        rare.decided_by or None,
        rare.errors,
        error,
        fingerprint(error) if error is not None else None,
        text(progress_of(copy)),
        *_document_sizes(copy),
    )


def _document_sizes(copy: JobCopy) -> tuple[int, int]:
    """Bytes of result and checkpoint."""
    checkpoint, result = documents_of(copy)
    return len(result or b""), len(checkpoint or b"")


def storage_of(row: Row, payload_bytes: int) -> tuple[int, int, int, int]:
    """What a job takes: payload, result, checkpoint, errors; `row` has `JOB_COLUMNS`."""
    return payload_bytes, row[-2], row[-1], row[_ERROR_COUNT]


def due_of(copy: JobCopy) -> int | None:
    """When the job becomes pending; None when it does not wait for a time."""
    return copy.job.due_ms if copy.job.state in (jb.SCHEDULED, jb.RETRYING) else None


def spec_row(copy: JobCopy, spec: Spec) -> Row:
    """Values of `SPEC_COLUMNS`."""
    chain = spec.chain
    return (
        render_id(JOB, spec.id),
        spec.ns,
        copy.job.created_ms,
        spec.scheduled_ms or None,
        spec.unique.key if spec.unique is not None else None,
        _maybe_id(BATCH, spec.batch_id),
        _maybe_id(JOB, spec.parent_id),
        render_id(CHAIN, chain.id) if chain is not None else None,
        chain.step if chain is not None else None,
        _maybe_id(JOB, spec.cloned_from),
        spec.group or None,
        spec.limit_key or None,
    )


def _maybe_id(prefix: str, identifier: bytes | None) -> str | None:
    return render_id(prefix, identifier) if identifier is not None else None


def text(document: bytes | None) -> str | None:
    """JSON bytes as text. Safety: the edge lets nothing but UTF-8 in; this must not fail anyway."""
    return document.decode("utf-8", "replace") if document is not None else None


def tags_text(spec: Spec) -> str | None:
    """Tags as JSON text; None when there are none."""
    return _encode_json(spec.tags).decode() if spec.tags else None


def options_text(spec: Spec) -> str:
    """What else the producer asked for, as JSON text."""
    retry = spec.retry
    members: dict[str, Any] = {
        "retry_backoff": BACKOFF_NAMES[retry.backoff],
        "retry_base_ms": retry.base_ms,
        "retry_max_ms": retry.max_ms,
        "retry_jitter_percent": retry.jitter_percent,
    }
    if spec.queue:
        members["queue"] = spec.queue
    if spec.unique is not None:
        members["unique_mode"] = jb.UNIQUE_MODE_NAMES[spec.unique.mode]
        members["unique_period_ms"] = spec.unique.period_ms
    if spec.depends_on:
        members["depends_on"] = [render_id(JOB, parent) for parent in spec.depends_on]
        members["on_dependency_failure"] = jb.DEPENDENCY_POLICY_NAMES[spec.on_dependency_failure]
    if spec.limits:
        members["limits"] = spec.limits
    if spec.cost != 1:
        members["cost"] = spec.cost
    if spec.expire_after_ms:
        members["expire_after_ms"] = spec.expire_after_ms
    if spec.chain is not None:
        members["chain"] = _chain_members(spec.chain)
    return _encode_json(members).decode()


def _chain_members(chain: Chain) -> dict[str, Any]:
    return {
        "steps": [step.queue for step in chain.steps],
        "on_failure": chain.on_failure.queue if chain.on_failure is not None else None,
        "on_exit": chain.on_exit.queue if chain.on_exit is not None else None,
    }


def progress_of(copy: JobCopy) -> bytes | None:
    """The progress report, wherever it lies."""
    inline = copy.job.rare.progress if copy.job.rare is not None else None
    return copy.progress if copy.progress is not None else inline


def documents_of(copy: JobCopy) -> tuple[bytes | None, bytes | None]:
    """Checkpoint and result, wherever they lie."""
    checkpoint = copy.checkpoint if copy.checkpoint is not None else copy.job.checkpoint
    result = copy.result if copy.result is not None else copy.job.result
    return checkpoint, result


def documents_row(copy: JobCopy) -> Row | None:
    """Checkpoint and result; None when there is neither."""
    checkpoint, result = documents_of(copy)
    return (
        (text(checkpoint), text(result)) if checkpoint is not None or result is not None else None
    )


def error_row(number: int, error: JobError) -> Row:
    """Values of `job_errors` after the number of the job."""
    return (
        number,
        error.attempt,
        error.run,
        error.error,
        error.backtrace or None,
        error.at_ms,
        error.started_ms,
        error.worker or None,
        error.duration_ms,
    )


def usage_row(copy: JobCopy) -> Row | None:
    """Values of `job_usage` after the number of the job; None when nothing was reported."""
    inline = copy.job.rare.usage if copy.job.rare is not None else None
    reported = copy.usage if copy.usage is not None else inline
    if reported is None:
        return None
    try:
        found = _decode_usage(reported)
    except (msgspec.MsgspecError, RecursionError):
        found = {}
    counts = [_count(found.get(name)) for name in _USAGE_COUNTS]
    model, provider = _name(found.get("model")), _name(found.get("provider"))
    cost = micro_dollars(found.get("cost_usd"))
    return (USAGE_PHASE, *counts, model, provider, cost, text(reported))


def _count(value: Any) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 <= value <= _INTEGER_MAX else 0


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def micro_dollars(value: Any) -> int:
    """Millionths of a dollar, rounded half up; 0 for what is no amount."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0
    try:
        amount = Decimal(str(value)).scaleb(6).to_integral_value()
    except InvalidOperation:
        return 0
    return int(amount) if amount.is_finite() and 0 <= amount <= _INTEGER_MAX else 0


def queue_row(record: QueueRecord) -> Row:
    """Values of `queues`."""
    return (
        record.ns,
        record.name,
        record.created_ms,
        record.paused,
        record.draining,
        _encode_json(_settings_members(record.settings)).decode(),
        *record.counts,
        record.waiting,
        *record.totals,
    )


def _settings_members(settings: Settings) -> dict[str, Any]:
    members = msgspec.structs.asdict(settings)
    has_secret = bool(members.pop("webhook_secret"))
    for name in ("rate", "key_rate"):
        rate = members[name]
        members[name] = msgspec.structs.asdict(rate) if rate is not None else None
    return members | {"has_webhook_secret": has_secret}


def batch_row(batch: Batch) -> Row:
    """Values of `batches`."""
    return (
        render_id(BATCH, batch.id),
        batch.ns,
        batch.total,
        batch.pending,
        batch.succeeded,
        batch.failed,
        batch.cancelled,
        batch.callback_queue or None,
        text(batch.callback_payload),
        _maybe_id(JOB, batch.callback_id),
        batch.created_ms,
        batch.finished_ms or None,
    )


def event_data(data: dict[str, Any] | None) -> str | None:
    """Data of an event as JSON text."""
    return _encode_json(data).decode() if data else None
