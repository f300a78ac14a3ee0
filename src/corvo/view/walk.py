"""Walking through jobs in order: the SQL of one run along an index, whole or in windows.

A **run** is all jobs that have a value to sort by, or all that have none. With several states it is
a merge of one walk for each, because an index has the order only within one state. Each of them
starts at the cursor and stops at the end of a window, so that a page costs what it shows and what
lies between, never what is stored.
"""

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from corvo.model.job import STATE_NAMES
from corvo.view.conditions import bounds, conditions, joined
from corvo.view.filters import SORTS, Filter, Page
from corvo.view.jq_sql import Sql

# A point in a run: what it is ordered by, and the id.
Point = tuple[int, str]

_EVERY_JOB_HAS: Final = ("created_ms", "priority", "attempt")
_INDEXES: Final = {
    "scheduled_ms": "jobs_by_schedule",
    "started_ms": "jobs_by_start",
    "completed_ms": "jobs_by_completion",
    "failed_ms": "jobs_by_failure",
    "expire_ms": "jobs_by_expiry",
}


class Run(Struct, frozen=True):
    """One stretch of the order asked for."""

    column: str  # of the index that has the order
    key: str  # what rows are ordered by
    shown: str  # the sort value of a row; NULL where there is none
    condition: Sql | None
    is_valueless: bool
    is_ascending: bool


def runs(page: Page) -> list[Run]:
    """Jobs with a value first, in their order, then those without, in order of creation."""
    column = SORTS[page.sort]
    is_ascending = page.order == "asc"
    # The most important tier has the smallest number; descending begins with it.
    value = "-j.priority" if column == "priority" else f"j.{column}"
    if column in _EVERY_JOB_HAS:
        condition = None if column == "created_ms" else Sql(f"j.{column} IS NOT NULL")
        return [Run(column, value, value, condition, False, is_ascending)]
    some, none = Sql(f"j.{column} IS NOT NULL"), Sql(f"j.{column} IS NULL")
    return [
        Run(column, value, value, some, False, is_ascending),
        Run("created_ms", "j.created_ms", "NULL", none, True, is_ascending),
    ]


class Walk:
    """The SQL of one run of one filter."""

    def __init__(self, wanted: Filter, run: Run, *, is_short: bool) -> None:
        self._wanted = wanted
        self._run = run
        self._states = self._walked_states() if not is_short else []
        # The walk of each state names it; a list of states beside that costs the index its order.
        self._where = conditions(replace(wanted, states=[]) if self._states else wanted).where()
        self.index = "" if is_short else self._index_for(self._states[0] if self._states else "")

    def _walked_states(self) -> list[str]:
        """States to walk one by one and merge; none of them: one walk for all."""
        if self._run.column != "created_ms":
            return []
        wanted = self._wanted
        return wanted.wanted_states or (list(STATE_NAMES) if wanted.queue is not None else [])

    def _index_for(self, state: str) -> str:
        """The index that has the jobs in the order asked for; "" when there is none."""
        wanted, column = self._wanted, self._run.column
        if column == "created_ms":
            if wanted.queue is not None:
                return "jobs_by_queue_state"
            return "jobs_by_state" if state else "jobs_by_creation"
        if column == "settled_ms" and wanted.wanted_states == ["dead"]:
            return "jobs_dead" if wanted.queue is not None else "jobs_dead_by_time"
        return _INDEXES.get(column, "")

    def rows(self, tables: Sql, after: Point | None, until: Point | None, limit: int) -> Sql:
        """Matches behind a point, up to another one and with it: (n, value, created_ms, id, k)."""
        run = self._run
        limits = self._between(after, until)
        parts: list[Sql] = []
        for state in self._states or [""]:
            where = joined([self._where, *limits, *self._place(state)])
            text = (
                f"SELECT j.n AS n, {run.shown} AS v, j.created_ms AS c, j.id AS id, {run.key} AS k"
                f" FROM {tables.text} WHERE {where.text}"
            )
            parts.append(Sql(text, (*tables.values, *where.values)))
        return self._merged(parts, "LIMIT ?", (limit,))

    def end_of(self, after: Point | None, size: int) -> Sql:
        """The last of so many jobs behind a point, matches or not: (key, id). Reads the index."""
        run, wanted = self._run, self._wanted
        place = [Sql("j.ns = ?", (wanted.ns,)), *bounds(wanted, run.column)]
        if wanted.queue is not None and "queue" in self.index:
            place.append(Sql("j.queue = ?", (wanted.queue,)))
        parts: list[Sql] = []
        for state in self._states or [""]:
            where = joined([*place, *self._between(after, None), *self._place(state)])
            tables = f"jobs j INDEXED BY {self.index}"
            text = f"SELECT {run.key} AS k, j.id AS id FROM {tables} WHERE {where.text}"
            parts.append(Sql(text, where.values))
        return self._merged(parts, "LIMIT 1 OFFSET ?", (size - 1,))

    def _place(self, state: str) -> list[Sql]:
        found: list[Sql] = []
        if state:
            found.append(Sql("j.state = ?", (state,)))
        if self._run.condition is not None:
            found.append(self._run.condition)
        if self.index.startswith("jobs_dead"):
            # A partial index is only used when its condition stands in the query as it is.
            found.append(Sql("j.state = 'dead'"))
        return found

    def _between(self, after: Point | None, until: Point | None) -> list[Sql]:
        run = self._run
        found: list[Sql] = []
        if after is not None:
            found.append(Sql(f"({run.key}, j.id) {'>' if run.is_ascending else '<'} (?, ?)", after))
        if until is not None:
            sign = "<=" if run.is_ascending else ">="
            found.append(Sql(f"({run.key}, j.id) {sign} (?, ?)", until))
        return found

    def _merged(self, parts: list[Sql], tail: str, more: tuple[Any, ...]) -> Sql:
        direction = "ASC" if self._run.is_ascending else "DESC"
        values = tuple(value for part in parts for value in part.values)
        text = " UNION ALL ".join(part.text for part in parts)
        return Sql(f"{text} ORDER BY k {direction}, id {direction} {tail}", (*values, *more))
