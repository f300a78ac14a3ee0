"""Lines of an export: records as JSON, one object per line, and back.

    {"kind": "header", "format": 1, ...}
    {"kind": "queue", ...}   {"kind": "limit", ...}   {"kind": "job", ...}   {"kind": "batch", ...}
    {"kind": "schedule", ...}   {"kind": "webhook", ...}
    {"kind": "end", "queues": n, "limits": n, "jobs": n, ...}

Parents come before the jobs that wait for them, and a batch after its jobs. Documents are embedded
byte for byte. Secrets are never written. An import checks every line as an
enqueue would, since it comes from outside.
"""

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from corvo.api import wire
from corvo.api.decode import invalid, under
from corvo.api.render import encode, raw
from corvo.api.routes import standing
from corvo.api.routes.lines import (
    BatchLine,
    ChainLine,
    EndLine,
    ErrorLine,
    HeaderLine,
    JobLine,
    LimitLine,
    Line,
    QueueLine,
)
from corvo.api.routes.queues import patch_of, rate_of
from corvo.api.translate import HOLD_ACTIONS, TIERS, Context, spec_of, step_of
from corvo.api.values import (
    check_document,
    check_id,
    check_name,
    check_note,
    cut_text,
    maybe_document,
    maybe_instant,
    parse_instant,
    render_duration,
    render_instant,
)
from corvo.api.views import limit_members, settings_members
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.ids import BATCH, CHAIN, JOB, render_id
from corvo.model.job import (
    DEPENDENCY_POLICY_NAMES,
    HOLD_ACTION_NAMES,
    RETRYING,
    SCHEDULED,
    SETTLED,
    STATE_NAMES,
    TIER_NAMES,
    UNIQUE_MODE_NAMES,
    Chain,
    JobError,
    Spec,
    Step,
)
from corvo.model.queue import TOTAL_NAMES, Gate, Limit, Settings
from corvo.model.record import (
    BatchImport,
    JobImport,
    LimitImport,
    QueueImport,
    ScheduleImport,
    WebhookImport,
)
from corvo.model.record_command import ImportedRecord
from corvo.model.retry import BACKOFF_NAMES, DEFAULT_RETRY, RetryPolicy
from corvo.model.schedule import SCHEDULE

FORMAT: Final = 1
KINDS: tuple[str, ...] = ("queues", "limits", "jobs", "batches", "schedules", "webhooks")
STATES: Final = {name: number for number, name in enumerate(STATE_NAMES)}
_decode: Final = msgspec.json.Decoder(Line).decode


# --- writing ----------------------------------------------------------------------------------


def header(index: int, at_ms: int, version: str) -> bytes:
    """The first line."""
    at = render_instant(at_ms)
    line = HeaderLine(format=FORMAT, index=index, at=at, server_version=version)
    return encode(line) + b"\n"


def end(counts: dict[str, int]) -> bytes:
    """The last line."""
    return encode(EndLine(**counts)) + b"\n"


def render(record: ImportedRecord) -> bytes:
    """One record as a line; members that say nothing are left out."""
    if isinstance(record, JobImport):
        members = _job_members(record)
    elif isinstance(record, QueueImport):
        members = _queue_members(record)
    elif isinstance(record, BatchImport):
        members = _batch_members(record)
    elif isinstance(record, ScheduleImport):
        members = standing.schedule_members(record)
    elif isinstance(record, WebhookImport):
        members = standing.webhook_members(record)
    else:
        limit = Limit(record.name, record.max, record.rate, record.created_ms)
        members = {"kind": "limit"} | limit_members(limit, Gate())
        del members["used"]
    return encode({name: value for name, value in members.items() if value is not None}) + b"\n"


def _queue_members(record: QueueImport) -> dict[str, Any]:
    settings = settings_members(record.settings)
    del settings["has_webhook_secret"]
    if not record.settings.aging_ms:
        del settings["aging_step"]
    return {
        "kind": "queue",
        "name": record.name,
        "created_at": render_instant(record.created_ms),
        "paused": record.paused,
        "draining": record.draining,
        "settings": settings,
        "totals": dict(zip(TOTAL_NAMES, record.totals, strict=True)),
    }


def _job_members(record: JobImport) -> dict[str, Any]:
    spec = record.spec
    return {
        "kind": "job",
        "id": render_id(JOB, spec.id),
        "queue": record.queue,
        "state": STATE_NAMES[record.state],
        "priority": TIER_NAMES[record.tier],
        "created_at": render_instant(record.created_ms),
        "max_retries": record.max_attempts,
        "attempt": record.attempt,
        "run": record.run,
        "due_at": maybe_instant(record.due_ms),
        "started_at": maybe_instant(record.started_ms),
        "finished_at": maybe_instant(record.finished_ms),
        "worker": record.worker or None,
        "hostname": record.host or None,
        "spec": _spec_members(spec),
        "chain": _chain_members(spec.chain),
        "batch_id": _maybe_id(BATCH, spec.batch_id),
        "cloned_from": _maybe_id(JOB, spec.cloned_from),
        "schedule_id": _maybe_id(SCHEDULE, spec.schedule_id),
        "checkpoint": raw(record.checkpoint),
        "result": raw(record.result),
        "progress": raw(record.progress),
        "usage": raw(record.usage),
        "errors": [_error_members(error) for error in record.errors] or None,
        "errors_total": record.errors_total or None,
        "blocked_by": [render_id(JOB, parent) for parent in record.waiting_for] or None,
        "unique_until": maybe_instant(record.lock_until_ms),
        "expire_at": maybe_instant(record.expire_ms),
        "failed_at": maybe_instant(record.failed_ms),
        "cancel_requested_at": maybe_instant(record.cancel_ms),
        "hold_until": maybe_instant(record.hold_until_ms),
        "hold_action": HOLD_ACTION_NAMES[record.hold_action] if record.hold_action else None,
        "hold_reason": record.hold_reason or None,
        "dead_reason": record.dead_reason or None,
        "decided_by": record.decided_by or None,
        "decided_note": record.decided_note or None,
        "extra_attempts": record.extra_attempts or None,
        "counted": record.is_counted or None,
        "parent_failed": record.has_failed_parent or None,
    }


def _spec_members(spec: Spec) -> dict[str, Any]:
    """The members of an enqueue that would ask for this job; the chain is beside it."""
    unique, hold = spec.unique, spec.hold
    members: dict[str, Any] = {
        "queue": spec.queue,
        "payload": raw(spec.payload),
        "checkpoint": raw(spec.checkpoint),
        "priority": TIER_NAMES[spec.tier],
        "unique_key": unique.key if unique else None,
        "unique_period": render_duration(unique.period_ms) if unique else None,
        "unique_mode": UNIQUE_MODE_NAMES[unique.mode] if unique else None,
        **_retry_members(spec.retry),
        "scheduled_at": maybe_instant(spec.scheduled_ms),
        "expire_after": render_duration(spec.expire_after_ms) if spec.expire_after_ms else None,
        "tags": spec.tags,
        "group": spec.group or None,
        "limit_key": spec.limit_key or None,
        "limits": spec.limits or None,
        "cost": spec.cost,
        "parent_id": _maybe_id(JOB, spec.parent_id),
        "depends_on": [render_id(JOB, parent) for parent in spec.depends_on] or None,
        "on_dependency_failure": DEPENDENCY_POLICY_NAMES[spec.on_dependency_failure],
        "trace": raw(spec.trace),
    }
    if hold is not None:
        members["hold"] = {
            "reason": hold.reason or None,
            "timeout": render_duration(hold.timeout_ms) if hold.timeout_ms else None,
            "timeout_action": HOLD_ACTION_NAMES[hold.timeout_action],
        }
    return {name: value for name, value in members.items() if value is not None}


def _retry_members(retry: RetryPolicy) -> dict[str, Any]:
    return {
        "max_retries": retry.max_attempts,
        "retry_backoff": BACKOFF_NAMES[retry.backoff],
        "retry_base_delay": render_duration(retry.base_ms),
        "retry_max_delay": render_duration(retry.max_ms),
        "retry_jitter": retry.jitter_percent / 100,
    }


def _chain_members(chain: Chain | None) -> dict[str, Any] | None:
    if chain is None:
        return None
    members: dict[str, Any] = {
        "id": render_id(CHAIN, chain.id),
        "step": chain.step,
        "steps": [_step_members(step) for step in chain.steps],
    }
    if chain.on_failure is not None:
        members["on_failure"] = _step_members(chain.on_failure)
    if chain.on_exit is not None:
        members["on_exit"] = _step_members(chain.on_exit)
    return members


def _step_members(step: Step) -> dict[str, Any]:
    members: dict[str, Any] = {
        "queue": step.queue,
        "payload": raw(step.payload),
        "priority": None if step.tier is None else TIER_NAMES[step.tier],
        **(_retry_members(step.retry) if step.retry is not None else {}),
        "tags": step.tags,
        "group": step.group or None,
        "limit_key": step.limit_key or None,
        "limits": step.limits or None,
        "cost": step.cost,
    }
    return {name: value for name, value in members.items() if value is not None}


def _error_members(error: JobError) -> dict[str, Any]:
    members = {
        "attempt": error.attempt,
        "run": error.run,
        "error": error.error,
        "backtrace": error.backtrace or None,
        "at": render_instant(error.at_ms),
        "started_at": maybe_instant(error.started_ms),
        "worker": error.worker or None,
        "duration_ms": error.duration_ms,
    }
    return {name: value for name, value in members.items() if value is not None}


def _batch_members(record: BatchImport) -> dict[str, Any]:
    return {
        "kind": "batch",
        "id": render_id(BATCH, record.id),
        "total": record.total,
        "succeeded": record.succeeded,
        "failed": record.failed,
        "cancelled": record.cancelled,
        "members": [render_id(JOB, member) for member in record.members] or None,
        "callback_queue": record.callback_queue or None,
        "callback_payload": raw(record.callback_payload),
        "callback_job_id": _maybe_id(JOB, record.callback_id),
        "created_at": maybe_instant(record.created_ms),
        "finished_at": maybe_instant(record.finished_ms),
    }


def _maybe_id(prefix: str, identifier: bytes | None) -> str | None:
    return None if identifier is None else render_id(prefix, identifier)


# --- reading ----------------------------------------------------------------------------------


def parse(body: bytes, ns: int, context: Context, now_ms: int) -> list[tuple[int, ImportedRecord]]:
    """Read all lines of a body with their numbers, from 1. Raises for the first wrong one."""
    found: list[tuple[int, ImportedRecord]] = []
    for number, line in enumerate(body.split(b"\n"), start=1):
        if not line.strip():
            continue
        if len(found) >= limits.IMPORT_LINES_MAX:
            text = f"more than {limits.IMPORT_LINES_MAX} records in one call"
            raise RequestError(text, hint="send them in several calls, in the same order")
        try:
            record = _record(line, ns, context, now_ms)
        except RequestError as error:
            raise under(f"lines[{number}]", error) from error
        if record is not None:
            found.append((number, record))
    return found


def _record(line: bytes, ns: int, context: Context, now_ms: int) -> ImportedRecord | None:
    found = _line(line)
    if isinstance(found, HeaderLine | EndLine):
        return None
    if isinstance(found, QueueLine):
        return _queue(found)
    if isinstance(found, LimitLine):
        return _limit(found)
    if isinstance(found, BatchLine):
        return _batch(found)
    if isinstance(found, standing.ScheduleLine):
        return standing.schedule_of(found, ns, context, now_ms)
    if isinstance(found, standing.WebhookLine):
        return standing.webhook_of(found)
    return _job(found, ns, context)


def _line(line: bytes) -> Line:
    try:
        if not line.isascii():
            line.decode()
        found = _decode(line)
    except msgspec.ValidationError as error:
        raise invalid(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"this is not JSON: {error}", code="PARSE_ERROR") from error
    except RecursionError as error:
        raise RequestError("this is nested too deep") from error
    if isinstance(found, HeaderLine) and found.format != FORMAT:
        text = f"this export has format {found.format}, this server reads {FORMAT}"
        raise RequestError(text, field="format")
    return found


def _queue(line: QueueLine) -> QueueImport:
    name = check_name(line.name, "name")
    patch = msgspec.structs.asdict(patch_of(line.settings))
    chosen = {key: value for key, value in patch.items() if value not in (None, msgspec.UNSET)}
    totals = [int(getattr(line.totals, each)) for each in TOTAL_NAMES]
    created_ms = parse_instant(line.created_at, "created_at")
    settings = Settings(**chosen)
    is_paused = line.paused or line.draining
    return QueueImport(name, created_ms, is_paused, line.draining, settings, totals)


def _limit(line: LimitLine) -> LimitImport:
    rate = rate_of(line)
    if not line.max and rate is None:
        raise RequestError("a limit needs max or rate", field="max")
    name = check_name(line.name, "name")
    return LimitImport(name, line.max or 0, rate, _instant(line.created_at, "created_at"))


def _batch(line: BatchLine) -> BatchImport:
    callback = line.callback_job_id
    payload = check_document(line.callback_payload, "callback_payload") or None
    return BatchImport(
        check_id(BATCH, line.id, "id"),
        line.total,
        line.succeeded,
        line.failed,
        line.cancelled,
        [check_id(JOB, member, f"members[{n}]") for n, member in enumerate(line.members)],
        "" if line.callback_queue is None else check_name(line.callback_queue, "callback_queue"),
        payload,
        None if callback is None else check_id(JOB, callback, "callback_job_id"),
        _instant(line.created_at, "created_at"),
        _instant(line.finished_at, "finished_at"),
    )


def _job(line: JobLine, ns: int, context: Context) -> JobImport:
    identifier = check_id(JOB, line.id, "id")
    state = STATES[line.state]
    due_ms = _instant(line.due_at, "due_at")
    if (state in (SCHEDULED, RETRYING)) != bool(due_ms):
        raise RequestError("exactly a scheduled or retrying job has this", field="due_at")
    if (state in SETTLED) != (line.finished_at is not None):
        raise RequestError("exactly a settled job has this", field="finished_at")
    most = context.payload_bytes_max
    return JobImport(
        _spec(line, ns, context, identifier),
        check_name(line.queue, "queue"),
        state,
        TIERS[line.priority],
        parse_instant(line.created_at, "created_at"),
        line.max_retries,
        line.attempt,
        line.run,
        due_ms,
        _instant(line.started_at, "started_at"),
        _instant(line.finished_at, "finished_at"),
        check_note(line.worker, "worker", limits.WORKER_ID_BYTES_MAX),
        check_note(line.hostname, "hostname", limits.HOSTNAME_BYTES_MAX),
        maybe_document(line.checkpoint, "checkpoint", most),
        maybe_document(line.result, "result", most),
        maybe_document(line.progress, "progress", limits.PROGRESS_BYTES_MAX),
        maybe_document(line.usage, "usage", limits.USAGE_BYTES_MAX),
        [_error(error) for error in line.errors],
        max(line.errors_total, len(line.errors)),
        tuple(check_id(JOB, parent, "blocked_by") for parent in line.blocked_by),
        _instant(line.unique_until, "unique_until"),
        _instant(line.expire_at, "expire_at"),
        _instant(line.failed_at, "failed_at"),
        _instant(line.cancel_requested_at, "cancel_requested_at"),
        _instant(line.hold_until, "hold_until"),
        HOLD_ACTIONS[line.hold_action or "none"],
        check_note(line.hold_reason, "hold_reason"),
        check_note(line.dead_reason, "dead_reason"),
        check_note(line.decided_by, "decided_by", limits.NAME_BYTES_MAX),
        check_note(line.decided_note, "decided_note"),
        line.extra_attempts,
        line.counted,
        line.parent_failed,
    )


def _spec(line: JobLine, ns: int, context: Context, identifier: bytes) -> Spec:
    if line.spec.chain is not None:
        raise RequestError("the chain stands beside spec", field="spec.chain")
    batch_id = None if line.batch_id is None else check_id(BATCH, line.batch_id, "batch_id")
    cloned = line.cloned_from
    try:
        spec = spec_of(line.spec, ns, context, identifier, (), batch_id)
    except RequestError as error:
        raise under("spec", error) from error
    parents = set(spec.depends_on)
    if any(check_id(JOB, parent, "blocked_by") not in parents for parent in line.blocked_by):
        raise RequestError("these are among spec.depends_on", field="blocked_by")
    chain = None if line.chain is None else _chain(line.chain, context)
    origin = None if cloned is None else check_id(JOB, cloned, "cloned_from")
    maker = line.schedule_id
    schedule_id = None if maker is None else check_id(SCHEDULE, maker, "schedule_id")
    return replace(spec, chain=chain, cloned_from=origin, schedule_id=schedule_id)


def _chain(line: ChainLine, context: Context) -> Chain:
    if not 1 <= len(line.steps) <= limits.CHAIN_STEPS_MAX or line.step >= len(line.steps):
        raise RequestError("the chain has no such step", field="chain.step")

    def step(fields: wire.StepFields, path: str) -> Step:
        found = step_of(fields, f"chain.{path}", DEFAULT_RETRY, context.payload_bytes_max)
        # In a job that exists nothing is left to inherit.
        return replace(
            found,
            tier=TIERS["normal"] if found.tier is None else found.tier,
            retry=found.retry or DEFAULT_RETRY,
            group=found.group or "",
            limit_key=found.limit_key or "",
            limits=found.limits or (),
            cost=found.cost or 1,
        )

    return Chain(
        check_id(CHAIN, line.id, "chain.id"),
        tuple(step(each, f"steps[{n}]") for n, each in enumerate(line.steps)),
        None if line.on_failure is None else step(line.on_failure, "on_failure"),
        None if line.on_exit is None else step(line.on_exit, "on_exit"),
        line.step,
    )


def _error(line: ErrorLine) -> JobError:
    return JobError(
        line.attempt,
        line.run,
        cut_text(line.error, limits.ERROR_BYTES_MAX),
        cut_text(line.backtrace, limits.BACKTRACE_BYTES_MAX),
        parse_instant(line.at, "errors.at"),
        _instant(line.started_at, "errors.started_at"),
        check_note(line.worker, "errors.worker", limits.WORKER_ID_BYTES_MAX),
        line.duration_ms,
    )


def _instant(text: str | None, name: str) -> int:
    return 0 if text is None else parse_instant(text, name)
