"""The processes that are measured: a Corvo server, and the bare server it is compared with."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.harness import check
from corvo.cli.client import API, Client, segment
from corvo.cli.failure import CallError, UnreachableError

ROOT = Path(__file__).resolve().parents[1]
READY_SECONDS_MAX = 120
URL = re.compile(r"http://[0-9.]+:(\d+)")


class Process:
    """A server in a process of its own; its standard output names the URL it listens on."""

    def __init__(self, arguments: list[str], name: str) -> None:
        self.name = name
        self._arguments = arguments
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def address(self) -> tuple[str, int]:
        return ("127.0.0.1", self.port)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> float:
        """Start and wait until it listens; returns how long that took in seconds."""
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        started = time.perf_counter()
        self._process = subprocess.Popen(
            self._arguments, stdout=subprocess.PIPE, env=environment, text=True
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            match = URL.search(line)
            if match:
                self.port = int(match.group(1))
                return time.perf_counter() - started
        code = self._process.wait()
        check(False, f"{self.name} ended with {code} before it listened")
        raise AssertionError

    def kill(self) -> None:
        """Pull the plug."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._reap()

    def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()

    def _reap(self) -> None:
        assert self._process is not None
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class Baseline(Process):
    """The floor: httptools, the same structs, no jobs."""

    def __init__(self) -> None:
        super().__init__([sys.executable, "-m", "bench.baseline"], "the bare server")


class Corvo(Process):
    """A server with data in a directory of its own.

    The read side is a process of its own and would take the core the load generator needs; figures
    of the write path leave it off, and `view` measures what it costs the write path.
    """

    def __init__(self, fsync: str = "always", *flags: str, view: str = "off") -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="corvo-bench-")
        arguments = [sys.executable, "-m", "corvo", "server", "--bind", "127.0.0.1:0"]
        arguments += ["--data-dir", self._directory.name, "--fsync", fsync, "--view", view]
        # Load generators leave with jobs in hand; nobody will report on them during a drain.
        arguments += ["--shutdown-timeout", "100ms", "--log-level", "warning", *flags]
        suffix = " --view on" if view == "on" else ""
        super().__init__(arguments, f"corvo --fsync {fsync}{suffix}")
        self.fsync = fsync

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        self._directory.cleanup()

    def client(self) -> Client:
        return Client(self.url)

    def queue(self, name: str) -> dict[str, Any]:
        """Read the server's own counters of a queue."""
        client = self.client()
        try:
            return client.call("GET", f"{API}/queues/{segment(name)}").body
        finally:
            client.close()

    def wait_ready(self, started: float) -> float:
        """Wait until the server says it is healthy; returns seconds since `started`."""
        while time.perf_counter() - started < READY_SECONDS_MAX:
            client = self.client()
            try:
                client.call("GET", "/healthz")
            except (CallError, UnreachableError):
                time.sleep(0.01)
                continue
            finally:
                client.close()
            return time.perf_counter() - started
        check(False, f"{self.name} was not ready after {READY_SECONDS_MAX} s")
        raise AssertionError
