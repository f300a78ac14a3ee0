"""Commands that find and watch, over a real socket and a real search index."""

import json
from pathlib import Path

from corvo.cli.client import Client
from tests.support.cli import Shell, finish, kill
from tests.support.process import ServerProcess


def _settle(shell: Shell) -> None:
    """Wait until everything so far can be found."""
    shell.ok("search", "--fresh", "--limit", "1")


def test_search_prints_ids_tables_and_documents(shell: Shell, queue: str) -> None:
    """Ids in a pipe, a table for people, one array, a line each, or YAML."""
    ids = [shell.json("enqueue", queue, f'{{"n":{n}}}')["job_id"] for n in range(3)]
    _settle(shell)
    found = ("search", "--queue", queue, "--order", "asc")
    assert shell.ok(*found).lines == ids
    assert [job["id"] for job in shell.json(*found)] == ids
    lines = shell.ok(*found, "--output", "jsonl").lines
    assert [json.loads(line)["payload"] for line in lines] == [{"n": n} for n in range(3)]
    assert f"- id: {ids[0]}" in shell.ok(*found, "--output", "yaml").stdout
    table = shell.ok(*found, "--output", "table")
    assert table.lines[0].startswith("ID")
    assert "3 of 3" in table.stderr
    assert shell.ok(*found, "--limit", "2").lines == ids[:2]
    seen = shell.ok(*found, terminal=True)
    assert "\x1b[" in seen.stdout
    plain = shell.ok(*found, terminal=True, variables={"NO_COLOR": "1"})
    assert "\x1b[" not in plain.stdout


def test_search_goes_through_all_pages(shell: Shell, queue: str) -> None:
    """More than one page of matches, each once."""
    payloads = "\n".join("{}" for _ in range(2_500))
    made = shell.ok("enqueue", queue, "--payloads", "-", stdin=payloads).lines
    _settle(shell)
    found = shell.ok("search", "--queue", queue).lines
    assert len(found) == 2_500
    assert set(found) == set(made)


def test_every_filter_of_search_narrows_it(shell: Shell, queue: str) -> None:
    """Each filter alone finds the one job it is meant for, and not the other."""
    flags = ("--tag", "t=1", "--unique-key", f"{queue}-k", "--group", "g", "--priority", "high")
    parent = shell.json("enqueue", f"{queue}-other")["job_id"]
    wanted = shell.json("enqueue", queue, '{"amount":200}', *flags, "--parent-id", parent)["job_id"]
    finish(shell, queue, "SMTP 550")
    shell.ok("enqueue", queue, '{"amount":1}')
    _settle(shell)
    for option in (
        ("--state", "retrying,dead"),
        ("--priority", "high"),
        ("--tag", "t=1"),
        ("--payload-contains", "200"),
        ("--payload-jq", ".amount > 100"),
        ("--error-contains", "smtp"),
        ("--has-errors",),
        ("--worker-id", "w"),
        ("--parent-id", parent),
        ("--unique-key", f"{queue}-k"),
        ("--group", "g"),
        ("--job-id-prefix", wanted),
        ("--attempt-min", "1"),
        ("--started-after", "2020-01-01"),
        ("--started-before", "2099-01-01T00:00:00"),
    ):
        assert shell.ok("search", "--queue", queue, *option).lines == [wanted], option
    for option in (("--attempt-max", "0"), ("--no-errors",), ("--created-before", "2020-01-01")):
        assert wanted not in shell.ok("search", "--queue", queue, *option).lines, option
    assert shell("search", "--created-after", "yesterday").code == 2
    assert shell("search", "--tag", "novalue").code == 2
    refused = shell("search", "--payload-jq", ".a ==")
    assert (refused.code, "payload_jq" in refused.stderr) == (1, True)


def test_dead_jobs_are_listed_and_grouped(shell: Shell, queue: str) -> None:
    """One by one, or by kind of error."""
    dead = [kill(shell, queue, f"SMTP 550 for user {n}") for n in range(2)]
    _settle(shell)
    assert sorted(shell.ok("dead", "--queue", queue).lines) == sorted(dead)
    groups = shell.json("dead", "--groups", "--queue", queue)
    assert [group["count"] for group in groups] == [2]
    table = shell.ok("dead", "--queue", queue, "--output", "table").stdout
    assert "SMTP" in table
    assert "SMTP" in shell.ok("dead", "--groups", "--queue", queue).stdout


def test_batches_are_listed(shell: Shell, queue: str) -> None:
    """The newest first; open and finished apart."""
    flags = ("--callback-queue", f"{queue}-done")
    batch = shell.json("enqueue", queue, "--payloads", "-", *flags, stdin="1\n")["batch_id"]
    _settle(shell)
    assert shell.json("batches", "--state", "open")[0]["id"] == batch
    assert batch in shell.ok("batches").stdout
    assert batch not in shell.ok("batches", "--state", "finished").stdout


def test_events_are_followed_from_where_one_says(shell: Shell, queue: str) -> None:
    """`tail` streams, `events --no-follow` ends; both begin at an age, a number or a time."""
    shell.ok("enqueue", queue)
    finish(shell, queue)
    since = ("--queue", queue, "--since")
    streamed = shell.ok("tail", *since, "1h", "--count", "3", "--output", "jsonl").lines
    types = [json.loads(line)["type"] for line in streamed]
    assert types == ["queue.created", "enqueued", "started"]
    first = json.loads(streamed[0])["seq"]
    kept = shell.ok("events", "--no-follow", *since, str(first), "--output", "jsonl").lines
    assert [json.loads(line)["type"] for line in kept] == ["enqueued", "started", "completed"]
    at = json.loads(streamed[1])["at"]
    later = shell.ok("events", "--no-follow", *since, at, "--type", "completed").stdout
    assert "completed" in later
    assert queue in later
    assert shell.ok("events", "--no-follow", *since, "2099-01-01").stdout == ""
    assert shell("tail", "--since", "sometime").code == 2
    assert shell("tail", "--url", "http://127.0.0.1:9").code == 3


def test_a_tail_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    """It goes on where it was: nothing is lost, nothing is told twice."""
    flags = ("--fsync", "off", "--shutdown-timeout", "1ms")
    with ServerProcess(tmp_path, *flags) as server:
        shell, client = Shell(server.url), Client(server.url)
        first = shell.json("enqueue", "q")["job_id"]
        stream = client.events({"type": "enqueued"}, 0, patience_seconds=60)
        assert next(stream)["job_id"] == first
        server.stop()
        # The last of two flags counts: the same port again, as a real server has it.
        with ServerProcess(tmp_path, *flags, "--bind", f"127.0.0.1:{server.port}"):
            second = shell.json("enqueue", "q")["job_id"]
            assert next(stream)["job_id"] == second
            client.close()


def test_every_form_of_output_holds_the_same(shell: Shell, queue: str) -> None:
    """CORVO_OUTPUT names a form as --output does; the flag comes first."""
    shell.ok("enqueue", queue)
    by_variable = shell.ok("queue", queue, variables={"CORVO_OUTPUT": "json"}).json
    assert by_variable == shell.json("queue", queue)
    lines = shell.ok("queue", queue, "--output", "jsonl", variables={"CORVO_OUTPUT": "yaml"}).lines
    assert [json.loads(line) for line in lines] == [by_variable]
    assert shell("queues", variables={"CORVO_OUTPUT": "xml"}).code == 2
    assert shell("queues", "--output", "xml").code == 2
