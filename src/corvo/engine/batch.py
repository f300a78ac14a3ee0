"""Natural group commit: commands gather while the batch before them is synced.

    submit ─▶ gathering ─▶ sealed … ─▶ written ─▶ synced ─▶ applied ─▶ replies
              (this turn)  (full ones)  (log.append) (log.sync)  (machine)

There is no timer and no delay to tune. When the disk is idle a batch closes at the end of the turn
of the loop in which its first command came, so that commands read from many sockets in one turn
join it; while the disk is busy, it closes when the sync returns, so that a batch is as large as the
disk is slow. When a sync returns, the next batch is written and its sync started before the
finished one is applied: the disk works while we do.

Invariant: one sync is in flight at most, and batches are applied in the order they were written.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from corvo.engine.weight import weigh
from corvo.errors import StorageError
from corvo.keys.codec import encode_entry
from corvo.machine import Applied, Machine
from corvo.model import limits
from corvo.model.command import Command, Entry
from corvo.model.outcome import PAYLOAD_TOO_LARGE, Outcome, Rejected
from corvo.replication.record import PAYLOAD_BYTES_MAX
from corvo.runtime.clock import Clock
from corvo.runtime.telemetry import Histogram

DISK_FULL = "DISK_FULL"

Reply = Callable[[Outcome, int], None]


class Log(Protocol):
    """What group commit needs of the log: an ordered place for bytes, and when they are safe."""

    def append(self, payload: bytes, *, count: int = 1) -> int:
        """Write an entry and return its index; durable only after a sync."""
        ...

    def sync(self, on_done: Callable[[], None]) -> None:
        """Call back on the loop once everything appended so far is durable."""
        ...


class Batch:
    """Commands that share one entry of the log, one stamp and one sync."""

    __slots__ = ("commands", "entry", "index", "opened_s", "raw", "replies", "size_bytes")

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.replies: list[Reply] = []
        self.size_bytes = 0
        self.opened_s = 0.0  # when its first command came
        self.index = 0
        self.raw = b""
        self.entry: Entry | None = None


class Gathered:
    """Collects the outcomes of commands that were submitted together."""

    __slots__ = ("_on_done", "_outcomes", "_remaining")

    def __init__(self, count: int, on_done: Callable[[list[Outcome], int], None]) -> None:
        self._remaining = count
        self._outcomes: list[Outcome] = []
        self._on_done = on_done

    def take(self, outcome: Outcome, index: int) -> None:
        """Be the reply of each of them; replies come in the order of submission."""
        self._outcomes.append(outcome)
        self._remaining -= 1
        if self._remaining == 0:
            self._on_done(self._outcomes, index)


class Pipeline:
    """Takes commands in, gives outcomes out, in order and durably."""

    def __init__(  # noqa: PLR0913 - the composition of the write path, named at the call
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        log: Log,
        machine: Machine,
        clock: Clock,
        is_durable: bool,
        on_applied: Callable[[Batch, Applied], None],
        on_disk_full: Callable[[], None],
        on_fatal: Callable[[BaseException], None],
        on_reply_failed: Callable[[BaseException], None],
        commands_max: int = limits.ENTRY_COMMANDS_MAX,
        bytes_max: int = limits.ENTRY_BYTES_MAX,
    ) -> None:
        self._loop = loop
        self._log = log
        self._machine = machine
        self._clock = clock
        self._is_durable = is_durable
        self._on_applied = on_applied
        self._on_disk_full = on_disk_full
        self._on_fatal = on_fatal
        self._on_reply_failed = on_reply_failed
        self._commands_max = commands_max
        self._bytes_max = bytes_max
        self._gathering = Batch()
        self._sealed: deque[Batch] = deque()  # bounded by admission, in commands and in bytes
        self._syncing: Batch | None = None
        self._synced: deque[Batch] = deque()
        self._is_applying = False
        self._is_busy = False  # a turn is scheduled or a sync is in flight
        self._is_dead = False
        self._stamp_ms = machine.now_ms
        self._sync_began_s = 0.0
        self._idle: list[asyncio.Future[None]] = []
        self.pending_count = 0  # submitted and not yet applied
        self.pending_bytes = 0
        self.applied_count = 0
        self.entries_count = 0
        self.queue_time = Histogram()  # from the first command of a batch to its write
        self.sync_time = Histogram()
        self.apply_time = Histogram()

    # --- taking in ----------------------------------------------------------------------------

    def add(self, command: Command, reply: Reply) -> None:
        """Append a command to the batch that gathers. Admission has already been asked."""
        batch = self._gathering
        size_bytes = weigh(command)
        commands = batch.commands
        if not commands:
            batch.opened_s = self._clock.monotonic()
            if not self._is_busy:
                self._is_busy = True
                self._loop.call_soon(self._turn)
        elif len(commands) >= self._commands_max or batch.size_bytes + size_bytes > self._bytes_max:
            batch = self._seal()
            commands = batch.commands
        commands.append(command)
        batch.replies.append(reply)
        batch.size_bytes += size_bytes
        self.pending_count += 1
        self.pending_bytes += size_bytes

    def add_together(
        self, commands: list[Command], on_done: Callable[[list[Outcome], int], None]
    ) -> None:
        """Append commands that share one entry, or span several when they are too many."""
        assert commands
        gathered = len(self._gathering.commands)
        if gathered and gathered + len(commands) > self._commands_max:
            self._seal()
        reply = Gathered(len(commands), on_done).take
        for command in commands:
            self.add(command, reply)

    def _seal(self) -> Batch:
        self._sealed.append(self._gathering)
        self._gathering = Batch()
        self._gathering.opened_s = self._clock.monotonic()
        return self._gathering

    # --- writing and syncing ------------------------------------------------------------------

    def _turn(self) -> None:
        # Safety: an exception that reaches the loop is only printed there, and commands would wait
        # for ever. Whatever it is, it is the end.
        try:
            self._go_on()
        except Exception as error:  # noqa: BLE001 - handed on, and the process ends
            self._die(error)

    def _go_on(self) -> None:
        if self._is_durable:
            self._begin()
            return
        # Without a sync to wait for, one batch a turn: the loop reads sockets in between.
        batch = self._next()
        if batch is None:
            self._rest()
            return
        self._loop.call_soon(self._turn)
        if self._write(batch):
            self._apply(batch)

    def _begin(self) -> None:
        """Write the next batch, if there is one, and start its sync."""
        batch = self._next()
        if batch is None:
            self._rest()
        elif self._write(batch):
            self._syncing = batch
            self._sync_began_s = self._clock.monotonic()
            self._log.sync(self._on_synced)
        else:
            self._loop.call_soon(self._turn)

    def _on_synced(self) -> None:
        try:
            self._take_synced()
        except Exception as error:  # noqa: BLE001 - as in `_turn`
            self._die(error)

    def _take_synced(self) -> None:
        batch = self._syncing
        assert batch is not None, "a sync returned that nobody started"
        self._syncing = None
        elapsed_s = self._clock.monotonic() - self._sync_began_s
        self.sync_time.observe(int(elapsed_s * 1e6))
        self._synced.append(batch)
        if self._is_applying:
            return
        # A log on memory may call back inside `sync`. The queue keeps the order of the log even
        # then: the inner call only leaves its batch here.
        self._is_applying = True
        while self._synced and not self._is_dead:
            ready = self._synced.popleft()
            if self._syncing is None:
                self._begin()
            self._apply(ready)
        self._is_applying = False
        self._wake_idle()

    def _next(self) -> Batch | None:
        if self._is_dead:
            return None
        if self._sealed:
            return self._sealed.popleft()
        batch = self._gathering
        if not batch.commands:
            return None
        self._gathering = Batch()
        return batch

    def _write(self, batch: Batch) -> bool:
        """Stamp, encode and append; False when the batch was refused instead."""
        # Invariant: stamps never go back, also across batches that are not applied yet.
        self._stamp_ms = max(self._clock.now_ms(), self._stamp_ms)
        entry = Entry(self._machine.version, self._stamp_ms, batch.commands)
        batch.entry = entry
        batch.raw = encode_entry(entry)
        waited_s = self._clock.monotonic() - batch.opened_s
        self.queue_time.observe(int(waited_s * 1e6))
        if len(batch.raw) > PAYLOAD_BYTES_MAX:
            # A batch closes long before this, so it is one huge command; the log could not hold it.
            self._refuse(batch, Rejected(PAYLOAD_TOO_LARGE, "the call is larger than an entry"))
            return False
        try:
            batch.index = self._log.append(batch.raw, count=len(batch.commands))
        except StorageError as error:
            if error.code != DISK_FULL:
                raise
            self._on_disk_full()
            hint = error.hint or "free disk space on the server"
            self._refuse(batch, Rejected(DISK_FULL, error.message, hint=hint))
            return False
        return True

    def _refuse(self, batch: Batch, refusal: Rejected) -> None:
        """Answer every command of a batch that was never written."""
        self._forget(batch)
        self._answer(batch, [refusal] * len(batch.commands), self._machine.index)

    # --- applying -----------------------------------------------------------------------------

    def _apply(self, batch: Batch) -> None:
        entry = batch.entry
        assert entry is not None
        began_s = self._clock.monotonic()
        # A failure here (the machine rolls poison commands back itself) means that memory and disk
        # disagree; it ends the process in `_turn` or `_on_synced`.
        applied = self._machine.apply(batch.index, batch.raw, entry)
        elapsed_s = self._clock.monotonic() - began_s
        self.apply_time.observe(int(elapsed_s * 1e6))
        self._forget(batch)
        self.entries_count += 1
        self.applied_count += len(batch.commands)
        self._answer(batch, applied.outcomes, batch.index)
        self._on_applied(batch, applied)

    def _forget(self, batch: Batch) -> None:
        self.pending_count -= len(batch.commands)
        self.pending_bytes -= batch.size_bytes

    def _answer(self, batch: Batch, outcomes: list[Outcome], index: int) -> None:
        # Safety: a reply that fails (a client that went away in this very moment) must not silence
        # the replies behind it, which are promises already kept on disk.
        for reply, outcome in zip(batch.replies, outcomes, strict=True):
            try:
                reply(outcome, index)
            except Exception as error:  # noqa: BLE001 - reported, and the rest is answered
                self._on_reply_failed(error)

    # --- ending -------------------------------------------------------------------------------

    def _rest(self) -> None:
        self._is_busy = False
        self._wake_idle()

    def _wake_idle(self) -> None:
        if self.pending_count == 0 or self._is_dead:
            for waiter in self._idle:
                if not waiter.done():
                    waiter.set_result(None)
            self._idle.clear()

    async def wait_idle(self) -> None:
        """Wait until nothing is pending, or the pipeline has died."""
        while self.pending_count and not self._is_dead:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._idle.append(waiter)
            await waiter

    def _die(self, error: BaseException) -> None:
        # Nothing after this may be acknowledged: what is in memory may not be on disk.
        self.kill()
        self._on_fatal(error)

    def kill(self) -> None:
        """Write and acknowledge nothing more, without waiting."""
        self._is_dead = True
        self._wake_idle()

    def statistics(self) -> dict[str, int]:
        return {
            "pending_count": self.pending_count,
            "pending_bytes": self.pending_bytes,
            "applied_count": self.applied_count,
            "entries_count": self.entries_count,
        }
