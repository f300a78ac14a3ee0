"""`corvo schedules` against a real server."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.process import ServerProcess, corvo


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data: Path = tmp_path_factory.mktemp("data")
    with ServerProcess(data, "--fsync", "off", "--shutdown-timeout", "1ms") as running:
        yield running


def test_a_schedule_is_created_changed_run_and_deleted(server: ServerProcess) -> None:
    """The life of a schedule from a shell, by its name."""
    assert "no schedules yet" in corvo("schedules", url=server.url).stdout
    flags = ("--timezone", "Europe/Berlin", "--overlap", "skip", "--tag", "team=a")
    made = corvo("schedules", "create", "n", "@yearly", "q", '{"a": 1}', *flags, url=server.url)
    assert made.returncode == 0, made.stderr
    assert "Europe/Berlin" in corvo("schedules", "list", url=server.url).stdout
    taken = corvo("schedules", "create", "n", "@daily", "q", url=server.url)
    assert taken.returncode == 1
    assert "NAME_TAKEN" in taken.stderr
    replaced = corvo("schedules", "create", "n", "@daily", "q", "--replace", url=server.url)
    assert replaced.returncode == 0
    for command in ("pause", "resume", "run"):
        done = corvo("schedules", command, "n", url=server.url)
        assert done.returncode == 0, done.stderr
    assert "job_" in done.stdout
    shown = corvo("schedules", "show", "n", "--output", "json", url=server.url)
    assert json.loads(shown.stdout)["fired"] == 1
    span = ("--from", "2024-01-01T00:00:00Z", "--to", "2024-01-04T00:00:00Z")
    filled = corvo("schedules", "backfill", "n", *span, url=server.url)
    assert "3 of 3" in filled.stdout
    assert len(corvo("schedules", "preview", "n", url=server.url).stdout.split()) == 5
    assert corvo("schedules", "delete", "n", url=server.url).returncode == 0
    assert json.loads(corvo("schedules", "list", "--output", "json", url=server.url).stdout) == []


def test_an_expression_is_previewed_or_refused(server: ServerProcess) -> None:
    """The refusal says where; naming neither or both is a mistake of usage."""
    good = corvo("schedules", "preview", "--cron", "@daily", "--count", "3", url=server.url)
    assert len(good.stdout.split()) == 3
    bad = corvo("schedules", "preview", "--cron", "0 25 * * *", url=server.url)
    assert bad.returncode == 1
    assert "column 3" in bad.stderr
    assert corvo("schedules", "preview", url=server.url).returncode == 2


def test_a_schedule_fires_on_a_real_clock_and_survives_a_kill(tmp_path: Path) -> None:
    """Every second has one job, before and after the process is killed."""
    with ServerProcess(tmp_path) as server:
        arguments = ("n", "* * * * * *", "q", "--catch-up", "all")
        assert corvo("schedules", "create", *arguments, url=server.url).returncode == 0
        first = _slots(server, 2)
        server.kill()
        server.start()
        slots = first + _slots(server, 3)
    assert slots == list(range(slots[0], slots[0] + 5))


def _slots(server: ServerProcess, count: int) -> list[int]:
    """Fetch jobs one after the other, waiting for each; return the seconds of their slots."""
    client = server.client()
    found: list[int] = []
    while len(found) < count:
        body = {"queues": ["q"], "worker_id": "w", "timeout": 30, "lease_duration": "1h"}
        job = client.call("POST", "/api/v1/fetch", body).body
        moment = datetime.fromisoformat(job["scheduled_at"])
        found.append(int(moment.timestamp()))
    client.close()
    return found
