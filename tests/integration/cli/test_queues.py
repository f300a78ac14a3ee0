"""Commands about queues, settings and limits, over a real socket."""

import threading

from corvo.cli.client import API, Client
from tests.support.cli import Shell, finish


def test_a_queue_is_shown_by_its_name(shell: Shell, queue: str) -> None:
    """`corvo queue NAME` needs no sub-command, even for a queue named like one."""
    shell.ok("enqueue", queue)
    assert shell.json("queue", queue)["pending"] == 1
    assert shell.json("queue", "show", queue)["pending"] == 1
    shell.ok("enqueue", "set")
    assert shell.json("queue", "show", "set")["name"] == "set"
    shown = shell.ok("queue", queue).stdout
    assert "totals" in shown
    assert "priority_mode" in shown
    shell.ok("destroy", "set", "--confirm")


def test_every_setting_of_a_queue_can_be_set_and_removed(shell: Shell, queue: str) -> None:
    """Rates as people write them; nothing after the sign removes a setting."""
    settings = {
        "max_concurrency": "10",
        "key-concurrency": "2",
        "rate": "100/1m",
        "key_rate": "5/s/9",
        "weights": '{"a":2}',
        "priority_mode": "aging",
        "aging_step": "2m",
        "lease_duration": "5m",
        "retention": "1d",
        "retention_count": "1000",
        "require_token": "true",
        "max_payload": "1024",
        "webhook_secret": "s",
    }
    words = [f"{name}={value}" for name, value in settings.items()]
    kept = shell.json("queue", "set", queue, *words)["settings"]
    assert (kept["max_concurrency"], kept["key_concurrency"]) == (10, 2)
    assert kept["rate"] == {"rate": 100, "period": "1m", "burst": 100}
    assert kept["key_rate"] == {"rate": 5, "period": "1s", "burst": 9}
    assert (kept["weights"], kept["priority_mode"], kept["aging_step"]) == ({"a": 2}, "aging", "2m")
    assert (kept["lease_duration"], kept["retention"]) == ("5m", "1d")
    assert (kept["require_token"], kept["has_webhook_secret"]) == (True, True)
    removed = shell.json("queue", "set", queue, "max_concurrency=", "rate=")["settings"]
    assert removed.get("max_concurrency") is None
    assert removed.get("rate") is None
    assert "aging" in shell.ok("queue", "set", queue, "max_payload=").stdout


def test_a_setting_that_does_not_exist_changes_nothing(shell: Shell, queue: str) -> None:
    """A misspelt name is refused by the server, a malformed pair before it is sent."""
    refused = shell("queue", "set", queue, "max_concurency=3", "lease_duration=5m")
    assert refused.code == 1
    assert "max_concurency" in refused.stderr
    assert shell("queue", queue).code == 1
    for pair in ("novalue", "=1", "rate=fast", "rate=5/1m/x", "weights={"):
        assert shell("queue", "set", queue, pair).code == 2, pair


def test_concurrency_and_throttle_set_and_remove(shell: Shell, queue: str) -> None:
    """The two limits people reach for first have commands of their own."""
    assert shell.json("concurrency", queue, "3")["settings"]["max_concurrency"] == 3
    assert shell.json("concurrency", queue, "0")["settings"].get("max_concurrency") is None
    assert shell.json("throttle", queue, "10/1m/20")["settings"]["rate"]["burst"] == 20
    assert "rate" in shell.ok("throttle", queue, "10/m").stdout
    assert shell.json("throttle", queue, "off")["settings"].get("rate") is None
    assert shell("concurrency", queue, "-1").code == 2
    assert shell("throttle", queue, "often").code == 2


def test_limits_are_listed_set_shown_and_deleted(shell: Shell, queue: str) -> None:
    """The life of a named limit."""
    shell.ok("limits", "set", queue, "--max", "4", "--rate", "10/1s")
    assert shell.json("limits", "show", queue)["max"] == 4
    assert queue in shell.ok("limits").stdout
    listed = shell.ok("limits", "--output", "jsonl").lines
    assert any(f'"{queue}"' in line for line in listed)
    shell.ok("limits", "delete", queue)
    assert shell("limits", "show", queue).code == 1
    assert shell("limits", "set", queue).code == 2
    # An option of the group would not reach the command it means.
    assert shell("limits", "--output", "json", "list").code == 2


def test_queues_are_paused_and_resumed_together(shell: Shell, queue: str) -> None:
    """Several on one line."""
    names = (f"{queue}-a", f"{queue}-b")
    paused = shell.ok("pause", *names)
    assert paused.lines == [f"{name}  paused" for name in names]
    assert "paused" in shell.ok("queues").stdout
    assert all(each["status"] for each in shell.json("resume", *names))
    assert shell.json("queue", names[0])["paused"] is False


def test_clearing_can_be_undone_and_destroying_needs_a_word(shell: Shell, queue: str) -> None:
    """The id to undo with is on standard error."""
    shell.ok("enqueue", queue)
    cleared = shell.ok("clear", queue)
    assert cleared.stdout == f"{queue}  cleared  removed 1\n"
    shell.ok("bulk", "undo", cleared.stderr.split()[-1])
    assert shell.json("queue", queue)["pending"] == 1
    refused = shell("destroy", queue)
    assert (refused.code, "CONFIRMATION_REQUIRED" in refused.stderr) == (1, True)
    shell.ok("destroy", queue, "--confirm")
    assert shell("queue", queue).code == 1


def test_a_person_is_asked_before_a_queue_is_cleared(shell: Shell, queue: str) -> None:
    """On a terminal; no is an answer, and --yes needs no question."""
    shell.ok("enqueue", queue)
    refused = shell("clear", queue, stdin="n\n", terminal=True)
    assert refused.code == 1
    assert "nothing was changed" in refused.stderr
    assert shell.json("queue", queue)["pending"] == 1
    shell.ok("clear", queue, stdin="y\n", terminal=True)
    assert shell.json("queue", queue)["pending"] == 0
    shell.ok("enqueue", queue)
    shell.ok("clear", queue, "--yes", terminal=True)
    assert shell.json("queue", queue)["pending"] == 0


def test_draining_waits_for_the_active_jobs(shell: Shell, queue: str) -> None:
    """It gives up in time when told to, and returns once the last job has ended."""
    shell.ok("enqueue", queue)
    client = Client(shell.variables["CORVO_URL"])
    body = {"queues": [queue], "worker_id": "w", "timeout": 5}
    job = client.call("POST", f"{API}/fetch", body).body
    late = shell("drain", queue, "--timeout", "1ms", terminal=True)
    assert late.code == 7
    assert "1 jobs" in late.stderr
    assert "draining" in shell.ok("drain", queue, "--no-wait").stdout

    def work() -> None:
        token = {"lease_token": job["lease_token"]}
        client.call("POST", f"{API}/ack/{job['job_id']}", token)

    worker = threading.Timer(0.1, work)
    worker.start()
    assert shell.ok("drain", queue).stdout == f"{queue}  drained\n"
    worker.join()
    client.close()
    shell.ok("resume", queue)
    shell.ok("enqueue", queue)
    finish(shell, queue)
