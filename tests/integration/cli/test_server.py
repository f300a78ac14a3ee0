"""Commands about a server, profiles, and the data set to look at."""

import json
from pathlib import Path

import pytest

from corvo import __version__
from corvo.cli.client import API, Client
from tests.support.cli import Shell
from tests.support.process import ServerProcess


def test_status_and_cluster_status_show_the_log(shell: Shell, queue: str) -> None:
    """The same figures; status adds the queues and their sums."""
    shell.ok("enqueue", queue)
    both = shell.json("status")
    assert both["cluster"]["phase"] == "serving"
    assert queue in {each["name"] for each in both["queues"]}
    assert shell.json("cluster", "status")["epoch"] == both["cluster"]["epoch"]
    assert " queues " in shell.ok("status").stdout
    assert "serving" in shell.ok("cluster", "status").stdout


def test_workers_are_listed_once_they_called(shell: Shell, queue: str) -> None:
    """A worker that fetched is named with its queues."""
    client = Client(shell.variables["CORVO_URL"])
    body = {"queues": [queue], "worker_id": f"worker-of-{queue}", "timeout": 0}
    client.call("POST", f"{API}/fetch", body)
    client.close()
    found = {each["id"]: each for each in shell.json("workers")}
    assert found[f"worker-of-{queue}"]["queues"] == [queue]
    assert f"worker-of-{queue}" in shell.ok("workers").stdout


def test_version_answers_without_a_server(shell: Shell) -> None:
    """Both versions; without a server the one of the command."""
    assert shell.json("version")["server"] == __version__
    alone = shell.json("version", variables={"CORVO_URL": "http://127.0.0.1:9"})
    assert (alone["version"], alone["server"]) == (__version__, None)
    assert "server" not in shell.json("version", "--client")


def test_the_search_index_is_built_anew(tmp_path: Path) -> None:
    """rebuild-view returns when it is done."""
    with ServerProcess(tmp_path, "--fsync", "off", "--shutdown-timeout", "1ms") as server:
        shell = Shell(server.url)
        job_id = shell.json("enqueue", "q")["job_id"]
        shell.ok("search", "--fresh")
        assert shell.json("rebuild-view")["status"] == "done"
        assert shell.ok("search", "--fresh").lines == [job_id]


def test_doctor_is_content_with_a_healthy_server(shell: Shell, tmp_path: Path) -> None:
    """Every check by name, and exit code 0; nothing is left behind."""
    found = shell.json("doctor", "--data-dir", str(tmp_path / "data"))
    assert found["healthy"] is True
    assert {each["check"] for each in found["checks"]} >= {
        *("settings", "profiles", "versions", "data directory", "disk", "sync"),
        *("open files", "clock", "server"),
    }
    assert "server" in shell.ok("doctor", "--data-dir", str(tmp_path)).stdout
    assert list(tmp_path.iterdir()) == []


def test_doctor_knows_whether_the_directory_is_in_use(tmp_path: Path) -> None:
    """A running server has it open; afterwards nobody has."""
    with ServerProcess(tmp_path, "--fsync", "off", "--view", "off") as server:
        place = ("doctor", "--data-dir", str(tmp_path))
        assert "a server has it open" in Shell(server.url).ok(*place).stdout
        server.kill()
        assert "no server has it open" in Shell(server.url).ok(*place, "--no-server").stdout


def test_doctor_fails_for_a_script(shell: Shell, tmp_path: Path) -> None:
    """No server, a bad setting, an unfinished restore: 1, and the check says which."""
    place = ("--data-dir", str(tmp_path))
    absent = shell("doctor", *place, "--url", "http://127.0.0.1:9", "--output", "json")
    assert (absent.code, absent.json["healthy"]) == (1, False)
    shell.ok("doctor", *place, "--no-server")
    wrong = shell("doctor", *place, "--no-server", variables={"CORVO_FSYNC": "maybe"})
    assert wrong.code == 1
    assert "failed  settings" in wrong.stdout
    (tmp_path / "restore.partial").mkdir()
    assert shell("doctor", *place, "--no-server").code == 1


def test_doctor_warns_about_a_key_others_can_read(shell: Shell, tmp_path: Path) -> None:
    """A warning is no failure unless --strict says so."""
    path = tmp_path / "profiles.toml"
    path.write_text('profile = "p"\n[profiles.p]\napi_key = "k"\n')
    path.chmod(0o644)
    variables = {"CORVO_CLI_CONFIG": str(path)}
    place = ("doctor", "--data-dir", str(tmp_path), "--no-server")
    warned = shell.ok(*place, variables=variables)
    assert "chmod 600" in warned.stderr
    assert shell(*place, "--strict", variables=variables).code == 1
    path.chmod(0o600)
    shell.ok(*place, "--strict", variables=variables)


def test_the_demo_shows_every_state_and_goes_away(shell: Shell) -> None:
    """Queues, dead with errors, held, chained, batched, scheduled; then nothing of it is left."""
    made = shell.json("seed", "demo", "--count", "60", "--prefix", "show.")
    found = {q["name"]: q for q in shell.json("queues") if q["name"].startswith("show.")}
    assert sorted(found) == sorted(made["queues"])
    for state in ("pending", "active", "scheduled", "retrying", "held", "completed", "dead"):
        assert sum(queue[state] for queue in found.values()) > 0, state
    assert found["show.reports.generate"]["blocked"] > 0
    assert found["show.legacy.sync"]["paused"] is True
    shell.ok("search", "--fresh", "--limit", "1")
    assert len(shell.json("dead", "--groups", "--queue", "show.emails.send")) > 0
    again = shell.ok("seed", "demo", "--count", "60", "--prefix", "show.")
    assert "remove with" in again.stdout
    assert shell.json("seed", "clear", "--prefix", "show.")["removed"] == sorted(found)
    assert not [q for q in shell.json("queues") if q["name"].startswith("show.")]
    assert not [s for s in shell.json("schedules") if s["name"].startswith("show.")]
    assert shell("seed", "clear", "--prefix", "").code == 2
    assert shell("seed", "demo", "--count", "1").code == 2


@pytest.fixture
def profiles(server: ServerProcess, tmp_path: Path) -> dict[str, str]:
    """Variables that name a file with a good, a dead and a JSON profile."""
    path = tmp_path / "config.toml"
    path.write_text(
        'profile = "good"\n'
        f'[profiles.good]\nurl = "{server.url}"\n'
        '[profiles.dead]\nurl = "http://127.0.0.1:9"\n'
        f'[profiles.several]\nurl = ["http://127.0.0.1:9", "{server.url}"]\noutput = "json"\n'
    )
    return {"CORVO_CLI_CONFIG": str(path), "CORVO_URL": ""}


def test_a_profile_names_the_server(shell: Shell, profiles: dict[str, str]) -> None:
    """The file's own choice, the variable, the option; one of several servers may be down."""
    shell.ok("queues", variables=profiles)
    assert shell("queues", variables=profiles | {"CORVO_PROFILE_NAME": "dead"}).code == 3
    several = shell.ok("queues", "--profile", "several", variables=profiles)
    assert isinstance(several.json, list)
    # A profile named on the line was meant, whatever the environment says.
    url = {"CORVO_URL": shell.variables["CORVO_URL"]}
    assert shell("queues", "--profile", "dead", variables=profiles | url).code == 3
    shell.ok("queues", variables=profiles | url | {"CORVO_PROFILE_NAME": "dead"})
    shell.ok("queues", "--profile", "dead", "--url", url["CORVO_URL"], variables=profiles)


def test_a_profile_file_that_can_not_be_used_is_named(shell: Shell, tmp_path: Path) -> None:
    """Unknown profile, unknown member, no TOML, no file: exit code 2 and the path."""
    path = tmp_path / "config.toml"
    variables = {"CORVO_CLI_CONFIG": str(path)}
    assert shell("queues", variables=variables).code == 2
    for text in ("[profiles.a]\ncolour = 1\n", "not toml", "profile = 3\n"):
        path.write_text(text)
        refused = shell("queues", variables=variables)
        assert (refused.code, str(path) in refused.stderr) == (2, True), text
    path.write_text('[profiles.a]\nurl = "x"\n')
    missing = shell("queues", "--profile", "b", variables=variables)
    assert (missing.code, "there are: a" in missing.stderr) == (2, True)


def test_an_address_that_is_none_is_refused(shell: Shell) -> None:
    """Before anything is sent."""
    refused = shell("queues", "--url", "ftp://somewhere")
    assert refused.code == 3
    assert "not the address" in refused.stderr


def test_every_error_is_one_line_and_a_hint(shell: Shell) -> None:
    """Whoever is wrong: the server's refusal, the line, the missing server."""
    for arguments in (
        ("inspect", "job_00000000000000000000000000"),
        ("enqueue", "not a name"),
        ("serach",),
        ("search", "--stat", "dead"),
        ("queues", "--url", "http://127.0.0.1:9"),
    ):
        lines = shell(*arguments).stderr.splitlines()
        assert lines[0].startswith("error: "), lines
        assert lines[0].endswith("]"), lines
        assert all(line.startswith("hint: ") for line in lines[1:]), lines
        assert len(lines) <= 2


def test_a_word_that_is_no_command_suggests_one(shell: Shell) -> None:
    """One letter off finds the command."""
    assert "search" in shell("serach").stderr
    assert "--state" in shell("search", "--stat", "dead").stderr
    assert "create" in shell("schedules", "creat").stderr


def test_the_worker_of_the_sdk_gets_everything_on_the_line(shell: Shell) -> None:
    """Options are passed through; without the SDK's worker the error says what to install."""
    outcome = shell("worker", "nothing.here:app", "-q", "emails=2")
    assert outcome.code != 0
    assert outcome.stderr


def test_a_form_is_asked_of_every_command(shell: Shell) -> None:
    """--output json gives one document wherever nothing has to exist first."""
    for arguments in (
        *(("queues",), ("workers",), ("status",), ("schedules",), ("webhooks",), ("limits",)),
        *(("batches",), ("held",), ("dead",), ("dead", "--groups"), ("version",)),
        ("search", "--limit", "3"),
        *(("cluster", "status"),),
    ):
        for form in ("json", "yaml"):
            assert shell.ok(*arguments, "--output", form).stdout, arguments
        for line in shell.ok(*arguments, "--output", "jsonl").lines:
            json.loads(line)
