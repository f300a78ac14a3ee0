"""The worker: builds its parts, and ends them in order.

    serving ──stop()──▶ draining ──all done, or shutdown_timeout──▶ stopping ──grace──▶ ended
                           └────────────── stop() again ──────────────▲

Draining: nothing new is fetched, jobs that wait for a slot go back at once, handlers go on and
their leases are renewed. Stopping: handlers are asked to stop, and whatever they say or do not say,
their jobs go back to the queue with their last checkpoint and no attempt burnt.
"""

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from corvo_sdk.app import Corvo
from corvo_sdk.context import Stop
from corvo_sdk.duration import Duration
from corvo_sdk.errors import CorvoError
from corvo_sdk.worker import settings as checking
from corvo_sdk.worker.execution import Runners, execute
from corvo_sdk.worker.fetching import Fetcher, pools_of
from corvo_sdk.worker.flights import Flights
from corvo_sdk.worker.handling import Handling
from corvo_sdk.worker.health import Health
from corvo_sdk.worker.heart import Heart
from corvo_sdk.worker.http import Identity
from corvo_sdk.worker.links import Link, Signals
from corvo_sdk.worker.opening import open_link
from corvo_sdk.worker.processes import ProcessPool, check_reachable
from corvo_sdk.worker.reload import AT_ONCE
from corvo_sdk.worker.reporting import Reporter
from corvo_sdk.worker.resort import EXIT_CODE, release_without_loop
from corvo_sdk.worker.settings import LinkKind, Settings, WorkerSettingsError
from corvo_sdk.worker.statistics import Figures
from corvo_sdk.worker.threads import ThreadPool
from corvo_sdk.worker.watch import Watch

LAST_FETCH_S = 0.5  # how long a drain waits for the answer of a fetch that is under way
HURRY_GRACE_S = 0.5  # what handlers get after the second signal
FLUSH_S = 10.0  # how long the last reports may take

_log = logging.getLogger("corvo.worker")


class Worker:
    """Runs the tasks of an app.

    `queues` maps a queue to slots of its own; with 0 it shares `concurrency` slots with others.
    Without it all queues of the app are taken. A queue that no task is declared on is never
    fetched, unless `undeclared` says that its jobs name their tasks.
    """

    def __init__(
        self,
        app: Corvo,
        *,
        queues: Mapping[str, int] | None = None,
        concurrency: int = checking.CONCURRENCY_DEFAULT,
        link: LinkKind | Link = "auto",
        lease: Duration | None = None,
        shutdown_timeout_s: float = 30.0,
        stop_grace_s: float = 5.0,
        thread_grace_s: float = 5.0,
        health_port: int | None = None,
        health_host: str = "127.0.0.1",
        health_required: bool = True,
        worker_id: str | None = None,
        version: str = "",
        processes: int = 0,
        lag_warning_s: float = 1.0,
        undeclared: bool = False,
        unknown_delay_s: float = 30.0,
    ) -> None:
        self.app = app
        chosen, self._left_out = checking.queues_of(
            queues, app.queues(), is_undeclared_allowed=undeclared
        )
        self.settings = checking.check(
            Settings(
                queues=chosen,
                concurrency=concurrency,
                link=link if isinstance(link, str) else "auto",
                lease_ms=checking.lease_ms_of(lease),
                shutdown_timeout_s=shutdown_timeout_s,
                stop_grace_s=stop_grace_s,
                thread_grace_s=thread_grace_s,
                unknown_delay_ms=round(unknown_delay_s * 1_000),
                lag_warning_s=lag_warning_s,
                processes=processes,
                worker_id=worker_id or checking.own_name(),
                version=version,
                health_port=health_port,
                health_host=health_host,
                health_required=health_required,
            )
        )
        for task in app.tasks.values():
            if task.options.process:
                check_reachable(task)
        self._given_link = None if isinstance(link, str) else link
        self.figures = Figures()
        self.flights = Flights()
        self.health: Health | None = None
        self.is_ready = False
        self.is_draining = False
        self._parts: _Parts | None = None
        self._stops_count = 0
        self._stop_asked = asyncio.Event()
        self._hurry_asked = asyncio.Event()
        self._has_last_resort = False

    # --- from outside -----------------------------------------------------------------------------

    def run(self) -> None:
        """Work until SIGTERM or SIGINT; blocks. A second signal releases every job at once."""
        self._has_last_resort = True
        with asyncio.Runner(loop_factory=_loop_factory()) as runner, self._signals():
            runner.run(self.serve())

    def schemas(self) -> dict[str, Any]:
        """What the tasks take; for the health port."""
        return {name: dict(schema) for name, schema in self.app.schemas().items()}

    def stop(self, *, at_once: bool = False) -> None:
        """Drain; called again, or `at_once`: release everything now. From any thread."""
        self._stops_count += 2 if at_once else 1
        count, parts = self._stops_count, self._parts
        if parts is None:
            return
        settings = self.settings
        patience_s = HURRY_GRACE_S if count > 1 else settings.shutdown_timeout_s
        patience_s += settings.stop_grace_s + 2.0
        parts.watch.resort_at_s = time.monotonic() + patience_s
        with suppress(RuntimeError):  # the loop has ended meanwhile
            parts.loop.call_soon_threadsafe(self._on_stop, count)

    def _on_stop(self, count: int) -> None:
        self._stop_asked.set()
        if count > 1:
            self._hurry_asked.set()

    @contextmanager
    def _signals(self) -> Generator[None]:
        # Safety: plain handlers and not those of the loop, which a blocked loop would never call.
        numbers = (signal.SIGTERM, signal.SIGINT, AT_ONCE)
        before = {number: signal.getsignal(number) for number in numbers}
        for number in numbers:
            signal.signal(number, self._on_signal)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _: object) -> None:
        is_hurry = number == AT_ONCE or self._stops_count > 0
        word = "releasing all jobs" if is_hurry else "draining"
        _log.info("%s: %s", signal.Signals(number).name, word)
        self.stop(at_once=number == AT_ONCE)

    async def serve(self) -> None:
        """Work until `stop` is called; returns when every job is reported or released."""
        parts = self._parts = _Parts(self)
        if self._stops_count:
            self._on_stop(self._stops_count)
        try:
            async with self.app.running() as state:
                parts.handling.begin(state)
                await self._sync_schedules()
                await self._work(parts)
        finally:
            self.is_ready = False
            await parts.end()
            await self.app.aclose()
            self._parts = None
        _log.info("worker %s ended", self.settings.worker_id)

    async def _sync_schedules(self) -> None:
        if not self.app.schedules:
            return
        try:
            changes = await self.app.async_schedules()
        except CorvoError as error:
            # Jobs can be worked on without it; the next worker that starts tries again.
            _log.warning("the schedules could not be synchronised: %s", error)
        else:
            _log.info("schedules: %s", changes)

    # --- work and end -----------------------------------------------------------------------------

    async def _work(self, parts: "_Parts") -> None:
        for name in self._left_out:
            _log.warning("queue %s is not fetched: no task is declared on it", name)
        await parts.open(self._given_link)
        spawn = parts.loop.create_task
        fetching = [spawn(fetcher.run()) for fetcher in parts.fetchers]
        reporting = spawn(parts.reporter.run())
        stopping = spawn(self._stop_asked.wait())
        failing = spawn(parts.handling.failed.wait())
        self.is_ready = True
        settings = self.settings
        names = ", ".join(settings.queues)
        _log.info("worker %s serves %s: %d slots", settings.worker_id, names, settings.slots)
        try:
            # The first two never return: when one of them ends, it has failed.
            await asyncio.wait(
                [*fetching, reporting, stopping, failing], return_when=asyncio.FIRST_COMPLETED
            )
            await self._drain(parts, fetching)
        finally:
            await _cancel([*fetching, reporting, stopping, failing])
        for part in (*fetching, reporting):
            if not part.cancelled():
                part.result()
        if parts.handling.error is not None:
            raise parts.handling.error

    async def _drain(self, parts: "_Parts", fetching: "Sequence[asyncio.Task[None]]") -> None:
        self.is_draining = True
        handling = parts.handling
        handling.is_draining = True
        for fetcher in parts.fetchers:
            fetcher.finish()
        await self._give_back_pushed(parts)
        # Safety: an answer on its way has claimed jobs; cut off, each would burn an attempt.
        hurry = self._hurry_asked.is_set()
        await asyncio.wait(fetching, timeout=LAST_FETCH_S / 5 if hurry else LAST_FETCH_S)
        await _cancel(fetching)
        handling.give_back()
        if not await self._wait_done(handling):
            handling.ask_to_stop()
            grace_s = HURRY_GRACE_S if self._hurry_asked.is_set() else self.settings.stop_grace_s
            if not await handling.wait_done(grace_s):
                handling.abandon()
        try:
            async with asyncio.timeout(FLUSH_S):
                await parts.reporter.wait_idle()
                while await self._give_back_pushed(parts):
                    await parts.reporter.wait_idle()
        except TimeoutError:
            _log.error("%d reports could not be delivered", parts.reporter.backlog)

    async def _give_back_pushed(self, parts: "_Parts") -> bool:
        """Release what came over the link unasked; a claim may have been on its way."""
        assert parts.link is not None
        left = await parts.link.drain()
        if left:
            parts.handling.accept(parts.handling.pools[0], left)
        return bool(left)

    async def _wait_done(self, handling: Handling) -> bool:
        """Wait for the handlers until the time-out, or until somebody is in a hurry."""
        hurrying = asyncio.ensure_future(self._hurry_asked.wait())
        waiting = asyncio.ensure_future(handling.wait_done(self.settings.shutdown_timeout_s))
        await asyncio.wait([hurrying, waiting], return_when=asyncio.FIRST_COMPLETED)
        await _cancel([hurrying, waiting])
        return handling.running_count == 0

    def last_resort(self) -> None:
        """The loop does not answer: release what is in hand from this thread, and end."""
        if not self._has_last_resort:
            return
        _log.error("the event loop does not answer; jobs are released without it")
        if self._parts is not None:
            self._parts.heart.stop()
        release_without_loop(self.app.client, self.flights.all())
        logging.shutdown()
        os._exit(EXIT_CODE)


class _Parts:
    """What lives from the start of a worker to its end; made on the loop."""

    def __init__(self, worker: Worker) -> None:
        settings, app = worker.settings, worker.app
        self.loop = asyncio.get_running_loop()
        self.heart = Heart(app.client, worker.flights, settings.worker_id)
        self.watch = Watch(
            worker.flights,
            self.loop,
            lag_warning_s=settings.lag_warning_s,
            execution=execute.__code__,
            last_resort=worker.last_resort,
        )
        self.threads = ThreadPool(settings.slots, "corvo-handler")
        self.processes = ProcessPool(settings.processes)
        self.runners = Runners(
            self.threads,
            self.processes,
            app.surround if app.has_middleware() else None,
            grace_s=settings.thread_grace_s,
        )
        self.handling = Handling(
            app,
            self.runners,
            self.heart,
            worker.flights,
            worker.figures,
            unknown_delay_ms=settings.unknown_delay_ms,
        )
        self.fetchers: list[Fetcher] = []
        self.link: Link | None = None
        self.reporter: Reporter
        self._worker = worker
        if settings.health_port is not None:
            self._open_health(settings.health_host, settings.health_port)
        self.heart.start()
        self.watch.start()

    def _open_health(self, host: str, port: int) -> None:
        health = Health(self._worker, self.heart, self.watch)
        try:
            health.start(host, port)
        except OSError as error:
            complaint = f"the health port {host}:{port} can not be opened: {error}"
            if self._worker.settings.health_required:
                raise WorkerSettingsError(complaint) from error
            _log.warning("%s; going on without", complaint)
        else:
            self._worker.health = health

    async def open(self, given: Link | None) -> None:
        """Connect to the server and make the pools."""
        settings, handling = self._worker.settings, self.handling
        identity = Identity(
            settings.worker_id, socket.gethostname()[:200], settings.version, settings.slots
        )
        signals = Signals(self._on_cancel, self._on_lost, self._on_arrived)
        client = self._worker.app.aclient
        self.link = await open_link(settings.link, client, identity, signals, given)
        self.reporter = handling.reporter = Reporter(self.link, handling.settled)
        handling.pools = pools_of(settings.queues, settings.concurrency, self._lease_ms_of)
        self.fetchers = [
            Fetcher(pool, self.link, handling.accept, self._is_blocked) for pool in handling.pools
        ]

    async def end(self) -> None:
        """End all of it; what is left undone was said before."""
        self.watch.stop()
        self.heart.stop()
        self.threads.close()
        self.processes.close()
        if self._worker.health is not None:
            self._worker.health.stop()
        if self.link is not None:
            await self.link.close()

    def _is_blocked(self) -> bool:
        return self.reporter.is_full

    def _lease_ms_of(self, queues: Sequence[str]) -> int | None:
        """The lease to ask for: the longest that a task of these queues declares."""
        declared = [
            task.options.lease_ms
            for task in self._worker.app.tasks.values()
            if task.queue in queues and task.options.lease_ms is not None
        ]
        return max(declared) if declared else self._worker.settings.lease_ms

    def _on_cancel(self, job_id: str, lease_token: int) -> None:
        context = self._worker.flights.get(job_id, lease_token)
        if context is not None:
            context.stop(Stop.CANCEL)

    def _on_arrived(self) -> None:
        for pool in self.handling.pools:
            pool.has_room.set()

    def _on_lost(self, job_id: str, lease_token: int) -> None:
        context = self._worker.flights.get(job_id, lease_token)
        if context is not None:
            context.stop(Stop.LOST)


async def _cancel(tasks: "Sequence[asyncio.Future[Any]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster loop where it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - no dependency, used when it is there
    except ImportError:
        return None
    return uvloop.new_event_loop
