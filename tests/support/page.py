"""A page of the documentation, walked as a reader would: its blocks are run in order.

<!-- file: jobs.py -->      the block after it is a file to write
<!-- background -->         the block after it is for a terminal of its own
```bash                     everything else in bash is typed into one and the same shell
"""

import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from tests.support.process import environment
from tests.support.worker import wait_until

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>background|file: (?P<name>[\w./-]+)) -->\n)?"
    r"^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_END = "--end-of-block--"
_STEP_SECONDS = 60.0
_END_SECONDS = 10.0
_COMMANDS = {
    "corvo": "-m corvo",
    "corvo-worker": "-m corvo_sdk.worker",
    "python": "",
    "uvicorn": "-m uvicorn",
}


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    text: str
    file: str | None
    is_background: bool


def blocks_of(page: Path) -> list[Block]:
    """Give the blocks of a page that say or need something: files, and shell."""
    found = [
        Block(match["language"], match["text"], match["name"], match["mark"] == "background")
        for match in _BLOCK.finditer(page.read_text(encoding="utf-8"))
    ]
    return [block for block in found if block.file is not None or block.language == "bash"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Page:
    """A folder, a shell in it, and what was started in the background.

    `ports` maps a port that is printed on the page to the one to use instead; what is started in
    the background and names one is waited for until it listens.
    """

    def __init__(
        self, page: Path, folder: Path, url: str, *, ports: dict[str, int] | None = None
    ) -> None:
        self._blocks = iter(blocks_of(page))
        self._ports = ports or {}
        self.folder = folder
        self.url = url
        tools = folder / ".venv" / "bin"
        tools.mkdir(parents=True)
        for name, arguments in _COMMANDS.items():
            self.provide(name, f'exec {sys.executable} {arguments} "$@"')
        self._variables = environment() | {
            "CORVO_URL": url,
            "CORVO_HEALTH_PORT": "off",
            # Where Corvo is installed its plugin is found; those of other tools are not needed.
            "PYTEST_ADDOPTS": "-p corvo.testing.plugin",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        }
        self._log = (folder.parent / f"{folder.name}.log").open("wb")
        self._shell = self._start(["bash", "-euo", "pipefail"], stdout=subprocess.PIPE)
        self._backgrounds: list[subprocess.Popen[bytes]] = []

    def _start(self, command: list[str], stdout: int | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._variables,
            stdin=subprocess.PIPE,
            stdout=self._log if stdout is None else stdout,
            stderr=self._log,
            start_new_session=True,  # so that all it starts can be ended with it
        )

    def provide(self, name: str, script: str) -> None:
        """Put a command where the page looks for it."""
        tool = self.folder / ".venv" / "bin" / name
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)

    def log(self) -> str:
        """Give what went to standard error, and what was printed in the background."""
        return (self.folder.parent / f"{self.folder.name}.log").read_text(encoding="utf-8")

    def step(self) -> str | None:
        """Do the next block; gives what it printed, None at the end of the page."""
        block = next(self._blocks, None)
        if block is None:
            return None
        text = self._local(block.text)
        if block.file is not None:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return ""
        if block.is_background:
            self._backgrounds.append(self._start(["bash", "-euo", "pipefail", "-c", text]))
            for printed, port in self._ports.items():
                if printed in block.text:
                    self._wait_port(self._backgrounds[-1], port)
            return ""
        return self._type(text)

    def rest(self) -> list[str]:
        """Do all blocks that are left; gives what each printed."""
        return list(iter(self.step, None))

    def _local(self, text: str) -> str:
        text = text.replace("http://127.0.0.1:8080", self.url)
        for printed, port in self._ports.items():
            text = text.replace(printed, str(port))
        return text

    def _wait_port(self, process: subprocess.Popen[bytes], port: int) -> None:
        def is_open() -> bool:
            assert process.poll() is None, self.log()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until(is_open)

    def _type(self, text: str) -> str:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{text}\necho; echo {_END}\n".encode())
        self._shell.stdin.flush()
        printed, mark = b"", f"\n{_END}\n".encode()
        until = time.monotonic() + _STEP_SECONDS
        with selectors.DefaultSelector() as ready:
            ready.register(self._shell.stdout, selectors.EVENT_READ)
            while not printed.endswith(mark):
                assert ready.select(max(0.0, until - time.monotonic())), self._story(text, printed)
                more = os.read(self._shell.stdout.fileno(), 65_536)
                assert more, self._story(text, printed)  # the shell ended: a command failed
                printed += more
        return printed.removesuffix(mark).decode()

    def _story(self, text: str, printed: bytes) -> str:
        return f"{text}\n--- printed:\n{printed.decode()}\n--- log:\n{self.log()}"

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.returncode is not None:
            return  # it ended by itself, and was seen to
        looking = os.WEXITED | os.WNOHANG | os.WNOWAIT
        # Asked first: a worker that reloads has a child in a group of its own, which it ends.
        # Safety: nobody waits for the leader before the last signal, so its number is still ours.
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(AssertionError):
            wait_until(lambda: os.waitid(os.P_PID, process.pid, looking), _END_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # What was started last is ended first: workers before the server they report to.
        for process in (self._shell, *reversed(self._backgrounds)):
            self._end(process)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._log.close()
