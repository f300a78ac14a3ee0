"""Records beside jobs, and what workers report: following, building anew and the store agree."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from corvo.keys.codec import encode_entry
from corvo.model import command as c
from corvo.model import job as j
from corvo.model.command import Entry
from corvo.model.ids import JOB, WEBHOOK, parse_id, render_id
from corvo.model.schedule import SCHEDULE
from corvo.storage.memory import MemoryStore
from corvo.view import sender
from tests.factories import START_MS, make_enqueue, make_fetch, make_job_id
from tests.integration.view.test_equality import assert_equal_to_store, follow
from tests.model.harness import Pair
from tests.model.histories import Writer
from tests.model.profiles import IS_LONG
from tests.model.webhooks import draw_webhook_command
from tests.support.view import BareEngine, SideView, dump, hasten, locks, words

EXAMPLES = 300 if IS_LONG else 12
REPORTS = (
    b'{"input_tokens": 7, "output_tokens": 3, "cost_usd": 0.25, "model": "m"}',
    b'{"iteration": 1, "status": "continue", "input_tokens": 5}',
    b'{"iteration": 2, "output_tokens": 900}',
    b'{"iteration": "no number"}',
    b'{"iteration": -1}',
)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


def write_log(chance: Random, entries: int) -> list[bytes]:
    """A history with schedules, webhooks and reports of usage among everything else."""
    pair = Pair()
    writer = Writer(pair.oracle.world, chance)
    for _ in range(entries):
        commands = [_draw(chance, writer, pair) for _ in range(chance.choice((1, 2, 5)))]
        pair.step(commands, writer.advance_ms())
        writer.fresh.clear()
    return pair.log


def _draw(chance: Random, writer: Writer, pair: Pair) -> c.Command:
    kind = chance.randrange(10)
    if kind < 2:
        return writer.schedule()
    if kind < 4:
        return draw_webhook_command(chance, seq=pair.machine.seq)
    command = writer.anything()
    if isinstance(command, c.AckJob | c.FailJob | c.HeartbeatJob) and chance.randrange(3):
        return replace(command, usage=chance.choice(REPORTS))
    return command


def assert_equal_records(view: SideView, engine: BareEngine) -> None:
    """Compare with what the machine itself answers."""
    sql = "SELECT id, name, queue, next_ms, document FROM schedules ORDER BY name"
    found: list[Any] = list(view.connection.execute(sql))
    stored = engine.machine.schedules(0, "", 100)
    assert [row[:4] for row in found] == [
        (
            render_id(SCHEDULE, seen.schedule.id),
            seen.spec.name,
            seen.spec.template.queue,
            seen.schedule.next_ms or None,
        )
        for seen in stored
    ]
    for row, seen in zip(found, stored, strict=True):
        document = json.loads(row[4])
        assert document["fired"] == seen.schedule.fired
        assert document["paused_ms"] == (seen.schedule.paused_ms or None)
        assert document["job"]["payload"] == json.loads(seen.spec.template.payload)
    sql = "SELECT id, enabled, document FROM webhooks ORDER BY id"
    found = list(view.connection.execute(sql))
    for row, seen in zip(found, engine.machine.webhooks(0), strict=True):
        document = json.loads(row[2])
        assert row[:2] == (render_id(WEBHOOK, seen.webhook.id), seen.webhook.is_enabled)
        assert document["has_secret"] == bool(seen.webhook.secret)
        assert document["suspended"] == bool(seen.progress.suspended_ms)
        assert document["events"] == list(seen.webhook.events)


def assert_sums_are_right(view: SideView) -> None:
    """What is summed up job by job is what adding everything up gives."""
    sql = (
        "SELECT j.ns, j.queue, count(*), sum(octet_length(p.payload_text)),"
        " sum(ifnull(octet_length(d.result_text), 0)),"
        " sum(ifnull(octet_length(d.checkpoint_text), 0)), sum(j.error_count)"
        " FROM jobs j JOIN job_payloads p USING (n) LEFT JOIN job_documents d USING (n)"
        " GROUP BY j.ns, j.queue ORDER BY 1, 2"
    )
    summed = list(view.connection.execute("SELECT * FROM queue_storage ORDER BY ns, queue"))
    assert summed == list(view.connection.execute(sql))


def known_locks(view: SideView, engine: BareEngine) -> list[Any]:
    """Locks of jobs one can ask for; one of a queue that was cleared is freed without an event."""
    found = locks(view.connection, engine.machine.now_ms)
    owners = {row[4]: engine.machine.job(0, parse_id(JOB, row[4]) or b"") for row in found}
    return [row for row in found if owners[row[4]] is not None]


@settings(max_examples=EXAMPLES, deadline=None)
@given(seed=st.integers(0, 2**32), slice_bytes=st.sampled_from((100, 2_000, 100_000)))
def test_every_table_is_the_same_whichever_way_it_was_filled(
    seed: int, slice_bytes: int, tmp_path_factory: pytest.TempPathFactory
):
    """Whatever happened, and with the view stopped in between: followed, rebuilt, the store."""
    chance = Random(seed)
    engine = BareEngine(MemoryStore())
    view = SideView(engine, tmp_path_factory.mktemp("view"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sender, "SLICE_BYTES", slice_bytes)
        follow(engine, view, write_log(chance, 50), chance, kills=5)
    followed = dump(view.connection)
    followed_locks = known_locks(view, engine)
    followed_words = words(view.connection)
    assert_equal_to_store(view, engine)
    assert_equal_records(view, engine)
    assert_sums_are_right(view)
    view.rebuild()
    rebuilt = dump(view.connection)
    for table, rows in followed.items():
        assert rows == rebuilt[table], table
    assert followed_locks == known_locks(view, engine)
    assert followed_words == words(view.connection)
    assert_equal_records(view, engine)
    view.close()


def test_the_secret_of_a_webhook_never_reaches_the_file(tmp_path: Path):
    """Not when it is followed, not when it is built anew: no byte of the files has it."""
    engine = BareEngine(MemoryStore())
    view = SideView(engine, tmp_path / "view")
    secret = "a-secret-nobody-else-would-write"
    command = c.CreateWebhook(
        0, make_job_id(1), "https://example.com/", ("*",), (), secret, True, 3
    )
    _step(engine, command)
    view.catch_up()
    view.rebuild()
    assert view.connection.execute("SELECT count(*) FROM webhooks").get == 1
    document = json.loads(view.connection.execute("SELECT document FROM webhooks").get)
    assert document["has_secret"] is True
    view.close()
    for path in view.directory.iterdir():
        assert secret.encode() not in path.read_bytes(), path
    assert any(secret.encode() in value for _, value in engine.store.scan(b"w", b"x", 10))


def test_usage_and_iterations_are_kept_as_reported(tmp_path: Path):
    """The last report of usage is a row; every iteration that was named is one, too."""
    engine = BareEngine(MemoryStore())
    view = SideView(engine, tmp_path / "view")
    _step(engine, make_enqueue(1), make_fetch())
    job = engine.machine.job(0, make_job_id(1))
    assert job is not None
    token = job.job.token
    beat = c.HeartbeatJob(0, make_job_id(1), token)
    _step(engine, replace(beat, usage=b'{"iteration":1,"status":"continue","input_tokens":5}'))
    view.catch_up()
    assert _usage(view) == (5, 0, 0)
    _step(engine, replace(beat, usage=b'{"iteration":2,"input_tokens":9}'))
    _step(engine, replace(beat, usage=b'{"iteration":2,"status":"hold","input_tokens":11}'))
    usage = b'{"iteration":3,"status":"done","output_tokens":4,"cost_usd":0.0025}'
    _step(engine, c.AckJob(0, make_job_id(1), token, usage=usage))
    view.catch_up()
    assert _usage(view) == (0, 4, 2_500)
    expected = [(1, "continue"), (2, "hold"), (3, "done")]
    assert _iterations(view) == expected
    view.rebuild()
    assert _usage(view) == (0, 4, 2_500)
    assert _iterations(view) == expected
    _step(engine, c.DeleteJob(0, make_job_id(1)))
    view.catch_up()
    assert _iterations(view) == []
    assert view.connection.execute("SELECT count(*) FROM job_usage").get == 0
    view.close()


@pytest.mark.parametrize(
    "usage",
    [
        b'{"iteration": 1.5}',
        b'{"iteration": 99999999999999999999}',
        b'{"iteration": null}',
        b'["iteration"]',
        b'{"iteration": 1, "deep": ' + b"[" * 900 + b"]" * 900 + b"}",
    ],
)
def test_a_report_that_names_no_iteration_is_only_usage(usage: bytes, tmp_path: Path):
    """Whatever stands there, the report is kept and the job completes."""
    engine = BareEngine(MemoryStore())
    view = SideView(engine, tmp_path / "view")
    _step(engine, make_enqueue(1), make_fetch())
    job = engine.machine.job(0, make_job_id(1))
    assert job is not None
    _step(engine, c.AckJob(0, make_job_id(1), job.job.token, usage=usage))
    view.catch_up()
    done = engine.machine.job(0, make_job_id(1))
    assert done is not None
    assert (done.job.state, done.usage) == (j.COMPLETED, usage)
    assert _iterations(view) == []
    assert view.connection.execute("SELECT reported FROM job_usage").get == usage.decode()
    view.close()


def _step(engine: BareEngine, *commands: c.Command) -> None:
    entry = Entry(engine.machine.version, START_MS, list(commands))
    engine.apply(encode_entry(entry), entry)


def _usage(view: SideView) -> Any:
    sql = "SELECT input_tokens, output_tokens, cost_microusd FROM job_usage JOIN jobs USING (n)"
    return view.connection.execute(f"{sql} WHERE id = ?", (render_id(JOB, make_job_id(1)),)).get


def _iterations(view: SideView) -> list[Any]:
    sql = "SELECT iteration, status FROM job_iterations ORDER BY iteration"
    return list(view.connection.execute(sql))
