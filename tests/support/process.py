"""A real server in a process of its own, as a person would start it."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from corvo.cli.client import Client

ROOT = Path(__file__).resolve().parents[2]
URL = re.compile(r"http://(?:127\.0\.0\.1|\[::1\]):(\d+)")
WAIT_SECONDS = 30


class ServerProcess:
    """`python -m corvo server` on a free port; may be killed and started again on the same data."""

    def __init__(self, data_dir: Path, *flags: str) -> None:
        self._arguments = [sys.executable, "-m", "corvo", "server", "--bind", "127.0.0.1:0"]
        self._arguments += ["--data-dir", str(data_dir), "--log-level", "warning", *flags]
        self._process: subprocess.Popen[str] | None = None
        self._errors: list[str] = []
        self._reader: threading.Thread | None = None
        self.banner = ""
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    def start(self) -> Self:
        """Start, and wait for the banner, which is printed once the server serves."""
        self._process = subprocess.Popen(
            self._arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self._errors = []
        self._reader = threading.Thread(target=self._read_errors, args=(self._process,))
        self._reader.start()
        assert self._process.stdout is not None
        self.banner = self._process.stdout.readline()
        match = URL.search(self.banner)
        if match is None:
            self.stop()
            raise AssertionError(f"the server did not start: {self.errors()}")
        while " try " not in self.banner and (line := self._process.stdout.readline()):
            self.banner += line
        self.port = int(match.group(1))
        return self

    def _read_errors(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        self._errors.extend(process.stderr)

    def errors(self) -> str:
        """What the server wrote to standard error; complete once it has ended."""
        return "".join(self._errors)

    def client(self) -> Client:
        return Client(self.url)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """Pull the plug."""
        self.process.kill()
        self._finish()

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        code = self.process.wait(WAIT_SECONDS)
        self._finish()
        return code

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def _finish(self) -> None:
        self.process.wait()
        assert self._reader is not None
        self._reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.kill()


def environment() -> dict[str, str]:
    """The environment of a child: ours, without settings of a server somebody runs here."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CORVO_")}
    # Nor with profiles of the person who runs the tests.
    kept["XDG_CONFIG_HOME"] = str(ROOT / "tests" / "no-profiles")
    paths = (ROOT / "src", ROOT / "sdks/python/src")
    return {**kept, "PYTHONPATH": os.pathsep.join(str(path) for path in paths)}


def corvo(*arguments: str, url: str = "", stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command line and return what it did."""
    variables = environment() | ({"CORVO_URL": url} if url else {})
    return subprocess.run(
        [sys.executable, "-m", "corvo", *arguments],
        capture_output=True,
        text=True,
        env=variables,
        input=stdin,
        timeout=WAIT_SECONDS,
        check=False,
    )
