"""Calls that wait until a job has ended."""

import asyncio
from typing import TYPE_CHECKING, Final

from corvo.errors import OverloadedError
from corvo.model import event as ev
from corvo.model import limits
from corvo.model.event import EventBlock
from corvo.model.job import SETTLED
from corvo.model.view import JobView

if TYPE_CHECKING:
    from corvo.engine import Engine

FULL_RETRY_MS: Final = 5_000
# Whatever may be the end of a job; who is woken looks at the job itself.
_ENDINGS: Final = frozenset(
    {ev.COMPLETED, ev.DEAD, ev.CANCELLED, ev.DELETED, ev.PURGED, ev.EXPIRED, ev.REJECTED}
)


class Waits:
    """Waiting calls by job. A look at the job comes before each wait, so no ending is missed."""

    def __init__(self, engine: "Engine", *, waits_max: int = limits.WAITERS_MAX) -> None:
        self._engine = engine
        self._waits_max = waits_max
        self._by_job: dict[tuple[int, bytes], set[asyncio.Future[None]]] = {}
        self._is_draining = False
        self.count = 0

    def observe(self, blocks: list[EventBlock]) -> None:
        """Wake whoever waits for a job that ended."""
        by_job = self._by_job
        if not by_job:
            return
        for block in blocks:
            for event in block.events:
                if event.type in _ENDINGS and (event.ns, event.job) in by_job:
                    _wake(by_job[event.ns, event.job])

    async def wait(
        self, ns: int, job_id: bytes, timeout_s: float, leaving: "asyncio.Future[None]"
    ) -> JobView | None:
        """Return the job once it is settled, as it is at the end of the time, or None if gone."""
        if self.count >= self._waits_max:
            message = f"{self._waits_max} calls wait for jobs already"
            raise OverloadedError(message, retry_after_ms=FULL_RETRY_MS)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        self.count += 1
        try:
            while True:
                view = self._engine.read.job(ns, job_id)
                if view is None or view.job.state in SETTLED:
                    return view
                left_s = deadline_s - loop.time()
                if left_s <= 0 or leaving.done() or self._is_draining:
                    return view
                await self._wait_event((ns, job_id), left_s, leaving)
        finally:
            self.count -= 1

    async def _wait_event(
        self, key: tuple[int, bytes], timeout_s: float, leaving: "asyncio.Future[None]"
    ) -> None:
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._by_job.setdefault(key, set())
        waiting.add(ended)
        try:
            await asyncio.wait(
                (ended, leaving), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiting.discard(ended)
            if not waiting and self._by_job.get(key) is waiting:
                del self._by_job[key]

    def drain(self) -> None:
        """Send everybody home."""
        self._is_draining = True
        for waiting in self._by_job.values():
            _wake(waiting)


def _wake(waiting: "set[asyncio.Future[None]]") -> None:
    for ended in waiting:
        if not ended.done():
            ended.set_result(None)
