"""The reference queue: every command of the machine, done the plainest way.

It is the specification written twice. Nothing is indexed, nothing is cached, order comes from
`sorted`, counters are counted. What the specification leaves to the machine (the value of a token,
which of several groups is next) is taken from the machine's answer after checking that it is
allowed; everything else is predicted and compared.

Read `apply`, then `oracle_settle.py` (how jobs end) and `oracle_dispatch.py` (who is next).
"""

from collections.abc import Callable
from typing import Any

from corvo.model import command as c
from corvo.model import event as e
from corvo.model import outcome as o
from tests.model import oracle_dispatch as dispatch
from tests.model import oracle_operate as operate
from tests.model import oracle_produce as produce
from tests.model import oracle_queues as queues
from tests.model import oracle_schedules as schedules
from tests.model import oracle_sweep as sweep
from tests.model import oracle_work as work
from tests.model.oracle_settle import spread
from tests.model.oracle_state import ANSWER_IS_FREE, World

HANDLERS: dict[type[Any], Callable[[World, Any], object]] = {
    c.EnqueueJob: produce.enqueue_job,
    c.EnqueueBatch: produce.enqueue_batch,
    c.AckJob: work.ack_job,
    c.FailJob: work.fail_job,
    c.ReleaseJob: work.release_job,
    c.SnoozeJob: work.snooze_job,
    c.HeartbeatJob: work.heartbeat_job,
    c.CancelJob: operate.cancel_job,
    c.RetryJob: operate.retry_job,
    c.RequeueJob: operate.requeue_job,
    c.MoveJob: operate.move_job,
    c.DeleteJob: operate.delete_job,
    c.ChangePriority: operate.change_priority,
    c.HoldJob: operate.hold_job,
    c.ApproveJob: operate.approve_job,
    c.RejectJob: operate.reject_job,
    c.PauseQueue: queues.pause_queue,
    c.ResumeQueue: queues.resume_queue,
    c.DrainQueue: queues.drain_queue,
    c.ClearQueue: queues.clear_queue,
    c.DeleteQueue: queues.delete_queue,
    c.ConfigureQueue: queues.configure_queue,
    c.SetLimit: queues.set_limit,
    c.DeleteLimit: queues.delete_limit,
    c.PromoteJobs: sweep.promote_jobs,
    c.ReclaimLeases: sweep.reclaim_leases,
    c.FireDeadlines: sweep.fire_deadlines,
    c.PurgeSettled: sweep.purge_settled,
    c.TrimEvents: sweep.trim_events,
    c.StepOperations: sweep.step_operations,
    c.UpgradeMachine: sweep.upgrade_machine,
    c.SetEpoch: sweep.set_epoch,
    c.SetSchedule: schedules.set_schedule,
    c.DeleteSchedule: schedules.delete_schedule,
    c.PauseSchedule: schedules.pause_schedule,
    c.ResumeSchedule: schedules.resume_schedule,
    c.FireSchedule: schedules.fire_schedule,
    c.RunSchedule: schedules.run_schedule,
    c.BackfillSchedule: schedules.backfill_schedule,
    c.CreateWebhook: sweep.change_webhook,
    c.ReplaceWebhook: sweep.change_webhook,
    c.DeleteWebhook: sweep.change_webhook,
    c.RecordDeliveries: sweep.change_webhook,
}


class Oracle:
    """The reference queue of one namespace."""

    def __init__(self, ns: int = 0) -> None:
        self.world = World(ns)

    def begin(self, index: int, now_ms: int) -> None:
        """Start an entry."""
        assert now_ms >= self.world.now_ms
        self.world.index, self.world.now_ms = index, now_ms

    def apply(self, command: c.Command, given: o.Outcome, events: list[e.Event]) -> list[str]:
        """Do one command; return how the machine's answer differs from the right one.

        Its events say which expired jobs a fetch met, and before which claim.
        """
        numbered = list(enumerate(events))
        self.world.starts = [n for n, event in numbered if event.type == e.STARTED]
        self.world.expired = [(n, event.job) for n, event in numbered if event.type == e.EXPIRED]
        self.world.draw_order()
        self.world.is_sweeping = isinstance(command, c.StepOperations)
        try:
            if isinstance(command, c.FetchJobs):
                assert isinstance(given, o.Fetched), given
                return dispatch.fetch(self.world, command, given)
            expected = HANDLERS[type(command)](self.world, command)
        finally:
            spread(self.world)
            self.world.is_sweeping = False
        return [] if expected is ANSWER_IS_FREE else differences(expected, given)


def differences(expected: object, given: object) -> list[str]:
    """Compare outcomes; of a rejection only code, state and holder are fixed, not the sentence."""
    if isinstance(expected, o.Rejected) and isinstance(given, o.Rejected):
        same = (expected.code, expected.holder) == (given.code, given.holder)
        return [] if same else [f"expected {expected!r}, got {given!r}"]
    return [] if expected == given else [f"expected {expected!r}, got {given!r}"]
