"""Why is this job not running? Each gate explains itself: its value, its limit, when it changes."""

from corvo.machine import buckets, gates, lanes
from corvo.machine.enqueue import find
from corvo.machine.read import blocked_by
from corvo.machine.state import Queue, State
from corvo.model import job as jb
from corvo.model.ids import JOB, render_id
from corvo.model.job import HOLD_ACTION_NAMES, STATE_NAMES, Job
from corvo.model.view import GateView, WhyView

_ENDINGS = {
    jb.COMPLETED: "it completed",
    jb.DEAD: "it is dead",
    jb.CANCELLED: "it was cancelled",
}


def explain(state: State, ns: int, job_id: bytes, now_ms: int) -> WhyView | None:
    """List every condition between a job and a worker, in the order dispatch asks them."""
    job = find(state, ns, job_id)
    if job is None:
        return None
    queue = state.queue_of(job)
    found = [_state_gate(job)]
    if job.state not in jb.SETTLED and job.state != jb.ACTIVE:
        found += _queue_gates(queue)
        found += _key_gates(state, queue, job, now_ms)
        found += _rate_gate(state, queue, job, now_ms)
        found += _dependency_gate(state, job)
    runnable = job.state == jb.PENDING and all(gate.ok for gate in found)
    return WhyView(job.id, job.state, queue.record.name, runnable, found)


def _state_gate(job: Job) -> GateView:
    name = STATE_NAMES[job.state]
    rare = job.rare
    if job.state == jb.PENDING:
        return GateView("state", ok=True, value=name, detail="waiting for a worker")
    if job.state == jb.ACTIVE:
        asked = " (cancellation was asked for)" if rare is not None and rare.cancel_ms else ""
        detail = f"worker {job.worker} has it{asked}"
        return GateView(
            "state", ok=True, value=name, changes_at_ms=job.lease_until_ms, detail=detail
        )
    if job.state in (jb.SCHEDULED, jb.RETRYING):
        what = (
            "scheduled for later" if job.state == jb.SCHEDULED else "waiting before it tries again"
        )
        return GateView("state", ok=False, value=name, changes_at_ms=job.due_ms, detail=what)
    if job.state == jb.HELD:
        assert rare is not None
        after = f"; then: {HOLD_ACTION_NAMES[rare.hold_action]}" if rare.hold_until_ms else ""
        detail = f"held: {rare.hold_reason or 'no reason given'}{after}"
        return GateView(
            "state", ok=False, value=name, changes_at_ms=rare.hold_until_ms, detail=detail
        )
    detail = _ENDINGS[job.state]
    if rare is not None and rare.dead_reason:
        detail += f": {rare.dead_reason}"
    return GateView("state", ok=False, value=name, detail=detail)


def _queue_gates(queue: Queue) -> list[GateView]:
    record = queue.record
    paused = GateView(
        "paused",
        ok=not record.paused,
        value="paused" if record.paused else "running",
        detail="resume the queue to let it run" if record.paused else "",
    )
    limit = record.settings.max_concurrency
    active = record.counts[jb.ACTIVE]
    if not limit:
        return [paused]
    detail = "" if active < limit else "waits for an active job of the queue to end"
    return [
        paused,
        GateView("queue_concurrency", ok=active < limit, value=active, limit=limit, detail=detail),
    ]


def _key_gates(state: State, queue: Queue, job: Job, now_ms: int) -> list[GateView]:
    if not job.flags & jb.FLAG_LANED:
        return []
    spec = state.spec(job)
    found: list[GateView] = []
    for gate in lanes.gates_of(queue, spec):
        is_key = gate[2:3] == b"q"
        name = gate[7:].decode() if is_key else gate[3:].decode()
        what = "limit key" if is_key else "limit"
        bound = gates.bound_of(state, gate)
        record = gates.load(state, gate)
        if bound.max:
            found.append(
                GateView(
                    "key_concurrency" if is_key else "limit_concurrency",
                    ok=record.used < bound.max,
                    value=record.used,
                    limit=bound.max,
                    detail=f"{what} {name}",
                )
            )
        if bound.rate is not None:
            rate = bound.rate
            need = buckets.needed(rate, spec.cost)
            have = buckets.available(rate, record.tokens, record.tokens_ms, now_ms)
            ready_ms = buckets.ready_ms(rate, record.tokens, record.tokens_ms, need)
            found.append(
                GateView(
                    "key_rate" if is_key else "limit_rate",
                    ok=have >= need,
                    value=have // buckets.TOKEN,
                    limit=rate.burst,
                    changes_at_ms=0 if have >= need else ready_ms,
                    detail=f"{what} {name}: {rate.rate} per {rate.period_ms} ms",
                )
            )
    return found


def _rate_gate(state: State, queue: Queue, job: Job, now_ms: int) -> list[GateView]:
    record = queue.record
    rate = record.settings.rate
    if rate is None:
        return []
    need = buckets.needed(rate, state.spec(job).cost)
    have = buckets.available(rate, record.tokens, record.tokens_ms, now_ms)
    ready_ms = buckets.ready_ms(rate, record.tokens, record.tokens_ms, need)
    return [
        GateView(
            "queue_rate",
            ok=have >= need,
            value=have // buckets.TOKEN,
            limit=rate.burst,
            changes_at_ms=0 if have >= need else ready_ms,
            detail=f"{rate.rate} per {rate.period_ms} ms",
        )
    ]


def _dependency_gate(state: State, job: Job) -> list[GateView]:
    if not job.flags & jb.FLAG_CHILD:
        return []
    open_parents = blocked_by(state, job)
    names = ", ".join(render_id(JOB, parent) for parent in open_parents[:5])
    return [
        GateView(
            "dependencies",
            ok=not open_parents,
            value=len(open_parents),
            limit=0,
            detail=f"waits for {names}" if names else "",
        )
    ]
