"""The one place where asyncio tasks are started, so that no failure is ever lost.

A task started with `asyncio.create_task` and forgotten can die unseen, and a server whose sweeper
died an hour ago looks healthy. Here every task has a name and an owner, and the first failure ends
`Supervisor.wait`, which is what the server's main function waits on: exceptions always go upward.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any


class Supervisor:
    """Owns a set of tasks: starts them, reports the first failure, stops them all."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._finished = asyncio.Event()
        self._failure: BaseException | None = None
        self._failed_name = ""
        self._started_count = 0
        self._stopping = False

    def start(self, name: str, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine until it returns, fails or is stopped. A return is not a failure."""
        if self._stopping:
            coroutine.close()
            raise AssertionError(f"task {name} started after stop")
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._started_count += 1
        # Safety: the loop keeps only weak references to tasks; this set keeps them alive.
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        failure = task.exception()
        if failure is not None and self._failure is None:
            self._failure = failure
            self._failed_name = task.get_name()
            self._finished.set()

    @property
    def failure(self) -> BaseException | None:
        """The first failure of any task, also one that happened while stopping."""
        return self._failure

    @property
    def failed_name(self) -> str:
        """The name of the task that failed first, or nothing."""
        return self._failed_name

    async def wait(self) -> None:
        """Return when stopped; raise the failure of the first task that failed."""
        await self._finished.wait()
        if self._failure is not None:
            raise self._failure

    async def stop(self) -> None:
        """Cancel every task and wait until each has really ended. May be called again."""
        self._stopping = True
        current = asyncio.current_task()
        # A task may be slow to clean up; it is waited for. Tasks that end meanwhile drop out.
        while pending := [task for task in self._tasks if task is not current]:
            for task in pending:
                task.cancel()
            await asyncio.wait(pending)
            # Done callbacks run on the next turn of the loop; let them clear the set.
            await asyncio.sleep(0)
        self._finished.set()

    def statistics(self) -> dict[str, int]:
        return {"running_count": len(self._tasks), "started_count": self._started_count}
