"""How long reads of the view take, over a projection of many jobs built directly in SQLite.

Each figure is the best of a few runs of the query as the view process runs it: SQLite warm, JSON
made. The socket between the processes and HTTP come on top; they do not depend on the number of
jobs.
"""

import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import msgspec

from bench.harness import Figure, Scale, check
from corvo.view import answers, schema
from corvo.view.filters import Filter, Page, parameters

RUNS = 5
STATES = ("pending", "completed", "dead", "active")
WEIGHTS = (50, 40, 5, 5)
QUEUES = 10
START_MS = 1_700_000_000_000
_ALL_STATES = ("scheduled", "pending", "active", "retrying", "held")
_ALL_STATES += ("completed", "dead", "cancelled")

JQ = {
    "jq field": '.template == "welcome"',
    "jq number": ".amount > 998",
    "jq contains": '.labels | contains("vip")',
    "jq prefix": '.to | startswith("user99")',
    "jq length": ".items | length > 5",
    "jq nothing matches": ".missing.deep == 1",
}


def search(scale: Scale) -> list[Figure]:
    """Filters over 100,000 jobs, first pages over a million."""
    small, large = (300, 1_000) if scale.is_quick else (100_000, 1_000_000)
    with tempfile.TemporaryDirectory() as directory:
        figures = _filters(Path(directory, "small.sqlite"), small, scale)
        figures += _first_pages(Path(directory, "large.sqlite"), large, scale)
    return figures


def _filters(path: Path, count: int, scale: Scale) -> list[Figure]:
    view = _View(build(path, count), count, scale)
    view.search("queue and state", 5, queue="q3", states=["pending"])
    for name, expression in JQ.items():
        view.search(name, 50, payload_jq=expression)
    view.search("part of a payload", 100, payload_contains=f"user{count - 7}@")
    view.search("part of a payload, across fields", 100, payload_contains=f'"to":"user{count - 7}@')
    view.search("part of an error", 100, error_contains="nobody at")
    view.search("tag", None, tags={"tenant": "t7"})
    view.ask("full text", None, "fulltext", {"ns": 0, "q": f"user{count - 7}", "limit": 50})
    view.ask("dead groups", None, "dead_groups", {"ns": 0, "limit": 50})
    view.ask("storage", None, "storage", {"ns": 0})
    return view.figures


def _first_pages(path: Path, count: int, scale: Scale) -> list[Figure]:
    view = _View(build(path, count), count, scale)
    view.search("queue and state", 20, queue="q3", states=["pending"])
    view.search("two states", 20, states=["pending", "dead"])
    view.search("two states of a queue", 20, states=["pending", "dead"], queue="q3")
    view.search("a queue in all its states", 20, queue="q3")
    view.ask("storage", 20, "storage", {"ns": 0})
    view.ask("graph of a job", 20, "job_graph", {"ns": 0, "job_id": _id(count // 2)})
    view.search("dead letter", 20, "finished_at", states=["dead"])
    view.search("dead letter of a queue", 20, "finished_at", states=["dead"], queue="q3")
    job = {"ns": 0, "job_id": _id(count // 2)}
    view.ask("timeline", 20, "job_events", job)
    view.search("tag", None, tags={"tenant": "t7"})
    view.search("jq, few matches", None, payload_jq=JQ["jq field"])
    return view.figures


class _View:
    def __init__(self, connection: apsw.Connection, count: int, scale: Scale) -> None:
        self._connection = connection
        self._count = count
        self._scale = scale
        self.figures: list[Figure] = []

    def search(
        self, name: str, target: float | None, sort: str = "created_at", **fields: Any
    ) -> None:
        wanted = parameters(Filter(ns=0, **fields))
        self.ask(
            name, target, "search_jobs", {"filter": wanted, "page": parameters(Page(sort=sort))}
        )

    def ask(self, name: str, target: float | None, query: str, values: dict[str, Any]) -> None:
        """Time a query; the answer must be whole."""
        took: list[tuple[float, float]] = []
        body = b""
        for _ in range(1 if self._scale.is_quick else RUNS):
            started, busy = time.perf_counter(), time.thread_time()
            body = answers.QUERIES[query](self._connection, values)
            busy = (time.thread_time() - busy) * 1_000
            took.append(((time.perf_counter() - started) * 1_000, busy))
        answer = msgspec.json.decode(body)
        check(not answer.get("partial"), f"{name}: the answer is only a part")
        bound = None if self._scale.is_quick else target
        text = f"{name}, {self._count:,} jobs"
        wall, _ = min(took)
        # On a machine with neighbours the time of the processor says more than that of the clock.
        note = f"{min(busy for _, busy in took):.1f} ms of processor"
        self.figures.append(Figure(text, wall, "ms", bound, is_ceiling=True, note=note))


def build(path: Path, count: int) -> apsw.Connection:
    """Write a projection of many jobs, and open it as the view does."""
    writer = schema.open_writer(path)
    later = schema.create_without_indexes(writer)
    schema.run(writer, "PRAGMA synchronous = OFF")
    with writer:
        for table, width, rows in _tables(count):
            marks = ", ".join("?" * width)
            if table.startswith("job_payloads"):
                marks = "?, ?, jsonb(?), ?, ?"
            writer.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        for statement in later:
            schema.run(writer, statement)
        sums = ", ".join(f"sum(state = '{state}')" for state in _ALL_STATES)
        names = ", ".join(_ALL_STATES)
        rest = ("waiting", "total_enqueued", "total_started", "total_completed", "total_failed")
        schema.run(
            writer,
            f"INSERT INTO queues (ns, name, created_ms, paused, draining, settings, {names},"
            f" {', '.join(rest)}, total_dead) SELECT ns, queue, 0, 0, 0, '{{}}', {sums},"
            " 0, 0, 0, 0, 0, 0 FROM jobs GROUP BY ns, queue",
        )
        schema.run(
            writer,
            "INSERT INTO queue_storage SELECT ns, queue, count(*), sum(bytes), 0, 0,"
            " sum(error_count) FROM jobs JOIN job_payloads USING (n) GROUP BY ns, queue",
        )
    writer.close()
    return schema.open_reader(path)


def _id(number: int) -> str:
    return f"job_{number:026d}"


def _tables(count: int) -> Iterator[tuple[str, int, Iterator[tuple[Any, ...]]]]:
    """Table with its columns, number of values, rows."""
    numbers = range(1, count + 1)
    chance = random.Random(1)
    states = chance.choices(STATES, WEIGHTS, k=count)
    jobs = "jobs (n, id, ns, queue, state, priority, attempt, max_retries, run, created_ms,"
    jobs += " settled_ms, error_count, last_error, error_fingerprint)"
    yield jobs, 14, (_job(n, states[n - 1]) for n in numbers)
    payloads = "job_payloads (n, payload_text, payload, options, bytes)"
    yield payloads, 5, ((n, text, text, "{}", len(text)) for n in numbers for text in (_text(n),))
    yield "job_tags (n, key, value)", 3, ((n, "tenant", f"t{n % 100}") for n in numbers)
    dead = [n for n in numbers if states[n - 1] == "dead"]
    errors = "job_errors (n, number, attempt, run, error, at_ms, started_ms, duration_ms)"
    yield errors, 8, ((n, 0, 1, 0, f"timeout {n % 7} of kind", 0, 0, 0) for n in dead)
    events = "job_events (seq, position, at_ms, type, ns, job_id, queue, attempt)"
    yield events, 8, ((n, n, START_MS + n, "job.enqueued", 0, _id(n), "q", 0) for n in numbers)
    text = "jobs_text (rowid, id, queue, payload, tags)"
    yield text, 5, ((n, _id(n), f"q{n % QUEUES}", _text(n), "") for n in numbers)


def _job(n: int, state: str) -> tuple[Any, ...]:
    is_dead = state == "dead"
    error = (1, "timeout", f"print{n % 7}") if is_dead else (0, None, None)
    settled_ms = START_MS + n * 10 + 5 if is_dead or state == "completed" else None
    place = (n, _id(n), 0, f"q{n % QUEUES}", state, 2, 0, 3, 0, START_MS + n * 10)
    return (*place, settled_ms, *error)


def _text(n: int) -> str:
    template = "welcome" if n % 500 == 0 else "other"
    members = {"to": f"user{n}@example.com", "template": template, "amount": n % 1_000}
    return json.dumps(members | {"items": [1, 2, 3], "labels": ["a", "b"]}, separators=(",", ":"))
