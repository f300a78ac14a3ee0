"""Pulling the plug at full load: how soon the server answers again, and with everything."""

import threading
import time

from bench.harness import Figure, RunFailedError, Scale, check
from bench.servers import Corvo
from bench.wrk import run_load
from corvo.cli.client import API
from corvo.cli.failure import UnreachableError


def restart(scale: Scale) -> list[Figure]:
    """Ready again after kill −9 under each mix of commands."""
    figures: list[Figure] = []
    for script in ("mixed",) if scale.is_quick else ("mixed", "enqueue"):
        for fsync in ("always",) if scale.is_quick else ("always", "off"):
            took = _kill_under(script, fsync, scale)
            target = None if scale.is_quick else 5
            name = f"ready after kill −9 under {script}, fsync {fsync}"
            figures.append(Figure(name, took, "s", target, is_ceiling=True))
    return figures


def _kill_under(script: str, fsync: str, scale: Scale) -> float:
    with Corvo(fsync) as server:
        load = threading.Thread(target=_load_until_killed, args=(server, script, scale))
        load.start()
        time.sleep(scale.load_seconds)
        # Safety: a process that dies loses no page it wrote, so even with fsync off everything
        # counted here was answered and must be there afterwards.
        before = server.queue("bench")["totals"]["enqueued"]
        server.kill()
        load.join()
        started = time.perf_counter()
        server.start()
        took = server.wait_ready(started)
        after = server.queue("bench")["totals"]["enqueued"]
        check(after >= before, f"{before} jobs were enqueued, {after} are left")
        client = server.client()
        client.call("POST", f"{API}/enqueue", {"queue": "bench", "payload": {}})
        client.close()
    return took


def _load_until_killed(server: Corvo, script: str, scale: Scale) -> None:
    try:
        run_load(server, script, scale, seconds=scale.load_seconds + 1)
    except (RunFailedError, UnreachableError, FileNotFoundError):
        return  # the plug was pulled, which is the point
