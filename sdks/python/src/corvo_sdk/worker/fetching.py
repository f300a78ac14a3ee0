"""Pools: which queues share how many slots, and when more jobs are asked for.

Every queue with a number of its own is a pool of its own; all others share one. A pool that is full
is not fetched, and no pool waits for another. Within the shared pool the server decides the order:
higher priorities first, equal ones in turn.

A pool asks for more than it has slots only when jobs are short: as many as it will start within
`AHEAD_S`, going by how long the last ones took. So a worker with slow jobs takes none away from
others, and one with fast jobs gets hundreds in one answer.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from corvo_sdk.context import Context
from corvo_sdk.errors import CorvoError
from corvo_sdk.types import FetchedJob
from corvo_sdk.worker.execution import Runnable
from corvo_sdk.worker.links import FETCH_COUNT_MAX, Link

AHEAD_S = 0.1
AHEAD_COUNT_MAX = 1_024
WAIT_S = 30.0  # a long poll
PAUSE_FIRST_S = 0.1
PAUSE_MAX_S = 2.0
# Weight of the newest job in the mean: about the last fifty count.
_NEWEST = 0.02

_log = logging.getLogger("corvo.worker")


class Pool:
    """Slots for the jobs of some queues, and the jobs that wait for one."""

    def __init__(self, queues: Sequence[str], slots: int, lease_ms: int | None) -> None:
        assert slots > 0
        self.queues = tuple(queues)
        self.slots = slots
        self.lease_ms = lease_ms
        self.running_count = 0
        self.waiting: deque[tuple[Context, Runnable | None]] = deque()
        self.mean_s: float | None = None
        self.has_room = asyncio.Event()

    def ahead(self) -> int:
        """How many jobs to have ready beyond the slots."""
        if self.mean_s is None:
            return 0
        return int(min(AHEAD_COUNT_MAX, self.slots * AHEAD_S / max(self.mean_s, 1e-6)))

    def room(self) -> int:
        """How many jobs to ask for now; 0 while the next answer would be a small one."""
        ahead = self.ahead()
        room = self.slots + ahead - self.running_count - len(self.waiting)
        return room if room > ahead // 2 else 0

    def note(self, took_s: float) -> None:
        """Learn from a job that ended."""
        mean_s = self.mean_s
        self.mean_s = took_s if mean_s is None else mean_s + (took_s - mean_s) * _NEWEST

    def freed(self) -> None:
        """Tell the loop below that there may be room."""
        if not self.has_room.is_set() and self.room():
            self.has_room.set()


class Fetcher:
    """Keeps one pool filled over a link."""

    def __init__(
        self,
        pool: Pool,
        link: Link,
        accept: Callable[[Pool, list[FetchedJob]], None],
        is_blocked: Callable[[], bool],
    ) -> None:
        self._pool = pool
        self._link = link
        self._accept = accept
        self._is_blocked = is_blocked
        self._pause_s = 0.0
        self._is_finishing = False
        self.failing_since_s: float | None = None
        self.calls_count = 0

    def finish(self) -> None:
        """Let the call that is under way be the last."""
        self._is_finishing = True
        self._pool.has_room.set()

    async def run(self) -> None:
        """Fetch until cancelled, or until `finish` and the end of the call under way."""
        pool = self._pool
        while not self._is_finishing:
            room = 0 if self._is_blocked() else pool.room()
            # What was pushed is ours already: the heart must know it, room or not.
            if room <= 0 and not self._link.ready(pool.queues):
                pool.has_room.clear()
                await pool.has_room.wait()
                continue
            await self._once(max(1, min(room, FETCH_COUNT_MAX)))

    async def _once(self, count: int) -> None:
        pool = self._pool
        loop = asyncio.get_running_loop()
        try:
            self.calls_count += 1
            jobs = await self._link.fetch(pool.queues, count, WAIT_S, lease_ms=pool.lease_ms)
        except CorvoError as error:
            if self.failing_since_s is None:
                self.failing_since_s = loop.time()
                _log.warning("no jobs can be fetched from %s: %s", ", ".join(pool.queues), error)
            await asyncio.sleep(self._next_pause_s(error))
            return
        if self.failing_since_s is not None:
            away_s = loop.time() - self.failing_since_s
            _log.info("jobs are fetched again after %.1f s", away_s)
            self.failing_since_s = None
        self._pause_s = 0.0
        if jobs:
            self._accept(pool, jobs)

    def _next_pause_s(self, error: CorvoError) -> float:
        self._pause_s = min(PAUSE_MAX_S, self._pause_s * 2 or PAUSE_FIRST_S)
        spread = 0.75 + secrets.randbelow(500) / 1_000
        return max(self._pause_s, (error.retry_after_ms or 0) / 1_000) * spread


def pools_of(
    wanted: Mapping[str, int],
    concurrency: int,
    lease_of: Callable[[Sequence[str]], int | None],
) -> list[Pool]:
    """Make the pools of queues and their slots; 0 means: shares the common slots."""
    pools = [Pool([name], slots, lease_of([name])) for name, slots in wanted.items() if slots > 0]
    shared = [name for name, slots in wanted.items() if slots == 0]
    if shared:
        pools.append(Pool(shared, concurrency, lease_of(shared)))
    return pools
