"""Threads for sync handlers: as many as are busy at once, up to a bound, and never in the way.

The threads are daemons. A handler that ignores every request to stop must not keep the process
alive after its job was released; an executor of the standard library would wait for it at exit.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any


class Errand:
    """One call that runs in a thread; `future` ends on the loop that asked for it."""

    __slots__ = ("_after", "_loop", "_work", "future", "is_over")

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._after: list[Callable[[], object]] = []
        self.future: asyncio.Future[Any] = self._loop.create_future()
        self.is_over = False

    def after(self, callback: Callable[[], object]) -> None:
        """Call back on the loop when the thread is free again; at once when it is."""
        if self.is_over:
            callback()
        else:
            self._after.append(callback)

    def run(self) -> None:
        """Do it, in the thread."""
        value: Any = None
        error: BaseException | None = None
        try:
            value = self._work()
        except BaseException as raised:  # noqa: BLE001 - it belongs to the one who waits
            error = raised
        # The loop is closed when the worker ended without waiting for this thread.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._settle, value, error)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        self.is_over = True
        if not self.future.done():
            if error is None:
                self.future.set_result(value)
            else:
                self.future.set_exception(_carried(error))
        for callback in self._after:
            callback()


class CarriedError(Exception):
    """Carries an exception that a future must not hold (StopIteration, SystemExit, ...)."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def _carried(error: BaseException) -> BaseException:
    # Safety: a future refuses StopIteration, and SystemExit would end the loop instead of the job.
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return CarriedError(error)


class ThreadPool:
    """Runs errands; at most `size` at once, the others wait in order."""

    def __init__(self, size: int, name: str) -> None:
        assert size > 0
        self._size = size
        self._name = name
        self._waiting: SimpleQueue[Errand | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._busy_count = 0

    @property
    def busy_count(self) -> int:
        """Errands that run or wait."""
        return self._busy_count

    def run(self, work: Callable[[], Any]) -> Errand:
        """Run something in a thread; called on the loop."""
        errand = Errand(work)
        self._busy_count += 1
        errand.after(self._free)
        if self._busy_count > len(self._threads) < self._size:
            name = f"{self._name}-{len(self._threads)}"
            thread = threading.Thread(target=self._serve, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._waiting.put(errand)
        return errand

    def close(self) -> None:
        """Let idle threads end; busy ones end with what they do."""
        for _ in self._threads:
            self._waiting.put(None)

    def _free(self) -> None:
        self._busy_count -= 1

    def _serve(self) -> None:
        while (errand := self._waiting.get()) is not None:
            errand.run()
