"""Bulk operations: each job once, exactly as the single command; and undone without a trace.

The oracle is the reference queue, asked one job at a time. Undo is compared with how the jobs were.
"""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corvo.keys import space
from corvo.keys.codec import decode_entry, encode_entry
from corvo.keys.order import successor
from corvo.machine import MACHINE_VERSION, Machine, digest
from corvo.model import bulk as bk
from corvo.model import command as c
from corvo.model import event as e
from corvo.model import job as j
from corvo.model import outcome as o
from corvo.model.view import JobView
from corvo.storage.memory import MemoryStore
from tests.factories import make_other_id
from tests.model.bulk_histories import UNDO_MS, BulkWriter, Rig
from tests.model.harness import Pair
from tests.model.histories import Writer
from tests.model.profiles import IS_LONG, SETTINGS
from tests.model.test_grouping import compare

SEEDS = range(600) if IS_LONG else range(16)
BULK_ID = make_other_id(10**7)
SKIPS = {
    o.NOT_FOUND: bk.NOT_FOUND,
    o.INVALID_STATE: bk.INVALID_STATE,
    o.UNIQUE_CONFLICT: bk.UNIQUE_CONFLICT,
}


def single(task: bk.BulkTask, job_id: bytes) -> c.Command:
    """Return the command for one job that a task stands for."""
    commands = {
        bk.RETRY: lambda: c.RetryJob(0, job_id),
        bk.DELETE: lambda: c.DeleteJob(0, job_id),
        bk.CANCEL: lambda: c.CancelJob(0, job_id),
        bk.MOVE: lambda: c.MoveJob(0, job_id, task.queue, task.reset_attempts, task.keep_priority),
        bk.REQUEUE: lambda: c.RequeueJob(0, job_id),
        bk.PRIORITY: lambda: c.ChangePriority(0, job_id, task.tier),
        bk.HOLD: lambda: c.HoldJob(
            0,
            job_id,
            reason=task.reason,
            timeout_ms=task.timeout_ms,
            timeout_action=task.timeout_action,
        ),
        bk.APPROVE: lambda: c.ApproveJob(0, job_id, task.by, task.note),
        bk.REJECT: lambda: c.RejectJob(0, job_id, task.by, task.reason),
    }
    return commands[task.action]()


def ask_oracle(pair: Pair, bulk: bk.Bulk, targets: list[tuple[bytes, int]]) -> bk.Bulk:
    """Do the targets one by one in the reference queue and count as the operation should."""
    bulk = replace(bulk, skipped=dict(bulk.skipped))
    for job_id, expected in targets:
        known = pair.oracle.world.jobs.get(job_id)
        bulk.processed += 1
        is_known = known is not None and not known.is_doomed
        if is_known and known is not None and expected not in (bk.ANY_STATE_BYTE, known.state):
            reason = bk.CHANGED
        else:
            given = o.JobChanged("?", 0)  # only its code is looked at
            found = pair.oracle.apply(single(bulk.task, job_id), given, [])
            code = next((x for x in SKIPS if any(f"code='{x}'" in text for text in found)), "")
            reason = SKIPS.get(code, "")
        if reason:
            bulk.skipped[reason] = bulk.skipped.get(reason, 0) + 1
        else:
            bulk.affected += 1
    return bulk


@pytest.mark.parametrize("seed", SEEDS)
def test_an_operation_does_what_the_single_commands_would_do(seed: int):
    """Whatever the action and the jobs: the same jobs change, the same counts, no job twice."""
    chance = Random(seed)
    pair = Pair()
    writer = Writer(pair.oracle.world, chance)
    drawn = BulkWriter(Rig(), chance)
    for _ in range(30):
        pair.step([writer.anything() for _ in range(3)], writer.advance_ms())
        writer.fresh.clear()
    task = drawn.task()
    names = list(dict.fromkeys(writer.some_job() for _ in range(20)))
    states = [
        pair.oracle.world.jobs[name].state
        if name in pair.oracle.world.jobs and chance.random() < 0.6
        else chance.choice((bk.ANY_STATE_BYTE, j.DEAD))
        for name in names
    ]
    targets = list(zip(names, states, strict=True))
    start = c.StartBulk(0, BULK_ID, task, b"".join(names), bytes(states), undo_ms=UNDO_MS)
    seal = c.FillBulk(0, BULK_ID, 1, is_sealed=True)
    pending = [start, c.FillBulk(0, BULK_ID, 0, names[0], b"\x00"), seal]
    pair.log.append(b"")
    index = len(pair.log)
    entry = c.Entry(MACHINE_VERSION, pair.now_ms, list(pending))
    applied = pair.machine.apply(index, encode_entry(entry), entry)
    assert [fault.trace for fault in applied.faults] == []
    bulk = pair.machine.bulk(0, BULK_ID)
    assert bulk is not None
    assert bulk.status == bk.COMPLETED
    assert (bulk.total, bulk.processed) == (len(names), len(names))
    pair.oracle.begin(index, pair.now_ms)
    expected = ask_oracle(pair, bk.Bulk(BULK_ID, 0, task, bk.RUNNING, 0), targets)
    found = (bulk.affected, bulk.skipped, bulk.errors)
    assert found == (expected.affected, expected.skipped, 0)
    assert pair.compare() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_operations_in_any_mix_keep_every_invariant(seed: int):
    """Start, fill, step, abort, undo, clear and everything else: audited after each entry."""
    rig = Rig()
    writer = BulkWriter(rig, Random(seed))
    for _ in range(60):
        count = writer.chance.choice((1, 2, 6))
        rig.step([writer.anything() for _ in range(count)], writer.advance_ms())
        writer.fresh.clear()
    for bulk_id in writer.bulks:
        found = rig.machine.bulk(0, bulk_id)
        if found is not None and found.status in (bk.RUNNING, bk.UNDOING):
            rig.finish(bulk_id)
    # Long after: nothing is left of any of them.
    while rig.machine.due(rig.now_ms + 30 * 86_400_000):
        rig.now_ms += 30 * 86_400_000
        rig.step(rig.machine.due(rig.now_ms))
        if rig.machine.next_due_ms(rig.now_ms) > rig.now_ms:
            break
    for family in (space.TOMBSTONE, space.CLEARED_SPACE):
        assert rig.store.scan(family, successor(family), 10) == []
    left = [rig.machine.bulk(0, bulk_id) for bulk_id in writer.bulks]
    assert all(bulk is None or bulk.status == bk.COLLECTING for bulk in left)


@pytest.mark.parametrize("seed", SEEDS)
def test_grouping_and_replay_change_nothing(seed: int):
    """One commit a command, cold caches, a second replay: the same bytes, answers and chain."""
    rig = Rig()
    writer = BulkWriter(rig, Random(1_000 + seed))
    stepwise = MemoryStore()
    slow = Machine(stepwise)
    for _ in range(25):
        commands = [writer.anything() for _ in range(writer.chance.choice((2, 5, 9)))]
        applied = rig.step(commands, writer.advance_ms())
        writer.fresh.clear()
        raw = rig.log[-1]
        assert applied.outcomes == slow.apply_stepwise(len(rig.log), raw, decode_entry(raw))
        compare(rig.store, stepwise)
    again = MemoryStore()
    machine = Machine(again)
    for index, raw in enumerate(rig.log, start=1):
        machine.apply(index, raw, decode_entry(raw))
        if index % 10 == 0:
            machine = Machine(again)
    assert (digest(again), machine.chain) == (digest(rig.store), rig.machine.chain)


@given(chance=st.randoms(use_true_random=False), count=st.integers(2, 8))
@SETTINGS
def test_a_random_entry_with_operations_behaves_as_one_by_one(chance: Random, count: int):
    """The same, with entries that Hypothesis can shrink."""
    rig = Rig()
    writer = BulkWriter(rig, chance)
    rig.step([writer.produce() for _ in range(4)])
    commands = [writer.anything() for _ in range(count)]
    stepwise = rig.store.copy()
    applied = rig.step(commands)
    raw = rig.log[-1]
    assert applied.outcomes == Machine(stepwise).apply_stepwise(2, raw, decode_entry(raw))
    compare(rig.store, stepwise)


# --- undo ----------------------------------------------------------------------------------------


def picture_of(view: JobView) -> tuple[object, ...]:
    """Everything a reader sees of a job that an undo promises to bring back."""
    job, rare = view.job, view.job.rare or j.Rare()
    is_active = job.state == j.ACTIVE
    return (
        j.PENDING if is_active else job.state,
        view.queue,
        job.tier,
        job.order,
        job.attempt - 1 if is_active else job.attempt,
        job.run,
        job.max_attempts,
        job.created_ms,
        job.due_ms if job.state in (j.SCHEDULED, j.RETRYING) else 0,
        job.flags & (j.FLAG_UNIQUE | j.FLAG_MEMBER | j.FLAG_COUNTED | j.FLAG_CHAIN),
        rare.expire_ms,
        rare.hold_until_ms if job.state == j.HELD else 0,
        rare.hold_reason if job.state == j.HELD else "",
        rare.dead_reason,
        view.spec,
        view.errors,
        view.progress,
        view.checkpoint,
        view.result,
        view.usage,
        tuple(sorted(view.blocked_by)),
    )


UNDOABLE_TASKS = (
    bk.BulkTask(bk.DELETE),
    bk.BulkTask(bk.CANCEL),
    bk.BulkTask(bk.MOVE, "video"),
    bk.BulkTask(bk.MOVE, "mail", reset_attempts=True, keep_priority=False),
    bk.BulkTask(bk.PRIORITY, tier=0),
)


@pytest.mark.parametrize("task", UNDOABLE_TASKS, ids=lambda task: bk.ACTION_NAMES[task.action])
@pytest.mark.parametrize("seed", SEEDS)
def test_undo_brings_every_job_back_as_it_was(seed: int, task: bk.BulkTask):
    """A job is exactly as before, or it is counted with a reason why it is not."""
    rig, writer = seasoned(seed)
    before = views(rig)
    names = sorted(before)
    start = c.StartBulk(
        0,
        BULK_ID,
        task,
        b"".join(names),
        bytes([bk.ANY_STATE_BYTE]) * len(names),
        is_sealed=True,
        undo_ms=UNDO_MS,
    )
    rig.step([start])
    bulk = rig.finish(BULK_ID)
    check_undone(rig, before, bulk)
    assert writer.bulks == []


@pytest.mark.parametrize("seed", SEEDS)
def test_undo_of_a_clear_brings_every_job_back(seed: int):
    """Clear a queue, let its operation finish, undo: the queue is as full as it was."""
    rig, _ = seasoned(seed)
    queue = "mail"
    before = {
        name: view
        for name, view in views(rig).items()
        if view.queue == queue and view.job.state in (j.PENDING, j.SCHEDULED, j.RETRYING)
    }
    rig.step([c.ClearQueue(0, queue, BULK_ID, UNDO_MS), c.PromoteJobs()], 2_000)
    if not before:
        return
    (answer,) = rig.step([c.UndoBulk(0, BULK_ID)]).outcomes
    if rig.bulk(BULK_ID).status == bk.RUNNING:
        assert isinstance(answer, o.Rejected)
    check_undone(rig, before, rig.finish(BULK_ID))


def seasoned(seed: int) -> tuple[Rig, BulkWriter]:
    """Return a machine with a history of everything but operations."""
    rig = Rig()
    writer = BulkWriter(rig, Random(seed))
    for _ in range(25):
        commands = [Writer.anything(writer) for _ in range(4)]
        rig.step(commands, writer.advance_ms())
        writer.world.now_ms = rig.now_ms
        writer.fresh.clear()
    while rig.machine.due(rig.now_ms):
        rig.step(rig.machine.due(rig.now_ms))
    return rig, writer


def views(rig: Rig) -> dict[bytes, JobView]:
    """Every job that exists for its users."""
    found = {name: rig.machine.job(0, name) for name in rig.jobs()}
    return {name: view for name, view in found.items() if view is not None}


def check_undone(rig: Rig, before: dict[bytes, JobView], bulk: bk.Bulk) -> None:
    """Undo an operation and compare every job with how it was."""
    assert bulk.affected + sum(bulk.skipped.values()) == bulk.total
    changed = {
        name for name, view in before.items() if is_different(view, rig.machine.job(0, name))
    }
    if not bulk.tombstones:
        assert changed == set()
        return
    first_index = len(rig.log)
    if bulk.status not in (bk.UNDOING, bk.UNDONE):
        rig.step([c.UndoBulk(0, BULK_ID)])
    bulk = rig.finish(BULK_ID)
    assert bulk.status == bk.UNDONE
    assert bulk.restored + sum(bulk.kept.values()) == bulk.buried
    different = {
        name for name, view in before.items() if is_different(view, rig.machine.job(0, name))
    }
    # Dependants of a job that ended were told before it was their turn.
    strays = {name for name in different if before[name].spec.depends_on}
    assert len(different - strays) <= sum(bulk.kept.values())
    blocks = rig.machine.events(first_index, 1_000)
    restored = {event.job for _, b in blocks for event in b.events if event.type == e.RESTORED}
    assert restored & (different - strays) == set()


def is_different(before: JobView, after: JobView | None) -> bool:
    """Whether anything promised differs."""
    return after is None or picture_of(before) != picture_of(after)
