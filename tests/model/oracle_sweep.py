"""What time does in the reference queue, when a sweep command says that it passed.

The order between jobs that fall due together is the order of their due times; how many one sweep
takes is bounded, which the tests respect by never having more due than the bound.
"""

from corvo.model import command as c
from corvo.model import job as j
from corvo.model import outcome as o
from corvo.model.queue import TOTAL_FAILED
from tests.model import oracle_settle as ending
from tests.model.oracle_operate import release_hold, remove
from tests.model.oracle_state import ANSWER_IS_FREE, ReferenceJob, World
from tests.model.oracle_work import end_early


def promote_jobs(world: World, command: c.PromoteJobs) -> object:
    """Scheduled and retrying jobs whose time has come are pending."""
    states = (j.SCHEDULED, j.RETRYING)
    due = [job for job in world.jobs.values() if job.state in states]
    due = [job for job in due if job.due_ms <= world.now_ms]
    assert len(due) < command.limit
    for job in sorted(due, key=lambda job: (job.due_ms, job.id)):
        if job.is_doomed:
            remove(world, job)
        elif job.is_expired(world.now_ms):
            ending.settle(world, job, j.DEAD, reason="expired")
        else:
            ending.make_pending(job)
    return o.Swept(len(due))


def reclaim_leases(world: World, command: c.ReclaimLeases) -> object:
    """Jobs whose lease ran out come back, the attempt counted as failed."""
    due = [job for job in world.jobs.values() if job.state == j.ACTIVE]
    due = [job for job in due if job.lease_looked_ms <= world.now_ms]
    assert len(due) < command.limit
    for job in sorted(due, key=lambda job: (job.lease_looked_ms, job.id)):
        if job.lease_until_ms > world.now_ms:
            job.lease_looked_ms = job.lease_until_ms
            continue
        if job.is_doomed:
            remove(world, job)
            continue
        world.queues[job.queue].totals[TOTAL_FAILED] += 1
        job.errors.append((job.attempt, job.run, "lease_expired"))
        job.ended, job.answer = j.END_LOST, None
        if end_early(world, job):
            continue
        if job.remaining:
            ending.make_pending(job)
        else:
            ending.settle(world, job, j.DEAD, reason="lease_expired")
    return o.Swept(len(due))


def fire_deadlines(world: World, command: c.FireDeadlines) -> object:
    """Expiries and hold time-outs happen; lapsed windows and remembered answers are forgotten."""
    due: list[tuple[int, int, bytes, ReferenceJob]] = []
    for job in world.jobs.values():
        if job.is_settled or job.is_doomed:
            continue
        if job.expire_ms and job.expire_ms <= world.now_ms and job.state != j.ACTIVE:
            due.append((job.expire_ms, 0, job.id, job))
        if job.state == j.HELD and job.hold_until_ms and job.hold_until_ms <= world.now_ms:
            due.append((job.hold_until_ms, 1, job.id, job))
    assert len(due) < command.limit
    for _, kind, _, job in sorted(due, key=lambda item: item[:3]):
        if job.is_settled:
            continue
        if kind == 0:
            ending.settle(world, job, j.DEAD, reason="expired")
        elif job.state == j.HELD and job.hold_action == j.HOLD_CANCEL:
            ending.settle(world, job, j.CANCELLED)
        elif job.state == j.HELD and job.hold_action == j.HOLD_APPROVE:
            release_hold(world, job)
        else:
            job.hold_until_ms = 0
    for key, lock in list(world.locks.items()):
        if world.jobs[lock.owner].is_settled and lock.expires_ms <= world.now_ms:
            del world.locks[key]
    return ANSWER_IS_FREE


def purge_settled(world: World, command: c.PurgeSettled) -> object:
    """Forget settled jobs beyond the retention of their queue."""
    for queue in world.queues.values():
        settings = queue.settings
        keep_ms = command.retention_ms if settings.retention_ms is None else settings.retention_ms
        settled = [job for job in world.visible(queue.name) if job.is_settled]
        settled.sort(key=lambda job: -job.settled_order)
        kept = len(settled) if settings.retention_count is None else settings.retention_count
        for position, job in enumerate(settled):
            if position >= kept or job.settled_ms + keep_ms <= world.now_ms:
                remove(world, job)
    return ANSWER_IS_FREE


def trim_events(world: World, command: c.TrimEvents) -> object:
    """Events are not part of what the reference queue remembers."""
    return ANSWER_IS_FREE


def step_operations(world: World, command: c.StepOperations) -> object:
    """Settle and forget what was cleared or deleted with its queue."""
    doomed = [job for job in world.jobs.values() if job.is_doomed]
    assert len(doomed) < command.limit
    for job in sorted(doomed, key=lambda job: job.order):
        if job.id in world.jobs:
            remove(world, job)
    for queue in world.queues.values():
        queue.is_reindexing = False
    return ANSWER_IS_FREE


def upgrade_machine(world: World, command: c.UpgradeMachine) -> object:
    """The version is the machine's business."""
    return ANSWER_IS_FREE


def set_epoch(world: World, command: c.SetEpoch) -> object:
    """The name of the history is no job's business."""


def change_webhook(world: World, command: object) -> object:
    """Webhooks are no business of jobs; test_webhooks has an oracle of its own."""
    return ANSWER_IS_FREE
