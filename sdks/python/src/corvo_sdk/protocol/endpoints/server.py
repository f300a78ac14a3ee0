"""Events, workers, figures, and running a server. Streams are given as requests, not as calls."""

from collections.abc import Sequence
from typing import Any, Final

from corvo_sdk.protocol.call import Call, Reader, Repeat, Reply, Request
from corvo_sdk.protocol.endpoints.making import command, read, reader
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
from corvo_sdk.values import API, segment, with_query

_AFTER_S: Final = 5.0
_EVENTS_PAGE: Final = reader(EventsPage)
_TIMELINE: Final = reader(Timeline)
_THROUGHPUT: Final = reader(Throughput)
_HEALTH: Final = reader(Health)
_ALIVE: Final = reader(Alive)
_INFO: Final = reader(Info)
_WORKERS: Final = reader(list[WorkerInfo])
_MEMBERS: Final = reader(dict[str, Any])
_IMPORTED: Final = reader(Imported)
_POSITION: Final = reader(ViewPosition)
_REBUILD: Final = reader(Rebuild)

Names = str | Sequence[str]


class TextReader(Reader[str]):
    """Reads a body that is no JSON."""

    def __init__(self) -> None:
        self.kind = str

    def __call__(self, reply: Reply) -> str:
        return reply.body.decode("utf-8", "replace")


def events(*, queue: Names | None, job_id: Names | None, event_type: Names | None) -> Request:
    """`GET /events`: a stream."""
    query = {"queue": _list(queue), "job_id": _list(job_id), "type": _list(event_type)}
    return Request("GET", with_query(f"{API}/events", query))


def bulk_progress(bulk_id: str) -> Request:
    """`GET /bulk/{id}/progress`: a stream."""
    return Request("GET", f"{API}/bulk/{segment(bulk_id)}/progress")


def backup() -> Request:
    """`POST /admin/backup`: a stream."""
    return Request("POST", f"{API}/admin/backup")


def export() -> Request:
    """`GET /admin/export`: a stream."""
    return Request("GET", f"{API}/admin/export")


def events_page(
    *,
    after_seq: int,
    limit: int | None,
    queue: Names | None,
    job_id: Names | None,
    event_type: Names | None,
) -> Call[EventsPage]:
    """`GET /cluster/events`."""
    query = {
        "after_seq": after_seq,
        "limit": limit,
        "queue": _list(queue),
        "job_id": _list(job_id),
        "type": _list(event_type),
    }
    return read("/cluster/events", _EVENTS_PAGE, query=query)


def job_events(
    job_id: str, *, after_seq: int | None, limit: int | None, after: int | None
) -> Call[Timeline]:
    """`GET /jobs/{id}/events`."""
    query = {"after_seq": after_seq, "limit": limit, "after": after}
    wait_s = 0.0 if after is None else _AFTER_S
    return read(f"/jobs/{segment(job_id)}/events", _TIMELINE, query=query, wait_s=wait_s)


def throughput(*, queue: str | None) -> Call[Throughput]:
    """`GET /metrics/throughput`."""
    return read("/metrics/throughput", _THROUGHPUT, query={"queue": queue})


def metrics() -> Call[str]:
    """`GET /metrics`."""
    return read("/metrics", TextReader())


def health() -> Call[Health]:
    """`GET /healthz`; a server that does not take work says so in the same form."""
    request = Request("GET", f"{API}/healthz")
    return Call(request, _HEALTH, Repeat.ALWAYS, accepts=frozenset({503}))


def alive() -> Call[Alive]:
    """`GET /livez`."""
    return read("/livez", _ALIVE)


def info() -> Call[Info]:
    """`GET /info`."""
    return read("/info", _INFO)


def workers() -> Call[list[WorkerInfo]]:
    """`GET /workers`."""
    return read("/workers", _WORKERS)


def cluster_status() -> Call[dict[str, Any]]:
    """`GET /cluster/status`; its members come and go with versions."""
    return read("/cluster/status", _MEMBERS)


def import_lines(lines: bytes) -> Call[Imported]:
    """`POST /admin/import`; not repeated: the second answer would call all of it refused."""
    headers = {"content-type": "application/x-ndjson"}
    request = Request("POST", f"{API}/admin/import", headers, lines)
    return Call(request, _IMPORTED, Repeat.UNLESS_SENT)


def view_position(*, after: int | None) -> Call[ViewPosition]:
    """`GET /admin/view`."""
    wait_s = 0.0 if after is None else _AFTER_S
    return read("/admin/view", _POSITION, query={"after": after}, wait_s=wait_s)


def rebuild_view() -> Call[Rebuild]:
    """`POST /admin/rebuild-sqlite`."""
    return command("POST", "/admin/rebuild-sqlite", _REBUILD)


def rebuild_progress() -> Call[Rebuild]:
    """`GET /admin/rebuild-sqlite`."""
    return read("/admin/rebuild-sqlite", _REBUILD)


def openapi() -> Call[dict[str, Any]]:
    """`GET /openapi.json`."""
    return read("/openapi.json", _MEMBERS)


def _list(names: Names | None) -> str | None:
    return names if names is None or isinstance(names, str) else ",".join(names)
