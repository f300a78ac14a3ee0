# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Rows of the view made by hand: jobs as plain dictionaries, in SQLite and for a naive filter."""

import json
from typing import Any

import apsw

from corvo.view import schema
from corvo.view.fingerprint import fingerprint

STATES = ("scheduled", "pending", "active", "retrying", "held", "completed", "dead", "cancelled")
TIMES = ("scheduled_ms", "started_ms", "completed_ms", "failed_ms", "settled_ms", "expire_ms")
PLAIN = (
    *("ns", "queue", "state", "priority", "attempt", "max_retries", "run", "created_ms"),
    *("worker_id", "unique_key", "batch_id", "parent_id", "chain_id", "chain_step", "group_name"),
    *("hold_reason", "dead_reason", "progress", "cloned_from"),
    *TIMES,
)


def make_job(number: int, **fields: Any) -> dict[str, Any]:
    """A job of the view; everything has a default."""
    job: dict[str, Any] = dict.fromkeys(PLAIN)
    job |= {
        "n": number,
        "id": f"job_{number:026d}",
        "ns": 0,
        "queue": "q",
        "state": "pending",
        "priority": 2,
        "attempt": 0,
        "max_retries": 3,
        "run": 0,
        "created_ms": 1_700_000_000_000 + number,
        "payload": "{}",
        "options": "{}",
        "tags": {},
        "errors": [],
        "workers": [],
    }
    return job | fields


def open_memory(jobs: list[dict[str, Any]]) -> apsw.Connection:
    """A projection in memory that holds these jobs."""
    connection = apsw.Connection(":memory:")
    schema.create(connection)
    insert(connection, jobs)
    return connection


def insert(connection: apsw.Connection, jobs: list[dict[str, Any]]) -> None:
    """Add jobs, and count them in their queues."""
    names = ("n", "id", *PLAIN, "error_count", "last_error", "error_fingerprint", "tags")
    marks = ", ".join("?" * (len(names) - 1))
    text = f"INSERT INTO jobs ({', '.join(names)}) VALUES ({marks}, jsonb(?))"
    with connection:
        for job in jobs:
            errors = job["errors"]
            last = errors[-1] if errors else None
            print_of = fingerprint(last) if last is not None else None
            tags = json.dumps(job["tags"]) if job["tags"] else None
            values = [job["n"], job["id"], *(job[name] for name in PLAIN)]
            connection.execute(text, (*values, len(errors), last, print_of, tags))
            _insert_more(connection, job)
        _count(connection)


def _insert_more(connection: apsw.Connection, job: dict[str, Any]) -> None:
    n, payload = job["n"], job["payload"]
    connection.execute(
        "INSERT INTO job_payloads VALUES (?, ?, jsonb(?), ?, ?)",
        (n, payload, payload, job["options"], len(payload.encode())),
    )
    for key, value in job["tags"].items():
        connection.execute("INSERT INTO job_tags VALUES (?, ?, ?)", (n, key, value))
    for worker in set(job["workers"]) | ({job["worker_id"]} - {None}):
        connection.execute("INSERT INTO job_workers VALUES (?, ?)", (n, worker))
    for number, error in enumerate(job["errors"]):
        connection.execute(
            "INSERT INTO job_errors VALUES (?, ?, 1, 0, ?, NULL, 0, 0, NULL, 0)", (n, number, error)
        )
    tags = " ".join(f"{key} {value}" for key, value in job["tags"].items())
    words = (n, job["id"], job["queue"], payload, tags, " ".join(job["errors"]))
    connection.execute(
        "INSERT INTO jobs_text (rowid, id, queue, payload, tags, error) VALUES (?, ?, ?, ?, ?, ?)",
        words,
    )


def _count(connection: apsw.Connection) -> None:
    sums = ", ".join(f"sum(state = '{state}')" for state in STATES)
    names = ", ".join(STATES)
    rest = ("waiting", "total_enqueued", "total_started", "total_completed", "total_failed")
    more = ", ".join((*rest, "total_dead"))
    connection.execute("DELETE FROM queues")
    connection.execute(
        f"INSERT INTO queues (ns, name, created_ms, paused, draining, settings, {names}, {more})"
        f" SELECT ns, queue, 0, 0, 0, '{{}}', {sums}, 0, 0, 0, 0, 0, 0 FROM jobs GROUP BY ns, queue"
    )
