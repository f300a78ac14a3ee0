"""The facade: the only way in for everything above, and the life of the parts behind it.

    open (recover) ─▶ start ─▶ serving ─▶ drain ─▶ close

Everything runs on one event loop. Outcomes come through callbacks; futures exist only in `perform`,
for routes where a microsecond does not matter.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from corvo.engine.admission import CLOSED, DRAINING, OPEN, Admission, Bounds
from corvo.engine.backup import Backups, Copy
from corvo.engine.batch import Batch, Pipeline, Reply
from corvo.engine.desk import OnFetched, Ticket
from corvo.engine.feed import Feed
from corvo.engine.identity import IdSource
from corvo.engine.reads import Reads
from corvo.engine.recovery import Recovery, recover
from corvo.engine.upkeep import FlushPolicy, Upkeep
from corvo.engine.waiters import WaitingRoom
from corvo.engine.workers import WorkerRegistry
from corvo.machine import Applied, Machine, SweepPolicy
from corvo.machine.kv import Store
from corvo.model import limits
from corvo.model.command import Command, EnqueueBatch, EnqueueJob, FetchJobs, SetEpoch
from corvo.model.event import EventBlock
from corvo.model.outcome import Claim, Outcome
from corvo.model.view import ScheduleView
from corvo.replication import LocalLog
from corvo.runtime.clock import Clock, SystemClock, TurnClock
from corvo.runtime.tasks import Supervisor
from corvo.runtime.telemetry import Histogram

RETENTION_INTERVAL_MS = 5_000
NO_EPOCH = bytes(16)
PHASE_NAMES = ("serving", "starting", "draining", "stopped")


class Options(Struct, frozen=True, kw_only=True):
    """What an operator may set. The defaults are the server's."""

    bounds: Bounds = Bounds()
    flush: FlushPolicy = FlushPolicy()
    fetch_inflight_max: int = limits.FETCH_INFLIGHT_MAX_DEFAULT
    parked_max: int = limits.PARKED_MAX_DEFAULT
    entry_commands_max: int = limits.ENTRY_COMMANDS_MAX
    retention_ms: int = limits.RETENTION_MS_DEFAULT
    retention_interval_ms: int = RETENTION_INTERVAL_MS
    events_keep_ms: int = limits.EVENTS_MS_DEFAULT
    events_keep_count: int = limits.EVENTS_COUNT_DEFAULT
    disk_reserve_bytes: int = 0
    group: int = 0
    copies_directory: str = ""  # where backups are prepared; empty: a temporary directory


class Hooks(Struct, frozen=True, kw_only=True):
    """Where the engine turns when something is wrong; given by the server."""

    # The process must end: memory may be ahead of the disk. Called once.
    fatal: Callable[[BaseException], None]
    # A reply failed; everything else goes on.
    reply_failed: Callable[[BaseException], None]
    # A command made the machine fail and was rolled back: (index, ordinal, traceback).
    fault: Callable[[int, int, str], None]


class Watcher(Struct, frozen=True):
    """Somebody who follows the feed. Both calls must be short and must not fail."""

    on_events: Callable[[], None]  # the feed has grown; called once per entry
    on_drain: Callable[[], None]  # whoever waits must be sent home; may be called again


class Engine:
    """Submit, fetch, read, feed, status."""

    def __init__(
        self,
        *,
        store: Store,
        log: LocalLog,
        clock: Clock,
        machine: Machine,
        recovery: Recovery,
        options: Options,
        hooks: Hooks,
        free_bytes: Callable[[], int] | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        # A virtual clock is moved by hand, also in the middle of a turn.
        turn_clock = TurnClock(clock, loop.time) if isinstance(clock, SystemClock) else clock
        self._store = store
        self._log = log
        self._clock = clock
        self._machine = machine
        self._hooks = hooks
        self._is_fatal = False
        self._is_closed = False
        self._applied_s = clock.monotonic()
        self._tasks = Supervisor()
        self._sweep_policy = SweepPolicy(
            options.retention_ms, options.events_keep_ms, options.events_keep_count
        )
        self._feed_cursors: list[Callable[[], int | None]] = []
        self._retention_round_ms = 0
        self._retention_interval_ms = options.retention_interval_ms
        self.recovery = recovery
        self.read = Reads(machine, clock)
        self.new_id = IdSource(turn_clock, group=options.group).new_id
        self.workers = WorkerRegistry(turn_clock)
        self._watchers: list[Watcher] = []
        self._admission = Admission(options.bounds)
        self._feed = Feed(machine.index, machine.events)
        self._pipeline = Pipeline(
            loop=loop,
            log=log,
            machine=machine,
            clock=clock,
            is_durable=log.policy.is_always,
            on_applied=self._on_applied,
            on_disk_full=self._on_disk_full,
            on_fatal=self._die,
            on_reply_failed=hooks.reply_failed,
            commands_max=options.entry_commands_max,
        )
        self._room = WaitingRoom(
            loop=loop,
            clock=turn_clock,
            machine=machine,
            propose=self._pipeline.add,
            on_reply_failed=hooks.reply_failed,
            parked_max=options.parked_max,
            inflight_max=options.fetch_inflight_max,
        )
        self._upkeep = Upkeep(
            store=store,
            log=log,
            machine=machine,
            pipeline=self._pipeline,
            admission=self._admission,
            clock=clock,
            tidy=self._tidy,
            policy=options.flush,
            disk_reserve_bytes=options.disk_reserve_bytes,
            free_bytes=free_bytes,
        )
        self._backups = Backups(
            store=store, snapshot=self._upkeep.snapshot, directory=options.copies_directory
        )

    # --- life ---------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        *,
        store: Store,
        log: LocalLog,
        clock: Clock,
        hooks: Hooks,
        options: Options | None = None,
        free_bytes: Callable[[], int] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> "Engine":
        """Recover and build; nothing is served before `start`. Blocks while replaying."""
        machine, recovery = recover(store, log, clock, on_progress)
        return cls(
            store=store,
            log=log,
            clock=clock,
            machine=machine,
            recovery=recovery,
            options=options if options is not None else Options(),
            hooks=hooks,
            free_bytes=free_bytes,
        )

    async def name_history(self) -> bytes:
        """Give the history its name when it has none; return the name. Call before serving."""
        if self._machine.epoch == NO_EPOCH:
            await self.sweep([SetEpoch(secrets.token_bytes(len(NO_EPOCH)))])
        return self._machine.epoch

    def start(self) -> None:
        """Open the door and begin the periodic work."""
        self._tasks.start("upkeep", self._guarded(self._upkeep.run()))
        self._tasks.start("flushes", self._guarded(self._upkeep.run_flushes()))
        policy = self._log.policy
        if policy.mode == "interval":
            sync = self._upkeep.run_interval_sync(policy.interval_ms)
            self._tasks.start("interval sync", self._guarded(sync))
        self._admission.enter(OPEN)

    async def drain(self) -> None:
        """Take and hand out nothing new, answer parked fetches empty, finish what is pending."""
        if self._admission.phase == OPEN:
            self._admission.enter(DRAINING)
        self._room.close()
        for watcher in self._watchers:
            watcher.on_drain()
        await self._pipeline.wait_idle()

    async def close(self) -> None:
        """Finish what is pending, make all of it durable, release the files. May be repeated."""
        if self._is_closed:
            return
        self._is_closed = True
        await self.drain()
        self._admission.enter(CLOSED)
        await self._pipeline.wait_idle()
        await self._tasks.stop()
        self._backups.stop()
        self._upkeep.stop()
        try:
            self._log.close()
        finally:
            # Closing flushes: a clean stop leaves nothing to replay, so the next start may run
            # newer code safely.
            self._store.close()

    def kill(self) -> None:
        """Stop at once: acknowledge nothing more. What was acknowledged is on disk."""
        self._admission.enter(CLOSED)
        self._pipeline.kill()

    def _die(self, error: BaseException) -> None:
        self._admission.enter(CLOSED)
        self._pipeline.kill()
        if not self._is_fatal:
            self._is_fatal = True
            self._hooks.fatal(error)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - handed to the server, which ends the process
            self._die(error)

    # --- writing ------------------------------------------------------------------------------

    def submit(self, command: Command, on_done: Reply) -> None:
        """Ask for a change; the outcome and its log index come through the callback.

        Raises `OverloadedError` or `UnavailableError` when it is not taken; then nothing happens.
        """
        pipeline = self._pipeline
        admission = self._admission
        if (
            admission.is_guarded
            or pipeline.pending_count >= admission.pending_max
            or pipeline.pending_bytes >= admission.pending_bytes_max
        ):
            admission.check(command, 1, pipeline.pending_count, pipeline.pending_bytes)
        pipeline.add(command, on_done)
        if self._room.parked_count:
            self._follow(command)

    def submit_many(
        self, commands: list[Command], on_done: Callable[[list[Outcome], int], None]
    ) -> None:
        """Ask for several changes, kept together and in order; all are taken or none.

        More than one entry holds them only when they are more than an entry may hold; the index is
        then the last one.
        """
        pipeline = self._pipeline
        admission = self._admission
        count = len(commands)
        if count == 0:
            on_done([], self._machine.index)
            return
        if (
            admission.is_guarded
            or pipeline.pending_count + count > admission.pending_max
            or pipeline.pending_bytes >= admission.pending_bytes_max
        ):
            for command in commands:
                admission.check(command, count, pipeline.pending_count, pipeline.pending_bytes)
        pipeline.add_together(commands, on_done)
        if self._room.parked_count:
            for command in commands:
                self._follow(command)

    def fetch(self, command: FetchJobs, timeout_ms: int, on_done: OnFetched) -> Ticket:
        """Claim jobs now, or wait for some. The answer may come before this returns."""
        admission = self._admission
        if admission.is_guarded:
            admission.check(command, 0, 0, 0)
        has_room = self._pipeline.pending_count < admission.pending_max
        return self._room.fetch(command, timeout_ms, on_done, has_room=has_room)

    def give_back(self, ns: int, claims: list[Claim]) -> None:
        """Release jobs whose answer could not be delivered."""
        self._room.give_back(ns, claims)

    async def perform(self, command: Command) -> tuple[Outcome, int]:
        """Submit and wait: for slow routes and tests."""
        done: asyncio.Future[tuple[Outcome, int]] = asyncio.get_running_loop().create_future()
        self.submit(command, lambda outcome, index: _settle(done, (outcome, index)))
        return await done

    async def sweep(self, commands: list[Command]) -> list[Outcome]:
        """Submit the sweeps of the scheduler, past the bounds of admission, and wait.

        Reclaiming and promoting must go on when producers have filled the queue; there are at most
        a handful of these at a time.
        """
        done: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self._pipeline.add_together(commands, lambda outcomes, _: _settle(done, outcomes))
        return await done

    def _follow(self, command: Command) -> None:
        if isinstance(command, EnqueueJob):
            self._room.follow(command.spec)
        elif isinstance(command, EnqueueBatch) and command.specs:
            self._room.follow_batch(command.specs)

    # --- after each entry ---------------------------------------------------------------------

    def _on_applied(self, batch: Batch, applied: Applied) -> None:
        if applied.events is not None:
            self._feed.append(batch.index, applied.events)
            for watcher in self._watchers:
                watcher.on_events()
        for fault in applied.faults:
            self._hooks.fault(batch.index, fault.ordinal, fault.trace)
        now_s = self._clock.monotonic()
        # Time since the later of the last entry and the arrival of this one: waiting for work to
        # come is not counted, waiting for the disk is.
        busy_s = now_s - max(self._applied_s, batch.opened_s)
        self._applied_s = now_s
        self._admission.observe_applied(len(batch.commands), busy_s)
        self._room.after_apply(applied.touched, len(batch.commands))

    def _on_disk_full(self) -> None:
        self._admission.observe_disk(is_full=True)

    def _tidy(self) -> None:
        self._room.tidy()
        self.workers.tidy()

    # --- reading ------------------------------------------------------------------------------

    @property
    def index(self) -> int:
        """The last applied entry."""
        return self._machine.index

    @property
    def event_floor(self) -> int:
        """The first index whose events are kept."""
        return self._machine.event_floor

    @property
    def event_floor_seq(self) -> int:
        """The sequence number of the first event that is kept."""
        return self._machine.event_floor_seq

    @property
    def is_serving(self) -> bool:
        return self._admission.phase == OPEN

    @property
    def phase(self) -> str:
        """One of starting, serving, draining, stopped."""
        return PHASE_NAMES[self._admission.phase]

    @property
    def clock(self) -> Clock:
        return self._clock

    def feed(self, after_index: int, max_bytes: int) -> list[tuple[int, EventBlock]]:
        """Return events that follow an index, oldest first, about as many bytes as asked."""
        return self._feed.read(after_index, max_bytes)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Tell somebody whenever the feed grows, and when the server drains; returns the end of it.

        Cost: runs on the write path. A watcher sets a flag or wakes a task, and never fails.
        """
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    @property
    def seq(self) -> int:
        """The sequence number of the last event; 0 before the first."""
        return self._machine.seq

    @property
    def oldest_seq(self) -> int:
        """The first sequence number that is kept; the next one to come when none is."""
        found = self._machine.events(self.event_floor - 1, 1)
        return found[0][1].first_seq if found else self._machine.seq + 1

    @property
    def recent_index(self) -> int:
        """The index after which every event is in memory."""
        return self._feed.floor

    def locate(self, seq: int) -> int:
        """Return the index from which `feed` goes on with the event after a sequence number.

        The first block may begin with events up to `seq`, which the caller passes over.
        """
        return self._feed.locate(seq, self.event_floor)

    def locate_time(self, at_ms: int) -> int:
        """Return the index from which `feed` goes on with the first event since an instant."""
        return self._feed.locate_time(at_ms, self.event_floor, self._machine.index)

    def waiting(self, ns: int, queue: str) -> int:
        """How many parked fetches listen to a queue."""
        return self._room.waiting(ns, queue)

    def due(self, now_ms: int) -> list[Command]:
        """Sweeps that would find work now.

        Retention costs a look at every queue, so it comes in rounds: one goes on until nothing is
        left to tidy, then the interval begins.
        """
        commands = self._machine.due(now_ms)
        if now_ms >= self._retention_round_ms:
            old = self._machine.due_upkeep(now_ms, self._policy())
            if not old:
                self._retention_round_ms = now_ms + self._retention_interval_ms
            commands += old
        return commands

    def hold_feed(self, cursor: Callable[[], int | None]) -> None:
        """Keep what follows a consumer's cursor beyond its retention, up to the hard cap.

        The cursor is the last index the consumer needs no more; None when it needs nothing.
        """
        self._feed_cursors.append(cursor)

    def _policy(self) -> SweepPolicy:
        cursors = [found for cursor in self._feed_cursors if (found := cursor()) is not None]
        if not cursors:
            return self._sweep_policy
        return replace(self._sweep_policy, events_keep_from=min(cursors) + 1)

    def next_due_ms(self) -> int:
        """The earliest instant at which a sweep will have work; 0 when none is known."""
        return self._machine.next_due_ms(self._clock.now_ms())

    def next_schedule_ms(self) -> int:
        """The earliest instant at which a schedule may fire; 0 when none is known."""
        return self._machine.next_schedule_ms(self.now_ms)

    def due_schedules(self, limit: int) -> list[ScheduleView]:
        """Schedules whose next slot is to be fired now; none while no new job may come in."""
        if self._admission.phase != OPEN or self._admission.is_disk_full:
            return []
        now_ms = self.now_ms
        if not 0 < self._machine.next_schedule_ms(now_ms) <= now_ms:
            return []
        return self._machine.due_schedules(now_ms, limit)

    @property
    def now_ms(self) -> int:
        """The time an entry written now would at least have: it never goes back."""
        return max(self._clock.now_ms(), self._machine.now_ms)

    async def flush(self) -> int:
        """Make the store durable now; return the index that is safe."""
        return await self._upkeep.flush()

    async def snapshot(self, directory: str) -> int:
        """Write a consistent copy of the store into a directory that does not exist."""
        return await self._upkeep.snapshot(directory)

    async def copy(self) -> Copy:
        """Take a copy of the store as it stands, for a backup or an export; close it after use."""
        return await self._backups.take()

    @property
    def times(self) -> dict[str, Histogram]:
        """How long things take: waiting for an entry, syncing it, applying it, flushing."""
        pipeline = self._pipeline
        return {
            "queue": pipeline.queue_time,
            "sync": pipeline.sync_time,
            "apply": pipeline.apply_time,
            "flush": self._upkeep.flush_time,
        }

    def status(self) -> dict[str, Any]:
        """Figures for `/cluster/status`."""
        pipeline = self._pipeline
        return {
            "phase": self.phase,
            "index": self._machine.index,
            "term": self._log.term,
            "chain": self._machine.chain.hex(),
            "epoch": self._machine.epoch.hex(),
            "machine_version": self._machine.version,
            "fsync": self._log.policy.render(),
            "log": {
                "first_index": self._log.first_index,
                "last_index": self._log.last_index,
                "synced_index": self._log.synced_index,
                "size_bytes": self._log.size_bytes,
                "mismatches_count": self._log.validator.mismatches_count,
            },
            "pipeline": pipeline.statistics(),
            "admission": self._admission.statistics(),
            "fetches": self._room.statistics(),
            "feed": self._feed.statistics(),
            "upkeep": self._upkeep.statistics(),
            "store": self._upkeep.store_statistics,
            "workers_count": len(self.workers),
            "queue_time": pipeline.queue_time.summary(),
            "sync_time": pipeline.sync_time.summary(),
            "apply_time": pipeline.apply_time.summary(),
            "flush_time": self._upkeep.flush_time.summary(),
        }


Result = TypeVar("Result")


def _settle(future: "asyncio.Future[Result]", result: Result) -> None:
    if not future.done():
        future.set_result(result)
