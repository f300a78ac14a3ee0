"""A worker does one call after another, in order, and ends complete."""

import asyncio
import threading

import pytest

from corvo.runtime.threads import Worker


def test_calls_are_done_in_order_on_one_thread() -> None:
    """Two flushes never race."""
    worker = Worker("flush")
    done: list[tuple[int, str]] = []
    for number in range(20):
        worker.submit(lambda n=number: done.append((n, threading.current_thread().name)))
    worker.stop()
    assert [number for number, _ in done] == list(range(20))
    assert len({name for _, name in done}) == 1
    assert worker.statistics() == {"waiting_count": 0, "finished_count": 20}


def test_exception_reaches_the_caller_and_the_thread_lives_on() -> None:
    """What a call raises is raised by `run`; the next call is done all the same."""
    worker = Worker("flush")

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await worker.run(lambda: 1 // 0)
        assert await worker.run(lambda: 7) == 7

    asyncio.run(main())
    worker.stop()


def test_a_cancelled_caller_does_not_cancel_the_call() -> None:
    """A flush that was asked for is carried out, also when nobody waits any more."""
    worker = Worker("flush")
    gate = threading.Event()
    done: list[int] = []

    def call() -> None:
        gate.wait()
        done.append(1)

    async def main() -> None:
        waiting = asyncio.ensure_future(worker.run(call))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())
    gate.set()
    worker.stop()
    assert done == [1]


def test_backlog_is_bounded() -> None:
    """What waits for a thread has a limit; beyond it the program is at fault and says so."""
    worker = Worker("flush", backlog_max=2)
    gate = threading.Event()
    worker.submit(gate.wait)
    worker.submit(gate.wait)
    with pytest.raises(AssertionError):
        worker.submit(gate.wait)
    gate.set()
    worker.stop()
    with pytest.raises(AssertionError):
        worker.submit(gate.wait)
