"""Runs the handlers of jobs, one at a time, and reports on them as a worker would.

A handler runs where the test runs: an async one on the test's loop, a sync one in its thread, so
that database connections and other things bound to a thread or a loop are those of the test. What a
handler did becomes a verdict in the SDK's `execute`, as in production.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any

from msgspec import Raw, Struct

from corvo.testing.chaos import Chaos, Fault, Plan, cut_at_await
from corvo.testing.house import House
from corvo_sdk.aio import AsyncClient
from corvo_sdk.app import Corvo
from corvo_sdk.client import Client
from corvo_sdk.context import Context, Stop
from corvo_sdk.task import Task
from corvo_sdk.types import FetchedJob, Heartbeat
from corvo_sdk.worker.execution import Runners, execute
from corvo_sdk.worker.http import HttpLink, Identity
from corvo_sdk.worker.links import Delivery, Report
from corvo_sdk.worker.threads import ThreadPool
from corvo_sdk.worker.verdict import Completed, Lost, Verdict

LEASE_MARGIN_MS = 1_000
REPORTS_MAX = 20  # tries of one report whose answers chaos takes away


class KitError(AssertionError):
    """The test asks for something that can not be."""


class Drained(Struct):
    """What a drain did: deliveries by how they ended, and errors of handlers in their order."""

    outcomes: Counter[str]
    errors: list[BaseException]

    def __getattr__(self, name: str) -> int:
        """`drained.completed`, `drained.retrying`, `drained.dead`: how many ended so."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self.outcomes[name]

    @property
    def total(self) -> int:
        return self.outcomes.total()


class Deliveries:
    """Delivers jobs to the tasks of some apps until told otherwise."""

    def __init__(
        self,
        house: House,
        client: Client,
        aclient: AsyncClient,
        chaos: Chaos | None,
        *,
        uses_threads: bool,
    ) -> None:
        self._house = house
        self._client = client
        self._chaos = chaos
        self._uses_threads = uses_threads
        self._link = HttpLink(aclient, Identity("kit", "test", "kit", 1))
        self._runners = Runners(ThreadPool(1, "kit"))
        self._late: dict[str, Report] = {}  # reports of first deliveries, held until the second
        self.drained = Drained(Counter(), [])

    async def next(self, queues: list[str]) -> FetchedJob | None:
        """Take one job that could run now."""
        await self._house.arun(self._house.settle())
        jobs = await self._link.fetch(queues, 1, 0.0)
        return jobs[0] if jobs else None

    async def deliver(self, job: FetchedJob, app: Corvo, state: Any) -> None:
        """Run the handler of a job and report, with whatever chaos has planned for it."""
        task = app.find(job.queue, job.tags)
        if task is None:
            named = job.tags.get("task", "and without the tag `task`")
            raise KitError(f"{job.job_id} of queue {job.queue}: no task in use is named {named}")
        plan = Plan(Fault.NONE)
        if self._chaos is not None:
            plan = self._chaos.plan(job.job_id, task.name, job.attempt, job.max_retries)
        late = self._late.pop(job.job_id, None)
        await self._run(job, task, app, state, plan)
        if late is not None:
            await self._report_late(late)

    async def settle_late(self) -> None:
        """Send the reports nobody waits for any more."""
        while self._late:
            await self._report_late(self._late.popitem()[1])

    async def _run(
        self, job: FetchedJob, task: Task[..., Any], app: Corvo, state: Any, plan: Plan
    ) -> None:
        context = Context(job, task, state=state, saver=_Saver(self._client))
        if task.options.at_most_once:
            await self._report(Report(job.job_id, job.lease_token, Completed()))
            await execute(
                self._bare(task, app, context, Plan(Fault.NONE)), job, context, self._runners
            )
            return
        if plan.fault is Fault.LEASE_LOST and not task.is_async:
            context.stop_reason = Stop.LOST  # a thread is only ever told
        bare = self._bare(task, app, context, plan)
        verdict = await execute(bare, job, context, self._runners)
        report = _report_of(context, verdict)
        if plan.fault is Fault.DELIVERED_TWICE and not isinstance(verdict, Lost):
            self._late[job.job_id] = report
            await self._lose_lease(job)
        elif plan.fault is Fault.CRASH_BEFORE_ACK or isinstance(verdict, Lost):
            await self._lose_lease(job)
        else:
            if plan.fault is Fault.SLOW_SERVER:
                # Everybody else goes on meanwhile, and the lease still stands when it arrives.
                await self._house.arun(self._house.pass_time(int(job.lease_duration * 750)))
            await self._report(report)

    def _bare(self, task: Task[..., Any], app: Corvo, context: Context, plan: Plan) -> "_BareTask":
        return _BareTask(task, app, context, plan, self.drained, uses_threads=self._uses_threads)

    async def _lose_lease(self, job: FetchedJob) -> None:
        self.drained.outcomes["lost"] += 1
        await self._house.arun(
            self._house.pass_time(int(job.lease_duration * 1_000) + LEASE_MARGIN_MS)
        )

    async def _report(self, report: Report) -> None:
        for _ in range(REPORTS_MAX):
            result = (await self._link.report([report]))[0]
            if result.delivery is Delivery.UNDELIVERED:
                continue
            if result.delivery is Delivery.REFUSED:
                raise KitError(f"the report on {report.job_id} was refused: {result.error}")
            lost = result.delivery is Delivery.LOST
            self.drained.outcomes["lost" if lost else result.status or "completed"] += 1
            return
        raise KitError(f"the report on {report.job_id} was never answered")

    async def _report_late(self, report: Report) -> None:
        """Say what a worker says that has lost its lease: it must not be believed."""
        for _ in range(REPORTS_MAX):
            result = (await self._link.report([report]))[0]
            if result.delivery is not Delivery.UNDELIVERED:
                assert result.delivery is Delivery.LOST, f"a stale report was believed: {result}"
                return
        raise KitError(f"the late report on {report.job_id} was never answered")


class _BareTask:
    """A task as `execute` sees it, run in the test's own thread and cut where chaos wants it."""

    def __init__(
        self,
        task: Task[..., Any],
        app: Corvo,
        context: Context,
        plan: Plan,
        drained: Drained,
        *,
        uses_threads: bool,
    ) -> None:
        self._task = task
        self._app = app
        self._context = context
        self._plan = plan
        self._drained = drained
        self.name = task.name
        self.queue = task.queue
        self.options = task.options
        self.decode = task.decode
        self.encode_result = task.encode_result
        self.is_async = True
        self._in_thread = uses_threads and not task.is_async

    @property
    def function(self) -> Callable[..., Awaitable[Any]]:
        return self._call

    async def _call(self, *args: Any, **kwargs: Any) -> Any:
        async def innermost(_: Context) -> Any:
            return await self._handle(*args, **kwargs)

        try:
            return await self._app.surround(self._context, innermost)
        except Exception as error:
            self._drained.errors.append(error)
            raise

    async def _handle(self, *args: Any, **kwargs: Any) -> Any:
        function = self._task.function
        if self._in_thread:
            return await asyncio.to_thread(function, *args, **kwargs)
        if not self._task.is_async:
            return function(*args, **kwargs)
        if self._plan.fault is not Fault.LEASE_LOST:
            return await function(*args, **kwargs)
        return await cut_at_await(function(*args, **kwargs), self._plan.await_number, self._lose)

    def _lose(self) -> BaseException:
        self._context.stop_reason = Stop.LOST
        return asyncio.CancelledError()


class _Saver:
    """Carries a checkpoint at once: there is no heart to wait for."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def save(self, context: Context) -> "Future[None]":
        done: Future[None] = Future()
        job = context.job
        checkpoint, context.pending_checkpoint = context.pending_checkpoint, None
        assert checkpoint is not None
        beat = Heartbeat(lease_token=job.lease_token, checkpoint=Raw(checkpoint))
        answer = self._client.heartbeat({job.job_id: beat})
        match answer.jobs[job.job_id].status:
            case "lost":
                context.stop_reason = Stop.LOST
            case "cancel":
                context.stop_reason = context.stop_reason or Stop.CANCEL
            case _:
                pass
        done.set_result(None)
        return done


def _report_of(context: Context, verdict: Verdict) -> Report:
    job = context.job
    return Report(
        job.job_id, job.lease_token, verdict, context.pending_checkpoint, context.pending_usage
    )
