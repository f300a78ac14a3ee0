"""The engine without HTTP: processor time per command, against the budgets.

Time is that of the whole process, with the store's own threads in it. Commands are built outside
the measured time: building them belongs to the edge.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import uvloop

from bench.harness import Figure, Scale, check
from corvo.engine import Engine, Options
from corvo.engine.collector import settle_collector
from corvo.engine.engine import Hooks
from corvo.model.command import AckJob, Command, EnqueueJob, FetchJobs
from corvo.model.job import Spec
from corvo.model.outcome import Claim, Ended, Enqueued, Fetched, Outcome
from corvo.replication import FsyncPolicy, LocalLog, RealDisk
from corvo.runtime.clock import SystemClock
from corvo.storage.rocks import RocksStore

PAYLOAD = b'{"to":"user@example.com","template":"welcome","locale":"en","n":12345}'
NS = 0
KEYS = 64
WARM_BUDGETS = {"enqueue": 12, "fetch": 15, "ack": 12}
SINGLE_BUDGET = 20
COLD_FETCH_BUDGET = 20
LANED_RATIO = 2

Times = dict[str, float]


def engine(scale: Scale) -> list[Figure]:
    """Enqueue, fetch and ack: warm, one per entry, cold, and with limit keys."""
    return uvloop.run(_measure(scale))


async def _measure(scale: Scale) -> list[Figure]:
    count = scale.engine_commands
    with tempfile.TemporaryDirectory(prefix="corvo-bench-") as directory:
        opened = _open(directory)
        settle_collector()
        await _cycle(opened, "warm-up", count // 4, 32)
        warm = await _cycle(opened, "warm", count, 32)
        single = await _cycle(opened, "single", count // 4, 1)
        laned = await _cycle(opened, "laned", count, 32, keys=KEYS)
        await _enqueue(opened, "cold", count, 32, 0)
        await opened.close()
        reopened = _open(directory)
        cold, claims = await _fetch(reopened, "cold", count, 32)
        check(len(claims) == count, "jobs did not survive the restart")
        await reopened.close()
    return _figures(warm, single, laned, cold / count * 1e6, is_quick=scale.is_quick)


def _figures(
    warm: Times, single: Times, laned: Times, cold: float, *, is_quick: bool
) -> list[Figure]:
    def bound(value: float) -> float | None:
        return None if is_quick else value

    figures = [
        Figure(f"engine: {name}, 32 per entry", warm[name], "µs", bound(budget), is_ceiling=True)
        for name, budget in WARM_BUDGETS.items()
    ]
    figures += [
        Figure(f"engine: {name}, one per entry", value, "µs", bound(SINGLE_BUDGET), is_ceiling=True)
        for name, value in single.items()
    ]
    figures.append(
        Figure("engine: fetch, cold", cold, "µs", bound(COLD_FETCH_BUDGET), is_ceiling=True)
    )
    ratio = sum(laned.values()) / sum(warm.values())
    name = f"engine: {KEYS} limit keys against none"
    figures.append(Figure(name, ratio, "×", bound(LANED_RATIO), is_ceiling=True))
    return figures


def _open(directory: str) -> Engine:
    def fatal(error: BaseException) -> None:
        raise error

    log = LocalLog.open(
        RealDisk(), f"{directory}/wal", policy=FsyncPolicy.off(), cluster_id=bytes(16), node_id=1
    )
    opened = Engine.open(
        store=RocksStore(f"{directory}/store"),
        log=log,
        clock=SystemClock(),
        hooks=Hooks(fatal=fatal, reply_failed=fatal, fault=lambda *_: fatal(RuntimeError("fault"))),
        options=Options(),
    )
    opened.start()
    return opened


async def _cycle(engine: Engine, queue: str, count: int, together: int, keys: int = 0) -> Times:
    """Take jobs through their life; returns µs per command for each step of it."""
    enqueued = await _enqueue(engine, queue, count, together, keys)
    fetched, claims = await _fetch(engine, queue, count, together)
    check(len({claim.spec.id for claim in claims}) == count, "a job was lost or handed out twice")
    acks: list[Command] = [AckJob(NS, claim.spec.id, claim.token) for claim in claims]
    acked = await _submit(engine, acks, together, Ended)
    view = engine.read.queue(NS, queue)
    check(view is not None and view.record.totals[2] == count, "not every job was completed")
    return {
        "enqueue": enqueued / count * 1e6,
        "fetch": fetched / count * 1e6,
        "ack": acked / count * 1e6,
    }


async def _enqueue(engine: Engine, queue: str, count: int, together: int, keys: int) -> float:
    commands: list[Command] = [
        EnqueueJob(
            Spec(engine.new_id(), NS, queue, PAYLOAD, limit_key=f"key-{n % keys}" if keys else "")
        )
        for n in range(count)
    ]
    return await _submit(engine, commands, together, Enqueued)


async def _submit(
    engine: Engine, commands: list[Command], together: int, expected: type[Outcome]
) -> float:
    starts = [partial(engine.submit, command) for command in commands]
    took, outcomes = await _in_groups(starts, together)
    check(all(isinstance(outcome, expected) for outcome in outcomes), "a command was refused")
    return took


async def _fetch(
    engine: Engine, queue: str, count: int, together: int
) -> tuple[float, list[Claim]]:
    command = FetchJobs(NS, [queue], "bench", lease_ms=3_600_000)

    def start(on_done: Callable[[Fetched, int], None]) -> None:
        engine.fetch(command, 0, on_done)

    took, outcomes = await _in_groups([start] * count, together)
    return took, [claim for fetched in outcomes for claim in fetched.claims]


async def _in_groups(starts: list[Callable[..., object]], together: int) -> tuple[float, list[Any]]:
    """Start commands in groups that share an entry; returns processor seconds and outcomes."""
    loop = asyncio.get_running_loop()
    outcomes: list[Any] = []
    began = time.process_time()
    for first in range(0, len(starts), together):
        group = starts[first : first + together]
        done = loop.create_future()
        wanted = len(outcomes) + len(group)

        def take(outcome: object, _index: int, done: Any = done, wanted: int = wanted) -> None:
            outcomes.append(outcome)
            if len(outcomes) == wanted:
                done.set_result(None)

        for start in group:
            start(take)
        await done
    return time.process_time() - began, outcomes
