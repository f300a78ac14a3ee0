"""What a handler does, and what is reported of it."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from corvo_sdk.app import Corvo
from corvo_sdk.context import Context, Stop, current_context
from corvo_sdk.control import Control, Discard, Hold, Release, Retry, Snooze
from corvo_sdk.types import FetchedJob
from corvo_sdk.worker.execution import Runners, execute
from corvo_sdk.worker.threads import ThreadPool
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
)

AT = datetime(2030, 1, 2, tzinfo=UTC)


def job_of(payload: bytes = b"{}", **fields: Any) -> FetchedJob:
    return FetchedJob(
        job_id="job_1", queue="q", lease_token=7, payload=msgspec.Raw(payload), **fields
    )


def run(
    function: Callable[..., Any],
    payload: bytes = b"{}",
    *,
    during: Callable[[Context], object] | None = None,
    grace_s: float = 5.0,
    **options: Any,
) -> Verdict:
    """Execute a handler; `during` is called on the loop when the handler has started."""
    app = Corvo()
    task = app.task(queue="q", name="handler", **options)(function)
    threads = ThreadPool(4, "test")

    async def body() -> Verdict:
        job = job_of(payload)
        context = Context(job, task)
        if during is not None:
            asyncio.get_running_loop().call_later(0.02, during, context)
        return await execute(task, job, context, Runners(threads, grace_s=grace_s))

    try:
        return asyncio.run(body())
    finally:
        threads.close()


def test_result_of_an_async_handler_is_reported_as_json() -> None:
    """What a handler returns is the result of the job."""

    async def handler(n: int) -> dict[str, int]:
        return {"twice": 2 * n}

    assert run(handler, b'{"n":21}') == Completed(b'{"twice":42}')


def test_result_of_a_sync_handler_is_reported_and_it_runs_off_the_loop() -> None:
    """A sync handler runs in a thread and reports like an async one."""

    def handler() -> str:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return threading.current_thread().name

    verdict = run(handler)
    assert isinstance(verdict, Completed)
    assert verdict.result == b'"test-0"'


def test_nothing_returned_is_a_completion_without_result() -> None:
    """None is no result."""

    async def handler() -> None: ...

    assert run(handler) == Completed(None)


CONTROLS: list[tuple[Control, Verdict]] = [
    (Snooze("5m"), Snoozed(300_000)),
    (Snooze(AT), Snoozed(0, AT.isoformat())),
    (Retry(after=2, error="later"), Failed("later", retry_after_ms=2_000)),
    (Discard("not needed"), Failed("not needed", retryable=False)),
    (Hold("look", timeout="1h"), Held("look", 3_600_000, None)),
    (Release(), Released()),
]


@pytest.mark.parametrize(("control", "verdict"), CONTROLS, ids=str)
@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("is_raised", [True, False])
def test_control_value_says_what_is_reported(
    control: Control, verdict: Verdict, is_async: bool, is_raised: bool
) -> None:
    """Raised or returned, on the loop or in a thread, a control value means the same."""

    def say() -> Any:
        if is_raised:
            raise control
        return control

    async def handler() -> Any:
        return say()

    assert run(handler if is_async else say) == verdict


def test_exception_is_a_retryable_failure_with_its_backtrace() -> None:
    """The error is the last line of the traceback; the frames of the SDK are left out."""

    async def handler() -> None:
        raise LookupError("no such customer")

    verdict = run(handler)
    assert isinstance(verdict, Failed)
    assert verdict.error == "LookupError: no such customer"
    assert verdict.retryable
    assert verdict.backtrace is not None
    assert "in handler" in verdict.backtrace
    assert "worker/execution.py" not in verdict.backtrace


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration()], ids=repr)
def test_exception_that_would_end_the_process_ends_the_attempt_only(
    error: BaseException, is_async: bool
) -> None:
    """sys.exit() in a handler is a failed attempt and not the end of the worker."""

    def say() -> None:
        raise error

    async def handler() -> None:
        say()

    verdict = run(handler if is_async else say)
    assert isinstance(verdict, Failed)
    # A coroutine can not raise StopIteration; Python makes a RuntimeError of it.
    assert type(error).__name__ in verdict.error or "RuntimeError" in verdict.error


def test_long_errors_are_cut() -> None:
    """No handler can make a report that is too large."""

    async def handler() -> None:
        raise ValueError("x" * 1_000_000)

    verdict = run(handler)
    assert isinstance(verdict, Failed)
    assert len(verdict.error.encode()) <= ERROR_BYTES_MAX
    assert verdict.backtrace is not None
    assert len(verdict.backtrace.encode()) <= BACKTRACE_BYTES_MAX


def test_exception_whose_text_raises_is_still_reported() -> None:
    """A broken __str__ does not hide the failure."""

    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("broken")

    async def handler() -> None:
        raise BrokenError

    verdict = run(handler)
    assert isinstance(verdict, Failed)
    assert "BrokenError" in verdict.error


@pytest.mark.parametrize("payload", [b'{"n":"text"}', b"{}", b"[1]", b"null"])
def test_payload_that_does_not_fit_fails_for_good(payload: bytes) -> None:
    """Trying again can not help: the payload will not change."""

    async def handler(n: int) -> None:
        raise AssertionError

    verdict = run(handler, payload)
    assert isinstance(verdict, Failed)
    assert not verdict.retryable
    assert verdict.error.startswith("PayloadError: ")


def test_result_that_is_no_json_fails_for_good() -> None:
    """A result nobody can read is an error of the task."""

    async def handler() -> Any:
        return object()

    verdict = run(handler)
    assert isinstance(verdict, Failed)
    assert not verdict.retryable


def test_async_handler_is_cancelled_at_its_timeout() -> None:
    """The attempt fails and may be tried again."""
    seen: list[BaseException] = []

    async def handler() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError as error:
            seen.append(error)
            raise

    verdict = run(handler, timeout="20ms")
    assert verdict == Failed("the attempt took longer than its timeout")
    assert len(seen) == 1


def test_sync_handler_sees_its_timeout() -> None:
    """`ctx.cancelled` turns true; raise_if_cancelled ends the handler with the right verdict."""

    def handler(ctx: Context) -> None:
        assert ctx.deadline is not None
        while True:
            ctx.raise_if_cancelled()

    assert run(handler, timeout="20ms") == Failed("the attempt took longer than its timeout")


def test_sync_handler_that_ignores_its_timeout_is_reported_after_the_grace() -> None:
    """The thread can not be stopped, but the attempt fails; the context remembers the thread."""
    end = threading.Event()
    kept: list[Context] = []

    def handler(ctx: Context) -> None:
        kept.append(ctx)
        end.wait(30)

    try:
        verdict = run(handler, timeout="20ms", grace_s=0.02)
    finally:
        end.set()
    assert isinstance(verdict, Failed)
    assert "goes on in its thread" in verdict.error
    assert kept[0].lingering is not None


@pytest.mark.parametrize("reason", [Stop.SHUTDOWN, Stop.CANCEL])
def test_stopped_handler_gives_its_job_back(reason: Stop) -> None:
    """A shutdown or a cancel cancels the handler; no attempt is burnt by it."""

    async def handler() -> None:
        await asyncio.get_running_loop().create_future()

    assert run(handler, during=lambda context: context.stop(reason)) == Released()


def test_handler_that_finishes_although_asked_to_stop_has_finished() -> None:
    """Work that is done is not done again because of a shutdown."""

    async def handler() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return "saved everything"
        return ""

    verdict = run(handler, during=lambda context: context.stop(Stop.SHUTDOWN))
    assert verdict == Completed(b'"saved everything"')


def test_sync_handler_that_saw_the_request_and_returned_nothing_has_stopped() -> None:
    """`if ctx.cancelled: return` gives the job back instead of completing it."""

    def handler(ctx: Context) -> None:
        while not ctx.cancelled:
            pass

    assert run(handler, during=lambda context: context.stop(Stop.SHUTDOWN)) == Released()


@pytest.mark.parametrize("outcome", ["returns", "raises", "ignores"])
def test_lost_lease_forbids_every_report(outcome: str) -> None:
    """Whatever the handler does after its lease was lost, nothing is reported."""

    async def handler() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if outcome == "raises":
                raise ValueError from None
            if outcome == "ignores":
                raise
        return "done"

    assert run(handler, during=lambda context: context.stop(Stop.LOST)) == Lost()


def test_handler_that_cancels_itself_has_failed() -> None:
    """A CancelledError nobody asked for is an error of the handler."""

    async def handler() -> None:
        raise asyncio.CancelledError

    verdict = run(handler)
    assert isinstance(verdict, Failed)
    assert verdict.retryable


def test_cancelling_the_execution_itself_passes_through() -> None:
    """Who runs `execute` can cancel it; that is no verdict about the job."""
    app = Corvo()

    @app.task(queue="q")
    async def handler() -> None:
        await asyncio.get_running_loop().create_future()

    async def body() -> None:
        job = job_of()
        runners = Runners(ThreadPool(1, "test"))
        async with asyncio.timeout(0.02):
            await execute(handler, job, Context(job, handler), runners)

    with pytest.raises(TimeoutError):
        asyncio.run(body())


@pytest.mark.parametrize("is_async", [True, False])
def test_current_context_is_the_one_of_the_job(is_async: bool) -> None:
    """Code below a handler finds the context without being handed it."""

    def look() -> int:
        return current_context().lease_token

    async def handler() -> int:
        return look()

    assert run(handler if is_async else look) == Completed(b"7")
    with pytest.raises(RuntimeError, match="no job runs here"):
        current_context()


def test_middleware_surrounds_the_handler_and_decides_the_result() -> None:
    """The first declared is the outermost, and it sees exceptions as well as results."""
    app = Corvo()
    seen: list[str] = []

    @app.middleware
    async def outer(context: Context, call_next: Any) -> Any:
        seen.append("outer")
        return [await call_next(context)]

    @app.middleware
    async def inner(context: Context, call_next: Any) -> Any:
        seen.append("inner")
        return await call_next(context)

    @app.task(queue="q")
    def handler() -> int:
        return 1

    async def body() -> Verdict:
        job = job_of()
        runners = Runners(ThreadPool(1, "test"), None, app.surround)
        return await execute(handler, job, Context(job, handler), runners)

    assert asyncio.run(body()) == Completed(b"[1]")
    assert seen == ["outer", "inner"]
