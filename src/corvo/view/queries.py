# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""The registry of queries: what the core may ask by name.

    @query("job_events")
    def job_events(connection: apsw.Connection, parameters: Parameters) -> bytes:
        ...

A query gets a connection that can not write and the parameters its caller in the core gave, and
returns the JSON the client receives. It raises `RequestError` for what the client asked wrongly.
When its time is over `apsw.InterruptError` is raised inside it: one that has something to show for
its time catches that and says so in its answer.

A module with queries is imported by `server.view_process`, which is what registers them.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import apsw
import msgspec

from corvo.view.instants import instant

Parameters: TypeAlias = dict[str, Any]
QueryFunction: TypeAlias = Callable[[apsw.Connection, Parameters], bytes]

EVENTS_LIMIT_MAX: Final = 1_000

REGISTRY: Final[dict[str, QueryFunction]] = {}

encode_json = msgspec.json.Encoder().encode


def query(name: str) -> Callable[[QueryFunction], QueryFunction]:
    """Register a function under a name."""

    def register(function: QueryFunction) -> QueryFunction:
        assert name not in REGISTRY, f"two queries are called {name}"
        REGISTRY[name] = function
        return function

    return register


@query("position")
def position(connection: apsw.Connection, _parameters: Parameters) -> bytes:
    """Say what the snapshot a query sees has reached."""
    found: Any = connection.execute("SELECT position, seq, floor_seq FROM cursor").get
    return encode_json({"position": found[0], "seq": found[1], "floor_seq": found[2]})


@query("job_events")
def job_events(connection: apsw.Connection, parameters: Parameters) -> bytes:
    """Return the timeline of a job: `ns`, `job_id`; optional `after_seq`, `limit`.

    `{"job_id", "events": [{seq, type, at, queue, attempt, data}], "next_after_seq"|null}`
    """
    limit = min(int(parameters.get("limit", 100)), EVENTS_LIMIT_MAX)
    sql = (
        "SELECT seq, type, at_ms, queue, attempt, data FROM job_events "
        "WHERE job_id = ? AND ns = ? AND seq > ? ORDER BY seq LIMIT ?"
    )
    values = (parameters["job_id"], parameters["ns"], parameters.get("after_seq", 0), limit + 1)
    found: list[Any] = list(connection.execute(sql, values))
    events = [_event_members(row) for row in found[:limit]]
    more = found[limit - 1][0] if len(found) > limit else None
    answer = {"job_id": parameters["job_id"], "events": events, "next_after_seq": more}
    return encode_json(answer)


def _event_members(row: tuple[Any, ...]) -> dict[str, Any]:
    seq, kind, at_ms, queue, attempt, data = row
    return {
        "seq": seq,
        "type": kind,
        "at": instant(at_ms),
        "queue": queue,
        "attempt": attempt,
        "data": msgspec.Raw(data.encode()) if data is not None else None,
    }


@query("queue_minutes")
def queue_minutes(connection: apsw.Connection, parameters: Parameters) -> bytes:
    """Return the minutes of a namespace from `since` on: `ns`, `since`; optional `queue`."""
    sql = (
        "SELECT minute, sum(enqueued), sum(started), sum(completed), sum(failed), sum(dead), "
        "sum(wait_count), sum(wait_ms), sum(run_count), sum(run_ms) FROM queue_minutes "
        "WHERE ns = ?1 AND minute >= ?2 AND (?3 IS NULL OR queue = ?3) GROUP BY minute"
    )
    values = (parameters["ns"], parameters["since"], parameters.get("queue"))
    names = ("enqueued", "started", "completed", "failed", "dead")
    names += ("wait_count", "wait_ms", "run_count", "run_ms")
    found: list[dict[str, Any]] = []
    for minute, *sums in connection.execute(sql, values):
        found.append({"at": instant(minute * 60_000)} | dict(zip(names, sums, strict=True)))
    return encode_json({"minutes": found})
