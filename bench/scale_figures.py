"""Size must not matter: large backlogs, kept history, a saturated limit key, memory."""

from typing import Any

from bench.harness import Figure, Scale, check, median, resident_mib
from bench.jobs import check_all_completed, fill, release
from bench.scripts import BatchCycles
from bench.servers import Corvo
from bench.wrk import run_load
from corvo.cli.client import API
from corvo.cli.load import drive

KEPT_BATCH = 512


def backlog(scale: Scale) -> list[Figure]:
    """Throughput and memory with many pending jobs against few."""
    with Corvo("off") as small, Corvo("off") as large:
        fill(small, "bench", scale.backlog_small)
        fill(large, "bench", scale.backlog_large)
        ratios = _ratios(large, small, scale)
        memory = resident_mib(large.pid)
        check_all_completed(small, "bench", at_least=scale.backlog_small)
        check_all_completed(large, "bench", at_least=scale.backlog_large)
    return _scale_figures(f"{scale.backlog_large:,} pending", ratios, memory, scale)


def kept(scale: Scale) -> list[Figure]:
    """The same with many completed jobs kept."""
    with Corvo("off") as small, Corvo("off") as large:
        _complete(small, scale.backlog_small)
        _complete(large, scale.backlog_large)
        ratios = _ratios(large, small, scale)
        memory = resident_mib(large.pid)
        check_all_completed(large, "history", at_least=scale.backlog_large)
        check_all_completed(small, "history", at_least=scale.backlog_small)
        for server in (small, large):
            check_all_completed(server, "bench", at_least=1)
    return _scale_figures(f"{scale.backlog_large:,} completed kept", ratios, memory, scale)


def _ratios(large: Corvo, small: Corvo, scale: Scale) -> list[float]:
    ratios: list[float] = []
    for _ in range(scale.rounds):
        few = run_load(small, "mixed", scale).rate
        many = run_load(large, "mixed", scale).rate
        ratios.append(many / few)
    return ratios


def _complete(server: Corvo, jobs: int) -> None:
    budget = [jobs]
    drive(server.address, [BatchCycles("history", n, KEPT_BATCH, budget) for n in range(4)])


def _scale_figures(name: str, ratios: list[float], memory: float, scale: Scale) -> list[Figure]:
    targets = (None, None) if scale.is_quick else (0.8, 400)
    return [
        Figure(
            f"{name}: throughput against {scale.backlog_small:,}", median(ratios), "×", targets[0]
        ),
        Figure(f"{name}: resident memory", memory, "MiB", targets[1], is_ceiling=True),
    ]


def gated(scale: Scale) -> list[Figure]:
    """Jobs of a saturated limit key at the head of a queue must not slow the other keys."""
    with Corvo("off") as free, Corvo("off") as stuck:
        for server in (free, stuck):
            client = server.client()
            client.call("PATCH", f"{API}/queues/gated", {"key_concurrency": 64})
            client.close()
        held = _saturate(stuck, scale.gated_jobs)
        ratios: list[float] = []
        for _ in range(scale.rounds):
            plain = run_load(free, "keys", scale).rate
            behind = run_load(stuck, "keys", scale).rate
            ratios.append(behind / plain)
        check_all_completed(free, "gated", at_least=1)
        release(stuck, held)
        check_all_completed(stuck, "gated", at_least=scale.gated_jobs)
    target = None if scale.is_quick else 0.8
    name = f"{scale.gated_jobs:,} jobs of a saturated key: others' throughput"
    return [Figure(name, median(ratios), "×", target)]


def _saturate(server: Corvo, jobs: int) -> list[dict[str, Any]]:
    """Put the jobs of one key in front, with every slot of the key taken for the whole run."""
    fill(server, "gated", jobs, limit_key="hot")
    client = server.client()
    body = {"queues": ["gated"], "worker_id": "holder", "count": 64, "lease_duration": "1h"}
    held = client.call("POST", f"{API}/fetch/batch", body).body["jobs"]
    client.close()
    check(len(held) == 64, f"{len(held)} of 64 slots of the key were taken")
    return held
