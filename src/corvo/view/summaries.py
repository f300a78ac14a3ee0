# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Rows of the view as the JSON a client reads: summaries of jobs."""

from typing import Any, Final

import apsw
import msgspec
from msgspec import Raw

from corvo.model import limits
from corvo.model.job import TIER_NAMES
from corvo.view.instants import maybe_instant

_QUERY: Final = """
SELECT j.id, j.queue, j.state, p.payload_text, j.priority, j.attempt, j.max_retries, j.run,
       j.created_ms, j.scheduled_ms, j.started_ms, j.completed_ms, j.failed_ms, j.settled_ms,
       j.expire_ms, j.worker_id, json(j.tags), j.unique_key, j.batch_id, j.parent_id, j.chain_id,
       j.chain_step, j.group_name, j.last_error, j.error_count, j.error_fingerprint,
       j.hold_reason, j.dead_reason, j.progress
FROM json_each(?) d CROSS JOIN jobs j ON j.n = d.value LEFT JOIN job_payloads p ON p.n = j.n
"""
_NAMES: Final = (
    "id", "queue", "state", "payload", "priority", "attempt", "max_retries", "run",
    "created_at", "scheduled_at", "started_at", "completed_at", "failed_at", "finished_at",
    "expire_at", "worker_id", "tags", "unique_key", "batch_id", "parent_id", "chain_id",
    "chain_step", "group", "last_error", "error_count", "error_fingerprint",
    "hold_reason", "dead_reason", "progress",
)  # fmt: skip
SUMMARY_FIELDS: Final = _NAMES


def summaries(connection: apsw.Connection, rows: list[Any]) -> tuple[list[dict[str, Any]], int]:
    """Summaries of jobs given by rows that begin with `n`, in their order.

    Ends early when payloads are large: the second value says how many there are.
    """
    numbers = msgspec.json.encode([row[0] for row in rows]).decode()
    found: list[dict[str, Any]] = []
    size = 0
    for row in connection.execute(_QUERY, (numbers,)):
        size += len(row[3] or "")
        if found and size > limits.SEARCH_PAGE_BYTES_MAX:
            break
        found.append(summary(row))
    return found, len(found)


def summary(row: tuple[Any, ...]) -> dict[str, Any]:
    """One row of the query above as an object."""
    members: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
    for name, value in members.items():
        if name.endswith("_at"):
            members[name] = maybe_instant(value)
    members["priority"] = TIER_NAMES[members["priority"]]
    members["payload"] = document(members["payload"])
    members["tags"] = document(members["tags"]) or {}
    members["progress"] = document(members["progress"])
    return members


def document(text: str | None) -> Raw | None:
    """Embed JSON text as it is; None becomes null."""
    return None if text is None else Raw(text.encode())
