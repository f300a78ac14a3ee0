"""The machine: apply(index, entry) -> outcomes, events and one atomic write.

Deterministic: the same log gives the same bytes on every replica and on every replay. It reads no
clock, draws no random number, iterates over nothing unordered; time and ids arrive in the entry.

A command that raises is already in the log and would raise on every replica and after every
restart. So the entry is applied again without it: caches and uncommitted effects are dropped, the
command is answered INTERNAL_ERROR, an event records the fault, and the alarm goes to whoever
called `apply`.
"""

import traceback
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from corvo.errors import CorvoError
from corvo.machine import (
    bulk,
    depends,
    dispatch,
    enqueue,
    importing,
    operate,
    operations,
    queues,
    report,
    schedules,
    sweep,
    webhooks,
)
from corvo.machine.kv import Store
from corvo.machine.state import NO_EPOCH, State
from corvo.model import command as cm
from corvo.model import event as ev
from corvo.model import outcome
from corvo.model.command import Entry
from corvo.model.event import Event, EventBlock
from corvo.model.outcome import Outcome, Rejected, Swept

MACHINE_VERSION = 1  # the newest behaviour this code knows


def upgrade_machine(state: State, command: cm.UpgradeMachine) -> Swept | Rejected:
    """Raise the machine version once every node supports it."""
    if not state.version < command.version <= MACHINE_VERSION:
        return Rejected(
            outcome.VALIDATION_ERROR,
            f"the machine is at version {state.version} and knows up to {MACHINE_VERSION}",
            field="version",
        )
    state.version = command.version
    data = {"version": command.version}
    state.events.append(Event(ev.MACHINE_UPGRADED, b"", "", 0, data))
    return Swept(1)


def set_epoch(state: State, command: cm.SetEpoch) -> Swept | Rejected:
    """Name the history, unless somebody else has done so meanwhile."""
    if len(command.epoch) != len(NO_EPOCH) or command.epoch == NO_EPOCH:
        text = f"an epoch is {len(NO_EPOCH)} bytes, not all of them zero"
        return Rejected(outcome.VALIDATION_ERROR, text, field="epoch")
    if state.epoch != command.previous:
        text = f"the history already has the name {state.epoch.hex()}"
        return Rejected(outcome.INVALID_STATE, text)
    state.epoch = command.epoch
    data = {"epoch": command.epoch.hex(), "previous": command.previous.hex()}
    state.events.append(Event(ev.HISTORY_STARTED, b"", "", 0, data))
    return Swept(1)


HANDLERS: dict[type, Callable[[State, Any], Outcome]] = {
    cm.EnqueueJob: enqueue.enqueue_job,
    cm.EnqueueBatch: enqueue.enqueue_batch,
    cm.FetchJobs: dispatch.fetch_jobs,
    cm.AckJob: report.ack_job,
    cm.FailJob: report.fail_job,
    cm.ReleaseJob: report.release_job,
    cm.SnoozeJob: report.snooze_job,
    cm.HeartbeatJob: report.heartbeat_job,
    cm.CancelJob: operate.cancel_job,
    cm.RetryJob: operate.retry_job,
    cm.RequeueJob: operate.requeue_job,
    cm.MoveJob: operate.move_job,
    cm.DeleteJob: operate.delete_job,
    cm.ChangePriority: operate.change_priority,
    cm.HoldJob: operate.hold_job,
    cm.ApproveJob: operate.approve_job,
    cm.RejectJob: operate.reject_job,
    cm.PauseQueue: queues.pause_queue,
    cm.ResumeQueue: queues.resume_queue,
    cm.DrainQueue: queues.drain_queue,
    cm.ClearQueue: queues.clear_queue,
    cm.DeleteQueue: queues.delete_queue,
    cm.ConfigureQueue: queues.configure_queue,
    cm.SetLimit: queues.set_limit,
    cm.DeleteLimit: queues.delete_limit,
    cm.PromoteJobs: sweep.promote_jobs,
    cm.ReclaimLeases: sweep.reclaim_leases,
    cm.FireDeadlines: sweep.fire_deadlines,
    cm.PurgeSettled: sweep.purge_settled,
    cm.TrimEvents: sweep.trim_events,
    cm.StepOperations: operations.step_operations,
    cm.UpgradeMachine: upgrade_machine,
    cm.SetEpoch: set_epoch,
    cm.SetSchedule: schedules.set_schedule,
    cm.DeleteSchedule: schedules.delete_schedule,
    cm.PauseSchedule: schedules.pause_schedule,
    cm.ResumeSchedule: schedules.resume_schedule,
    cm.FireSchedule: schedules.fire_schedule,
    cm.RunSchedule: schedules.run_schedule,
    cm.BackfillSchedule: schedules.backfill_schedule,
    cm.StartBulk: bulk.start_bulk,
    cm.FillBulk: bulk.fill_bulk,
    cm.StepBulk: bulk.step_bulk,
    cm.AbortBulk: bulk.abort_bulk,
    cm.UndoBulk: bulk.undo_bulk,
    cm.CreateWebhook: webhooks.create_webhook,
    cm.ReplaceWebhook: webhooks.replace_webhook,
    cm.DeleteWebhook: webhooks.delete_webhook,
    cm.RecordDeliveries: webhooks.record_deliveries,
    cm.ImportRecords: importing.import_records,
}


class Fault(Struct, frozen=True):
    """A command that raised: where in its entry, and what."""

    ordinal: int
    command: str
    trace: str


class Applied(Struct, frozen=True, gc=False):
    """What applying an entry did."""

    outcomes: list[Outcome]
    touched: list[tuple[int, str]]  # queues whose claimable jobs may have changed
    events: EventBlock | None
    faults: list[Fault]


class Applier:
    """Runs entries against a state."""

    def __init__(self, store: Store) -> None:
        self.state = State(store)

    def apply(self, index: int, raw: bytes, entry: Entry) -> Applied:
        """Apply one entry; `raw` is its encoding, for the hash chain."""
        faults: dict[int, Fault] = {}
        while True:
            outcomes = self._attempt(index, entry, faults)
            if outcomes is not None:
                break
        state = self.state
        touched = [(q.record.ns, q.record.name) for q in state.touched]
        events = state.commit(raw)
        return Applied(outcomes, touched, events, list(faults.values()))

    def _attempt(self, index: int, entry: Entry, faults: dict[int, Fault]) -> list[Outcome] | None:
        """Apply all commands but those known to fail; None when another one failed."""
        state = self.state
        state.begin(index, entry.now_ms)
        handlers = HANDLERS
        outcomes: list[Outcome] = []
        command: cm.Command | None = None
        try:
            for command in entry.commands:
                if faults and len(outcomes) in faults:
                    outcomes.append(_refuse(state, faults[len(outcomes)]))
                    continue
                outcomes.append(handlers[type(command)](state, command))
                if state.cascade:
                    depends.drain(state)
        except (CorvoError, MemoryError):
            # The store or the machine it runs on failed, not the command: that is fatal here.
            raise
        except Exception:  # noqa: BLE001 - a poison command must not stop every replica for ever
            name = type(command).__name__
            faults[len(outcomes)] = Fault(len(outcomes), name, traceback.format_exc())
            state.forget()
            return None
        return outcomes

    def apply_stepwise(self, index: int, raw: bytes, entry: Entry) -> list[Outcome]:
        """Apply an entry with a commit and cold caches after every command: the slow, obvious way.

        For tests: the state must come out byte for byte as from `apply`, apart from the hash chain
        and the counters of commits, which count the writes.
        """
        outcomes: list[Outcome] = []
        events: list[Event] = []
        first_seq = 0
        ordinal = 0
        for command in entry.commands:
            state = self.state
            state.index = index - 1
            state.begin(index, entry.now_ms)
            state.ordinal = ordinal
            first_seq = first_seq or state.seq + 1
            state.seq = first_seq - 1
            state.events = events
            outcomes.append(HANDLERS[type(command)](state, command))
            depends.drain(state)
            ordinal = state.ordinal
            events = state.events
            settled = {q.key: list(q.settled) for q in state.touched}
            self._merge_settled(settled)
            state.commit(raw)
            state.forget()
        return outcomes

    def _merge_settled(self, settled: dict[bytes, list[bytes]]) -> None:
        """A retention block of this entry may exist from an earlier command: go on with it."""
        from corvo.keys import codec, space  # noqa: PLC0415 - only this slow way needs them
        from corvo.keys.order import pack_u64  # noqa: PLC0415

        state = self.state
        for queue in state.touched:
            if settled[queue.key]:
                record = queue.record
                key = space.settled_prefix(record.ns, record.id) + pack_u64(state.index)
                raw = state.get(key)
                if raw is not None:
                    queue.settled = codec.decode_settled(raw).ids + queue.settled


def _refuse(state: State, fault: Fault) -> Rejected:
    data = {"command": fault.command, "ordinal": fault.ordinal}
    state.events.append(Event(ev.MACHINE_FAULT, b"", "", 0, data))
    return Rejected(
        outcome.INTERNAL_ERROR,
        "the command failed inside the server and changed nothing",
        hint="this is a bug; the server's log has the details",
    )
