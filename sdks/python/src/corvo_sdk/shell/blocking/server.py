"""Events, workers, figures, and running a server."""

from typing import Any

from corvo_sdk.protocol.endpoints import server
from corvo_sdk.protocol.endpoints.server import Names
from corvo_sdk.shell.blocking.running import Runner
from corvo_sdk.types.server import (
    Alive,
    EventsPage,
    Health,
    Imported,
    Info,
    Rebuild,
    Throughput,
    Timeline,
    ViewPosition,
    WorkerInfo,
)


class Operating(Runner):
    """Calls about the server; streams (`events`, `backup`, `export`) belong to the client."""

    def events_page(
        self,
        *,
        after_seq: int = 0,
        limit: int | None = None,
        queue: Names | None = None,
        job_id: Names | None = None,
        event_type: Names | None = None,
    ) -> EventsPage:
        """A page of events, oldest first."""
        call = server.events_page(
            after_seq=after_seq, limit=limit, queue=queue, job_id=job_id, event_type=event_type
        )
        return self._run(call)

    def job_events(
        self,
        job_id: str,
        *,
        after_seq: int | None = None,
        limit: int | None = None,
        after: int | None = None,
    ) -> Timeline:
        """What happened to a job, oldest first."""
        return self._run(server.job_events(job_id, after_seq=after_seq, limit=limit, after=after))

    def throughput(self, *, queue: str | None = None) -> Throughput:
        """The last sixty minutes of a queue, or of all."""
        return self._run(server.throughput(queue=queue))

    def metrics(self) -> str:
        """Figures for Prometheus, as text."""
        return self._run(server.metrics())

    def health(self) -> Health:
        """Whether the server takes work; one that is draining says so, and is not an error."""
        return self._run(server.health())

    def alive(self) -> Alive:
        """Whether the process answers."""
        return self._run(server.alive())

    def info(self) -> Info:
        """Version and features of the server."""
        return self._run(server.info())

    def workers(self) -> list[WorkerInfo]:
        """Workers seen lately."""
        return self._run(server.workers())

    def cluster_status(self) -> dict[str, Any]:
        """Where the log stands, and figures of the pipeline."""
        return self._run(server.cluster_status())

    def import_lines(self, lines: bytes) -> Imported:
        """Bring back lines of an export, up to 4 MiB and 5,000 records a call."""
        return self._run(server.import_lines(lines))

    def view_position(self, *, after: int | None = None) -> ViewPosition:
        """What the search index has reached."""
        return self._run(server.view_position(after=after))

    def rebuild_view(self) -> Rebuild:
        """Build the search index anew, while everything goes on."""
        return self._run(server.rebuild_view())

    def rebuild_progress(self) -> Rebuild:
        """How far the rebuild is."""
        return self._run(server.rebuild_progress())

    def openapi(self) -> dict[str, Any]:
        """The server's description of itself."""
        return self._run(server.openapi())
