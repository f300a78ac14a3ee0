"""Following the feed, building anew and the store itself tell the same."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from corvo.keys import codec, space
from corvo.keys.codec import decode_entry
from corvo.keys.order import successor
from corvo.machine.extract import queues_of
from corvo.model.ids import BATCH, JOB, render_id
from corvo.model.job import STATE_NAMES
from corvo.model.queue import TOTAL_NAMES
from corvo.storage.memory import MemoryStore
from corvo.view import sender
from tests.model.test_determinism import write_log
from tests.support.view import BareEngine, SideView, dump, hasten, locks, words

SEEDS = range(100, 112)
EVERYTHING = 10**6


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


def follow(engine: BareEngine, view: SideView, log: list[bytes], chance: Random, kills: int = 0):
    """Apply a log while the view looks now and then, in slices of any size."""
    for raw in log:
        engine.apply(raw, decode_entry(raw))
        if chance.randrange(4) == 0:
            for _ in range(chance.randrange(1, 4)):
                view.pull()
        if kills and chance.randrange(100) < kills:
            view.close()
            view.open()
    view.catch_up()


def assert_equal_to_store(view: SideView, engine: BareEngine) -> None:
    """Compare rows with what the machine itself answers, by another way than they were made."""
    found = {row[0]: row for row in view.connection.execute("SELECT id, queue, state FROM jobs")}
    pairs = engine.store.scan(space.JOB, successor(space.JOB), EVERYTHING)
    stored = [codec.decode_job(value) for _, value in pairs]
    assert sorted(found) == sorted(render_id(JOB, job.id) for job in stored)
    sql = "SELECT attempt, run, error_count, payload_text FROM jobs JOIN job_payloads USING (n)"
    for job in stored:
        seen = engine.machine.job(0, job.id)
        if seen is None:
            continue  # of a queue that was cleared; its end will be an event
        name = render_id(JOB, job.id)
        assert found[name] == (name, seen.queue, STATE_NAMES[seen.job.state])
        errors = len(seen.errors)
        row: Any = view.connection.execute(f"{sql} WHERE id = ?", (name,)).get
        assert row[:2] == (seen.job.attempt, seen.job.run)
        assert row[3] == seen.spec.payload.decode()
        assert (row[2] > 0) == (errors > 0)
        documents: Any = view.connection.execute(
            "SELECT checkpoint_text, result_text FROM job_documents JOIN jobs USING (n) "
            "WHERE id = ?",
            (name,),
        ).get or (None, None)
        expected = [x.decode() if x is not None else None for x in (seen.checkpoint, seen.result)]
        assert list(documents) == expected
    assert_equal_queues(view, engine)
    for _, value in engine.store.scan(space.BATCH, successor(space.BATCH), EVERYTHING):
        batch = codec.decode_batch(value)
        sql = "SELECT total, pending, succeeded, failed, cancelled FROM batches WHERE id = ?"
        row = view.connection.execute(sql, (render_id(BATCH, batch.id),)).get
        counts = (batch.total, batch.pending, batch.succeeded, batch.failed, batch.cancelled)
        assert row == counts


def assert_equal_queues(view: SideView, engine: BareEngine) -> None:
    """Counters of rows, and minutes counted from events, add up to the machine's own counters."""
    doomed = {record.name for record in queues_of(engine.store) if record.deleted}
    for seen in engine.machine.queues(0):
        record = seen.record
        names = ", ".join((*STATE_NAMES, *(f"total_{name}" for name in TOTAL_NAMES)))
        sql = f"SELECT {names} FROM queues WHERE name = ?"
        assert view.connection.execute(sql, (record.name,)).get == (*record.counts, *record.totals)
        if record.name in doomed:
            continue
        totals = ", ".join(f"sum({name})" for name in TOTAL_NAMES)
        sql = f"SELECT {totals} FROM queue_minutes WHERE queue = ?"
        sums: Any = view.connection.execute(sql, (record.name,)).get
        found = Counter(dict(zip(TOTAL_NAMES, (x or 0 for x in sums), strict=True)))
        created = "SELECT count(*) FROM job_events WHERE type = 'queue.created' AND queue = ?"
        if view.connection.execute(created, (record.name,)).get == 1:
            assert found == Counter(dict(zip(TOTAL_NAMES, record.totals, strict=True)))


@pytest.mark.parametrize("seed", SEEDS)
def test_following_and_building_anew_end_in_the_same_tables(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whatever happened and however it was sliced, every table is the same either way."""
    chance = Random(seed)
    monkeypatch.setattr(sender, "SLICE_BYTES", chance.choice((100, 2_000, 100_000)))
    engine = BareEngine(MemoryStore())
    view = SideView(engine, tmp_path / "view")
    follow(engine, view, write_log(seed), chance)
    followed = dump(view.connection)
    followed_locks = locks(view.connection, engine.machine.now_ms)
    followed_words = words(view.connection)
    assert len(followed["jobs"]) > 0
    assert_equal_to_store(view, engine)
    view.rebuild()
    rebuilt = dump(view.connection)
    for table, rows in followed.items():
        assert rows == rebuilt[table], table
    assert followed_locks == locks(view.connection, engine.machine.now_ms)
    assert followed_words == words(view.connection)
    assert_equal_to_store(view, engine)
    view.close()


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_stopping_and_starting_in_between_changes_nothing(seed: int, tmp_path: Path):
    """A view that was closed at any moment goes on from its cursor, without building anew."""
    engine = BareEngine(MemoryStore())
    view = SideView(engine, tmp_path / "view")
    follow(engine, view, write_log(seed), Random(seed), kills=10)
    assert view.reports == []
    followed = dump(view.connection)
    view.rebuild()
    assert followed == dump(view.connection)
    view.close()


def test_a_sample_sees_a_row_that_differs(tmp_path: Path):
    """Rows are compared with records; one that is wrong is noticed."""
    engine = BareEngine(MemoryStore())
    view = SideView(engine, tmp_path / "view")
    follow(engine, view, write_log(3), Random(3))
    assert view.sample() == ""
    view.connection.execute("UPDATE jobs SET attempt = attempt + 7")
    assert any(view.sample() for _ in range(20))
    assert "differs" in view.reports[0]
    view.rebuild()
    assert view.sample() == ""
    view.close()
