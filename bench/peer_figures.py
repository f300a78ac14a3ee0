"""One worker process of each system, the same no-op job, one run: who processes how many a second.

All jobs are enqueued before the worker starts. The clock runs from the moment the worker has taken
the first of them until the broker holds none that is not acknowledged, both seen at the broker.
Corvo syncs every acknowledgement to disk; Redis runs as it is configured by default, without.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.harness import Figure, Scale, SkippedError, check
from bench.servers import ROOT
from bench.worker_figures import corvo_rate

PEERS = Path(__file__).resolve().parent / "peers"
ENVIRONMENT = ROOT / ".venv-peers"
POLL_SECONDS = 0.05
START_SECONDS_MAX = 60
RUN_SECONDS_MAX = 300

Look = Callable[[], int]  # how many jobs are not acknowledged yet


def peers(scale: Scale) -> list[Figure]:
    """No-op jobs per second of one worker process: Corvo, Dramatiq, Celery."""
    missing = _missing()
    if missing:
        raise SkippedError(missing)
    corvo_jobs, peer_jobs = (400, 200) if scale.is_quick else (60_000, 10_000)
    links = ("http", "stream")
    corvo = max(corvo_rate(corvo_jobs, link) for link in links)
    with _redis() as port:
        dramatiq = _dramatiq(port, peer_jobs)
        celery = _celery(port, peer_jobs)
    targets = (None, None, None) if scale.is_quick else (8_000, 3, 10)
    return [
        Figure("corvo worker, no-op async jobs, the better link", corvo, "jobs/s", targets[0]),
        Figure("dramatiq worker on redis, no-op", dramatiq, "jobs/s"),
        Figure("celery worker on redis, no-op", celery, "jobs/s"),
        Figure("corvo ÷ dramatiq", corvo / dramatiq, "", targets[1]),
        Figure("corvo ÷ celery", corvo / celery, "", targets[2]),
    ]


def _missing() -> str:
    if shutil.which("redis-server") is None:
        return "no redis-server here (a system package)"
    if not (ENVIRONMENT / "bin" / "celery").exists():
        return "the other systems are not installed: make peers"
    return ""


def _dramatiq(port: int, count: int) -> float:
    environment = _environment({"PEERS_REDIS": f"redis://127.0.0.1:{port}/0"}, PEERS)
    binary = ENVIRONMENT / "bin"
    _produce([str(binary / "python"), str(PEERS / "dramatiq_noop.py"), str(count)], environment)
    # Eight threads are its default; more of them are slower for work without waiting.
    worker = [str(binary / "dramatiq"), "dramatiq_noop", "--processes", "1", "--threads", "8"]
    return _rate(worker, environment, lambda: _ask(port, "HLEN", "dramatiq:default.msgs"), count)


def _celery(port: int, count: int) -> float:
    environment = _environment({"PEERS_REDIS": f"redis://127.0.0.1:{port}/1"}, PEERS)
    binary = ENVIRONMENT / "bin"
    _produce([str(binary / "python"), str(PEERS / "celery_noop.py"), str(count)], environment)
    worker = [str(binary / "celery"), "-A", "celery_noop", "worker", "--loglevel", "error"]
    worker += ["--concurrency", "2", "--without-gossip", "--without-mingle", "--without-heartbeat"]

    def left() -> int:
        return _ask(port, "LLEN", "celery", 1) + _ask(port, "HLEN", "unacked", 1)

    return _rate(worker, environment, left, count)


def _environment(values: dict[str, str], *paths: Path) -> dict[str, str]:
    found = {**os.environ, **values}
    found["PYTHONPATH"] = os.pathsep.join(str(path) for path in (*paths, ROOT / "src"))
    return found


def _produce(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(command, env=environment, cwd=ROOT, check=True, timeout=RUN_SECONDS_MAX)


def _rate(command: list[str], environment: dict[str, str], left: Look, count: int) -> float:
    check(left() == count, "not every job was enqueued")
    with tempfile.TemporaryFile() as words:
        worker = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=words, stderr=words)
        try:
            began = _await(lambda: left() < count, START_SECONDS_MAX)
            taken = count - left()
            ended = _await(lambda: left() == 0, RUN_SECONDS_MAX)
        finally:
            worker.send_signal(signal.SIGTERM)
            try:
                worker.wait(30)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
    # What was done before the first look is not counted, and neither is its time.
    return (count - taken) / max(ended - began, POLL_SECONDS)


def _await(is_true: Callable[[], bool], seconds: float) -> float:
    deadline = time.perf_counter() + seconds
    while not is_true():
        check(time.perf_counter() < deadline, f"nothing came of it within {seconds} s")
        time.sleep(POLL_SECONDS)
    return time.perf_counter()


@contextmanager
def _redis() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="corvo-peers-") as directory:
        server = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", directory],
            stdout=subprocess.DEVNULL,
        )
        try:
            _await(lambda: _is_open(port), START_SECONDS_MAX)
            yield port
        finally:
            server.terminate()
            server.wait(30)


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _ask(port: int, verb: str, key: str, database: int = 0) -> int:
    """Ask Redis for one number; its protocol is lines, so no client is needed for it."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(f"SELECT {database}\r\n{verb} {key}\r\n".encode())
        with line.makefile("rb") as answers:
            check(answers.readline() == b"+OK\r\n", "redis refused the database")
            return int(answers.readline()[1:])
