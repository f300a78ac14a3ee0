"""Waiting: how soon a parked worker has a job, and what thousands of parked workers cost."""

import asyncio
import resource
import time
from typing import Any

import msgspec
import uvloop

from bench.harness import Figure, Scale, check, cpu_seconds
from bench.jobs import check_all_completed
from bench.scripts import PAYLOAD
from bench.servers import Corvo
from corvo.cli.client import API
from corvo.cli.load import post

WORKERS = 8
INTERVAL_SECONDS = 0.01  # one hundred jobs a second
PARKED_WAIT_SECONDS = 60


class Line:
    """One connection used in lock step from a coroutine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: tuple[str, int]) -> "Line":
        return cls(*await asyncio.open_connection(*address))

    def send(self, path: str, body: object) -> None:
        self._writer.write(post(f"{API}{path}", msgspec.json.encode(body)))

    async def receive(self) -> tuple[int, Any]:
        head = await self._reader.readuntil(b"\r\n\r\n")
        start = head.find(b"content-length: ")
        size = int(head[start + 16 : head.find(b"\r\n", start)]) if start >= 0 else 0
        body = await self._reader.readexactly(size) if size else b""
        return int(head[9:12]), msgspec.json.decode(body) if body else None

    async def call(self, path: str, body: object) -> tuple[int, Any]:
        self.send(path, body)
        return await self.receive()

    def close(self) -> None:
        self._writer.close()


def latency(scale: Scale) -> list[Figure]:
    """Enqueue until a parked worker holds the job, at one hundred jobs a second, with fsync."""
    with Corvo("always") as server:
        waits = sorted(uvloop.run(_measure_latency(server, scale.latency_jobs)))
        check(len(waits) == scale.latency_jobs, "jobs did not reach a worker")
        check_all_completed(server, "latency", at_least=scale.latency_jobs)
    targets = (None, None) if scale.is_quick else (3, 15)
    return [
        Figure("enqueue → parked worker, p50", _at(waits, 0.5), "ms", targets[0], is_ceiling=True),
        Figure("enqueue → parked worker, p99", _at(waits, 0.99), "ms", targets[1], is_ceiling=True),
    ]


def _at(values: list[float], fraction: float) -> float:
    return values[min(len(values) - 1, int(len(values) * fraction))] * 1_000


async def _measure_latency(server: Corvo, jobs: int) -> list[float]:
    sent: dict[int, float] = {}
    waits: list[float] = []

    async def work(number: int) -> None:
        line = await Line.open(server.address)
        fetch = {"queues": ["latency"], "worker_id": f"w{number}", "timeout": 2}
        while len(waits) < jobs:
            status, job = await line.call("/fetch", fetch)
            if status == 204:
                continue
            waits.append(time.perf_counter() - sent[job["payload"]["n"]])
            await line.call(f"/ack/{job['job_id']}", {"lease_token": job["lease_token"]})
        line.close()

    workers = [asyncio.create_task(work(number)) for number in range(WORKERS)]
    producer = await Line.open(server.address)
    await asyncio.sleep(0.2)
    for number in range(jobs):
        body = {"queue": "latency", "payload": {**PAYLOAD, "n": number}}
        sent[number] = time.perf_counter()
        status, _ = await producer.call("/enqueue", body)
        check(status == 201, f"enqueue answered {status}")
        await asyncio.sleep(max(0.0, sent[number] + INTERVAL_SECONDS - time.perf_counter()))
    await asyncio.gather(*workers)
    producer.close()
    return waits


def parked(scale: Scale) -> list[Figure]:
    """Thousands of parked fetches: the log does not grow, the processor does not work."""
    _raise_file_limit(scale.parked)
    with Corvo("always") as server:
        cpu, growth = uvloop.run(_measure_parked(server, scale))
    check(growth == 0, f"the log grew by {growth} entries while nothing happened")
    target = None if scale.is_quick else 2
    return [
        Figure(
            f"{scale.parked:,} parked fetches: log growth", growth, "entries", 0, is_ceiling=True
        ),
        Figure(f"{scale.parked:,} parked fetches: core", cpu, "% CPU", target, is_ceiling=True),
    ]


def _raise_file_limit(connections: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 1_024
    if soft < wanted:
        check(hard == resource.RLIM_INFINITY or hard >= wanted, f"only {hard} files may be open")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _measure_parked(server: Corvo, scale: Scale) -> tuple[float, int]:
    body = {"queues": ["idle"], "worker_id": "w", "timeout": PARKED_WAIT_SECONDS}
    lines: list[Line] = []
    for _ in range(scale.parked):
        line = await Line.open(server.address)
        line.send("/fetch", body)
        lines.append(line)
    client = server.client()
    before = client.call("GET", f"{API}/info").index
    # The requests were sent in order on a loaded loop: let the last of them be read.
    await asyncio.sleep(1.0)
    used, started = cpu_seconds(server.pid), time.perf_counter()
    await asyncio.sleep(scale.parked_seconds)
    share = (cpu_seconds(server.pid) - used) / (time.perf_counter() - started) * 100
    growth = client.call("GET", f"{API}/info").index - before
    client.close()
    for line in lines:
        line.close()
    return share, growth
