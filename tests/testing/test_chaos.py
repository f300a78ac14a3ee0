"""Chaos: handlers that are not idempotent are found out, those that are survive every seed."""

import asyncio

import pytest

from corvo.testing import Kit
from corvo.testing.chaos import Chaos, Fault, cut_at_await
from corvo_sdk import Corvo

SEEDS = range(40)


def run_counter(seed: int, *, is_idempotent: bool) -> int:
    """Count three jobs of one each under one seed; return what the counter shows."""
    app = Corvo("counting")
    total, done = 0, set()

    @app.task(queue="count", retries=10)
    async def count(number: int) -> None:
        nonlocal total
        await asyncio.sleep(0)
        if is_idempotent and number in done:
            return
        total += 1
        done.add(number)
        await asyncio.sleep(0)

    with Kit(chaos_seed=seed) as kit:
        kit.use(app)
        for number in range(3):
            count.enqueue(number)
        kit.drain_sync(advance=True)
        assert [job.state for job in kit.jobs()] == ["completed"] * 3
    return total


@pytest.mark.parametrize("seed", SEEDS)
def test_idempotent_handler_survives_every_seed(seed: int):
    """Whatever is lost or comes twice, the work is done, and a handler that looks does it once."""
    assert run_counter(seed, is_idempotent=True) == 3


def test_handler_that_counts_twice_is_found_out():
    """A handler that is not idempotent gives a wrong total under most seeds."""
    wrong = [seed for seed in SEEDS if run_counter(seed, is_idempotent=False) != 3]
    assert len(wrong) > len(SEEDS) // 2


def test_seed_repeats_its_run():
    """The same seed plans the same faults."""
    plans = [
        [Chaos(7).plan(f"job{number}", "task", attempt, 5) for attempt in range(1, 5)]
        for number in (0, 0)
    ]
    assert plans[0] == plans[1]


def test_every_fault_is_planned_by_some_seed_and_none_for_the_last_attempt():
    """Seeds reach every kind of fault; the attempt that must count is left in peace."""
    faults = {Chaos(seed).plan("job", "task", 1, 5).fault for seed in range(50)}
    assert faults == set(Fault)
    assert {Chaos(seed).plan("job", "task", 5, 5).fault for seed in range(50)} == {Fault.NONE}


def test_coroutine_is_cut_at_each_of_its_awaits():
    """The n-th suspension gets the error; one that has fewer ends by itself."""
    seen = []

    async def work() -> str:
        for step in range(3):
            seen.append(step)
            await asyncio.sleep(0)
        return "whole"

    async def test() -> None:
        for number in (1, 2, 3):
            seen.clear()
            with pytest.raises(asyncio.CancelledError):
                await cut_at_await(work(), number, asyncio.CancelledError)
            assert len(seen) == number
        assert await cut_at_await(work(), 4, asyncio.CancelledError) == "whole"

    asyncio.run(test())


def test_cut_coroutine_may_wait_again_while_it_cleans_up():
    """What a handler awaits in its `finally` is awaited."""
    cleaned = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    async def test() -> None:
        with pytest.raises(asyncio.CancelledError):
            await cut_at_await(work(), 1, asyncio.CancelledError)

    asyncio.run(test())
    assert cleaned == [True]
