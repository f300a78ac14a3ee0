"""`corvo top` in a real terminal, by way of tmux."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.process import ROOT, ServerProcess, environment
from tests.support.screen import Caller

PATIENCE_S = 60

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A tmux server of its own with one window."""

    def __init__(self, directory: Path) -> None:
        self._socket = str(directory / "tmux")

    def run(self, *arguments: str) -> str:
        finished = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *arguments],
            capture_output=True,
            text=True,
            env=environment() | {"PYTHONPATH": f"{ROOT}/src:{ROOT}/sdks/python/src"},
            timeout=30,
            check=False,
        )
        return finished.stdout

    def open(self, command: str) -> None:
        self.run("new-session", "-d", "-x", "120", "-y", "30", command)

    def wait_for(self, word: str) -> str:
        """Return the screen once a word is on it."""
        late = time.monotonic() + PATIENCE_S
        shown = ""
        while time.monotonic() < late:
            # Waits on the side of tmux for a moment, or until the window has closed.
            shown = self.run("capture-pane", "-p", ";", "run-shell", "sleep 0.1")
            if word in shown:
                return shown
        raise AssertionError(f"{word!r} never came:\n{shown}")


def test_it_starts_shows_a_queue_and_quits(tmp_path: Path) -> None:
    """In a terminal: the queue's name is seen, `q` ends it, and the exit code is 0."""
    code = tmp_path / "code"
    terminal = Terminal(tmp_path)
    with ServerProcess(tmp_path / "data") as server:
        Caller(server.port).enqueue("seen.in.tmux")
        top = f"{sys.executable} -m corvo top --url {server.url}"
        # The window stays until the exit code is written, and longer: the shell waits for a line.
        terminal.open(f"sh -c '{top}; echo ended $? | tee {code}; read line'")
        try:
            shown = terminal.wait_for("seen.in.tmux")
            assert "● serving" in shown
            assert "▸1 Queues" in shown
            terminal.run("send-keys", "2")
            assert "▸2 Jobs" in terminal.wait_for("job_")
            terminal.run("send-keys", "q")
            terminal.wait_for("ended 0")
        finally:
            terminal.run("kill-server")
    assert code.read_text(encoding="utf-8") == "ended 0\n"
