"""The read side at work: catching up, building anew under load, and how soon a stream is told."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import uvloop

from bench.harness import Figure, Scale, check, cpu_seconds
from bench.jobs import fill
from bench.scripts import BatchCycles
from bench.servers import Corvo
from bench.wait_figures import Line
from corvo.cli.client import API, Client
from corvo.cli.failure import CallError
from corvo.cli.load import drive

CONNECTIONS = 4
BATCH_JOBS = 64
EVENTS_PER_JOB = 3  # enqueued, started, completed
LEVEL_SECONDS_MAX = 1_800
STREAM_INTERVAL_SECONDS = 0.01  # one hundred events a second
WRITE_INTERVAL_SECONDS = 0.005
QUEUES = 20
RUNS = 5


def catchup(scale: Scale) -> list[Figure]:
    """Let the view stand still while jobs run, then see how fast it makes up for it."""
    with Corvo("off", view="on") as server:
        client = server.client()
        _wait_level(client)
        pid = _view(client)["pid"]
        with _stopped(pid):
            before = _view(client)["events_applied"]
            budget = [scale.view_events // EVENTS_PER_JOB]
            drive(
                server.address,
                [BatchCycles("bench", n, BATCH_JOBS, budget) for n in range(CONNECTIONS)],
            )
            check(_view(client)["lag"] > 0, "the view was not behind")
            started, busy = time.perf_counter(), cpu_seconds(pid)
        _wait_level(client)
        seconds, busy = time.perf_counter() - started, cpu_seconds(pid) - busy
        figures = _view(client)
        client.close()
    events = figures["events_applied"] - before
    check(figures["rebuild"]["rebuilds"] == 0, "the view was built anew instead of catching up")
    check(events >= scale.view_events * 0.9, f"only {events} events were applied")
    target = None if scale.is_quick else 20_000
    name = f"view: catching up with {events:,} events"
    # On a machine with neighbours the time of the processor says more than that of the clock.
    note = f"{events / max(busy, 0.01):,.0f} per second of processor"
    return [Figure(name, events / seconds, "events/s", target, note=note)]


def rebuild(scale: Scale) -> list[Figure]:
    """Build the view anew from many jobs while one client goes on writing; then list the queues."""
    with Corvo("off", view="on") as server:
        for number in range(QUEUES):
            fill(server, f"bench-{number}", scale.rebuild_jobs // QUEUES)
        client = server.client()
        _wait_level(client)
        idle = uvloop.run(_write(server, lambda: True))
        client.call("POST", f"{API}/admin/rebuild-sqlite")
        started = time.perf_counter()
        busy = uvloop.run(_write(server, lambda: not _is_rebuilding(client)))
        seconds = time.perf_counter() - started
        _wait_level(client)
        check(_view(client)["rebuild"]["rebuilds"] == 1, "the view was not built anew")
        total = client.call("POST", f"{API}/jobs/search", {"limit": 1}).body["total"]
        written = scale.rebuild_jobs // QUEUES * QUEUES + len(idle) + len(busy)
        check(total == written, f"{written} jobs were written, the view has {total}")
        listing = _best_ms(client, "/queues")
        letters = _best_ms(client, "/dead")
        client.close()
    jobs = f"{scale.rebuild_jobs:,} jobs"
    targets = (None, None) if scale.is_quick else (20, 20)
    note = f"{len(busy)} writes meanwhile; p99 {_at(idle, 0.99):.1f} ms before"
    return [
        Figure(f"view: built anew from {jobs}", scale.rebuild_jobs / seconds, "jobs/s"),
        Figure("view: enqueue meanwhile, p50", _at(busy, 0.5), "ms"),
        Figure("view: enqueue meanwhile, p99", _at(busy, 0.99), "ms", note=note),
        Figure(f"queue list, {jobs}", listing, "ms", targets[0], is_ceiling=True),
        Figure(f"dead letter, {jobs}", letters, "ms", targets[1], is_ceiling=True),
    ]


def stream(scale: Scale) -> list[Figure]:
    """From an enqueue that is sent to its event on a stream; without fsync, so almost a commit."""
    with Corvo("off") as server:
        waits = sorted(uvloop.run(_measure_stream(server, scale.latency_jobs)))
    check(len(waits) == scale.latency_jobs, "events are missing from the stream")
    target = None if scale.is_quick else 20
    return [
        Figure("enqueue → event stream, p50", _at(waits, 0.5), "ms", target, is_ceiling=True),
        Figure("enqueue → event stream, p99", _at(waits, 0.99), "ms"),
    ]


# --- the view ---------------------------------------------------------------------------------


def _view(client: Client) -> dict[str, Any]:
    return client.call("GET", f"{API}/cluster/status").body["view"]


def _is_rebuilding(client: Client) -> bool:
    return client.call("GET", f"{API}/admin/rebuild-sqlite").body["status"] == "running"


def _wait_level(client: Client) -> None:
    """Wait until the view has everything that was written so far."""
    deadline = time.perf_counter() + LEVEL_SECONDS_MAX
    index = client.call("GET", f"{API}/livez").index
    while time.perf_counter() < deadline:
        # The server holds the call until the view is there, up to five seconds.
        with contextlib.suppress(CallError):
            client.call("GET", f"{API}/admin/view?after={index}")
            return
    check(False, f"the view did not reach {index}")


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _best_ms(client: Client, path: str) -> float:
    took: list[float] = []
    for _ in range(RUNS):
        started = time.perf_counter()
        client.call("GET", f"{API}{path}")
        took.append(time.perf_counter() - started)
    return min(took) * 1_000


# --- clients ----------------------------------------------------------------------------------


def _at(values: list[float], fraction: float) -> float:
    """The value in milliseconds that this fraction of the sorted seconds does not exceed."""
    return values[min(len(values) - 1, int(len(values) * fraction))] * 1_000


async def _write(server: Corvo, is_over: Callable[[], bool]) -> list[float]:
    """Enqueue at a steady pace, a second at least; returns how long each took, sorted."""
    line = await Line.open(server.address)
    took: list[float] = []
    least = time.perf_counter() + 1
    asked = time.perf_counter()
    is_last = False
    while not is_last:
        sent = time.perf_counter()
        status, _ = await line.call("/enqueue", {"queue": "meanwhile"})
        took.append(time.perf_counter() - sent)
        check(status == 201, f"an enqueue was answered with {status}")
        await asyncio.sleep(WRITE_INTERVAL_SECONDS)
        if time.perf_counter() - asked > 0.25:
            asked = time.perf_counter()
            is_last = asked > least and is_over()
    line.close()
    return sorted(took)


async def _measure_stream(server: Corvo, jobs: int) -> list[float]:
    reader, writer = await asyncio.open_connection(*server.address)
    target = f"{API}/events?queue=stream&type=enqueued"
    writer.write(
        f"GET {target} HTTP/1.1\r\nhost: corvo\r\naccept: text/event-stream\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    line = await Line.open(server.address)
    waits: list[float] = []
    for _ in range(jobs):
        sent = time.perf_counter()
        line.send("/enqueue", {"queue": "stream"})
        async with asyncio.timeout(30):
            await reader.readuntil(b"\ndata: ")
        waits.append(time.perf_counter() - sent)
        status, _ = await line.receive()
        check(status == 201, f"an enqueue was answered with {status}")
        await asyncio.sleep(STREAM_INTERVAL_SECONDS)
    line.close()
    writer.close()
    return waits
