"""When a file can be gone on with, and when it is built anew."""

from pathlib import Path
from random import Random

import pytest

from corvo.keys.codec import decode_entry, encode_entry
from corvo.model.command import Entry, TrimEvents
from corvo.storage.memory import MemoryStore
from corvo.view import desk, schema
from corvo.view.queries import REGISTRY
from tests.integration.view.test_equality import assert_equal_to_store, follow
from tests.model.test_determinism import write_log
from tests.support.view import BareEngine, SideView, dump, hasten


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


def viewed(tmp_path: Path, seed: int = 21) -> tuple[BareEngine, SideView]:
    """A view that is level with a machine that has seen something."""
    engine = BareEngine(MemoryStore())
    view = SideView(engine, tmp_path / "view")
    follow(engine, view, write_log(seed, 60), Random(seed))
    return engine, view


def reopened(view: SideView) -> str:
    """Start again; returns what was said about it."""
    view.reports.clear()
    view.open()
    return view.reports[0] if view.reports else ""


def trim(engine: BareEngine) -> None:
    """Let the store forget all events but the last."""
    entry = Entry(engine.machine.version, engine.machine.now_ms, [TrimEvents(10**12, 1)])
    engine.apply(encode_entry(entry), entry)


def test_a_file_of_this_history_is_gone_on_with(tmp_path: Path):
    """Nothing is built anew when the cursor names a place in the history."""
    engine, view = viewed(tmp_path)
    before = dump(view.connection)
    view.close()
    assert reopened(view) == ""
    assert dump(view.connection) == before
    view.close()
    assert engine.index > 0


def test_a_file_of_another_history_is_built_anew(tmp_path: Path):
    """Equal indexes do not make equal histories: the last block tells them apart."""
    _, view = viewed(tmp_path, 21)
    view.close()
    other = BareEngine(MemoryStore())
    for raw in write_log(22, 80):
        other.apply(raw, decode_entry(raw))
    view.engine = other
    # Where the other history has no events at that place, there is no block to compare with.
    reason = reopened(view)
    assert "another history" in reason or "not kept any more" in reason
    view.catch_up()
    assert_equal_to_store(view, other)
    view.close()


def test_a_file_that_is_ahead_is_built_anew(tmp_path: Path):
    """A server that lost its last entries with the power is believed, not the view."""
    _, view = viewed(tmp_path)
    view.close()
    shorter = BareEngine(MemoryStore())
    for raw in write_log(21, 60)[:20]:
        shorter.apply(raw, decode_entry(raw))
    view.engine = shorter
    assert "ahead" in reopened(view)
    view.catch_up()
    assert_equal_to_store(view, shorter)
    view.close()


@pytest.mark.parametrize("garbage", [b"", b"this is no database", b"SQLite format 3\x00" * 300])
def test_a_damaged_file_is_built_anew(tmp_path: Path, garbage: bytes):
    """Whatever lies in place of the file, the view ends equal to the store."""
    engine, view = viewed(tmp_path)
    view.close()
    path = max(view.directory.glob("view-*.sqlite"))
    schema.remove(path)
    path.write_bytes(garbage)
    view.open()
    view.catch_up()
    assert_equal_to_store(view, engine)
    view.close()


def test_a_file_of_another_version_is_built_anew(tmp_path: Path):
    """A file is never converted."""
    engine, view = viewed(tmp_path)
    view.connection.execute("UPDATE cursor SET schema_version = schema_version + 1")
    view.close()
    view.open()
    view.catch_up()
    assert_equal_to_store(view, engine)
    view.close()


def test_a_view_too_far_behind_is_built_anew(tmp_path: Path):
    """Events the store has forgotten are not missed in silence."""
    engine, view = viewed(tmp_path)
    for raw in write_log(21, 90)[60:]:
        engine.apply(raw, decode_entry(raw))
    trim(engine)
    view.catch_up()
    assert "far enough" in view.reports[0]
    assert_equal_to_store_without_minutes(view, engine)
    assert view.connection.execute("SELECT count(*) FROM job_events").get <= 10
    view.close()


def assert_equal_to_store_without_minutes(view: SideView, engine: BareEngine) -> None:
    """Minutes can only be counted from events that are kept."""
    stored = engine.machine.queues(0)
    sql = "SELECT count(*) FROM jobs WHERE queue = ? AND state = 'dead'"
    for seen in stored:
        assert view.connection.execute(sql, (seen.record.name,)).get == seen.record.counts[6]


def test_events_the_store_forgets_are_forgotten(tmp_path: Path):
    """The timeline is as long as the store's own."""
    engine, view = viewed(tmp_path)
    trim(engine)
    view.catch_up()
    floor = engine.event_floor_seq
    assert view.reports == []
    assert view.connection.execute("SELECT min(seq) FROM job_events").get in (None, floor)
    followed = dump(view.connection)
    view.rebuild()
    assert dump(view.connection)["job_events"] == followed["job_events"]
    view.close()


def test_a_query_can_not_write_and_has_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The connection refuses changes, and a query that takes too long is stopped."""
    _, view = viewed(tmp_path)
    path = view.desk.path
    assert path is not None

    def change(connection, _parameters):  # noqa: ANN001, ANN202
        connection.execute("DELETE FROM jobs")

    def loop(connection, _parameters):  # noqa: ANN001, ANN202
        sql = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"
        return list(connection.execute(sql))

    monkeypatch.setitem(REGISTRY, "change", change)
    monkeypatch.setitem(REGISTRY, "loop", loop)
    failures: list[str] = []
    found = desk.Desk(None, lambda name, error: failures.append(f"{name} {error}"))  # type: ignore[arg-type]
    found.switch(path)
    reader = desk.Reader()
    empty = b"\x80"
    assert found._answer(reader, desk.Query(1, "change", empty, 1_000)).code == "INTERNAL_ERROR"
    assert "readonly" in failures[0]
    assert found._answer(reader, desk.Query(2, "loop", empty, 30)).code == "QUERY_TIMEOUT"
    assert found._answer(reader, desk.Query(3, "position", empty, 1_000)).body.startswith(b"{")
    assert found._answer(reader, desk.Query(4, "nothing", empty, 1_000)).code == "INTERNAL_ERROR"
    reader.close()
    view.close()
