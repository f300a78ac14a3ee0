"""Routes about the server itself: health, version, workers, cluster."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from corvo import __version__
from corvo.api.metrics.page import CONTENT_TYPE
from corvo.api.routing import Answer, Call, Table, answer
from corvo.api.values import maybe_instant

if TYPE_CHECKING:
    from corvo.engine import Engine
    from corvo.engine.workers import WorkerView
    from corvo.view.client import ViewClient

API_VERSION: Final = "v1"
FEATURES: Final = (
    "aging",
    "batches",
    "bulk",
    "chains",
    "clone",
    "dependencies",
    "events",
    "fetch_batch",
    "groups",
    "hold",
    "idempotency",
    "limits",
    "metrics",
    "release",
    "schedules",
    "snooze",
    "stream",
    "strict",
    "throughput",
    "trace",
    "undo",
    "unique",
    "wait",
    "webhooks",
    "why",
)


class ServerRoutes:
    """What the server says about itself."""

    def __init__(
        self,
        engine: "Engine",
        view: "ViewClient",
        metrics: Callable[[], Awaitable[bytes]],
        streams: Callable[[], dict[str, int]],
        held: Callable[[int], Mapping[str, int]],
    ) -> None:
        self._engine = engine
        self._view = view
        self._metrics = metrics
        self._streams = streams
        self._held = held

    def table(self) -> Table:
        """Paths, methods and operations. Probes are found without the prefix, too."""
        return {
            "/healthz": {"GET": self.health},
            "/livez": {"GET": self.live},
            "/api/v1/healthz": {"GET": self.health},
            "/api/v1/livez": {"GET": self.live},
            "/api/v1/info": {"GET": self.info},
            "/api/v1/workers": {"GET": self.workers},
            "/api/v1/cluster/status": {"GET": self.cluster_status},
            "/api/v1/metrics": {"GET": self.metrics},
        }

    async def health(self, _call: Call) -> Answer:
        """`GET /healthz`: 503 while starting or draining. A view that is down is not unhealthy."""
        is_ready = self._engine.is_serving
        status = "ok" if is_ready else self._engine.phase
        return answer({"status": status, "view": self._view.state}, 200 if is_ready else 503)

    async def live(self, _call: Call) -> Answer:
        """`GET /livez`: the process answers."""
        return answer({"status": "ok"})

    async def info(self, _call: Call) -> Answer:
        """`GET /info`."""
        members = {
            "server_version": __version__,
            "api_version": API_VERSION,
            "features": FEATURES,
        }
        return answer(members)

    async def workers(self, call: Call) -> Answer:
        """`GET /workers`: who fetched or sent a heartbeat lately."""
        ns = call.principal.ns
        held = self._held(ns)
        found = self._engine.workers.list(ns)
        return answer([_worker_members(worker, held.get(worker.id, 0)) for worker in found])

    async def metrics(self, _call: Call) -> Answer:
        """`GET /metrics`: for Prometheus, as text."""
        return Answer(200, await self._metrics(), kind=CONTENT_TYPE)

    async def cluster_status(self, _call: Call) -> Answer:
        """`GET /cluster/status`: one node, its log, and the figures of its pipeline."""
        others = {"view": self._view.statistics(), "streams": self._streams()}
        return answer({"mode": "single"} | self._engine.status() | others)


def _worker_members(worker: "WorkerView", held_count: int) -> dict[str, Any]:
    # Who has not fetched since the server started may still hold jobs from before, and says so.
    jobs_count = held_count if worker.fetched_at_ms else worker.jobs_held
    return {
        "id": worker.id,
        "hostname": worker.host or None,
        "version": worker.version or None,
        "queues": worker.queues,
        "slots": worker.slots or None,
        "jobs": jobs_count,
        "last_fetch_at": maybe_instant(worker.fetched_at_ms),
        "last_heartbeat_at": maybe_instant(worker.beaten_at_ms),
        "started_at": maybe_instant(worker.started_at_ms),
        "status": worker.status,
    }
