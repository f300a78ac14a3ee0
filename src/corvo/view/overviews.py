# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Overviews: errors of dead jobs by kind, batches, what takes how much space."""

from typing import Any, Final

import apsw
import msgspec

from corvo.model import limits
from corvo.view.budget import OVER, Budget
from corvo.view.filters import Page, Place, parse_cursor, render_cursor
from corvo.view.instants import instant, maybe_instant
from corvo.view.queries import Parameters, encode_json, query
from corvo.view.summaries import document

_QUEUES_SHOWN: Final = 20

_GROUPS: Final = """
SELECT error_fingerprint, CASE WHEN error_fingerprint IS NULL THEN dead_reason END AS reason,
       count(*) AS jobs, min(settled_ms), max(settled_ms), last_error, id,
       json_group_array(DISTINCT queue)
FROM jobs WHERE ns = ? AND state = 'dead' {more}
GROUP BY 1, 2 ORDER BY jobs DESC, 5 DESC LIMIT ?
"""


@query("dead_groups")
def dead_groups(connection: apsw.Connection, parameters: Parameters) -> bytes:
    """`GET /dead/groups`: `ns`, `limit`; optional `queue`.

    Dead jobs without an error (rejected, expired, a dependency failed) are grouped by the reason.
    The error and the job shown are those of the job that died last.
    """
    queue, limit = parameters.get("queue"), parameters["limit"]
    more, values = ("AND queue = ?", (queue,)) if queue is not None else ("", ())
    groups: list[dict[str, Any]] = []
    is_partial = False
    try:
        with Budget(connection, parameters.get("budget_ms", limits.SEARCH_BUDGET_MS)):
            rows = connection.execute(
                _GROUPS.format(more=more), (parameters["ns"], *values, limit + 1)
            )
            for row in rows:
                groups.append(_group(row))
    except OVER:
        is_partial = True
    members = {
        "groups": groups[:limit],
        "has_more": len(groups) > limit,
        "partial": is_partial,
    }
    return encode_json(members)


def _group(row: tuple[Any, ...]) -> dict[str, Any]:
    fingerprint, reason, count, first_ms, last_ms, error, identifier, queues = row
    names: list[str] = sorted(msgspec.json.decode(queues))
    return {
        "error_fingerprint": fingerprint,
        "dead_reason": reason,
        "count": count,
        "error": error,
        "queues": names[:_QUEUES_SHOWN],
        "queues_count": len(names),
        "first_at": maybe_instant(first_ms),
        "last_at": maybe_instant(last_ms),
        "job_id": identifier,
    }


@query("batches")
def batches(connection: apsw.Connection, parameters: Parameters) -> bytes:
    """`GET /batches`: `ns`, `page`; optional `is_open`. The newest first."""
    page = msgspec.convert(parameters["page"], Page)
    after = parse_cursor(page)
    sign, direction = (">", "ASC") if page.order == "asc" else ("<", "DESC")
    where, values = "ns = ?", [parameters["ns"]]
    if parameters.get("is_open") is not None:
        where += " AND finished_ms IS NULL" if parameters["is_open"] else " AND finished_ms > 0"
    if after is not None:
        where, values = f"{where} AND (created_ms, id) {sign} (?, ?)", [*values, after.value]
        values.append(after.id)
    text = (
        "SELECT id, total, pending, succeeded, failed, cancelled, callback_queue, callback_payload,"
        " callback_job_id, created_ms, finished_ms FROM batches INDEXED BY batches_by_creation"
        f" WHERE {where} ORDER BY created_ms {direction}, id {direction} LIMIT ?"
    )
    rows = list(connection.execute(text, (*values, page.limit + 1)))
    shown = rows[: page.limit]
    has_more = len(rows) > page.limit
    cursor = None
    if has_more:
        last = shown[-1]
        cursor = render_cursor(Place(page.sort, page.order, last[9], last[9], last[0]))
    members = {"batches": [_batch(row) for row in shown], "cursor": cursor, "has_more": has_more}
    return encode_json(members)


def _batch(row: tuple[Any, ...]) -> dict[str, Any]:
    identifier, total, pending, succeeded, failed, cancelled, *rest = row
    queue, payload, job_id, created_ms, finished_ms = rest
    return {
        "id": identifier,
        "total": total,
        "pending": pending,
        "succeeded": succeeded,
        "failed": failed,
        "cancelled": cancelled,
        "callback_queue": queue,
        "callback_payload": document(payload),
        "callback_job_id": job_id,
        "created_at": instant(created_ms),
        "finished_at": maybe_instant(finished_ms),
    }


@query("storage")
def storage(connection: apsw.Connection, parameters: Parameters) -> bytes:
    """`GET /stats/storage`: `ns`. Counts and bytes by queue, the largest first."""
    names = ("queue", "jobs", "payload_bytes", "result_bytes", "checkpoint_bytes", "errors")
    text = f"SELECT {', '.join(names)} FROM queue_storage WHERE ns = ?"
    rows = connection.execute(text, (parameters["ns"],))
    queues: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in rows]
    queues.sort(key=lambda queue: (-queue["payload_bytes"] - queue["result_bytes"], queue["queue"]))
    totals = {name: sum(queue[name] for queue in queues) for name in names[1:]}
    pages = connection.pragma("page_count")
    members = {
        "queues": queues,
        "totals": totals,
        "view_bytes": pages * connection.pragma("page_size"),
        "partial": False,
    }
    return encode_json(members)
