"""Tasks are owned: their failures go upward and their end is waited for."""

import asyncio

import pytest

from corvo.runtime.tasks import Supervisor


def test_failure_of_any_task_ends_the_wait() -> None:
    """The first exception of a task is raised where the server waits."""

    async def main() -> None:
        supervisor = Supervisor()
        supervisor.start("forever", asyncio.Event().wait())  # pyright: ignore[reportArgumentType]
        supervisor.start("broken", fail())
        with pytest.raises(ZeroDivisionError):
            await supervisor.wait()
        assert supervisor.failed_name == "broken"
        await supervisor.stop()

    async def fail() -> None:
        raise ZeroDivisionError

    asyncio.run(main())


def test_a_task_that_returns_is_not_a_failure() -> None:
    """Work that is done leaves; the wait ends only with stop."""

    async def main() -> None:
        supervisor = Supervisor()
        await supervisor.start("brief", asyncio.sleep(0))
        await asyncio.sleep(0)
        assert supervisor.statistics() == {"running_count": 0, "started_count": 1}
        await supervisor.stop()
        await supervisor.wait()
        assert supervisor.failure is None

    asyncio.run(main())


def test_stop_waits_for_the_clean_up_of_every_task() -> None:
    """Stop returns when the last task has really ended, and may be called twice."""
    ended: list[str] = []

    async def patient(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    async def main() -> None:
        supervisor = Supervisor()
        for name in ("first", "final"):
            supervisor.start(name, patient(name))
        await asyncio.sleep(0)
        await supervisor.stop()
        assert sorted(ended) == ["final", "first"]
        await supervisor.stop()
        await supervisor.wait()

    asyncio.run(main())


def test_failure_while_stopping_is_kept() -> None:
    """A task whose clean-up fails is seen, although stop itself does not raise."""

    async def clumsy() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the clean-up failed")

    async def main() -> None:
        supervisor = Supervisor()
        supervisor.start("clumsy", clumsy())
        await asyncio.sleep(0)
        await supervisor.stop()
        assert isinstance(supervisor.failure, OSError)

    asyncio.run(main())


def test_nothing_starts_after_stop() -> None:
    """A stopped supervisor refuses, instead of starting what nobody will wait for."""

    async def main() -> None:
        supervisor = Supervisor()
        await supervisor.stop()
        with pytest.raises(AssertionError):
            supervisor.start("late", asyncio.sleep(0))

    asyncio.run(main())
