"""Undo, case by case: what comes back, what stays, and why."""

import pytest

from corvo.model import bulk as bk
from corvo.model import command as c
from corvo.model import job as j
from corvo.model.outcome import BulkChanged, Fetched, Rejected
from tests.factories import (
    make_batch,
    make_enqueue,
    make_fetch,
    make_job_id,
    make_other_id,
    make_spec,
)
from tests.model.bulk_histories import UNDO_MS, Rig

BULK_ID = make_other_id(77)


def bulk(action: int, *numbers: int, **task: object) -> c.StartBulk:
    """Return an operation on the n-th jobs of a test."""
    ids = b"".join(make_job_id(number) for number in numbers)
    states = bytes([bk.ANY_STATE_BYTE]) * len(numbers)
    what = bk.BulkTask(action, **task)  # type: ignore[arg-type]
    return c.StartBulk(0, BULK_ID, what, ids, states, True, undo_ms=UNDO_MS)


def undone(rig: Rig) -> bk.Bulk:
    """Undo the operation of a test."""
    (answer,) = rig.step([c.UndoBulk(0, BULK_ID)]).outcomes
    assert isinstance(answer, BulkChanged), answer
    return rig.finish(BULK_ID)


def state_of(rig: Rig, number: int) -> str | None:
    """Name the state of the n-th job; None when it is gone."""
    view = rig.machine.job(0, make_job_id(number))
    return j.STATE_NAMES[view.job.state] if view is not None else None


def test_member_of_an_open_batch_comes_back_and_counts_again():
    """The callback waits for the member that was deleted and brought back."""
    rig = Rig()
    rig.step([make_batch(1, [make_spec(1), make_spec(2)])])
    rig.step([bulk(bk.DELETE, 1)])
    assert undone(rig).restored == 1
    view = rig.machine.batch(0, make_other_id(1))
    assert view is not None
    assert (view.batch.pending, view.batch.cancelled) == (2, 0)


@pytest.mark.parametrize("action", [bk.DELETE, bk.CANCEL])
def test_the_last_member_of_a_batch_stays_gone(action: int):
    """Its end fired the callback, which can not be taken back."""
    rig = Rig()
    rig.step([make_batch(1, [make_spec(1)])])
    rig.step([bulk(action, 1)])
    assert undone(rig).kept == {bk.EFFECTS_FIRED: 1}


def test_job_whose_key_was_taken_since_stays_gone():
    """At most one job owns a unique key, also after an undo."""
    rig = Rig()
    unique = j.Unique("k", 60_000)
    rig.step([make_enqueue(1, unique=unique), bulk(bk.DELETE, 1)])
    rig.step([make_enqueue(2, unique=unique)])
    assert undone(rig).kept == {bk.UNIQUE_CONFLICT: 1}
    assert (state_of(rig, 1), state_of(rig, 2)) == (None, "pending")


def test_job_touched_since_stays_where_it_is():
    """Somebody works on it: moving it back would surprise them."""
    rig = Rig()
    rig.step([make_enqueue(1), make_enqueue(2), bulk(bk.MOVE, 1, 2, queue="video")])
    rig.step([make_fetch("video")])
    found = undone(rig)
    assert (found.restored, found.kept) == (1, {bk.CHANGED: 1})
    assert state_of(rig, 1) == "active"


def test_cancelling_an_active_job_is_withdrawn():
    """The worker has not noticed yet: its next heartbeat says that all is well."""
    rig = Rig()
    (_, fetched) = rig.step([make_enqueue(1), make_fetch()]).outcomes
    assert isinstance(fetched, Fetched)
    rig.step([bulk(bk.CANCEL, 1)])
    assert undone(rig).restored == 1
    token = fetched.claims[0].token
    (_, acked) = rig.step(
        [c.HeartbeatJob(0, make_job_id(1), token), c.AckJob(0, make_job_id(1))]
    ).outcomes
    assert not isinstance(acked, Rejected)
    assert state_of(rig, 1) == "completed"


def test_deleted_active_job_comes_back_as_pending_and_its_worker_has_lost_it():
    """The attempt does not count, and the old token proves nothing."""
    rig = Rig()
    (_, fetched) = rig.step([make_enqueue(1), make_fetch()]).outcomes
    assert isinstance(fetched, Fetched)
    rig.step([bulk(bk.DELETE, 1)])
    assert undone(rig).restored == 1
    (answer,) = rig.step([c.AckJob(0, make_job_id(1), fetched.claims[0].token)]).outcomes
    assert isinstance(answer, Rejected)
    assert state_of(rig, 1) == "pending"


def test_parent_and_child_deleted_together_come_back_together():
    """The child waits for the parent again."""
    rig = Rig()
    rig.step([make_enqueue(1), make_enqueue(2, depends_on=(make_job_id(1),))])
    rig.step([bulk(bk.DELETE, 2, 1)])
    assert undone(rig).restored == 2
    view = rig.machine.job(0, make_job_id(2))
    assert view is not None
    assert view.blocked_by == [make_job_id(1)]


def test_after_the_window_nothing_can_be_undone_and_nothing_is_kept():
    """Tombstones go with the window, the record after seven days."""
    rig = Rig()
    rig.step([make_enqueue(1), bulk(bk.DELETE, 1)])
    rig.step([c.FireDeadlines()], UNDO_MS)
    (answer,) = rig.step([c.UndoBulk(0, BULK_ID)]).outcomes
    assert isinstance(answer, Rejected)
    assert rig.bulk(BULK_ID).tombstones == 0
    rig.step([c.FireDeadlines()], 8 * 86_400_000)
    assert rig.machine.bulk(0, BULK_ID) is None


def test_undoing_twice_is_undoing_once():
    """A repeated request finds the operation undone."""
    rig = Rig()
    rig.step([make_enqueue(1), bulk(bk.DELETE, 1)])
    assert undone(rig).restored == 1
    assert undone(rig).restored == 1


def test_step_stops_at_its_bytes():
    """Deleting large jobs does not make one huge write."""
    rig = Rig()
    payload = b'"%b"' % (b"x" * 200_000)
    rig.step([make_enqueue(number, payload=payload) for number in range(1, 41)])
    rig.step([bulk(bk.DELETE, *range(1, 41))])
    found = rig.bulk(BULK_ID)
    assert found.status == bk.RUNNING
    assert 0 < found.processed < 40
    assert rig.finish(BULK_ID, 100).affected == 40
    rig.step([c.UndoBulk(0, BULK_ID)])
    assert rig.bulk(BULK_ID).status == bk.UNDOING
    assert rig.finish(BULK_ID, 100).restored == 40


def test_operation_begins_once_all_its_jobs_are_written_down():
    """Until it is sealed nothing changes; a chunk that was sent before is ignored."""
    rig = Rig()
    rig.step([make_enqueue(1), make_enqueue(2)])
    command = bulk(bk.DELETE, 1, 2)
    rig.step([c.StartBulk(0, BULK_ID, command.task, command.ids, command.states)])
    rig.step([c.FillBulk(0, BULK_ID, 0, command.ids, command.states, True)])
    rig.step([c.StepBulk(0, BULK_ID)])
    assert rig.bulk(BULK_ID).status == bk.COLLECTING
    assert (state_of(rig, 1), state_of(rig, 2)) == ("pending", "pending")
    rig.step([c.FillBulk(0, BULK_ID, 1, is_sealed=True)])
    assert rig.bulk(BULK_ID).affected == 2
