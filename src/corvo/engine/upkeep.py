"""What must be done now and then so that the write path never waits for it.

    flush      the store, in a thread, at 64 MiB of log, 250,000 commands or 30 s; then the log may
               forget everything up to the index that was applied when the flush began
    prepare    the next segment of the log, in a thread, while the current one fills
    watch      free disk space and the store's stall figures, for admission
    tidy       desks nobody waits at, workers nobody has seen

Safety: the order is applied index first, flush second, release third. The index read before the
flush is at most what the flush made durable; an index read after it could be ahead of the disk.
"""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from corvo.engine.admission import Admission
from corvo.engine.batch import DISK_FULL, Pipeline
from corvo.errors import StorageError
from corvo.machine import Machine
from corvo.machine.kv import Store
from corvo.replication import LocalLog
from corvo.runtime.clock import Clock
from corvo.runtime.telemetry import Histogram
from corvo.runtime.threads import Worker

TICK_S = 1.0
TIDY_TICKS = 60
# Above these the store is about to slow writes down (its own triggers are 40 files and 4
# memtables).
LEVEL0_FILES_MAX = 32
MEMTABLES_WAITING_MAX = 3


class FlushPolicy(Struct, frozen=True):
    """When the store is flushed: whichever comes first. A restart replays at most this much."""

    log_bytes: int = 64 * 1024 * 1024
    commands: int = 250_000
    interval_s: float = 30.0


class Upkeep:
    """The periodic work of one engine, and the two threads it blocks instead of the loop."""

    def __init__(  # noqa: PLR0913 - named at the one call
        self,
        *,
        store: Store,
        log: LocalLog,
        machine: Machine,
        pipeline: Pipeline,
        admission: Admission,
        clock: Clock,
        tidy: Callable[[], None],
        policy: FlushPolicy,
        disk_reserve_bytes: int,
        free_bytes: Callable[[], int] | None,
    ) -> None:
        self._store = store
        self._log = log
        self._machine = machine
        self._pipeline = pipeline
        self._admission = admission
        self._clock = clock
        self._tidy = tidy
        self._policy = policy
        self._disk_reserve_bytes = disk_reserve_bytes
        self._free_bytes = free_bytes
        # Two threads: a flush may take seconds, and a segment must be ready before it is needed.
        self._flusher = Worker("corvo-flush")
        self._segments = Worker("corvo-segments")
        self._flushed_index = machine.index
        self._flushed_commands = 0
        self._flushed_s = clock.monotonic()
        self._flush_lock = asyncio.Lock()
        self._has_segment_room = True
        self._ticks = 0
        self.flush_time = Histogram()
        self.released_segments = 0
        self.snapshots_count = 0
        self.store_statistics: dict[str, int] = {}

    async def run(self) -> None:
        """Look at everything each second until cancelled. A failure goes upward."""
        while True:
            await self.tick()
            await asyncio.sleep(TICK_S)

    async def run_flushes(self) -> None:
        """Flush whenever it is due; a flush takes long and must not hold up the ticks."""
        while True:
            if self.is_flush_due():
                await self.flush()
            await asyncio.sleep(TICK_S)

    async def run_interval_sync(self, interval_ms: int) -> None:
        """Sync the log every so often: the promise of `--fsync interval`."""
        while True:
            await asyncio.sleep(interval_ms / 1000)
            if self._log.synced_index < self._log.last_index and not self._log.is_syncing:
                done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._log.sync_now(lambda done=done: _resolve(done))
                await done

    async def tick(self) -> None:
        """Look at everything but the flush once."""
        self._ticks += 1
        self._watch_store()
        await self._prepare_segment()
        self._mark_when_idle()
        self._watch_disk()
        if self._ticks % TIDY_TICKS == 0:
            self._tidy()

    def is_flush_due(self) -> bool:
        """Whether enough was written or enough time passed since the last flush."""
        if self._machine.index == self._flushed_index:
            return False
        policy = self._policy
        return (
            self._clock.monotonic() - self._flushed_s >= policy.interval_s
            or self._pipeline.applied_count - self._flushed_commands >= policy.commands
            or self._log.bytes_since(self._flushed_index) >= policy.log_bytes
        )

    async def flush(self) -> int:
        """Make the store durable and let the log forget; return the index that is now safe."""
        async with self._flush_lock:
            index = self._machine.index
            commands = self._pipeline.applied_count
            began_s = self._clock.monotonic()
            await self._flusher.run(self._store.flush)
            self.released_segments += await self._segments.run(self._log.release, index)
            self._flushed_s = self._clock.monotonic()
            self._flushed_index = index
            self._flushed_commands = commands
            self.flush_time.observe(int((self._flushed_s - began_s) * 1e6))
            return index

    async def snapshot(self, directory: str) -> int:
        """Write a consistent copy of the store; return an index it holds at least.

        Two flushes first: the second finds little left, so that the checkpoint, which flushes too
        and stalls writers meanwhile, is short.
        """
        await self.flush()
        index = await self.flush()
        await self._flusher.run(self._store.checkpoint, directory)
        self.snapshots_count += 1
        return index

    async def _prepare_segment(self) -> None:
        if not self._log.spare_needed():
            self._has_segment_room = True
            return
        try:
            await self._segments.run(self._log.prepare_next)
        except StorageError as error:
            if error.code != DISK_FULL:
                raise
            self._has_segment_room = False
        else:
            self._has_segment_room = True

    def _mark_when_idle(self) -> None:
        """Let the log vouch for its last entry once nothing follows it."""
        if self._pipeline.pending_count or self._log.is_syncing:
            return
        try:
            self._log.mark()
        except StorageError as error:
            if error.code != DISK_FULL:
                raise
            self._has_segment_room = False

    def _watch_disk(self) -> None:
        is_full = not self._has_segment_room
        if self._free_bytes is not None and self._free_bytes() < self._disk_reserve_bytes:
            is_full = True
        self._admission.observe_disk(is_full=is_full)

    def _watch_store(self) -> None:
        figures = self.store_statistics = self._store.statistics()
        if figures.get("background_errors_count", 0):
            raise StorageError("the store reports a failed background write")
        is_stalled = (
            figures.get("is_write_stopped", 0) > 0
            or figures.get("delayed_write_rate", 0) > 0
            or figures.get("level0_files_count", 0) > LEVEL0_FILES_MAX
            or figures.get("memtables_waiting_count", 0) >= MEMTABLES_WAITING_MAX
        )
        self._admission.observe_store(is_stalled=is_stalled)

    def stop(self) -> None:
        """End the threads, after what they were given. Blocks; may be called again."""
        self._flusher.stop()
        self._segments.stop()

    def statistics(self) -> dict[str, int]:
        return {
            "flushed_index": self._flushed_index,
            "released_segments": self.released_segments,
            "snapshots_count": self.snapshots_count,
        }


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
