# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Search: which jobs match, one page of them in order, and how many there are.

Jobs are found in one of three ways, chosen by looking, not by guessing:

    short list   a condition with an index (tag, batch, worker, a span of time, queue and state)
                 gives at most SHORT jobs: these are checked one by one and sorted
    in order     the index of the sort order is walked until the page is full; queue, state and time
                 of creation are part of it
    whole scan   only payload conditions, and a sample says that few jobs match: payloads are read
                 in the order they lie on disk, which is faster than in order of an index

Pages go on after (sort value, id) of the last job, so jobs that come and go elsewhere do not shift
them. A time budget bounds it all; what was found until then is the answer, and says so. Walking in
order goes window by window, so that a search which found nothing in its time still knows how far it
looked, and the next page goes on there.
"""

from collections.abc import Iterator
from time import monotonic
from typing import Any, Final

import apsw
import msgspec

from corvo.model import limits
from corvo.view.budget import OVER, Budget
from corvo.view.conditions import Conditions, conditions, joined, shortcuts
from corvo.view.filters import Filter, Page, Place, parse_cursor, render_cursor
from corvo.view.jq_sql import Sql
from corvo.view.queries import Parameters, encode_json, query
from corvo.view.summaries import summaries
from corvo.view.walk import Point, Run, Walk, runs

SHORT: Final = 5_000  # candidates that are checked one by one
_SAMPLE: Final = 1_000  # payloads looked at to choose between order and scan
SAMPLE_HITS: Final = 5
WINDOW_FIRST: Final = 64  # jobs looked at before the place is written down; then ever more
WINDOW_MAX: Final = 16_384
_STUCK: Final = "name a queue, a state or a time, or sort by created_at"

Row = tuple[int, int | None, int, str]  # n, sort value, created_ms, id


class Search:
    """One filter over one connection."""

    def __init__(
        self,
        connection: apsw.Connection,
        wanted: Filter,
        budget_ms: int = limits.SEARCH_BUDGET_MS,
    ) -> None:
        self._connection = connection
        self._scan_ms = budget_ms // 2
        self._wanted = wanted
        self._conditions: Conditions = conditions(wanted)
        self._short: list[int] | None = None
        self._is_prepared = False
        self._is_walk = False
        self.is_partial = False
        # How far a search got that ran out of time: the last row, or the end of the last window.
        self.reached: Place | None = None

    def rows(self, page: Page, limit: int) -> list[Row]:
        """The next rows of a page in order; sets `is_partial` when time ran out."""
        found: list[Row] = []
        after = parse_cursor(page)
        self._is_walk = after is not None and after.is_walk
        try:
            self._prepare()
            for row in self._stream(page, after, limit):
                found.append(row)
                # Invariant: rows come in order, so every match before this one was found, too.
                self.reached = self.place(page, row)
                if len(found) >= limit:
                    break
        except OVER:
            self.is_partial = True
        return found

    def count(self) -> tuple[int, bool]:
        """How many match, and whether that is exact; counts up to a bound."""
        wanted = self._wanted
        if wanted.is_counted:
            return self._counted(), True
        count = 0
        try:
            self._prepare()
            where = self._conditions.where()
            query = f"SELECT 1 FROM {self._tables()} WHERE {where.text}"
            values = (*self._table_values(), *where.values)
            for _ in self._connection.execute(query, values):
                count += 1
                if count > limits.SEARCH_TOTAL_MAX:
                    return limits.SEARCH_TOTAL_MAX, False
        except OVER:
            return count, False
        return count, not self.is_partial

    # --- choosing ---------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Choose the way once; both page and count use it."""
        if self._is_prepared:
            return
        self._is_prepared = True
        if self._wanted.is_counted:
            return
        for shortcut in shortcuts(self._wanted):
            found = self._numbers(shortcut, SHORT if self._short is None else len(self._short))
            if found is not None:
                self._short = found
        if self._is_walk or self._short is not None or not self._conditions.heavy:
            return
        self._scan_unless_frequent()

    def _scan_unless_frequent(self) -> None:
        """Look at all payloads as they lie; within a part of the time, so that there is a rest.

        A scan that was not finished is worth nothing: what it saw is no beginning of any order, so
        a page made of it could not be gone on from. Walking in order gets somewhere.
        """
        where = joined(self._conditions.heavy)
        scan = Sql(f"SELECT p.n FROM job_payloads p WHERE {where.text}", where.values)
        try:
            with Budget(self._connection, self._scan_ms):
                if not self._is_frequent():
                    self._short = self._numbers(scan, limits.SEARCH_TOTAL_MAX)
        except OVER:
            self._is_walk = True

    def _numbers(self, query: Sql, most: int) -> list[int] | None:
        """The jobs a query names; None when there are more than `most`."""
        found: list[int] = []
        for (number,) in self._connection.execute(query.text, query.values):
            found.append(number)
            if len(found) > most:
                return None
        return found

    def _is_frequent(self) -> bool:
        """Whether a sample of the newest payloads has matches enough to fill a page by walking."""
        where = joined(self._conditions.heavy)
        query = (
            "SELECT count(*) FROM (SELECT n, payload, payload_text FROM job_payloads"
            f" ORDER BY n DESC LIMIT {_SAMPLE}) AS p WHERE {where.text}"
        )
        hits: Any = self._connection.execute(query, where.values).get
        return hits >= SAMPLE_HITS

    def _tables(self, index: str = "") -> str:
        tables = "jobs j"
        if self._short is not None:
            tables = "json_each(?) d CROSS JOIN jobs j ON j.n = d.value"
        elif index:
            tables += f" INDEXED BY {index}"
        if self._conditions.heavy:
            tables += " CROSS JOIN job_payloads p ON p.n = j.n"
        return tables

    def _table_values(self) -> tuple[Any, ...]:
        if self._short is None:
            return ()
        return (encode_json(self._short).decode(),)

    # --- rows in order ----------------------------------------------------------------------------

    def _stream(self, page: Page, after: Place | None, limit: int) -> Iterator[Row]:
        """Rows of the runs of an order, one after the other, from a place on."""
        for run in runs(page):
            if after is not None and run.is_valueless != (after.value is None):
                if run.is_valueless:
                    yield from self._run(page, run, None, limit)
                continue
            point = None
            if after is not None:
                value = after.created_ms if after.value is None else after.value
                point = (value, after.id)
            yield from self._run(page, run, point, limit)

    def _run(self, page: Page, run: Run, after: Point | None, limit: int) -> Iterator[Row]:
        walk = Walk(self._wanted, run, is_short=self._short is not None)
        if self._wanted.is_counted or not walk.index:
            # Every job of the walk is a match, or all have to be looked at before there is a first.
            yield from self._select(walk, after, None, limit)
            return
        size = WINDOW_FIRST
        while True:
            end: Any = self._execute(walk.end_of(after, size)).get
            yield from self._select(walk, after, end, limit)
            if end is None:
                return
            after = end
            size = min(size * 4, WINDOW_MAX)
            self._reach(page, run, end)

    def _select(
        self, walk: Walk, after: Point | None, until: Point | None, limit: int
    ) -> Iterator[Row]:
        tables = self._tables(walk.index)
        for n, value, created_ms, identifier, _ in self._execute(
            walk.rows(Sql(tables, self._table_values()), after, until, limit)
        ):
            yield n, value, created_ms, identifier

    def _execute(self, query: Sql) -> Any:
        return self._connection.execute(query.text, query.values)

    def _reach(self, page: Page, run: Run, end: Point) -> None:
        """Everything up to here was looked at."""
        key, identifier = end
        value = None if run.is_valueless else key
        self.reached = Place(page.sort, page.order, value, key, identifier, self._is_walk)

    def place(self, page: Page, row: Row) -> Place:
        """Where a page ends whose last job is in this row."""
        _, value, created_ms, identifier = row
        return Place(page.sort, page.order, value, created_ms, identifier, self._is_walk)

    def _counted(self) -> int:
        """The number of jobs of a queue or all, in some states or all, from the counters."""
        wanted = self._wanted
        columns = " + ".join(wanted.wanted_states or _COUNTERS)
        query = f"SELECT ifnull(sum({columns}), 0) FROM queues WHERE ns = ?"
        values: tuple[Any, ...] = (wanted.ns,)
        if wanted.queue is not None:
            query, values = f"{query} AND name = ?", (*values, wanted.queue)
        count: Any = self._connection.execute(query, values).get
        return count


_COUNTERS: Final = (
    "scheduled",
    "pending",
    "active",
    "retrying",
    "held",
    "completed",
    "dead",
    "cancelled",
)


@query("search_jobs")
def search_jobs(connection: apsw.Connection, parameters: Parameters) -> bytes:
    """`POST /jobs/search`: parameters `filter` and `page`."""
    started = monotonic()
    wanted = msgspec.convert(parameters["filter"], Filter)
    page = msgspec.convert(parameters["page"], Page)
    budget_ms = parameters.get("budget_ms", limits.SEARCH_BUDGET_MS)
    search = Search(connection, wanted, budget_ms)
    with Budget(connection, budget_ms):
        rows = search.rows(page, page.limit + 1)
    # Bounded by the size of a page, not by the budget: what was found in time is shown.
    jobs, shown = summaries(connection, rows[: page.limit])
    total, is_exact = shown, True
    # Large payloads end a page early; the rest is on the next one.
    is_cut = shown < len(rows)
    if is_cut or page.cursor or search.is_partial or wanted.is_counted:
        with Budget(connection, parameters.get("count_ms", limits.SEARCH_COUNT_BUDGET_MS)):
            total, is_exact = search.count()
    members: dict[str, Any] = {
        "jobs": jobs,
        "total": max(total, shown),
        "total_is_estimate": not is_exact,
        **_onward(search, page, rows, shown),
        "duration_ms": int((monotonic() - started) * 1_000),
    }
    return encode_json(members)


def _onward(search: Search, page: Page, rows: list[Row], shown: int) -> dict[str, Any]:
    """Say whether there is more, and where to go on."""
    is_cut = shown < len(rows)
    reached = search.place(page, rows[shown - 1]) if is_cut and shown else search.reached
    cursor = render_cursor(reached) if reached is not None else None
    is_partial = search.is_partial
    has_more = (is_cut or is_partial) and cursor is not None
    members: dict[str, Any] = {
        "cursor": cursor if has_more else None,
        "has_more": has_more,
        "partial": is_partial,
    }
    if is_partial and not has_more:
        members["hint"] = _STUCK
    return members


@query("search_ids")
def search_ids(connection: apsw.Connection, parameters: Parameters) -> bytes:
    """Identifiers and states of matches, page by page: what bulk operations walk through.

    `{"jobs": [[id, state], ...], "cursor", "has_more", "partial", "total", "total_is_estimate"}`;
    the total is there when `count` is asked for.
    """
    wanted = msgspec.convert(parameters["filter"], Filter)
    page = msgspec.convert(parameters["page"], Page)
    budget_ms = parameters.get("budget_ms", limits.SEARCH_BUDGET_MS)
    search = Search(connection, wanted, budget_ms)
    with Budget(connection, budget_ms):
        rows = search.rows(page, page.limit + 1)
    shown = rows[: page.limit]
    members: dict[str, Any] = {"jobs": _states(connection, shown)}
    if parameters.get("count"):
        with Budget(connection, budget_ms):
            total, is_exact = search.count()
        members |= {"total": total, "total_is_estimate": not is_exact}
    return encode_json(members | _onward(search, page, rows, len(shown)))


def _states(connection: apsw.Connection, rows: list[Row]) -> list[tuple[str, str]]:
    numbers = encode_json([row[0] for row in rows]).decode()
    query = "SELECT j.id, j.state FROM json_each(?) d CROSS JOIN jobs j ON j.n = d.value"
    return list(connection.execute(query, (numbers,)))
