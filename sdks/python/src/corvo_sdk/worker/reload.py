"""`--reload`: run the worker as a child, and start it anew when a source file changes.

Files are found by looking, five times a second: it needs no library, and works on every disk that
containers mount. The old child is told to release its jobs at once, so that the new code gets them
with no attempt burnt.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

POLL_S: Final = 0.2
PARENT_POLL_S: Final = 0.5
END_S_MAX: Final = 10.0
FILES_MAX: Final = 20_000
_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})

# Tells a child that another may still be ending, and whose child it is.
RELOADED: Final = "CORVO_WORKER_RELOADED"
AT_ONCE: Final = signal.SIGUSR1  # what a worker takes for "release everything now"

_log = logging.getLogger("corvo.worker")

Snapshot = dict[str, tuple[int, int]]


def snapshot(folders: Sequence[Path]) -> Snapshot:
    """What the source files of some folders look like now; the first `FILES_MAX` of them."""
    found: Snapshot = {}
    for folder in folders:
        for path in _sources(str(folder)):
            try:
                status = os.stat(path)  # noqa: PTH116 - thousands of files, several times a second
            except FileNotFoundError:
                continue
            found[path] = (status.st_mtime_ns, status.st_size)
            if len(found) >= FILES_MAX:
                return found
    return found


def _sources(folder: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED and name[0] not in "._"]
        for name in files:
            if name.endswith(".py"):
                yield f"{place}/{name}"


def end_with_parent(end: Callable[[], None]) -> None:
    """Call `end` when the reloader that started this process is gone; nothing without one.

    A reloader that was killed can not tell its child, which would go on taking jobs unseen.
    """
    parent = os.environ.get(RELOADED, "")
    if not parent.isdigit():
        return

    def watch() -> None:
        pause = threading.Event()
        while os.getppid() == int(parent):
            pause.wait(PARENT_POLL_S)
        end()

    threading.Thread(target=watch, name="corvo-parent", daemon=True).start()


class Reloader:
    """Keeps one child running."""

    def __init__(self, arguments: Sequence[str], folders: Sequence[Path]) -> None:
        self._command = [sys.executable, "-m", "corvo_sdk.worker", *arguments]
        self._folders = list(folders)
        self._child: subprocess.Popen[bytes] | None = None
        self._wake = threading.Event()
        self._signals: list[int] = []
        self._is_ending = False

    def run(self) -> int:
        """Run until a signal, or until the child ends by itself without an error."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        seen = snapshot(self._folders)
        _log.info("watching %d files", len(seen))
        self._start()
        while True:
            self._wake.wait(POLL_S)
            self._wake.clear()
            while self._signals:
                self._tell(self._signals.pop(0))
            assert self._child is not None
            code = self._child.poll()
            # A child that failed is not the end: the next change may repair it.
            if code is not None and (code == 0 or self._is_ending):
                return code
            now = snapshot(self._folders)
            if now != seen and not self._is_ending:
                changed = sorted(dict(now.items() ^ seen.items()))
                seen = now
                _log.info("%s changed: starting anew", ", ".join(changed[:3]))
                self._restart()

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self._is_ending = True
        self._signals.append(number)
        self._wake.set()

    def _start(self) -> None:
        # A group of its own: an interrupt of the terminal reaches the child through us, once.
        environment = {**os.environ, RELOADED: str(os.getpid())}
        self._child = subprocess.Popen(  # noqa: S603 - ourselves
            self._command, process_group=0, env=environment
        )

    def _tell(self, number: int) -> None:
        assert self._child is not None
        if self._child.poll() is None:
            self._child.send_signal(number)

    def _restart(self) -> None:
        # The new child starts while the old one releases its jobs: both take half a second.
        self._tell(AT_ONCE)
        old = self._child
        assert old is not None
        self._start()
        try:
            old.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            _log.warning("the old worker did not end; it is killed")
            old.kill()
            old.wait()
