"""One thread for calls that block (a flush, a sync), with a bound on what waits for it.

A shared pool would let a slow compaction queue in front of a flush, and two flushes race. One named
thread per purpose keeps order: what was handed over first is done first.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

BACKLOG_MAX = 64


class Worker:
    """A thread that does one call after another, in the order they were handed over."""

    def __init__(self, name: str, *, backlog_max: int = BACKLOG_MAX) -> None:
        assert backlog_max > 0
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._name = name
        self._backlog_max = backlog_max
        self._handed_count = 0
        self._finished_count = 0
        self._stopped = False

    def submit(
        self,
        call: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Future[Result]:
        """Hand a call over; its result or exception is in the future.

        Invariant: at most `backlog_max` calls wait. Callers here are few and know each other (one
        flush at a time, one compaction at a time), so reaching the bound is a fault of the program.
        """
        assert not self._stopped, f"{self._name} is stopped"
        assert self.waiting_count < self._backlog_max, f"too much waits for {self._name}"
        self._handed_count += 1
        future = self._executor.submit(call, *args, **kwargs)
        future.add_done_callback(self._on_done)
        return future

    def _on_done(self, _future: Future[Result]) -> None:
        # Safety: runs in the one thread, or in the caller's when the call was already done; both
        # hold the interpreter lock, and nothing else writes this number.
        self._finished_count += 1

    async def run(
        self,
        call: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Hand a call over and wait for it without blocking the loop.

        A caller that is cancelled stops waiting; the call itself is carried out all the same.
        """
        return await asyncio.shield(asyncio.wrap_future(self.submit(call, *args, **kwargs)))

    @property
    def waiting_count(self) -> int:
        """Calls handed over and not finished."""
        return self._handed_count - self._finished_count

    def stop(self) -> None:
        """Finish what was handed over, then end the thread. Blocks; may be called again."""
        self._stopped = True
        self._executor.shutdown(wait=True)

    def statistics(self) -> dict[str, int]:
        return {"waiting_count": self.waiting_count, "finished_count": self._finished_count}
