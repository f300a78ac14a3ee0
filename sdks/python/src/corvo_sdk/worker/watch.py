"""The watch: a thread that looks at the clock, so that nobody depends on a loop that is blocked.

It does three things. It compares every lease with the clock: when no heartbeat came through before
a lease ran out, the handler is stopped, since somebody else may have the job by now. It measures
how late the loop is, and names the task that holds it. And when the worker must end and the loop
does not answer, it calls `last_resort`.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType

from corvo_sdk.context import Context, Stop
from corvo_sdk.worker.flights import Flights

TICK_S = 0.1
LAG_WARNING_S = 1.0

# The one way to see what another thread does; documented, in spite of its name.
_frames: Callable[[], dict[int, FrameType]] = getattr(sys, "_current_frames")  # noqa: B009

_log = logging.getLogger("corvo.worker")


class Watch:
    """Looks ten times a second until it is stopped."""

    def __init__(
        self,
        flights: Flights,
        loop: asyncio.AbstractEventLoop,
        *,
        lag_warning_s: float = LAG_WARNING_S,
        execution: CodeType,
        last_resort: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._flights = flights
        self._loop = loop
        self._loop_thread_id = threading.get_ident()
        self._lag_warning_s = lag_warning_s
        self._execution = execution
        self._last_resort = last_resort
        self._clock = clock
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._asked_at_s: float | None = None
        self._is_warned = False
        self.resort_at_s: float | None = None
        self.lag_s_max = 0.0
        self.blocked_by: str | None = None
        self.warnings_count = 0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="corvo-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(1.0)

    @property
    def lag_s(self) -> float:
        """How long the loop has not answered; 0 when it has."""
        asked_at_s = self._asked_at_s
        return 0.0 if asked_at_s is None else self._clock() - asked_at_s

    def _run(self) -> None:
        while not self._stopped.wait(TICK_S):
            self.look()

    def look(self) -> None:
        """Look once."""
        now_s = self._clock()
        for context in self._flights.all():
            if now_s >= context.lease_until_s and context.stop_reason is not Stop.LOST:
                _log.warning(
                    "the lease of %s ran out before a heartbeat came through", context.job_id
                )
                context.stop(Stop.LOST)
        self._measure(now_s)
        if self.resort_at_s is not None and now_s >= self.resort_at_s:
            self.resort_at_s = None
            if self._last_resort is not None:
                self._last_resort()

    def _measure(self, now_s: float) -> None:
        if self._asked_at_s is None:
            self._asked_at_s = now_s
            self._is_warned = False
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._answer)
            return
        lag_s = now_s - self._asked_at_s
        if lag_s >= self._lag_warning_s and not self._is_warned:
            self._is_warned = True
            self.warnings_count += 1
            self.blocked_by = self._describe()
            _log.warning("the event loop is blocked for %.1f s by %s", lag_s, self.blocked_by)

    def _answer(self) -> None:
        # On the loop.
        asked_at_s, self._asked_at_s = self._asked_at_s, None
        if asked_at_s is not None:
            self.lag_s_max = max(self.lag_s_max, self._clock() - asked_at_s)
        self.blocked_by = None

    def _describe(self) -> str:
        frame: FrameType | None = _frames().get(self._loop_thread_id)
        if frame is None:
            return "an unknown call"
        innermost = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        context = _context_of(frame, self._execution)
        if context is None or context.task is None:
            return innermost
        return f"task {context.task.name} (job {context.job_id}) at {innermost}"


def _context_of(frame: FrameType | None, execution: CodeType) -> Context | None:
    """Find the job that runs on a stack, by the frame of the function that runs jobs."""
    while frame is not None:
        if frame.f_code is execution:
            found = frame.f_locals.get("context")
            return found if isinstance(found, Context) else None
        frame = frame.f_back
    return None
