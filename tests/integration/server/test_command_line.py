"""The command line against a real server: results on standard output, failures with a code."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process import ServerProcess, corvo


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data: Path = tmp_path_factory.mktemp("data")
    with ServerProcess(data, "--fsync", "off", "--shutdown-timeout", "1ms") as running:
        yield running
        assert running.stop() == 0


def test_enqueued_job_can_be_inspected(server: ServerProcess) -> None:
    """Enqueue prints the id alone when piped; inspect shows the job."""
    flags = ("--priority", "high", "--tag", "team=a", "--max-retries", "5")
    job_id = corvo("enqueue", "mail", '{"n": 1}', *flags, url=server.url).stdout.strip()
    assert job_id.startswith("job_")
    shown = corvo("inspect", job_id, url=server.url)
    assert shown.returncode == 0
    assert "high" in shown.stdout
    document = json.loads(corvo("inspect", job_id, "--output", "json", url=server.url).stdout)
    assert document["tags"] == {"team": "a"}
    assert document["max_retries"] == 5


def test_payload_is_read_from_standard_input_byte_for_byte(server: ServerProcess) -> None:
    """A dash reads the payload; large numbers keep every digit."""
    number = "123456789012345678901234567890"
    done = corvo("enqueue", "mail", "-", url=server.url, stdin=f'{{"n": {number}}}')
    shown = corvo("inspect", done.stdout.strip(), url=server.url)
    assert number in shown.stdout


def test_why_lists_the_gates_of_a_job(server: ServerProcess) -> None:
    """A paused queue is named as the reason."""
    job_id = corvo("enqueue", "stopped", url=server.url).stdout.strip()
    assert corvo("pause", "stopped", url=server.url).returncode == 0
    shown = corvo("inspect", job_id, "--why", url=server.url)
    assert "closed  paused" in shown.stdout
    assert corvo("resume", "stopped", url=server.url).returncode == 0


def test_queues_are_listed_with_counts(server: ServerProcess) -> None:
    """The list holds what was enqueued, for people and for programs."""
    corvo("enqueue", "counted", url=server.url)
    corvo("enqueue", "counted", url=server.url)
    table = corvo("queues", url=server.url).stdout
    row = next(line for line in table.splitlines() if line.startswith("counted"))
    assert row.split()[1] == "2"
    listed = json.loads(corvo("queues", "--output", "json", url=server.url).stdout)
    assert {queue["name"]: queue["pending"] for queue in listed}["counted"] == 2


def test_jobs_and_queues_can_be_changed(server: ServerProcess) -> None:
    """Cancel, retry, move, delete, clear, drain and destroy do what they say."""
    job_id = corvo("enqueue", "changed", url=server.url).stdout.strip()
    for arguments in (
        ("cancel", job_id),
        ("retry", job_id),
        ("move", job_id, "elsewhere"),
        ("delete", job_id),
        ("clear", "changed"),
        ("drain", "changed"),
        ("destroy", "changed", "--confirm"),
    ):
        done = corvo(*arguments, url=server.url)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"


def test_refusal_prints_sentence_code_and_exit_code(server: ServerProcess) -> None:
    """What the server refuses ends with 1, and nothing on standard output."""
    done = corvo("inspect", "job_00000000000000000000000000", url=server.url)
    assert done.returncode == 1
    assert "NOT_FOUND" in done.stderr
    assert done.stdout == ""
    refused = corvo("destroy", "mail", url=server.url)
    assert (refused.returncode, "CONFIRMATION_REQUIRED" in refused.stderr) == (1, True)


def test_one_refused_job_does_not_keep_the_others(server: ServerProcess) -> None:
    """A list of jobs is worked through; the exit code says that one was refused."""
    job_id = corvo("enqueue", "several", url=server.url).stdout.strip()
    done = corvo("cancel", "job_00000000000000000000000000", job_id, url=server.url)
    assert done.returncode == 1
    assert job_id in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("enqueue", "q", "{not json"),
        ("enqueue", "q", "{}", "--tag", "novalue"),
        ("enqueue",),
        ("nonsense",),
        ("server", "--fsync", "maybe"),
        ("server", "--join", "other:9400"),
        ("server", "--bind", "0.0.0.0:1"),
        ("fsck", "--data-dir", "does-not-exist"),
    ],
)
def test_wrong_command_ends_with_two(arguments: tuple[str, ...]) -> None:
    """Mistakes in the command or a setting have one exit code."""
    done = corvo(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stderr


def test_absent_server_ends_with_three() -> None:
    """No server at the address: a hint, and an exit code of its own."""
    done = corvo("queues", url="http://127.0.0.1:9")
    assert done.returncode == 3
    assert "corvo server" in done.stderr


@pytest.mark.parametrize("mode", ["enqueue", "lifecycle"])
def test_bench_checks_its_own_run(server: ServerProcess, mode: str) -> None:
    """A run of the load generator is verified job by job and leaves no queue behind."""
    flags = ("--mode", mode, "--jobs", "200", "--connections", "8", "--output", "json")
    done = corvo("bench", *flags, url=server.url)
    assert done.returncode == 0, done.stderr + done.stdout
    report = json.loads(done.stdout)
    assert report["verified"] is True
    assert report["jobs"] == 200
    assert "bench." not in corvo("queues", url=server.url).stdout


def test_many_jobs_are_changed_at_once_and_brought_back(server: ServerProcess) -> None:
    """Ids come on standard input; the id to undo with goes to standard error."""
    names = [corvo("enqueue", "many", url=server.url).stdout.strip() for _ in range(3)]
    piped = "\n".join(names)
    dry = corvo("bulk", "delete", "--dry-run", url=server.url, stdin=piped)
    assert dry.stdout.startswith("would affect 3\n")
    moved = corvo("bulk", "move", "many.v2", url=server.url, stdin=piped)
    assert moved.stdout == "affected 3\n", moved.stderr
    name = moved.stderr.split()[-1]
    undone = corvo("bulk", "undo", name, url=server.url)
    assert undone.stdout == "undone  restored 3\n", undone.stderr
    document = json.loads(corvo("bulk", "status", name, "--output", "json", url=server.url).stdout)
    assert (document["status"], document["restored"]) == ("undone", 3)
    raised = corvo("bulk", "change_priority", "high", url=server.url, stdin=piped)
    assert raised.stdout == "affected 3\n"
    assert corvo("bulk", "abort", name, url=server.url).returncode == 1


def test_bulk_without_jobs_or_target_is_a_usage_error(server: ServerProcess) -> None:
    """Nothing is sent when it can not be meant."""
    assert corvo("bulk", "move", url=server.url, stdin="job_x").returncode == 2
    assert corvo("bulk", "retry", "target", url=server.url, stdin="job_x").returncode == 2
    assert corvo("bulk", "retry", "--filter", "{", url=server.url).returncode == 2
    assert corvo("bulk", "undo", url=server.url).returncode == 2
