"""Many jobs at once, over a real socket: what may be piped in, and what is asked."""

import json

import pytest

from tests.support.cli import Shell, kill


@pytest.fixture
def ids(shell: Shell, queue: str) -> list[str]:
    made = shell.ok("enqueue", queue, "--payloads", "-", stdin="1\n2\n3\n").lines
    shell.ok("search", "--fresh", "--limit", "1")
    return made


def test_whatever_prints_jobs_can_be_piped_in(shell: Shell, queue: str, ids: list[str]) -> None:
    """Ids, arrays, lines of JSON, objects of a search, an answer saved with curl."""
    found = shell.json("search", "--queue", queue)
    forms = [
        "\n".join(ids),
        " ".join(ids),
        json.dumps(ids),
        json.dumps(found),
        "\n".join(json.dumps(job) for job in found),
        "\n".join(json.dumps(job_id) for job_id in ids),
        json.dumps({"jobs": found, "total": 3}),
        json.dumps([{"job_id": job_id} for job_id in ids]),
        "\n".join([*ids, *ids]),
    ]
    for form in forms:
        dry = shell.ok("bulk", "delete", "--dry-run", stdin=form)
        assert dry.lines[0] == "would affect 3", form


@pytest.mark.parametrize("content", ["", "  \n", "[]", "null"])
def test_nothing_to_do_is_no_mistake(shell: Shell, content: str) -> None:
    """A search without matches ends a pipeline well; a person is told what is missing."""
    done = shell.json("bulk", "delete", stdin=content)
    assert done["affected"] == 0
    assert shell("bulk", "delete", terminal=True).code == 2


@pytest.mark.parametrize("content", ['[{"name":"x"}]', "[1]", '{"a":1}\n{nope', "[null]"])
def test_what_names_no_job_is_refused(shell: Shell, content: str) -> None:
    """Nothing is sent when it can not be meant."""
    assert shell("bulk", "delete", stdin=content).code == 2


def test_the_target_is_a_word_or_an_option(shell: Shell, queue: str, ids: list[str]) -> None:
    """`move QUEUE` and `--move-to`, `change_priority` by three names; never two targets."""
    piped = "\n".join(ids)
    shell.ok("bulk", "move", f"{queue}-b", stdin=piped)
    shell.ok("bulk", "move", "--move-to", queue, "--reset-attempts", stdin=piped)
    assert shell.json("queue", queue)["pending"] == 3
    for arguments in (("change_priority", "high"), ("change-priority", "--priority", "normal")):
        assert shell.ok("bulk", *arguments, stdin=piped).lines[0].startswith("affected 3")
    assert shell.ok("bulk", "priority", "critical", stdin=piped).lines[0] == "affected 3"
    assert shell("bulk", "move", "a", "--move-to", "b", stdin=piped).code == 2
    assert shell("bulk", "retry", "--move-to", "b", stdin=piped).code == 2
    assert shell("bulk", "move", "--priority", "high", stdin=piped).code == 2
    assert shell("bulk", "change_priority", stdin=piped).code == 2


def test_held_jobs_are_decided_together(shell: Shell, queue: str, ids: list[str]) -> None:
    """hold, approve and reject, with who and why."""
    shell.ok("bulk", "hold", "--reason", "look", "--timeout", "1d", stdin="\n".join(ids))
    shell.ok("bulk", "approve", "--by", "ada", "--note", "ok", stdin=ids[0])
    shell.ok("bulk", "reject", "--reason", "no", "--by", "grace", stdin="\n".join(ids[1:]))
    states = [shell.json("inspect", job_id)["state"] for job_id in ids]
    assert states == ["pending", "dead", "dead"]
    assert shell.ok("bulk", "requeue", stdin="\n".join(ids[1:])).lines[0] == "affected 2"


def test_an_operation_is_listed_followed_and_undone(
    shell: Shell, queue: str, ids: list[str]
) -> None:
    """The id on standard error is enough to take it all back."""
    done = shell.ok("bulk", "cancel", stdin="\n".join(ids))
    name = done.stderr.split()[-1]
    assert shell.json("bulk", "status", name)["affected"] == 3
    assert "restored 3" in shell.ok("bulk", "undo", name).stdout
    assert "restored 3" in shell.ok("bulk", "undo", name).stdout
    assert shell("bulk", "abort", name).code == 1
    assert shell("bulk", "abort").code == 2
    assert shell("bulk", "status", "bulk_00000000000000000000000000").code == 1


def test_operations_are_listed(shell: Shell, ids: list[str]) -> None:
    """The newest first, with what became of them."""
    name = shell.ok("bulk", "cancel", stdin="\n".join(ids)).stderr.split()[-1]
    assert shell.json("bulk", "list", "--limit", "1")[0]["id"] == name
    assert name in shell.ok("bulk", "list").stdout


def test_a_filter_names_the_jobs(shell: Shell, queue: str) -> None:
    """Inline, as printed in the design; a large one is waited for, or not."""
    dead = [kill(shell, queue), kill(shell, queue)]
    text = json.dumps({"queue": queue, "state": ["dead"]})
    dry = shell.json("bulk", "retry", "--filter", text, "--dry-run")
    assert (dry["affected"], {job["job_id"] for job in dry["sample"]}) == (2, set(dead))
    assert shell.ok("bulk", "retry", "--filter", text).stdout == "affected 2\n"
    assert shell("bulk", "retry", "--filter", '{"nonsense":1}').code == 1


def test_a_person_is_asked_before_jobs_are_destroyed(
    shell: Shell, queue: str, ids: list[str]
) -> None:
    """The question names the number; no leaves everything; --yes is not asked."""
    text = json.dumps({"queue": queue})
    arguments = ("bulk", "delete", "--filter", text)
    refused = shell(*arguments, terminal=True, stdin="n\n")
    assert refused.code == 1
    assert "delete 3 jobs?" in refused.stderr
    assert shell.json("queue", queue)["pending"] == 3
    assert shell.ok(*arguments, "--yes", terminal=True).lines[0] == "affected 3"
    assert shell("bulk", "retry", "--filter", text, terminal=True).code == 0


def test_a_large_operation_returns_at_once_or_is_waited_for(shell: Shell, queue: str) -> None:
    """Beyond ten thousand jobs it goes on by itself."""
    payloads = "\n".join("{}" for _ in range(10_500))
    shell.ok("enqueue", queue, "--payloads", "-", stdin=payloads)
    text = json.dumps({"queue": queue})
    started = shell.json("bulk", "move", f"{queue}-b", "--filter", text, "--no-wait")
    assert started["status"] == "processing"
    undone = shell.ok("bulk", "undo", started["bulk_operation_id"], terminal=True)
    assert "restored 10500" in undone.stdout
