"""Commands about single jobs, over a real socket."""

import json
from pathlib import Path

import pytest

from tests.support.cli import Shell, finish, kill


def test_every_option_of_enqueue_reaches_the_job(shell: Shell, queue: str) -> None:
    """What can be said about a job by HTTP can be said on the line."""
    first = shell.json("enqueue", queue)["job_id"]
    shell.ok("limits", "set", f"{queue}-limit", "--max", "5")
    options = {
        "--priority": "high",
        "--at": "2099-01-31T09:00:00Z",
        "--expire-after": "1h",
        "--max-retries": "7",
        "--retry-backoff": "linear",
        "--retry-base-delay": "2s",
        "--retry-max-delay": "1m",
        "--retry-jitter": "0.5",
        "--unique-key": "k",
        "--unique-period": "10m",
        "--unique-mode": "window",
        "--group": "g",
        "--limit-key": "lk",
        "--limit": f"{queue}-limit",
        "--cost": "3",
        "--on-dependency-failure": "hold",
        "--parent-id": first,
        "--tag": "team=a",
        "--trace": '{"t":1}',
        "--checkpoint": '{"at":5}',
        "--chain": json.dumps({"steps": [{"queue": queue}, {"queue": queue}]}),
    }
    words = [word for pair in options.items() for word in pair]
    job = shell.json("inspect", shell.json("enqueue", queue, '{"n":1}', *words)["job_id"])
    assert job["priority"] == "high"
    assert job["scheduled_at"] == "2099-01-31T09:00:00.000Z"
    assert job["expire_after"] == "1h"
    assert (job["max_retries"], job["retry_backoff"], job["retry_jitter"]) == (7, "linear", 0.5)
    assert (job["retry_base_delay"], job["retry_max_delay"]) == ("2s", "1m")
    assert (job["unique_key"], job["unique_mode"], job["unique_period"]) == ("k", "window", 600)
    assert (job["group"], job["limit_key"], job["cost"]) == ("g", "lk", 3)
    assert job["limits"] == [f"{queue}-limit"]
    assert (job["parent_id"], job["tags"]) == (first, {"team": "a"})
    assert (job["trace"], job["checkpoint"]) == ({"t": 1}, {"at": 5})
    assert len(job["chain"]["steps"]) == 2
    dependant = shell.json("enqueue", queue, "{}", "--depends-on", first)["job_id"]
    assert shell.json("inspect", dependant)["depends_on"] == [first]


def test_a_payload_comes_from_the_line_a_file_or_standard_input(
    shell: Shell, queue: str, tmp_path: Path
) -> None:
    """Byte for byte, so that large numbers keep every digit."""
    number = "123456789012345678901234567890"
    path = tmp_path / "payload.json"
    path.write_text(f'{{"n":{number}}}')
    for payload, stdin in ((f'{{"n":{number}}}', ""), (f"@{path}", ""), ("-", path.read_text())):
        job_id = shell.ok("enqueue", queue, payload, stdin=stdin).stdout.strip()
        assert number in shell.ok("inspect", job_id).stdout
    assert shell("enqueue", queue, "@nowhere.json").code == 2
    assert shell("enqueue", queue, "{not json").code == 2


def test_a_delay_counts_from_now(shell: Shell, queue: str) -> None:
    """`--in` schedules; both ways of saying when are one too many."""
    answer = shell.json("enqueue", queue, "{}", "--in", "1h30m")
    assert answer["status"] == "scheduled"
    assert shell("enqueue", queue, "{}", "--in", "1h", "--at", "2099-01-01").code == 2
    assert shell("enqueue", queue, "{}", "--in", "soon").code == 2


def test_many_jobs_come_from_lines(shell: Shell, queue: str, tmp_path: Path) -> None:
    """Lines are jobs or payloads; options hold for those that do not say otherwise."""
    path = tmp_path / "jobs.jsonl"
    lines = [{"payload": {"n": n}} for n in range(1_200)]
    lines.append({"queue": f"{queue}-other", "priority": "critical"})
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    made = shell.ok("enqueue", queue, "--batch", str(path), "--tag", "from=file").lines
    assert len(set(made)) == 1_201
    assert shell.json("queue", queue)["pending"] == 1_200
    last = shell.json("inspect", made[-1])
    assert (last["queue"], last["priority"]) == (f"{queue}-other", "critical")
    assert last["tags"] == {"from": "file"}
    piped = shell.json("enqueue", queue, "--payloads", "-", stdin='{"a":1}\n[2]\n')
    assert piped["count"] == 2
    assert shell.json("inspect", piped["job_ids"][1])["payload"] == [2]


def test_a_batch_has_a_callback(shell: Shell, queue: str) -> None:
    """All jobs of the file are one batch, and the batch can be looked at."""
    flags = ("--callback-queue", f"{queue}-done", "--callback-payload", '{"of":"file"}')
    made = shell.json("enqueue", queue, "--payloads", "-", *flags, stdin="1\n2\n")
    batch = shell.json("batches", made["batch_id"])
    assert (batch["total"], batch["callback_queue"]) == (2, f"{queue}-done")
    assert batch["callback_payload"] == {"of": "file"}


def test_a_bad_line_sends_nothing(shell: Shell, queue: str) -> None:
    """The mistake is named by its line, and the queue does not appear."""
    refused = shell("enqueue", queue, "--batch", "-", stdin='{"payload":1}\n{nope}\n')
    assert refused.code == 2
    assert "line 2" in refused.stderr
    assert shell("queue", queue).code == 1
    assert "no queue" in shell("enqueue", "--batch", "-", stdin="{}\n").stderr
    assert shell("enqueue", queue, "--batch", "-").code == 2
    assert shell("enqueue", queue, "{}", "--batch", "-").code == 2
    assert shell("enqueue", "--payloads", "-", stdin="1\n").code == 2
    assert shell("enqueue", queue, "--callback-queue", "x").code == 2
    assert shell("enqueue", queue, "--callback-payload", "{}").code == 2


def test_an_idempotency_key_covers_a_file(shell: Shell, queue: str) -> None:
    """The same file under the same key is enqueued once."""
    arguments = ("enqueue", queue, "--payloads", "-", "--idempotency-key", queue)
    first = shell.ok(*arguments, stdin="1\n2\n").lines
    assert shell.ok(*arguments, stdin="1\n2\n").lines == first


def test_what_a_job_says_does_not_speak_to_the_terminal(shell: Shell, queue: str) -> None:
    """Control characters of errors, reasons and payloads are shown, not obeyed."""
    evil = "\x1b]0;gone\x07\x9b2J\u202eabc"
    job_id = shell.json("enqueue", queue, "{}", "--max-retries", "1", "--unique-key", "k")["job_id"]
    finish(shell, queue, evil)
    held = shell.json("enqueue", queue, json.dumps({"x": evil}), "--hold-reason", "a\tb")["job_id"]
    shell.ok("search", "--fresh", "--queue", queue)
    shown = [
        shell.ok("inspect", job_id).stdout,
        shell.ok("inspect", held).stdout,
        shell.ok("dead", "--queue", queue, "--output", "table").stdout,
        shell.ok("held", "--queue", queue, "--output", "table").stdout,
        shell.ok("events", job_id).stdout,
        shell("inspect", evil).stderr,
    ]
    for text in shown:
        assert not set(text) & set("\x1b\x07\x9b\u202e"), text
    assert "\\x1b" in shown[2]


def test_a_job_explains_what_it_waits_for(shell: Shell, queue: str) -> None:
    """The gates, by either command."""
    job_id = shell.json("enqueue", queue)["job_id"]
    shell.ok("pause", queue)
    assert "closed  paused" in shell.ok("why", job_id).stdout
    assert shell.ok("inspect", job_id, "--why").stdout == shell.ok("why", job_id).stdout
    assert shell("inspect", job_id, "--why", "--events").code == 2


def test_waiting_ends_with_the_job(shell: Shell, queue: str) -> None:
    """0 when it completed, 1 when it died, 7 when it did not end in time."""
    done = shell.json("enqueue", queue)["job_id"]
    assert shell("wait", done, "--timeout", "10ms").code == 7
    assert finish(shell, queue) == done
    assert shell.json("wait", done)["result"] == {"n": 1}
    assert shell("wait", kill(shell, queue)).code == 1


def test_a_timeline_is_told_from_the_beginning(shell: Shell, queue: str) -> None:
    """`events JOB` and `inspect --events` show the same."""
    job_id = shell.json("enqueue", queue)["job_id"]
    finish(shell, queue)
    shell.ok("search", "--fresh", "--queue", queue)
    told = [event["type"] for event in shell.json("events", job_id)]
    assert told[:2] == ["enqueued", "started"]
    assert "completed" in shell.ok("inspect", job_id, "--events").stdout
    assert shell("events", job_id, "--queue", queue).code == 2


def test_what_a_job_is_tied_to_is_shown(shell: Shell, queue: str) -> None:
    """The graph has both jobs and the edge between them."""
    first = shell.json("enqueue", queue)["job_id"]
    second = shell.json("enqueue", queue, "{}", "--depends-on", first)["job_id"]
    shell.ok("search", "--fresh", "--queue", queue)
    graph = shell.json("inspect", second, "--graph")
    assert [edge["type"] for edge in graph["edges"]] == ["dependency"]
    assert first in shell.ok("inspect", second, "--graph").stdout


@pytest.mark.parametrize("verb", ["retry", "requeue", "delete"])
def test_a_dead_job_can_run_again_or_go(shell: Shell, queue: str, verb: str) -> None:
    """Each takes several jobs; one that is refused does not keep the others."""
    dead = [kill(shell, queue), kill(shell, queue)]
    mixed = shell(verb, dead[0], "job_00000000000000000000000000", dead[1], "--output", "json")
    assert mixed.code == 1
    assert [each["job_id"] for each in mixed.json] == dead
    assert "NOT_FOUND" in mixed.stderr


def test_a_job_is_moved_raised_and_cancelled(shell: Shell, queue: str) -> None:
    """move, priority and cancel."""
    job_id = shell.json("enqueue", queue)["job_id"]
    shell.ok("move", job_id, f"{queue}-b")
    shell.ok("priority", job_id, "critical")
    job = shell.json("inspect", job_id)
    assert (job["queue"], job["priority"]) == (f"{queue}-b", "critical")
    assert "cancelled" in shell.ok("cancel", job_id).stdout
    assert shell("priority", job_id, "urgent").code == 2


def test_a_held_job_is_approved_or_rejected(shell: Shell, queue: str) -> None:
    """hold, held, approve and reject; who decided is kept."""
    held = shell.json("enqueue", queue, "{}", "--hold-reason", "look", "--hold-timeout", "1d")
    assert held["status"] == "held"
    plain = shell.json("enqueue", queue)["job_id"]
    shell.ok("hold", plain, "--reason", "wait", "--timeout", "1h", "--timeout-action", "cancel")
    shell.ok("search", "--fresh", "--queue", queue)
    assert shell.ok("held", "--queue", queue).lines == [held["job_id"], plain]
    shell.ok("approve", plain, "--by", "ada", "--note", "fine")
    shell.ok("reject", held["job_id"], "--by", "grace", "--reason", "no")
    approved, rejected = (shell.json("inspect", each) for each in (plain, held["job_id"]))
    assert (approved["state"], approved["decided_by"]) == ("pending", "ada")
    assert (rejected["state"], rejected["decided_by"]) == ("dead", "grace")


def test_a_clone_differs_where_it_is_told_to(shell: Shell, queue: str) -> None:
    """A copy of a job in whatever state."""
    job_id = shell.json("enqueue", queue, '{"n":1}', "--tag", "a=b")["job_id"]
    flags = ("--queue", f"{queue}-b", "--payload", '{"n":2}', "--priority", "high")
    copy = shell.ok("clone", job_id, *flags, "--at", "2099-01-01").stdout.strip()
    job = shell.json("inspect", copy)
    assert (job["queue"], job["payload"], job["priority"]) == (f"{queue}-b", {"n": 2}, "high")
    assert (job["cloned_from"], job["tags"], job["state"]) == (job_id, {"a": "b"}, "scheduled")
