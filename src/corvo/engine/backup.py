"""A copy of the store at one moment, for backups and exports, taken while the server runs.

    copy = await backups.take()         flush, flush, checkpoint: hard links, no second copy of data
    await copy.run(work, ...)           anything that blocks, in the thread of the backups
    await copy.close()                  the copy is gone

The copy knows exactly where it stands, since it is asked itself: commands are applied while the
checkpoint is made, so an index read from the running machine would only be a lower bound.

One copy exists at a time: each keeps old files of the store on disk.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from msgspec import Struct

from corvo.errors import OverloadedError, StorageError
from corvo.machine import Machine
from corvo.machine.kv import Store
from corvo.runtime.threads import Worker

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

BUSY_RETRY_MS = 5_000
_STORE = "store"


class Position(Struct, frozen=True):
    """Where a copy stands."""

    index: int
    now_ms: int
    seq: int
    chain: bytes
    epoch: bytes
    machine_version: int


class Copy:
    """A store at rest. Whoever took it closes it."""

    def __init__(
        self, directory: Path, store: Store, thread: Worker, on_close: Callable[[], None]
    ) -> None:
        self.directory = str(directory / _STORE)
        self._root = directory
        self._store = store
        self._thread = thread
        self._on_close = on_close
        self._is_closed = False
        machine = Machine(store)
        # Readers for an export; they block, so call them through `run`.
        self.queues = machine.export_queues
        self.limits = machine.export_limits
        self.jobs = machine.export_jobs
        self.batches = machine.export_batches
        self.schedules = machine.export_schedules
        self.webhooks = machine.export_webhooks
        self.position = Position(
            machine.index,
            machine.now_ms,
            machine.seq,
            machine.chain,
            machine.epoch,
            machine.version,
        )

    async def run(
        self,
        call: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Do something that blocks with the copy, away from the loop."""
        return await self._thread.run(call, *args, **kwargs)

    async def close(self) -> None:
        """Remove the copy. May be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._thread.run(self._remove)
        finally:
            self._on_close()

    def discard(self) -> None:
        """Remove the copy after its thread has ended. Blocks."""
        if not self._is_closed:
            self._is_closed = True
            self._remove()

    def _remove(self) -> None:
        self._store.close()
        shutil.rmtree(self._root, ignore_errors=True)


class Backups:
    """Takes copies, one at a time."""

    def __init__(
        self,
        *,
        store: Store,
        snapshot: Callable[[str], Awaitable[int]],
        directory: str,
    ) -> None:
        """`directory` is where copies are made; empty: a temporary one of the system."""
        self._store = store
        self._snapshot = snapshot
        self._directory = directory
        self._thread = Worker("backup")
        self._is_busy = False
        self._current: Copy | None = None
        self.taken_count = 0

    async def take(self) -> Copy:
        """Make a copy. Raises `OverloadedError` while another one is in use."""
        if self._is_busy:
            message = "a backup or an export is under way, and there is one at a time"
            raise OverloadedError(message, retry_after_ms=BUSY_RETRY_MS)
        self._is_busy = True
        root: Path | None = None
        try:
            root = await self._thread.run(self._make_root)
            await self._snapshot(str(root / _STORE))
            copy = await self._thread.run(self._open, root)
        except BaseException:
            self._is_busy = False
            if root is not None:
                await asyncio.shield(self._thread.run(shutil.rmtree, root, ignore_errors=True))
            raise
        self.taken_count += 1
        self._current = copy
        return copy

    def _make_root(self) -> Path:
        try:
            if self._directory:
                Path(self._directory).mkdir(parents=True, exist_ok=True)
            return Path(tempfile.mkdtemp(prefix="copy-", dir=self._directory or None))
        except OSError as error:
            raise StorageError(f"there is no room for a copy of the store: {error}") from error

    def _open(self, root: Path) -> Copy:
        return Copy(root, self._store.open_copy(str(root / _STORE)), self._thread, self._release)

    def _release(self) -> None:
        self._is_busy = False
        self._current = None

    def stop(self) -> None:
        """End the thread, after what it was given; drop a copy in use. Blocks; may be repeated."""
        self._thread.stop()
        if self._current is not None:
            self._current.discard()


def clear_leftovers(directory: str) -> None:
    """Remove copies that a process which was killed left behind."""
    shutil.rmtree(directory, ignore_errors=True)
