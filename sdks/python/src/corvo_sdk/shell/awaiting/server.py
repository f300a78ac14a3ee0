# Made from shell/blocking/server.py by `make sdk`; change that one.
"""Events, workers, figures, and running a server."""

from typing import Any

from corvo_sdk.protocol.endpoints import server
from corvo_sdk.protocol.endpoints.server import Names
from corvo_sdk.shell.awaiting.running import Runner
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

    async def events_page(
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
        return await self._run(call)

    async def job_events(
        self,
        job_id: str,
        *,
        after_seq: int | None = None,
        limit: int | None = None,
        after: int | None = None,
    ) -> Timeline:
        """What happened to a job, oldest first."""
        return await self._run(
            server.job_events(job_id, after_seq=after_seq, limit=limit, after=after)
        )

    async def throughput(self, *, queue: str | None = None) -> Throughput:
        """The last sixty minutes of a queue, or of all."""
        return await self._run(server.throughput(queue=queue))

    async def metrics(self) -> str:
        """Figures for Prometheus, as text."""
        return await self._run(server.metrics())

    async def health(self) -> Health:
        """Whether the server takes work; one that is draining says so, and is not an error."""
        return await self._run(server.health())

    async def alive(self) -> Alive:
        """Whether the process answers."""
        return await self._run(server.alive())

    async def info(self) -> Info:
        """Version and features of the server."""
        return await self._run(server.info())

    async def workers(self) -> list[WorkerInfo]:
        """Workers seen lately."""
        return await self._run(server.workers())

    async def cluster_status(self) -> dict[str, Any]:
        """Where the log stands, and figures of the pipeline."""
        return await self._run(server.cluster_status())

    async def import_lines(self, lines: bytes) -> Imported:
        """Bring back lines of an export, up to 4 MiB and 5,000 records a call."""
        return await self._run(server.import_lines(lines))

    async def view_position(self, *, after: int | None = None) -> ViewPosition:
        """What the search index has reached."""
        return await self._run(server.view_position(after=after))

    async def rebuild_view(self) -> Rebuild:
        """Build the search index anew, while everything goes on."""
        return await self._run(server.rebuild_view())

    async def rebuild_progress(self) -> Rebuild:
        """How far the rebuild is."""
        return await self._run(server.rebuild_progress())

    async def openapi(self) -> dict[str, Any]:
        """The server's description of itself."""
        return await self._run(server.openapi())
