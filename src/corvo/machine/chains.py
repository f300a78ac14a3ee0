"""Chains: on completion of a step the next one is enqueued with the result; handlers end the chain.

Ids of steps and handlers are derived from (job, run, purpose, step), so a retried step makes new
children and a replayed entry makes the same ones.
"""

from msgspec import Raw
from msgspec.structs import replace

from corvo.machine import documents, merging
from corvo.machine.admit import admit
from corvo.machine.state import Queue, State
from corvo.model import event as ev
from corvo.model import ids
from corvo.model import job as jb
from corvo.model.job import ON_EXIT, ON_FAILURE, Chain, Job, Spec, Step


def resolve(spec: Spec) -> Spec:
    """Fill in what steps and handlers inherit from the first job of a chain."""
    chain = spec.chain
    assert chain is not None
    return replace(
        spec,
        chain=Chain(
            chain.id,
            tuple(_inherit(step, spec) for step in chain.steps),
            _inherit(chain.on_failure, spec) if chain.on_failure else None,
            _inherit(chain.on_exit, spec) if chain.on_exit else None,
            chain.step,
        ),
    )


def _inherit(step: Step, first: Spec) -> Step:
    return Step(
        step.queue,
        step.payload,
        first.tier if step.tier is None else step.tier,
        first.retry if step.retry is None else step.retry,
        first.tags if step.tags is None else step.tags,
        first.group if step.group is None else step.group,
        first.limit_key if step.limit_key is None else step.limit_key,
        first.limits if step.limits is None else step.limits,
        first.cost if step.cost is None else step.cost,
    )


def job_ended(
    state: State, queue: Queue, job: Job, spec: Spec, ended: int, reason: str, *, is_exit: bool
) -> bool:
    """A job of a chain ended. Returns whether the chain goes on with another step."""
    chain = spec.chain
    assert chain is not None
    if chain.step < 0:
        return False
    name = queue.record.name
    data: dict[str, object] = {"chain_id": ids.render_id(ids.CHAIN, chain.id), "step": chain.step}
    if ended != jb.COMPLETED:
        state.emit(ev.CHAIN_FAILED, job, name, {**data, "reason": reason})
        if chain.on_failure is not None:
            _enqueue(
                state, job, spec, chain.on_failure, ON_FAILURE, _failure(state, job, chain, reason)
            )
        return False
    context = {
        "previous_job_id": merging.text(ids.render_id(ids.JOB, job.id)),
        "previous_result": merging.raw(documents.result(state, job)),
    }
    following = chain.step + 1
    if not is_exit and following < len(chain.steps):
        _enqueue(state, job, spec, chain.steps[following], following, context)
        state.emit(ev.CHAIN_ADVANCED, job, name, {**data, "next": following})
        return True
    state.emit(ev.CHAIN_EXITED if is_exit else ev.CHAIN_COMPLETED, job, name, data)
    if chain.on_exit is not None:
        _enqueue(state, job, spec, chain.on_exit, ON_EXIT, context)
    return False


def _failure(state: State, job: Job, chain: Chain, reason: str) -> dict[str, Raw]:
    return {
        "failed_job_id": merging.text(ids.render_id(ids.JOB, job.id)),
        "failed_step": Raw(b"%d" % chain.step),
        "error": merging.text(documents.last_error(state, job)),
        "reason": merging.text(reason),
    }


def _enqueue(
    state: State, job: Job, spec: Spec, step: Step, number: int, context: dict[str, Raw]
) -> None:
    chain = spec.chain
    assert chain is not None
    assert step.tier is not None
    assert step.retry is not None
    is_step = number >= 0
    purpose = "step" if is_step else "handler"
    child = Spec(
        ids.derive_id(job.id, job.run, purpose, abs(number)),
        spec.ns,
        step.queue,
        merging.merge(step.payload, context),
        step.tier,
        step.retry,
        step.tags,
        group=step.group or "",
        limit_key=step.limit_key or "",
        limits=step.limits or (),
        cost=step.cost or 1,
        chain=replace(chain, step=number),
        # The chain is one member of its batch: the next step takes the membership over.
        batch_id=spec.batch_id if is_step and job.flags & jb.FLAG_MEMBER else None,
        trace=spec.trace,
    )
    admit(state, state.open_queue(spec.ns, step.queue), child)
