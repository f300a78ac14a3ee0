"""Records as JSON objects: job, queue, limit, batch, schedule, and why a job is not running.

These are read by people and by the slow routes; they are built as dictionaries in the order a
reader wants the members. Documents are embedded as the bytes they were sent as.
"""

from typing import Any, Final

from corvo.api.render import raw
from corvo.api.values import maybe_instant, render_duration, render_instant
from corvo.model.ids import BATCH, CHAIN, JOB, render_id
from corvo.model.job import (
    ACTIVE,
    COMPLETED,
    DEPENDENCY_POLICY_NAMES,
    HELD,
    HOLD_ACTION_NAMES,
    PENDING,
    RETRYING,
    SCHEDULED,
    SETTLED,
    STATE_NAMES,
    TIER_NAMES,
    UNIQUE_MODE_NAMES,
    Chain,
    JobError,
    Rare,
)
from corvo.model.limits import AGING_STEP_MS_DEFAULT
from corvo.model.queue import TOTAL_NAMES, Gate, Limit, Rate, Settings
from corvo.model.retry import BACKOFF_NAMES
from corvo.model.schedule import CATCH_UP_NAMES, OVERLAP_NAMES, SCHEDULE
from corvo.model.view import BatchView, GateView, JobView, QueueView, ScheduleView, WhyView

Members = dict[str, Any]

_NOTHING_RARE: Final = Rare()


def job_members(view: JobView) -> Members:
    """The job object of CONTRACT 6. Never the lease token: whoever reads a job does not own it."""
    spec, job = view.spec, view.job
    rare = job.rare or _NOTHING_RARE
    is_active = job.state == ACTIVE
    due_ms = job.due_ms if job.state in (SCHEDULED, RETRYING) else spec.scheduled_ms
    members: Members = {
        "id": render_id(JOB, spec.id),
        "queue": view.queue,
        "state": STATE_NAMES[job.state],
        "payload": raw(spec.payload),
        "priority": TIER_NAMES[job.tier],
        "attempt": job.attempt,
        "max_retries": job.max_attempts,
        "retry_backoff": BACKOFF_NAMES[spec.retry.backoff],
        "retry_base_delay": render_duration(spec.retry.base_ms),
        "retry_max_delay": render_duration(spec.retry.max_ms),
        "retry_jitter": spec.retry.jitter_percent / 100,
        "run": job.run,
        "created_at": render_instant(job.created_ms),
        "scheduled_at": maybe_instant(due_ms),
        "started_at": maybe_instant(job.started_ms),
        "completed_at": maybe_instant(job.finished_ms if job.state == COMPLETED else 0),
        "failed_at": maybe_instant(rare.failed_ms),
        "finished_at": maybe_instant(job.finished_ms if job.state in SETTLED else 0),
        "lease_expires_at": maybe_instant(job.lease_until_ms if is_active else 0),
        "cancel_requested_at": maybe_instant(rare.cancel_ms),
        "expire_after": render_duration(spec.expire_after_ms) if spec.expire_after_ms else None,
        "expire_at": maybe_instant(rare.expire_ms),
    }
    members |= _relations(view)
    members |= {
        "tags": spec.tags or {},
        "group": spec.group or None,
        "limit_key": spec.limit_key or None,
        "limits": spec.limits,
        "cost": spec.cost,
        "progress": raw(view.progress),
        "checkpoint": raw(view.checkpoint),
        "result": raw(view.result),
        "usage": raw(view.usage),
        "trace": raw(spec.trace),
        "hold_reason": rare.hold_reason or None,
        "hold_until": maybe_instant(rare.hold_until_ms if job.state == HELD else 0),
        "hold_action": HOLD_ACTION_NAMES[rare.hold_action] if job.state == HELD else None,
        "decided_by": rare.decided_by or None,
        "decided_note": rare.decided_note or None,
        "dead_reason": rare.dead_reason or None,
        "errors": [_error_members(error) for error in view.errors],
        "worker": {"id": job.worker, "hostname": job.host or None} if job.worker else None,
    }
    return members


def _relations(view: JobView) -> Members:
    """What ties a job to others: lock, batch, parent, chain, dependencies, origin."""
    spec = view.spec
    unique, chain = spec.unique, spec.chain
    return {
        "unique_key": unique.key if unique is not None else None,
        "unique_period": _seconds(unique.period_ms) if unique is not None else None,
        "unique_mode": UNIQUE_MODE_NAMES[unique.mode] if unique is not None else None,
        "batch_id": _maybe_id(BATCH, spec.batch_id),
        "parent_id": _maybe_id(JOB, spec.parent_id),
        "chain_id": render_id(CHAIN, chain.id) if chain is not None else None,
        "chain_step": chain.step if chain is not None else None,
        "chain": _chain_members(chain) if chain is not None else None,
        "depends_on": [render_id(JOB, parent) for parent in spec.depends_on],
        "on_dependency_failure": DEPENDENCY_POLICY_NAMES[spec.on_dependency_failure]
        if spec.depends_on
        else None,
        "blocked_by": [render_id(JOB, parent) for parent in view.blocked_by],
        "cloned_from": _maybe_id(JOB, spec.cloned_from),
        "schedule_id": _maybe_id(SCHEDULE, spec.schedule_id),
    }


def _chain_members(chain: Chain) -> Members:
    return {
        "steps": [step.queue for step in chain.steps],
        "on_failure": chain.on_failure.queue if chain.on_failure is not None else None,
        "on_exit": chain.on_exit.queue if chain.on_exit is not None else None,
    }


def _error_members(error: JobError) -> Members:
    return {
        "attempt": error.attempt,
        "run": error.run,
        "error": error.error,
        "backtrace": error.backtrace or None,
        "at": render_instant(error.at_ms),
        "started_at": maybe_instant(error.started_ms),
        "worker": error.worker or None,
        "duration_ms": error.duration_ms,
    }


def _maybe_id(prefix: str, identifier: bytes | None) -> str | None:
    return None if identifier is None else render_id(prefix, identifier)


def _seconds(duration_ms: int) -> int | str:
    """A period as producers usually send it: whole seconds, text only when it is finer."""
    return duration_ms // 1_000 if duration_ms % 1_000 == 0 else render_duration(duration_ms)


def settings_members(settings: Settings) -> Members:
    """The settings of a queue; null is no limit or the server's default. Secrets stay inside."""
    retention_ms = settings.retention_ms
    return {
        "max_concurrency": settings.max_concurrency or None,
        "key_concurrency": settings.key_concurrency or None,
        "rate": _rate_members(settings.rate),
        "key_rate": _rate_members(settings.key_rate),
        "weights": settings.weights or {},
        "priority_mode": "aging" if settings.aging_ms else "strict",
        "aging_step": render_duration(settings.aging_ms or AGING_STEP_MS_DEFAULT),
        "lease_duration": render_duration(settings.lease_ms) if settings.lease_ms else None,
        "retention": None if retention_ms is None else render_duration(retention_ms),
        "retention_count": settings.retention_count,
        "require_token": settings.require_token,
        "max_payload": settings.max_payload or None,
        "has_webhook_secret": bool(settings.webhook_secret),
    }


def _rate_members(rate: Rate | None) -> Members | None:
    if rate is None:
        return None
    return {"rate": rate.rate, "period": render_duration(rate.period_ms), "burst": rate.burst}


def queue_members(view: QueueView, workers_waiting: int) -> Members:
    """One queue: what it is, how many jobs are in which state, and totals that only rise."""
    record = view.record
    members: Members = {
        "name": record.name,
        "paused": record.paused,
        "draining": record.draining,
        "created_at": render_instant(record.created_ms),
    }
    members |= dict(zip(STATE_NAMES, record.counts, strict=True))
    members |= {
        "blocked": view.blocked,
        "oldest_pending_at": maybe_instant(view.oldest_pending_ms),
        "unique_locks": record.locks,
        "workers_waiting": workers_waiting,
        "totals": dict(zip(TOTAL_NAMES, record.totals, strict=True)),
        "settings": settings_members(record.settings),
    }
    return members


def limit_members(limit: Limit, gate: Gate) -> Members:
    """A named limit and how much of it is in use."""
    rate = limit.rate
    return {
        "name": limit.name,
        "max": limit.max or None,
        "rate": rate.rate if rate is not None else None,
        "period": render_duration(rate.period_ms) if rate is not None else None,
        "burst": rate.burst if rate is not None else None,
        "used": gate.used,
        "created_at": maybe_instant(limit.created_ms),
    }


def schedule_members(view: ScheduleView) -> Members:
    """A schedule: when, how it is going, and the job it makes."""
    spec, record, job = view.spec, view.schedule, view.spec.template
    status = "active" if record.next_ms else "finished"
    members: Members = {
        "id": render_id(SCHEDULE, record.id),
        "name": spec.name,
        "cron": spec.cron,
        "timezone": spec.timezone,
        "status": "paused" if record.paused_ms else status,
        "paused": bool(record.paused_ms),
        "paused_at": maybe_instant(record.paused_ms),
        "paused_reason": record.paused_reason or None,
        "next_run_at": maybe_instant(record.next_ms),
        "last_run_at": maybe_instant(record.last_fired_ms),
        "last_slot_at": maybe_instant(record.last_slot_ms),
        "last_job_id": render_id(JOB, record.last_job) if record.last_job else None,
        "fired": record.fired,
        "skipped": record.skipped,
        "overlap": OVERLAP_NAMES[spec.overlap],
        "catch_up": CATCH_UP_NAMES[spec.catch_up],
        "jitter": render_duration(spec.jitter_ms),
        "start_at": maybe_instant(spec.start_ms),
        "end_at": maybe_instant(spec.until_ms),
        "created_at": render_instant(record.created_ms),
        "updated_at": render_instant(record.updated_ms),
    }
    unique, retry = job.unique, job.retry
    members |= {
        "queue": job.queue,
        "payload": raw(job.payload),
        "priority": TIER_NAMES[job.tier],
        "max_retries": retry.max_attempts,
        "retry_backoff": BACKOFF_NAMES[retry.backoff],
        "retry_base_delay": render_duration(retry.base_ms),
        "retry_max_delay": render_duration(retry.max_ms),
        "retry_jitter": retry.jitter_percent / 100,
        "expire_after": render_duration(job.expire_after_ms) if job.expire_after_ms else None,
        "unique_key": unique.key if unique is not None else None,
        "unique_period": _seconds(unique.period_ms) if unique is not None else None,
        "unique_mode": UNIQUE_MODE_NAMES[unique.mode] if unique is not None else None,
        "tags": job.tags or {},
        "group": job.group or None,
        "limit_key": job.limit_key or None,
        "limits": job.limits,
        "cost": job.cost,
    }
    return members


def batch_members(view: BatchView) -> Members:
    """A batch with its counts and its callback."""
    batch = view.batch
    return {
        "id": render_id(BATCH, batch.id),
        "total": batch.total,
        "pending": batch.pending,
        "succeeded": batch.succeeded,
        "failed": batch.failed,
        "cancelled": batch.cancelled,
        "callback_queue": batch.callback_queue or None,
        "callback_payload": raw(batch.callback_payload),
        "callback_job_id": _maybe_id(JOB, batch.callback_id),
        "created_at": maybe_instant(batch.created_ms),
        "finished_at": maybe_instant(batch.finished_ms),
    }


def why_members(view: WhyView, workers_waiting: int, workers_listening: int) -> Members:
    """Why a job is not running; that nobody listens to its queue is a gate like the others."""
    gates = [_gate_members(gate) for gate in view.gates]
    is_runnable = view.is_runnable
    if view.state == PENDING:
        has_worker = workers_waiting > 0 or workers_listening > 0
        detail = "" if has_worker else f"no worker listens to the queue {view.queue}"
        gate = GateView("worker", has_worker, workers_waiting, None, 0, detail)
        gates.append(_gate_members(gate))
        is_runnable = is_runnable and has_worker
    return {
        "job_id": render_id(JOB, view.id),
        "state": STATE_NAMES[view.state],
        "runnable": is_runnable,
        "gates": gates,
        "workers_waiting": workers_waiting,
    }


def _gate_members(gate: GateView) -> Members:
    return {
        "gate": gate.gate,
        "ok": gate.ok,
        "value": gate.value,
        "limit": gate.limit,
        "changes_at": maybe_instant(gate.changes_at_ms),
        "detail": gate.detail or None,
    }
