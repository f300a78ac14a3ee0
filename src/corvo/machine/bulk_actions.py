"""What a bulk operation does to one job: the command for a single job, with an expected state."""

from corvo.machine import operate
from corvo.machine.state import State
from corvo.model import bulk as bk
from corvo.model import command as cm
from corvo.model.bulk import BulkTask
from corvo.model.outcome import JobChanged, Rejected

# The verb of the state table behind each action; delete is allowed from any state.
VERBS = {
    bk.RETRY: "retry",
    bk.CANCEL: "cancel",
    bk.MOVE: "move",
    bk.REQUEUE: "requeue",
    bk.PRIORITY: "priority",
    bk.HOLD: "hold",
    bk.APPROVE: "approve",
    bk.REJECT: "reject",
}


def change_job(
    state: State, ns: int, job_id: bytes, task: BulkTask, expected: int
) -> JobChanged | Rejected:
    """Do to one job what the task says, exactly as the command for a single job would."""
    match task.action:
        case bk.RETRY:
            return operate.retry_job(state, cm.RetryJob(ns, job_id, expected))
        case bk.DELETE:
            return operate.delete_job(state, cm.DeleteJob(ns, job_id, expected))
        case bk.CANCEL:
            return operate.cancel_job(state, cm.CancelJob(ns, job_id, expected))
        case bk.MOVE:
            move = cm.MoveJob(
                ns, job_id, task.queue, task.reset_attempts, task.keep_priority, expected
            )
            return operate.move_job(state, move)
        case bk.REQUEUE:
            return operate.requeue_job(state, cm.RequeueJob(ns, job_id, expected))
        case bk.PRIORITY:
            return operate.change_priority(
                state, cm.ChangePriority(ns, job_id, task.tier, expected)
            )
        case bk.HOLD:
            hold = cm.HoldJob(
                ns,
                job_id,
                reason=task.reason,
                timeout_ms=task.timeout_ms,
                timeout_action=task.timeout_action,
                expected_state=expected,
            )
            return operate.hold_job(state, hold)
        case bk.APPROVE:
            approve = cm.ApproveJob(ns, job_id, task.by, task.note, expected)
            return operate.approve_job(state, approve)
        case _:
            assert task.action == bk.REJECT, task.action
            return operate.reject_job(
                state, cm.RejectJob(ns, job_id, task.by, task.reason, expected)
            )
