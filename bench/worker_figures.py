"""One worker process: how many jobs that do nothing it completes in a second.

Server (with fsync) and worker are processes of their own on this machine. The queue is filled
first; the clock runs from a tenth of the jobs to the last of them, by the counters of the server,
so neither the start of the worker nor the filling is measured.
`peer_figures.py` compares it with other systems.
"""

import os
import signal
import subprocess
import sys
import time

from bench.harness import Figure, Scale, check, median
from bench.servers import ROOT, Corvo
from bench.worker_app import QUEUE, noop
from corvo_sdk.client import Client

CONCURRENCY = 100
TARGET = 8_000
SECONDS_MAX = 120
FILL = 1_000


def worker(scale: Scale) -> list[Figure]:
    """Jobs of one worker process over each link the server offers."""
    jobs = scale.worker_jobs
    target = None if scale.is_quick else TARGET
    rates: dict[str, float] = {}
    for link in _links():
        rates[link] = median(corvo_rate(jobs, link) for _ in range(min(3, scale.rounds)))
    return [
        Figure(f"one worker, no-op async jobs, {link}", rate, "jobs/s", target)
        for link, rate in rates.items()
    ]


def corvo_rate(jobs: int, link: str) -> float:
    """Fill a queue, start a worker, and see how fast the queue is emptied."""
    with Corvo("always") as server, Client(server.url) as client:
        noop.source.bind(client=client)  # type: ignore[attr-defined]
        for start in range(0, jobs, FILL):
            noop.enqueue_many([noop.call(n) for n in range(start, min(jobs, start + FILL))])
        process = _start(server.url, link)
        try:
            return _watch(server, jobs)
        finally:
            process.send_signal(signal.SIGTERM)
            check(process.wait(30) == 0, "the worker did not end in order")


def _watch(server: Corvo, jobs: int) -> float:
    # A run so short that it ends between two looks counts with the start of the worker.
    first, first_s = 0, time.perf_counter()
    until_s = first_s + SECONDS_MAX
    while time.perf_counter() < until_s:
        done = int(server.queue(QUEUE)["completed"])
        now_s = time.perf_counter()
        if done >= jobs:
            return (done - first) / (now_s - first_s)
        if not first and done >= jobs // 10:
            first, first_s = done, now_s
        # The counters are asked of the server that is measured: rarely.
        time.sleep(0.02)
    check(False, f"not all of {jobs} jobs were done in {SECONDS_MAX} s")
    raise AssertionError


def _start(url: str, link: str) -> subprocess.Popen[bytes]:
    places = (ROOT / "sdks/python/src", ROOT / "src", ROOT)
    environment = {
        **os.environ,
        "CORVO_URL": url,
        "PYTHONPATH": os.pathsep.join(str(place) for place in places),
    }
    command = [sys.executable, "-m", "corvo_sdk.worker", "bench.worker_app:app", "--link", link]
    command += ["--concurrency", str(CONCURRENCY), "--health-port", "off", "--log-level", "error"]
    return subprocess.Popen(command, env=environment, cwd=ROOT)


def _links() -> list[str]:
    with Corvo("always") as server, Client(server.url) as client:
        features = client.request("GET", "/api/v1/info").body["features"]
    return ["http", "stream"] if "stream" in features else ["http"]
