"""Schedules and webhooks from a shell, over a real socket."""

import json

from tests.support.cli import Shell
from tests.support.receiver import receiving


def test_a_schedule_is_updated_in_part(shell: Shell, queue: str) -> None:
    """What is given is replaced; payload, zone and how far it came stay."""
    flags = ("--timezone", "Europe/Berlin", "--tag", "a=b", "--start-at", "2024-01-01")
    shell.ok("schedules", "create", queue, "@yearly", queue, '{"n":1}', *flags)
    shell.ok("schedules", "run", queue)
    changed = shell.json("schedules", "update", queue, "--cron", "@daily", "--priority", "high")
    assert (changed["cron"], changed["priority"]) == ("@daily", "high")
    shown = shell.json("schedules", "show", queue)
    assert (shown["payload"], shown["timezone"], shown["tags"]) == (
        {"n": 1},
        "Europe/Berlin",
        {"a": "b"},
    )
    assert shown["fired"] == 1
    assert shell("schedules", "update", queue).code == 2
    listed = shell.ok("schedules", "--output", "jsonl").lines
    assert queue in {json.loads(line)["name"] for line in listed}
    assert queue in shell.ok("schedules").stdout
    shell.ok("schedules", "pause", queue)
    shell.ok("schedules", "resume", queue)
    span = ("--from", "2024-01-01", "--to", "2024-01-03")
    assert "slots got a job" in shell.ok("schedules", "backfill", queue, *span).stdout
    assert len(shell.ok("schedules", "preview", queue, "--count", "2").lines) == 2
    assert "deleted" in shell.ok("schedules", "delete", queue).stdout


def test_the_life_of_a_webhook(shell: Shell, queue: str) -> None:
    """create, list, show, test, deliveries, redeliver, update, dead-letters, delete."""
    with receiving() as receiver:
        flags = ("--event", "completed", "--queue", queue, "--secret", "s", "--timeout", "5s")
        made = shell.json("webhooks", "create", receiver.url, *flags)
        name = made["id"]
        assert (made["events"], made["queues"], made["has_secret"]) == (
            ["completed"],
            [queue],
            True,
        )
        assert name in shell.ok("webhooks").stdout
        assert shell.json("webhooks", "test", name)["status"] == "delivered"
        [delivery] = shell.json("webhooks", "deliveries", name)
        again = shell.json("webhooks", "redeliver", name, delivery["id"])
        assert again["status"] == "delivered"
        assert delivery["id"] in shell.ok("webhooks", "deliveries", name).stdout
        changed = shell.json("webhooks", "update", name, "--disabled", "--retry-limit", "2")
        assert (changed["enabled"], changed["retry_limit"]) == (False, 2)
        shown = shell.json("webhooks", "show", name)
        assert (shown["events"], shown["has_secret"]) == (["completed"], True)
        assert shell.json("webhooks", "dead-letters", name) == []
        assert shell("webhooks", "update", name).code == 2
        assert shell.ok("webhooks", "delete", name).stdout == f"{name}  deleted\n"
    assert shell("webhooks", "show", name).code == 1
