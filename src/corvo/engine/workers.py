"""Who works: a registry in memory, fed by what workers ask for and say.

It is a picture for people and decides nothing: leases are what keep jobs safe. It starts empty
after a restart and fills again within one poll of each worker.
"""

from collections import OrderedDict

from msgspec import Struct

from corvo.model.command import FetchJobs
from corvo.runtime.clock import Clock

STALE_MS = 60_000
FORGET_MS = 600_000
WORKERS_MAX = 20_000

STATUS_HEALTHY, STATUS_STALE, STATUS_DRAINING = "healthy", "stale", "draining"


class WorkerView(Struct, frozen=True):
    """One worker as an operator sees it. Times are milliseconds since 1970; 0 means never."""

    ns: int
    id: str
    host: str
    version: str
    queues: list[str]
    slots: int
    jobs_held: int  # as it last said
    fetched_at_ms: int
    beaten_at_ms: int
    started_at_ms: int  # when it was first seen
    status: str


class _Worker:
    """What is kept of one worker."""

    __slots__ = (
        "beaten_at_ms",
        "fetched_at_ms",
        "host",
        "is_draining",
        "jobs_held",
        "queues",
        "seen_at_ms",
        "slots",
        "started_at_ms",
        "version",
    )

    def __init__(self, now_ms: int) -> None:
        self.host = ""
        self.version = ""
        self.queues: list[str] = []
        self.slots = 0
        self.jobs_held = 0
        self.is_draining = False
        self.started_at_ms = now_ms
        self.seen_at_ms = now_ms
        self.fetched_at_ms = 0
        self.beaten_at_ms = 0


class WorkerRegistry:
    """Workers by (namespace, id), bounded: past the bound the longest unseen one is forgotten."""

    def __init__(self, clock: Clock, *, workers_max: int = WORKERS_MAX) -> None:
        self._clock = clock
        self._workers_max = workers_max
        # Invariant: ordered by when a worker was first seen or last moved to the end by `tidy`.
        self._workers: OrderedDict[tuple[int, str], _Worker] = OrderedDict()

    def observe_fetch(
        self,
        command: FetchJobs,
        version: str = "",
        concurrency: int = 0,
        *,
        draining: bool = False,
    ) -> None:
        """Note that a worker asked for jobs."""
        worker = self._seen(command.ns, command.worker)
        worker.fetched_at_ms = worker.seen_at_ms
        worker.queues = command.queues
        if command.host:
            worker.host = command.host
        if version:
            worker.version = version
        if concurrency:
            worker.slots = concurrency
        worker.is_draining = draining

    def observe_heartbeat(self, ns: int, worker_id: str, jobs_count: int) -> None:
        """Note that a worker said it is alive, and how many jobs it has in hand."""
        worker = self._seen(ns, worker_id)
        worker.beaten_at_ms = worker.seen_at_ms
        worker.jobs_held = jobs_count

    def list(self, ns: int | None = None) -> list[WorkerView]:
        """Return the workers of a namespace, or all, by id."""
        now_ms = self._clock.now_ms()
        chosen = sorted(key for key in self._workers if ns is None or key[0] == ns)
        return [_view(key, self._workers[key], now_ms) for key in chosen]

    def tidy(self) -> None:
        """Forget workers that were not seen for ten minutes. Called now and then; cost: all."""
        horizon_ms = self._clock.now_ms() - FORGET_MS
        gone = [key for key, worker in self._workers.items() if worker.seen_at_ms < horizon_ms]
        for key in gone:
            del self._workers[key]

    def __len__(self) -> int:
        return len(self._workers)

    def _seen(self, ns: int, worker_id: str) -> _Worker:
        now_ms = self._clock.now_ms()
        key = (ns, worker_id)
        worker = self._workers.get(key)
        if worker is None:
            if len(self._workers) >= self._workers_max:
                self._forget_one()
            worker = self._workers[key] = _Worker(now_ms)
        worker.seen_at_ms = now_ms
        return worker

    def _forget_one(self) -> None:
        # A second chance for whoever was seen lately; bounded, so that a flood of invented worker
        # names costs a constant each.
        horizon_ms = self._clock.now_ms() - STALE_MS
        for _ in range(8):
            key, worker = self._workers.popitem(last=False)
            if worker.seen_at_ms < horizon_ms:
                return
            self._workers[key] = worker
        self._workers.popitem(last=False)


def _view(key: tuple[int, str], worker: _Worker, now_ms: int) -> WorkerView:
    status = STATUS_DRAINING if worker.is_draining else STATUS_HEALTHY
    if now_ms - worker.seen_at_ms > STALE_MS:
        status = STATUS_STALE
    return WorkerView(
        ns=key[0],
        id=key[1],
        host=worker.host,
        version=worker.version,
        queues=worker.queues,
        slots=worker.slots,
        jobs_held=worker.jobs_held,
        fetched_at_ms=worker.fetched_at_ms,
        beaten_at_ms=worker.beaten_at_ms,
        started_at_ms=worker.started_at_ms,
        status=status,
    )
