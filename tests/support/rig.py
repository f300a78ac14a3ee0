"""A real engine on memory: what tests of the write path stand on.

Every part is the production part behind its port: log, store, machine, engine. Only the disk is in
memory and the syncs can be held back, so that a test decides when the disk answers.
"""

import asyncio
from collections.abc import Callable
from typing import Self

from corvo.engine import Engine, Options
from corvo.engine.engine import Hooks
from corvo.model.command import Command, EnqueueJob, FetchJobs
from corvo.model.job import Spec
from corvo.model.outcome import Fetched, Outcome
from corvo.replication import FsyncPolicy, LocalLog, MemoryDisk
from corvo.replication.sync import InlineSync
from corvo.runtime.clock import Clock, VirtualClock
from corvo.storage.memory import MemoryStore

NS = 0
CLUSTER = bytes(16)
WAL = "data/wal"


class HeldSync:
    """Syncs at once and says so only when the test lets it."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._inner = InlineSync(disk)
        self._waiting: list[Callable[[], None]] = []
        self.is_held = False
        self.syncs_count = 0
        self.has_synced = asyncio.Event()

    def start(self, files, directories, on_done, on_failure) -> None:  # noqa: ANN001
        self.syncs_count += 1
        self._inner.start(files, directories, lambda: self._finish(on_done), on_failure)

    def _finish(self, on_done: Callable[[], None]) -> None:
        if self.is_held:
            self._waiting.append(on_done)
        else:
            asyncio.get_running_loop().call_soon(on_done)
            asyncio.get_running_loop().call_soon(self.has_synced.set)

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def let_one_go(self) -> None:
        """Let the sync under way return now."""
        self._waiting.pop(0)()

    def let_all_go(self) -> None:
        """Hold nothing any more."""
        self.is_held = False
        while self._waiting:
            self.let_one_go()

    def close(self) -> None:
        self._waiting.clear()


class Rig:
    """One engine with its parts in reach, and what it complained about."""

    def __init__(
        self,
        *,
        disk: MemoryDisk | None = None,
        store: MemoryStore | None = None,
        clock: Clock | None = None,
        fsync: str = "always",
        segment_bytes: int = 1 << 20,
        options: Options | None = None,
    ) -> None:
        self.disk = disk if disk is not None else MemoryDisk()
        self.store = store if store is not None else MemoryStore()
        self.clock = clock if clock is not None else VirtualClock()
        self.syncer = HeldSync(self.disk)
        self.failures: list[BaseException] = []
        self.failed = asyncio.Event()
        self.reply_failures: list[BaseException] = []
        self.faults: list[tuple[int, int, str]] = []
        self.log = LocalLog.open(
            self.disk,
            WAL,
            policy=FsyncPolicy.parse(fsync),
            cluster_id=CLUSTER,
            node_id=1,
            segment_bytes=segment_bytes,
            syncer=self.syncer,
            on_failure=self._on_fatal,
        )
        hooks = Hooks(
            fatal=self._on_fatal,
            reply_failed=self.reply_failures.append,
            fault=lambda index, ordinal, text: self.faults.append((index, ordinal, text)),
        )
        self.engine = Engine.open(
            store=self.store, log=self.log, clock=self.clock, hooks=hooks, options=options
        )

    def _on_fatal(self, error: BaseException) -> None:
        self.failures.append(error)
        self.failed.set()

    async def __aenter__(self) -> Self:
        self.engine.start()
        # The first look of the periodic work is over before a test begins to count.
        await turns(5)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.syncer.let_all_go()
        await self.engine.close()

    def enqueue(self, queue: str = "q", payload: bytes = b"{}", **fields: object) -> EnqueueJob:
        """Make a command for a new job."""
        return EnqueueJob(Spec(self.engine.new_id(), NS, queue, payload, **fields))

    async def put(self, queue: str = "q", count: int = 1) -> list[bytes]:
        """Enqueue jobs and return their ids once they are applied."""
        commands: list[Command] = [self.enqueue(queue) for _ in range(count)]
        await self.perform_all(commands)
        return [command.spec.id for command in commands if isinstance(command, EnqueueJob)]

    async def perform_all(self, commands: list[Command]) -> list[Outcome]:
        """Submit together and wait for all outcomes."""
        done: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self.engine.submit_many(commands, lambda outcomes, _: done.set_result(outcomes))
        return await done

    def fetch(self, *queues: str, count: int = 1, timeout_ms: int = 60_000) -> "Poll":
        """Start a fetch and hold on to its answer."""
        return Poll(self.engine, fetching(*queues, count=count), timeout_ms)


class Poll:
    """One fetch of a worker and what came of it."""

    def __init__(self, engine: Engine, command: FetchJobs, timeout_ms: int) -> None:
        self.answer: asyncio.Future[Fetched] = asyncio.get_running_loop().create_future()
        self.index = 0
        self.ticket = engine.fetch(command, timeout_ms, self._on_done)

    def _on_done(self, fetched: Fetched, index: int) -> None:
        self.index = index
        self.answer.set_result(fetched)

    @property
    def is_done(self) -> bool:
        return self.answer.done()

    async def ids(self) -> list[bytes]:
        """Wait for the answer and name the jobs in it."""
        return [claim.spec.id for claim in (await self.answer).claims]


def fetching(*queues: str, count: int = 1, worker: str = "w") -> FetchJobs:
    """Make a fetch command."""
    return FetchJobs(NS, list(queues) or ["q"], worker, "host", count)


async def turns(count: int = 3) -> None:
    """Let the loop run what is ready."""
    for _ in range(count):
        await asyncio.sleep(0)
