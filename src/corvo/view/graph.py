# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""What a job is tied to: its chain, its batch, what it waits for and what waits for it."""

from typing import Any, Final

import apsw
import msgspec

from corvo.errors import RequestError
from corvo.model import limits
from corvo.view.budget import OVER, Budget
from corvo.view.instants import instant, maybe_instant
from corvo.view.queries import Parameters, encode_json, query

_COLUMNS: Final = (
    "j.id, j.queue, j.state, j.created_ms, j.started_ms, j.settled_ms, j.attempt, j.chain_id,"
    " j.chain_step, j.batch_id, j.parent_id, j.cloned_from, p.options -> 'depends_on'"
)
_TABLES: Final = "jobs j LEFT JOIN job_payloads p ON p.n = j.n"


class _Graph:
    def __init__(self, connection: apsw.Connection, ns: int) -> None:
        self._connection = connection
        self._ns = ns
        self.jobs: dict[str, dict[str, Any]] = {}
        self.edges: dict[tuple[str, str, str], None] = {}
        self.is_whole = True

    def add(self, where: str, *values: Any) -> list[dict[str, Any]]:
        """Add the jobs of a condition; returns those that were new."""
        room = limits.GRAPH_JOBS_MAX - len(self.jobs)
        # Cost: with rows given by number the planner prefers to walk the whole namespace; the plus
        # sign takes the choice away.
        ns = "+j.ns" if where.startswith("j.n ") else "j.ns"
        text = f"SELECT {_COLUMNS} FROM {_TABLES} WHERE {ns} = ? AND {where} ORDER BY j.id LIMIT ?"
        rows = list(self._connection.execute(text, (self._ns, *values, room + len(self.jobs) + 1)))
        new: list[dict[str, Any]] = []
        for row in rows:
            if row[0] in self.jobs:
                continue
            if len(self.jobs) >= limits.GRAPH_JOBS_MAX:
                self.is_whole = False
                break
            new.append(self._add_row(row))
        return new

    def _add_row(self, row: tuple[Any, ...]) -> dict[str, Any]:
        identifier, queue, state, created_ms, started_ms, settled_ms, attempt, *ties = row
        chain_id, chain_step, batch_id, parent_id, cloned_from, depends_on = ties
        job = {
            "id": identifier,
            "queue": queue,
            "state": state,
            "attempt": attempt,
            "created_at": instant(created_ms),
            "started_at": maybe_instant(started_ms),
            "finished_at": maybe_instant(settled_ms),
            "chain_id": chain_id,
            "chain_step": chain_step,
            "batch_id": batch_id,
            "parent_id": parent_id,
            "cloned_from": cloned_from,
            "depends_on": msgspec.json.decode(depends_on) if depends_on else [],
        }
        self.jobs[identifier] = job
        return job

    def follow(self, start: dict[str, Any]) -> None:
        """Add everything tied to a job, wave by wave upwards, one step downwards."""
        if start["chain_id"] is not None:
            self.add("j.chain_id = ?", start["chain_id"])
        if start["batch_id"] is not None:
            self.add("j.batch_id = ?", start["batch_id"])
        wave = list(self.jobs.values())
        while wave and self.is_whole:
            wanted = {name for job in wave for name in _above(job) if name not in self.jobs}
            if not wanted:
                break
            wave = self.add(
                "j.id IN (SELECT value FROM json_each(?))", encode_json(sorted(wanted)).decode()
            )
        self.add("j.parent_id = ?", start["id"])
        waiting = "SELECT n FROM job_dependencies WHERE parent_id = ?"
        self.add(f"j.n IN ({waiting})", start["id"])

    def connect(self) -> list[dict[str, str]]:
        """The edges between the jobs that are here."""
        edges: list[dict[str, str]] = []
        for job in self.jobs.values():
            ties = [("dependency", name) for name in job["depends_on"]]
            ties += [("parent", job["parent_id"]), ("clone", job["cloned_from"])]
            for kind, name in ties:
                if name in self.jobs:
                    edges.append({"from": name, "to": job["id"], "type": kind})
        edges += self._chain_edges()
        return edges

    def _chain_edges(self) -> list[dict[str, str]]:
        chains: dict[str, list[dict[str, Any]]] = {}
        for job in self.jobs.values():
            if job["chain_id"] is not None:
                chains.setdefault(job["chain_id"], []).append(job)
        edges: list[dict[str, str]] = []
        for members in chains.values():
            # Handlers (negative steps) come after the last step there was.
            last = max(job["chain_step"] for job in members)
            for job in members:
                step = job["chain_step"]
                before = last if step < 0 else step - 1
                for other in members:
                    if other["chain_step"] == before and other is not job:
                        edges.append({"from": other["id"], "to": job["id"], "type": "chain"})
        return edges


def _above(job: dict[str, Any]) -> list[str]:
    names = [*job["depends_on"], job["parent_id"], job["cloned_from"]]
    return [name for name in names if name is not None]


@query("job_graph")
def job_graph(connection: apsw.Connection, parameters: Parameters) -> bytes:
    """`GET /jobs/{id}/graph`: `ns`, `job_id`."""
    graph = _Graph(connection, parameters["ns"])
    start = graph.add("j.id = ?", parameters["job_id"])
    if not start:
        raise RequestError("there is no such job", code="NOT_FOUND", status=404)
    is_partial = False
    try:
        with Budget(connection, parameters.get("budget_ms", limits.SEARCH_BUDGET_MS)):
            graph.follow(start[0])
    except OVER:
        is_partial = True
    members = {
        "job_id": parameters["job_id"],
        "chain_id": start[0]["chain_id"],
        "batch_id": start[0]["batch_id"],
        "jobs": list(graph.jobs.values()),
        "edges": graph.connect(),
        "truncated": not graph.is_whole,
        "partial": is_partial,
    }
    return encode_json(members)
