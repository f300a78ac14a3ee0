"""Builds every part once, in the order of dependencies, and takes them down in reverse.

    lock ─▶ log ─▶ store ─▶ engine ─▶ webhooks ─▶ api ─▶ listener ─▶ scheduler ─▶ view process

Nothing else in the program chooses between RocksDB and memory, files and memory, or system and
virtual time.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from msgspec import Struct

from corvo.api import app
from corvo.api.finding import ViewFinder
from corvo.api.http import listener
from corvo.api.http.listener import Listener
from corvo.api.metrics.page import Page
from corvo.api.routes.search import read_filter
from corvo.engine import Engine, Options
from corvo.engine.admission import Bounds
from corvo.engine.backup import clear_leftovers
from corvo.engine.collector import settle_collector
from corvo.engine.engine import Hooks
from corvo.errors import StorageError
from corvo.machine.kv import Store
from corvo.model.job import ACTIVE
from corvo.replication import FsyncPolicy, LocalLog, MemoryDisk, RealDisk, make_sync
from corvo.runtime.clock import SystemClock
from corvo.runtime.tasks import Supervisor
from corvo.runtime.telemetry import logger
from corvo.scheduler import BulkRunner, Ticker
from corvo.server.config import Config
from corvo.server.identity import cluster_id, node_id
from corvo.server.layout import Layout
from corvo.server.restore import refuse_unfinished_restore
from corvo.server.supervise import ViewKeeper
from corvo.storage.memory import MemoryStore
from corvo.storage.rocks import RocksStore
from corvo.view.client import ViewClient
from corvo.webhooks import Dispatcher, Guard
from corvo.webhooks.guard import parse_networks

if TYPE_CHECKING:
    from corvo.server.tracing import Tracer

EPHEMERAL_DIRECTORY = "memory"
EPHEMERAL_SEGMENT_BYTES = 8 << 20  # a segment is filled with zeros ahead, here in memory
NAMESPACES = (0,)  # the default one; further ones come with keys

Fatal = Callable[[BaseException], None]


class Ground(Struct, frozen=True):
    """What the engine stands on: a disk, the log and the store, and how to give the lock back."""

    log: LocalLog
    store: Store
    unlock: Callable[[], None]
    free_bytes: Callable[[], int] | None


class Server:
    """A running server: everything that has to be stopped, and the order to do it in."""

    def __init__(
        self,
        engine: Engine,
        edge: Listener,
        tasks: Supervisor,
        unlock: Callable[[], None],
        webhooks: Dispatcher,
        keeper: ViewKeeper | None = None,
    ) -> None:
        self.engine = engine
        self.keeper = keeper
        self.listener = edge
        self.tasks = tasks
        self.webhooks = webhooks
        self._unlock = unlock
        self.on_stop: list[Callable[[], None]] = []  # while the engine can still be read
        self.on_close: list[Callable[[], None]] = []

    @property
    def active_count(self) -> int:
        """Jobs that a worker holds now."""
        views = [view for ns in NAMESPACES for view in self.engine.read.queues(ns)]
        return sum(view.record.counts[ACTIVE] for view in views)

    async def close(self) -> None:
        """Stop everything in reverse order; what was answered is on disk afterwards."""
        await self.listener.close()
        await self.tasks.stop()
        await self.webhooks.stop()
        for stop in self.on_stop:
            stop()
        await self.engine.close()
        for close in self.on_close:
            close()
        self._unlock()


async def build(config: Config, fatal: Fatal) -> Server:
    """Open the data, recover, listen and let time pass. Raises what the operator must see."""
    telemetry = logger("server")
    ground = _open_memory(config) if config.ephemeral else _open_files(config, fatal)
    for note in ground.log.recovery.notes:
        telemetry.warning("log recovered", note=note)
    clock = SystemClock(on_step=lambda ms: telemetry.warning("the wall clock was set", step_ms=ms))
    engine = Engine.open(
        store=ground.store,
        log=ground.log,
        clock=clock,
        hooks=_hooks(fatal, telemetry),
        options=_options(config),
        free_bytes=ground.free_bytes,
        on_progress=lambda at, end: telemetry.info("replaying the log", entry=at, of=end),
    )
    _report_recovery(engine, telemetry)
    settle_collector()
    await engine.name_history()
    view = ViewClient(engine, is_on=config.view == "on")
    bulk = BulkRunner(engine, ViewFinder(view.query, read_filter))
    guard = Guard(parse_networks(config.webhook_allow))
    webhooks = Dispatcher(engine, guard, namespaces=NAMESPACES)
    tracer = _make_tracer(config, engine)
    surface = app.build(
        engine,
        payload_bytes_max=config.max_payload_size,
        view=view,
        bulk=bulk,
        undo_ms=config.undo_retention,
        webhooks=webhooks,
        note_report=tracer.note_report if tracer is not None else None,
    )
    if tracer is not None:
        surface.live.observers.append(tracer.observe)
    edge = await _listen(config, engine, surface, telemetry)
    engine.start()
    tasks = Supervisor()
    ticker = Ticker(engine)
    tasks.start("live", surface.live.run())
    tasks.start("minutes", surface.live.recall())
    tasks.start("ticker", ticker.run())
    tasks.start("bulk", bulk.run())
    tasks.start("webhooks", webhooks.run())
    surface.metrics.add(partial(_add_edge, edge, ticker))
    surface.metrics.add(partial(_add_view, view))
    keeper = None
    if view.is_on:
        engine.hold_feed(lambda: view.standing.needed_index)
        directory = None if config.ephemeral else Layout(config.data_dir).view
        keeper = ViewKeeper(view, directory, config.log_format)
        tasks.start("view", keeper.run())
    server = Server(engine, edge, tasks, ground.unlock, webhooks, keeper)
    if tracer is not None:
        server.on_stop.append(surface.live.finish)
        server.on_close.append(tracer.close)
    return server


def _make_tracer(config: Config, engine: Engine) -> "Tracer | None":
    if not config.tracing:
        return None
    # Free when off: nothing of it is even read from disk.
    from corvo.server.tracing import make_tracer  # noqa: PLC0415

    return make_tracer(engine)


def _add_view(view: ViewClient, page: Page) -> None:
    """Show how far the view is behind."""
    page.gauge("view_lag_entries", "entries the view has not shown yet", view.lag)


def _add_edge(edge: Listener, ticker: Ticker, page: Page) -> None:
    """Show what only the composition knows: connections and sweeps."""
    found = edge.statistics()
    page.gauge("http_requests_in_flight", "requests not answered yet", found.open)
    page.gauge("http_connections_open", "connections now", found.connections)
    page.counter("http_connections", "connections taken", found.connections_total)
    page.counter("http_bytes_in", "bytes received", found.bytes_in)
    page.counter("http_bytes_out", "bytes sent", found.bytes_out)
    page.counter("scheduler_sweeps", "sweeps proposed", ticker.sweeps_total)
    page.counter("scheduler_moved", "jobs they moved", ticker.moved_total)


def _open_files(config: Config, fatal: Fatal) -> Ground:
    layout = Layout(config.data_dir)
    disk = RealDisk()
    try:
        disk.make_directory(layout.directory)
        lock = disk.lock(layout.lock)
        disk.make_directory(layout.wal)
    except OSError as error:
        raise StorageError(
            f"the data directory {layout.directory} can not be used: {error}",
            hint="name another with --data-dir",
        ) from error
    try:
        refuse_unfinished_restore(layout)
        clear_leftovers(layout.copies)
        log = LocalLog.open(
            disk,
            layout.wal,
            policy=FsyncPolicy.parse(config.fsync),
            cluster_id=cluster_id(config.cluster_name),
            node_id=node_id(config.node_id),
            syncer=make_sync(asyncio.get_running_loop(), layout.wal),
            on_failure=fatal,
        )
        store = RocksStore(str(Path(layout.store)))
    except BaseException:
        disk.close(lock)
        raise
    return Ground(log, store, lambda: disk.close(lock), log.free_bytes)


def _open_memory(config: Config) -> Ground:
    log = LocalLog.open(
        MemoryDisk(),
        EPHEMERAL_DIRECTORY,
        segment_bytes=EPHEMERAL_SEGMENT_BYTES,
        policy=FsyncPolicy.off(),
        cluster_id=cluster_id(config.cluster_name),
        node_id=node_id(config.node_id),
    )
    return Ground(log, MemoryStore(), lambda: None, None)


def _options(config: Config) -> Options:
    return Options(
        bounds=Bounds(pending_max=config.max_pending),
        fetch_inflight_max=config.max_fetch_inflight,
        parked_max=config.parked_max,
        entry_commands_max=config.batch_max,
        retention_ms=config.retention,
        retention_interval_ms=config.retention_interval,
        events_keep_ms=config.events_retention,
        events_keep_count=config.events_max,
        disk_reserve_bytes=0 if config.ephemeral else config.disk_reserve,
        copies_directory="" if config.ephemeral else Layout(config.data_dir).copies,
    )


def _hooks(fatal: Fatal, telemetry: structlog.typing.FilteringBoundLogger) -> Hooks:
    def reply_failed(error: BaseException) -> None:
        telemetry.error("an answer could not be delivered", exc_info=error)

    def fault(index: int, ordinal: int, traceback: str) -> None:
        telemetry.error("a command failed inside the machine", index=index, ordinal=ordinal)
        telemetry.error(traceback)

    return Hooks(fatal=fatal, reply_failed=reply_failed, fault=fault)


def _report_recovery(engine: Engine, telemetry: structlog.typing.FilteringBoundLogger) -> None:
    found = engine.recovery
    for note in found.notes:
        telemetry.warning("recovered", note=note)
    telemetry.info(
        "recovered",
        store_entry=found.store_index,
        log_entry=found.log_index,
        replayed_entries=found.replayed_entries,
        replayed_commands=found.replayed_commands,
        elapsed_ms=found.elapsed_ms,
    )


async def _listen(
    config: Config,
    engine: Engine,
    surface: app.Surface,
    telemetry: structlog.typing.FilteringBoundLogger,
) -> Listener:
    host, port = config.address

    def report(error: BaseException, request_id: str) -> None:
        telemetry.error("a request failed", request_id=request_id, exc_info=error)

    try:
        return await listener.start(host, port, surface.application, surface.hot, report=report)
    except OSError as error:
        await engine.close()
        raise StorageError(
            f"can not listen on {config.bind}: {error}",
            code="ADDRESS_UNAVAILABLE",
            hint="is another server running? choose another with --bind",
        ) from error
