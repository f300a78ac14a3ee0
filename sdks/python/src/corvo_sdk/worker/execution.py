"""From a job to a verdict: the only place that turns what a handler did into what is reported.

Used by the worker, by the processes of `process=True`, and by the testing kit.

How a handler is stopped depends on where it runs. On the loop it gets `asyncio.CancelledError`. In
a thread nobody can interrupt it: `ctx.cancelled` turns true, and after a time-out it is given a
grace, then its attempt is reported as failed while the thread goes on and keeps its slot. In a
process it is told in the same way and killed after the grace.

| what happened | verdict |
|---|---|
| returned, or returned a control value, or raised one | what it says |
| the lease was lost meanwhile, whatever the handler did | Lost |
| stopped because of a cancel or a shutdown | Released (the server settles a cancelled job) |
| saw `ctx.cancelled` and returned nothing | as if it had been stopped |
| stopped because of the time-out | Failed, retryable |
| payload or result can not be read or written | Failed, not retryable |
| any other exception | Failed, retryable, with its backtrace |
"""

import asyncio
import contextvars
import traceback
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

from corvo_sdk.context import Context, JobCancelled, Stop, enter, leave
from corvo_sdk.control import Control, Discard, Hold, Release, Retry, Snooze
from corvo_sdk.options import Options
from corvo_sdk.payload import PayloadError
from corvo_sdk.types import FetchedJob
from corvo_sdk.worker.threads import CarriedError, Errand, ThreadPool
from corvo_sdk.worker.verdict import (
    BACKTRACE_BYTES_MAX,
    ERROR_BYTES_MAX,
    Completed,
    Failed,
    Held,
    Lost,
    Released,
    Snoozed,
    Verdict,
    cut,
)

THREAD_GRACE_S = 5.0

CallNext = Callable[[Context], Awaitable[Any]]
Surround = Callable[[Context, CallNext], Awaitable[Any]]


class Runnable(Protocol):
    """What is needed of a task to run it."""

    @property
    def name(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def options(self) -> Options: ...
    @property
    def function(self) -> Callable[..., Any]: ...
    def decode(self, payload: bytes, context: object = None) -> Any: ...
    def encode_result(self, value: object) -> bytes: ...


class Processes(Protocol):
    """Runs a job in another process."""

    def run(self, task: Runnable, job: FetchedJob, context: Context) -> Errand:
        """Start it; the errand ends with the verdict of the process."""
        ...


class Runners:
    """Where handlers run: threads for sync ones, processes for those that ask for one."""

    def __init__(
        self,
        threads: ThreadPool,
        processes: Processes | None = None,
        surround: Surround | None = None,
        *,
        grace_s: float = THREAD_GRACE_S,
    ) -> None:
        self.threads = threads
        self.processes = processes
        self.surround = surround  # all middleware, around the call given
        self.grace_s = grace_s


class GraceOverError(Exception):
    """The handler timed out, was asked to stop, and goes on in its thread."""


class _Reported(Control):
    """A process has already said what came of the job."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict


class _Encoded:
    """A result that is JSON already."""

    __slots__ = ("document",)

    def __init__(self, document: bytes | None) -> None:
        self.document = document


async def execute(task: Runnable, job: FetchedJob, context: Context, runners: Runners) -> Verdict:
    """Run the handler of a job and say what came of it; never raises for what a handler does."""
    assert context.job is job
    loop = asyncio.get_running_loop()
    token = enter(context)
    timer: asyncio.TimerHandle | None = None
    context.started_at_s = loop.time()
    timeout_ms = task.options.timeout_ms
    if timeout_ms is not None:
        timeout_s = timeout_ms / 1_000
        context.attempt_until_s = context.started_at_s + timeout_s
        timer = loop.call_later(timeout_s, context.stop, Stop.TIMEOUT)
    try:
        if runners.surround is None:
            value = await _call(task, runners, context)
        else:
            value = await runners.surround(context, partial(_call, task, runners))
        verdict = _of_value(value, context, task)
    except asyncio.CancelledError:
        verdict = _of_cancellation(context)
    except BaseException as raised:  # noqa: BLE001 - a handler may raise anything; it ends its job
        error = raised.error if isinstance(raised, CarriedError) else raised
        verdict = _of_exception(error)
    finally:
        context.listen(None)
        if timer is not None:
            timer.cancel()
        leave(token)
    return Lost() if context.stop_reason is Stop.LOST else verdict


async def _call(task: Runnable, runners: Runners, context: Context) -> Any:
    job = context.job
    if task.options.process and runners.processes is not None:
        return await _in_process(task, job, context, runners.processes)
    arguments = task.decode(bytes(job.payload), context)
    if task.is_async:
        running = asyncio.current_task()
        assert running is not None
        context.listen(lambda _: running.cancel())
        return await task.function(*arguments.args, **arguments.kwargs)
    work = partial(
        contextvars.copy_context().run, task.function, *arguments.args, **arguments.kwargs
    )
    return await _in_thread(runners.threads.run(work), context, runners.grace_s)


async def _in_thread(errand: Errand, context: Context, grace_s: float) -> Any:
    loop = asyncio.get_running_loop()

    def interrupt(reason: Stop) -> None:
        if reason is Stop.TIMEOUT:
            loop.call_later(grace_s, give_up)

    def give_up() -> None:
        if not errand.future.done():
            context.lingering = errand
            errand.future.set_exception(GraceOverError())

    context.listen(interrupt)
    return await errand.future


async def _in_process(
    task: Runnable, job: FetchedJob, context: Context, processes: Processes
) -> Any:
    verdict: Verdict = await processes.run(task, job, context).future
    if isinstance(verdict, Completed):
        return _Encoded(verdict.result)
    raise _Reported(verdict)


def _of_value(value: Any, context: Context, task: Runnable) -> Verdict:
    if value is None:
        if context.has_seen_stop and context.stop_reason is not None:
            return of_stop(context.stop_reason)
        return Completed()
    if isinstance(value, _Encoded):
        return Completed(value.document)
    if isinstance(value, Control):
        return _of_control(value)
    return Completed(task.encode_result(value))


def _of_control(control: Control) -> Verdict:
    match control:
        case Snooze():
            until = None if control.until is None else control.until.isoformat()
            return Snoozed(control.delay_ms, until)
        case Retry():
            error = cut(control.error, ERROR_BYTES_MAX)
            return Failed(error, retry_after_ms=control.after_ms)
        case Discard():
            return Failed(cut(control.reason, ERROR_BYTES_MAX), retryable=False)
        case Hold():
            return Held(control.reason, control.timeout_ms, control.timeout_action)
        case Release():
            return Released()
        case _Reported():
            return control.verdict
        case _:
            return Failed(f"the handler gave {control}, which says nothing", retryable=False)


def _of_cancellation(context: Context) -> Verdict:
    if context.stop_reason is None:
        running = asyncio.current_task()
        if running is not None and running.cancelling():
            # Not us: whoever runs this function wants it to end.
            raise asyncio.CancelledError
        return Failed("the handler was cancelled by its own code")
    return of_stop(context.stop_reason)


def of_stop(reason: Stop) -> Verdict:
    """What is reported of a handler that ended because it was asked to."""
    match reason:
        case Stop.TIMEOUT:
            return Failed("the attempt took longer than its timeout")
        case Stop.CANCEL | Stop.SHUTDOWN:
            return Released()
        case Stop.LOST:
            return Lost()


def _of_exception(error: BaseException) -> Verdict:
    match error:
        case Control():
            return _of_control(error)
        case JobCancelled():
            return of_stop(error.reason)
        case GraceOverError():
            return Failed(
                "the attempt took longer than its timeout, and the handler goes on in its thread"
            )
        case PayloadError():
            return Failed(cut(f"PayloadError: {error}", ERROR_BYTES_MAX), retryable=False)
        case _:
            return Failed(
                cut(describe(error), ERROR_BYTES_MAX), cut(_backtrace(error), BACKTRACE_BYTES_MAX)
            )


def describe(error: BaseException) -> str:
    """Say an exception in one line, as the last line of its traceback does."""
    try:
        return "".join(traceback.format_exception_only(error)).strip()
    except Exception:  # noqa: BLE001 - __str__ of somebody's exception may raise as well
        return type(error).__qualname__


def _backtrace(error: BaseException) -> str:
    trace = error.__traceback__
    # The frames of the SDK around the handler tell nobody anything.
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    try:
        return "".join(traceback.format_exception(type(error), error, trace or error.__traceback__))
    except Exception:  # noqa: BLE001 - as above
        return "".join(traceback.format_tb(error.__traceback__))


def _is_ours(filename: str) -> bool:
    return filename.startswith(_OURS)


_OURS = __file__.removesuffix("execution.py")
