"""The worker stream: the whole life of jobs over WebSockets, against single calls of HTTP."""

import asyncio
import time
from typing import Any

import msgspec
import uvloop
from websockets.asyncio.client import ClientConnection, connect

from bench.harness import Figure, Scale, check
from bench.jobs import check_all_completed
from bench.scripts import PAYLOAD
from bench.servers import Corvo
from bench.wrk import run_load

PROTOCOL: Any = "corvo.v1.msgpack"
QUEUE = "streamed"
CONNECTIONS = 4
SLOTS = 128  # of each connection; twice as many jobs are in the queue
TARGET = 2.0

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_JOB = {"queue": QUEUE, "payload": PAYLOAD}


class Budget:
    """Jobs of one run: how many are still to be enqueued, and how many are done."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs
        self.unfinished = jobs
        self.is_finished = asyncio.Event()

    def take(self, most: int) -> int:
        """Take jobs to enqueue."""
        count = min(self.left, most)
        self.left -= count
        return count

    def finish(self, count: int) -> None:
        """Count jobs that were acknowledged."""
        self.unfinished -= count
        if self.unfinished == 0:
            self.is_finished.set()


class Worker:
    """One stream: acknowledges what it is pushed and enqueues as much again, in the same frame."""

    def __init__(self, number: int, budget: Budget) -> None:
        self._number = number
        self._budget = budget
        self._request_id = 0

    async def run(self, port: int) -> None:
        """Enqueue the first jobs, then work until there are no more."""
        url = f"ws://127.0.0.1:{port}/api/v1/stream"
        async with connect(url, subprotocols=[PROTOCOL], compression=None) as stream:
            first: dict[str, Any] = {
                "worker_id": f"bench-{self._number}",
                "credits": [{"queues": [QUEUE], "slots": SLOTS}],
            }
            await self._send(stream, first, 2 * SLOTS)
            reading = asyncio.create_task(self._read(stream))
            finished = asyncio.create_task(self._budget.is_finished.wait())
            await asyncio.wait((reading, finished), return_when=asyncio.FIRST_COMPLETED)
            finished.cancel()
            if reading.done():
                await reading
            reading.cancel()

    async def _read(self, stream: ClientConnection) -> None:
        while True:
            frame = _decode(await stream.recv(decode=False))
            if "push" in frame:
                acks = [
                    {"job_id": job["job_id"], "lease_token": job["lease_token"]}
                    for job in frame["jobs"]
                ]
                await self._send(stream, {"acks": acks}, len(acks))
            else:
                check("error" not in frame, f"a frame was refused: {frame}")
                acks = frame.get("acks", ())
                check(frame.get("acked", 0) == len(acks), "acks were refused")
                self._budget.finish(len(acks))

    async def _send(self, stream: ClientConnection, frame: dict[str, Any], most: int) -> None:
        self._request_id += 1
        enqueues = [_JOB] * self._budget.take(most)
        await stream.send(_encode(frame | {"request_id": self._request_id, "enqueues": enqueues}))


async def _drive(port: int, jobs: int) -> float:
    budget = Budget(jobs)
    started = time.perf_counter()
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        for number in range(CONNECTIONS):
            group.create_task(Worker(number, budget).run(port))
    return time.perf_counter() - started


def worker_stream(scale: Scale) -> list[Figure]:
    """Enqueue, push and ack in frames of a few dozen items, against one job per HTTP call."""
    jobs = scale.batch_jobs // 2
    with Corvo("always") as server:
        rates: list[float] = []
        ratios: list[float] = []
        for _ in range(min(scale.rounds, 3)):
            single = run_load(server, "mixed", scale).rate / 3
            rates.append(jobs / uvloop.run(_drive(server.port, jobs)))
            ratios.append(rates[-1] / single)
        check_all_completed(server, "bench", at_least=1)
        check_all_completed(server, QUEUE, at_least=jobs * len(rates))
    spread = f"per round {min(ratios):.1f}–{max(ratios):.1f}"
    target = None if scale.is_quick else TARGET
    return [
        Figure(
            "worker_stream: jobs through enqueue, push and ack",
            sorted(rates)[len(rates) // 2],
            "jobs/s",
        ),
        Figure(
            "worker_stream: of the single-job rate",
            sorted(ratios)[len(ratios) // 2],
            "×",
            target,
            note=spread,
        ),
    ]
