"""Jobs in hand: from the answer of a fetch through a slot and a handler to a settled report.

Everything here runs on the loop and none of it waits between reading and writing the same state. A
job is one asyncio task, so that what a handler leaves in context variables ends with it.
"""

import asyncio
import contextvars
import logging
import time
from collections.abc import Coroutine
from typing import Any, Protocol

from corvo_sdk.context import Context, Stop
from corvo_sdk.types import FetchedJob
from corvo_sdk.worker.execution import Runnable, Runners, execute
from corvo_sdk.worker.fetching import Pool
from corvo_sdk.worker.flights import Flights
from corvo_sdk.worker.heart import Heart
from corvo_sdk.worker.links import Delivery, Report, ReportResult
from corvo_sdk.worker.reporting import Reporter
from corvo_sdk.worker.statistics import Figures
from corvo_sdk.worker.verdict import Completed, Failed, Lost, Released, Snoozed, Verdict

UNKNOWN_SAID_EVERY_S = 60.0
UNKNOWN_NAMES_MAX = 1_000

_log = logging.getLogger("corvo.worker")


class Catalog(Protocol):
    """Finds the task of a job."""

    def find(self, queue: str, tags: dict[str, str]) -> Runnable | None: ...


class Handling:
    """Runs what the pools hold and reports what came of it."""

    def __init__(
        self,
        catalog: Catalog,
        runners: Runners,
        heart: Heart,
        flights: Flights,
        figures: Figures,
        *,
        unknown_delay_ms: int,
    ) -> None:
        self._catalog = catalog
        self._runners = runners
        self._heart = heart
        self._flights = flights
        self._figures = figures
        self._unknown_delay_ms = unknown_delay_ms
        self._unknown_said_at_s: dict[str, float] = {}
        self._jobs: set[asyncio.Task[None]] = set()
        self._running: dict[Context, Pool] = {}
        self._firsts: dict[Context, asyncio.Future[ReportResult]] = {}
        self._spawn = asyncio.get_running_loop().create_task
        self._variables = contextvars.copy_context()
        self.pools: list[Pool] = []
        self.reporter: Reporter
        self._state: Any = None
        self.is_draining = False
        self.error: BaseException | None = None  # a bug of ours; the worker ends with it
        self.failed = asyncio.Event()

    def begin(self, state: Any) -> None:
        """Give every job this state, and the context variables that are set here and now."""
        self._state = state
        self._variables = contextvars.copy_context()

    @property
    def running_count(self) -> int:
        return len(self._running)

    # --- in ---------------------------------------------------------------------------------------

    def accept(self, pool: Pool, jobs: list[FetchedJob]) -> None:
        """Take fetched jobs: known to the heart from here on, started as slots are free."""
        self._figures.fetched_count += len(jobs)
        now_s = time.monotonic()
        find, heart, flights, state = self._catalog.find, self._heart, self._flights, self._state
        lease_s = jobs[0].lease_duration
        for job in jobs:
            task = find(job.queue, job.tags)
            context = Context(job, task, state=state, saver=heart, now_s=now_s)
            flights.add(context)
            pool.waiting.append((context, task))
            lease_s = min(lease_s, job.lease_duration)
        heart.adapt(lease_s)
        if self.is_draining:
            self.give_back()
        else:
            self._fill(pool)

    def _fill(self, pool: Pool) -> None:
        waiting = pool.waiting
        while waiting and pool.running_count < pool.slots:
            context, task = waiting.popleft()
            if context.stop_reason is Stop.LOST:
                # It waited too long for a slot and belongs to somebody else by now.
                self.reporter.put(context, Lost())
            elif task is None:
                self._unknown(context)
            else:
                pool.running_count += 1
                self._running[context] = pool
                self._start(self._run(pool, context, task))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # Safety: jobs are often started from the task of the one before; what its handler left in
        # context variables must not be seen by this one.
        job = self._spawn(work, context=self._variables.copy())
        self._jobs.add(job)
        job.add_done_callback(self._ended)

    def _ended(self, job: asyncio.Task[None]) -> None:
        self._jobs.discard(job)
        if not job.cancelled() and (error := job.exception()) is not None:
            self.error = error
            self.failed.set()

    # --- through ----------------------------------------------------------------------------------

    async def _run(self, pool: Pool, context: Context, task: Runnable) -> None:
        if task.options.at_most_once:
            verdict = await self._run_once(context, task)
        else:
            verdict = await execute(task, context.job, context, self._runners)
            # An abandoned job has been released already.
            if context in self._running:
                self.reporter.put(context, verdict)
        took_s = time.monotonic() - context.started_at_s
        pool.note(took_s)
        self._figures.note(task.name, type(verdict).__name__.lower(), took_s)
        if type(verdict) is not Completed:
            _tell(context, task, verdict)
        self._running.pop(context, None)
        if context.lingering is None:
            self._free(pool)
        else:
            context.lingering.after(lambda: self._free(pool))

    async def _run_once(self, context: Context, task: Runnable) -> Verdict:
        """Acknowledge, then run: what fails now is not tried again."""
        settled: asyncio.Future[ReportResult] = asyncio.get_running_loop().create_future()
        self._firsts[context] = settled
        self.reporter.put(context, Completed())
        result = await settled
        context.started_at_s = time.monotonic()
        if result.delivery is not Delivery.DONE:
            return Lost()
        return await execute(task, context.job, context, self._runners)

    def _free(self, pool: Pool) -> None:
        pool.running_count -= 1
        if not self.is_draining:
            if pool.waiting:
                self._fill(pool)
            pool.freed()

    def _unknown(self, context: Context) -> None:
        """A job of a task this app does not have goes back for later: never acked, never failed."""
        job = context.job
        self._figures.unknown_count += 1
        name = job.tags.get("task", "")
        said = self._unknown_said_at_s
        now_s = time.monotonic()
        if now_s - said.get(name, -UNKNOWN_SAID_EVERY_S) >= UNKNOWN_SAID_EVERY_S:
            if len(said) >= UNKNOWN_NAMES_MAX:
                said.clear()
            said[name] = now_s
            what = f"task {name!r} is not known" if name else "it names no task"
            _log.warning("job %s of queue %s is snoozed: %s", job.job_id, job.queue, what)
        self.reporter.put(context, Snoozed(self._unknown_delay_ms))

    # --- out --------------------------------------------------------------------------------------

    def settled(self, context: Context, _: Report, result: ReportResult) -> None:
        """A report was answered, or there was nothing to report."""
        self._flights.remove(context)
        if result.delivery is Delivery.DONE:
            self._figures.reported_count += 1
        else:
            self._figures.lost_count += 1
            _log.warning("job %s was lost: %s", context.job_id, result.error or "its lease is gone")
        first = self._firsts.pop(context, None)
        if first is not None and not first.done():
            first.set_result(result)
        if not self.is_draining:
            for pool in self.pools:
                pool.freed()

    def give_back(self) -> None:
        """Release what waits for a slot."""
        for pool in self.pools:
            while pool.waiting:
                context, _ = pool.waiting.popleft()
                verdict = Lost() if context.stop_reason is Stop.LOST else Released()
                self.reporter.put(context, verdict)

    async def wait_done(self, timeout_s: float) -> bool:
        """Wait for the handlers; false when some are not done in time."""
        if self._jobs and timeout_s > 0:
            await asyncio.wait(self._jobs, timeout=timeout_s)
        return not self._jobs

    def ask_to_stop(self) -> None:
        """Tell every handler that the worker ends."""
        for context in list(self._running):
            context.stop(Stop.SHUTDOWN)

    def abandon(self) -> None:
        """Release the jobs of handlers that do not stop; what they do from here on is not heard."""
        for context in list(self._running):
            del self._running[context]
            if self._flights.get(context.job_id, context.lease_token) is not context:
                continue
            _log.warning("job %s is released although its handler goes on", context.job_id)
            verdict = Lost() if context.stop_reason is Stop.LOST else Released()
            self.reporter.put(context, verdict)
        for job in list(self._jobs):
            job.remove_done_callback(self._ended)
            job.cancel()


def _tell(context: Context, task: Runnable, verdict: Verdict) -> None:
    fields = {"job_id": context.job_id, "task": task.name, "attempt": context.attempt}
    if isinstance(verdict, Failed):
        _log.warning(
            "job %s of task %s failed: %s", context.job_id, task.name, verdict.error, extra=fields
        )
    else:
        word = type(verdict).__name__.lower()
        _log.info("job %s of task %s was %s", context.job_id, task.name, word, extra=fields)
