"""HTTP, one job per request: Corvo against a bare server under the same script, in one run."""

from contextlib import ExitStack

from bench.harness import Figure, Scale, check, median
from bench.jobs import check_all_completed
from bench.scripts import BatchCycles
from bench.servers import Baseline, Corvo, Process
from bench.wrk import Load, run_load
from corvo.cli.load import drive

BATCH_SIZE = 64
ENQUEUE_TARGETS = {"off": 0.45, "always": 0.30}
MIXED_TARGETS = {"off": 0.40, "always": 0.33}
VIEW_COST_MAX = 1.1


def enqueue(scale: Scale) -> list[Figure]:
    """Single enqueues."""
    return _against_baseline("enqueue", ENQUEUE_TARGETS, scale)


def mixed(scale: Scale) -> list[Figure]:
    """Enqueue, fetch and ack."""
    return _against_baseline("mixed", MIXED_TARGETS, scale)


def _against_baseline(script: str, targets: dict[str, float], scale: Scale) -> list[Figure]:
    with ExitStack() as stack:
        bare = stack.enter_context(Baseline())
        servers = [stack.enter_context(Corvo(fsync)) for fsync in targets]
        rounds = _interleave([bare, *servers], script, scale)
        for server in servers:
            answered = sum(load.requests for load in rounds[server.name])
            _check_run(server, script, answered, scale)
    figures = _figures_of(bare, rounds[bare.name], None, rounds[bare.name], script)
    for server in servers:
        target = None if scale.is_quick else targets[server.fsync]
        figures += _figures_of(server, rounds[server.name], target, rounds[bare.name], script)
    return figures


def _interleave(servers: list[Process], script: str, scale: Scale) -> dict[str, list[Load]]:
    """Measure all servers in each round, so that a slow minute of the machine hits all of them."""
    rounds: dict[str, list[Load]] = {server.name: [] for server in servers}
    for _ in range(scale.rounds):
        for server in servers:
            rounds[server.name].append(run_load(server, script, scale))
    return rounds


def _check_run(server: Corvo, script: str, answered: int, scale: Scale) -> None:
    view = server.queue("bench")
    enqueued = view["totals"]["enqueued"]
    if script == "enqueue":
        # At the end of each round up to one request per connection was accepted and not read.
        unread = scale.rounds * scale.connections
        check(
            answered <= enqueued <= answered + unread,
            f"{answered} enqueues were answered, the server counts {enqueued}",
        )
        check(view["pending"] == enqueued, "enqueued jobs are missing")
        check_all_completed(server, "bench", at_least=answered)
        return
    check(view["totals"]["started"] > 0, "nothing was fetched")
    check_all_completed(server, "bench", at_least=answered // 3 - scale.connections)


def _figures_of(
    server: Process, loads: list[Load], target: float | None, bare: list[Load], script: str
) -> list[Figure]:
    label = f"{script}: {server.name}"
    figures = [
        Figure(label, median(load.rate for load in loads), "req/s"),
        Figure(f"{label}, core time", median(load.cpu_us for load in loads), "µs/req"),
    ]
    if loads is not bare:
        ratios = [load.rate / floor.rate for load, floor in zip(loads, bare, strict=True)]
        spread = f"per round {min(ratios):.2f}–{max(ratios):.2f}"
        figures.append(Figure(f"{label}, of bare", median(ratios), "×", target, note=spread))
    return figures


def view(scale: Scale) -> list[Figure]:
    """What the read side costs the core: processor time per enqueue with it and without it."""
    with Corvo("always") as without, Corvo("always", view="on") as having:
        rounds = _interleave([without, having], "enqueue", scale)
    pairs = zip(rounds[having.name], rounds[without.name], strict=True)
    ratios = [on.cpu_us / off.cpu_us for on, off in pairs]
    spread = f"per round {min(ratios):.2f}–{max(ratios):.2f}"
    target = None if scale.is_quick else VIEW_COST_MAX
    return [
        Figure(f"view: {server.name}, core time", median(loads), "µs/req")
        for server in (without, having)
        if (loads := [load.cpu_us for load in rounds[server.name]])
    ] + [
        Figure(
            "view: core time with it, of without",
            median(ratios),
            "×",
            target,
            is_ceiling=True,
            note=spread,
        )
    ]


def batch(scale: Scale) -> list[Figure]:
    """Batch endpoints, 64 jobs per call, against single calls on the same server."""
    with Corvo("always") as server:
        single = run_load(server, "mixed", scale).rate / 3
        check_all_completed(server, "bench", at_least=1)
        budget = [scale.batch_jobs]
        scripts = [BatchCycles("batched", n, BATCH_SIZE, budget) for n in range(16)]
        run = drive(server.address, scripts)
        check(all(script.refused == 0 for script in scripts), "batch calls were refused")
        check_all_completed(server, "batched", at_least=scale.batch_jobs)
    rate = scale.batch_jobs / run.seconds
    targets = (None, None) if scale.is_quick else (25_000, 3)
    return [
        Figure("batch: jobs through enqueue, fetch and ack", rate, "jobs/s", targets[0]),
        Figure("batch: of the single-job rate", rate / single, "×", targets[1]),
    ]
