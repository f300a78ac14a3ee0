"""The command as shells see it: pipelines, completion, start, the pipe that closes."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Shell, kill
from tests.support.process import ServerProcess, environment

BASH = shutil.which("bash") or ""
# As printed in the design of the command line. `jobs.json` lands in the test's own directory.
PIPELINES = r"""
corvo search --queue emails.send --state dead --error-contains "SMTP" --output json \
  | corvo bulk retry
corvo search --queue old.emails --state pending --output json \
  | corvo bulk move emails.v2
corvo search --state completed --created-before "$(date -d '7 days ago' -Iseconds)" --output json \
  | corvo bulk delete
corvo search --queue reports --payload-jq '.customer_id == "cust_42"' --output json > jobs.json
corvo search --queue emails.more --state dead | corvo bulk retry
corvo search --queue old.queue --state pending | corvo bulk move new.queue
corvo search --payload-jq '.legacy == true' | corvo bulk delete
corvo bulk retry --filter '{"queue":"emails.filter","state":["dead"]}'
"""
COUNT = "corvo search --state dead --output json | jq 'group_by(.queue) | map({queue: .[0].queue, count: length})'"  # noqa: E501

pytestmark = pytest.mark.skipif(not BASH, reason="there is no bash on this machine")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shell, Path]]:
    """A server of its own, because the pipelines speak of all jobs, and a `corvo` on the path."""
    directory = tmp_path_factory.mktemp("shell")
    command = directory / "corvo"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m corvo "$@"\n')
    command.chmod(0o755)
    flags = ("--fsync", "off", "--shutdown-timeout", "1ms")
    with ServerProcess(directory / "data", *flags) as server:
        yield Shell(server.url), directory


def bash(place: tuple[Shell, Path], script: str) -> subprocess.CompletedProcess[str]:
    shell, directory = place
    path = f"{directory}:{os.environ['PATH']}"
    return subprocess.run(
        [BASH, "-e", "-u", "-o", "pipefail", "-c", script],
        cwd=directory,
        env=shell.variables | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_pipelines_run_as_printed(place: tuple[Shell, Path]) -> None:
    """Each does what it says, byte for byte as the design has it."""
    shell, directory = place
    for queue in ("emails.send", "emails.more", "emails.filter"):
        kill(shell, queue, "SMTP 550")
    for queue in ("old.emails", "old.queue"):
        shell.ok("enqueue", queue)
    shell.ok("enqueue", "mixed", '{"legacy":true}')
    shell.ok("enqueue", "mixed", '{"legacy":false}')
    shell.ok("enqueue", "reports", '{"customer_id":"cust_42"}')
    shell.ok("search", "--fresh")
    done = bash(place, PIPELINES)
    assert done.returncode == 0, done.stderr
    # No completed job is older than seven days: the third pipeline has nothing to do, and says so.
    assert done.stdout.splitlines()[2] == "affected 0"
    counts = {queue["name"]: queue for queue in shell.json("queues")}
    for queue in ("emails.send", "emails.more", "emails.filter"):
        assert (counts[queue]["dead"], counts[queue]["pending"]) == (0, 1), queue
    assert (counts["old.emails"]["pending"], counts["emails.v2"]["pending"]) == (0, 1)
    assert (counts["old.queue"]["pending"], counts["new.queue"]["pending"]) == (0, 1)
    assert counts["mixed"]["pending"] == 1
    assert "cust_42" in (directory / "jobs.json").read_text()


@pytest.mark.skipif(shutil.which("jq") is None, reason="there is no jq on this machine")
def test_dead_jobs_are_counted_with_jq(place: tuple[Shell, Path]) -> None:
    """The pipeline of the design that needs jq."""
    shell, _ = place
    kill(shell, "counted.dead")
    shell.ok("search", "--fresh")
    done = bash(place, COUNT)
    assert done.returncode == 0, done.stderr
    assert '"counted.dead"' in done.stdout


def test_a_pipe_that_closes_early_is_no_error(place: tuple[Shell, Path]) -> None:
    """`| head -1` ends the search quietly."""
    shell, _ = place
    shell.ok("enqueue", "many", "--payloads", "-", stdin="1\n" * 5_000)
    shell.ok("search", "--fresh", "--limit", "1")
    done = bash(place, "set +o pipefail; corvo search --queue many --output jsonl | head -1")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_is_a_valid_script(place: tuple[Shell, Path], name: str) -> None:
    """Each shell that is here can read its script; bash always is."""
    shell, directory = place
    script = directory / f"completion.{name}"
    script.write_text(shell.ok("completion", name).stdout)
    assert "_CORVO_COMPLETE" in script.read_text()
    program = shutil.which(name)
    if program is not None:
        subprocess.run([program, "-n", str(script)], check=True, capture_output=True)


def test_bash_completes_commands_options_and_queues(place: tuple[Shell, Path]) -> None:
    """What the shell asks while somebody types, with names of queues from the server."""
    shell, _ = place
    shell.ok("enqueue", "completed.name")

    def complete(words: str, position: int) -> set[str]:
        variables = f"COMP_WORDS='{words}' COMP_CWORD={position} _CORVO_COMPLETE=bash_complete"
        done = bash(place, f"{variables} corvo")
        return {line.partition(",")[2] for line in done.stdout.splitlines()}

    assert complete("corvo sea", 1) == {"search"}
    assert "--payload-jq" in complete("corvo search --pay", 2)
    assert complete("corvo pause completed.n", 2) == {"completed.name"}
    assert complete("corvo queue completed.n", 2) >= {"completed.name"}


@pytest.mark.parametrize("arguments", [("--help",), ("queues",)])
def test_the_command_starts_quickly(place: tuple[Shell, Path], arguments: tuple[str, ...]) -> None:
    """A quarter of a second on a quiet machine; measured as work, so that others do not count.

    The work itself takes up to twice as long where processors share their parts with others.
    """
    shell, _ = place
    command = [sys.executable, "-m", "corvo", *arguments]
    took: list[float] = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=shell.variables, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(took) < 0.6


@pytest.mark.parametrize("arguments", [("--help",), ("queues", "--help"), ("enqueue", "--help")])
def test_help_loads_neither_server_nor_http(arguments: tuple[str, ...]) -> None:
    """What takes long to load is loaded by the commands that need it."""
    script = (
        "import sys; from corvo.cli.main import run; run(sys.argv[1:]); "
        "print([n for n in ('rocksdict', 'uvloop', 'urllib3', 'aiohttp', 'starlette')"
        " if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_ctrl_c_ends_a_tail_quietly(place: tuple[Shell, Path]) -> None:
    """Exit code 130, as shells expect, and no trace."""
    shell, _ = place
    shell.ok("enqueue", "interrupted")
    command = [sys.executable, "-m", "corvo", "tail", "--since", "0"]
    with subprocess.Popen(
        command, env=shell.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as tail:
        assert tail.stdout is not None
        assert tail.stdout.readline()
        tail.send_signal(signal.SIGINT)
        _, errors = tail.communicate(timeout=60)
    assert tail.returncode == 130
    assert errors.strip() == ""


def test_a_server_that_goes_away_is_told_with_its_own_code(tmp_path: Path) -> None:
    """`corvo tail` of a server that goes away ends with 3, not with a trace."""
    with ServerProcess(tmp_path, "--fsync", "off") as server:
        command = [sys.executable, "-m", "corvo", "tail", "--since", "0", "--retry-for", "0s"]
        variables = environment() | {"CORVO_URL": server.url}
        with subprocess.Popen(
            command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as tail:
            Shell(server.url).ok("enqueue", "q")
            assert tail.stdout is not None
            while "enqueued" not in tail.stdout.readline():
                assert tail.poll() is None
            server.kill()
            _, errors = tail.communicate(timeout=60)
        assert tail.returncode == 3
        assert errors.startswith("error: ")
