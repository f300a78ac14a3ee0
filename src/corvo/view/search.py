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
them. A time budget bounds it all; what was found until then is the answer, and says so.
"""

from collections.abc import Iterator
from time import monotonic
from typing import Any, Final

import apsw
import msgspec

from corvo.model import limits
from corvo.view.budget import OVER, Budget
from corvo.view.conditions import Conditions, conditions, joined, shortcuts
from corvo.view.filters import SORTS, Filter, Page, Place, parse_cursor, render_cursor
from corvo.view.jq_sql import Sql
from corvo.view.queries import Parameters, encode_json, query
from corvo.view.summaries import summaries

SHORT: Final = 5_000  # candidates that are checked one by one
_SAMPLE: Final = 1_000  # payloads looked at to choose between order and scan
SAMPLE_HITS: Final = 5

Row = tuple[int, int | None, int, str]  # n, sort value, created_ms, id


class Search:
    """One filter over one connection."""

    def __init__(self, connection: apsw.Connection, wanted: Filter) -> None:
        self._connection = connection
        self._wanted = wanted
        self._conditions: Conditions = conditions(wanted)
        self._short: list[int] | None = None
        self._is_prepared = False
        self.is_partial = False

    def rows(self, page: Page, limit: int) -> list[Row]:
        """The next rows of a page in order; sets `is_partial` when time ran out."""
        found: list[Row] = []
        try:
            self._prepare()
            for row in self._stream(page, parse_cursor(page), limit):
                found.append(row)
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
        if self._short is None and self._conditions.heavy and not self._is_frequent():
            where = joined(self._conditions.heavy)
            scan = Sql(f"SELECT p.n FROM job_payloads p WHERE {where.text}", where.values)
            self._short = self._numbers(scan, limits.SEARCH_TOTAL_MAX, keeps=True)

    def _numbers(self, query: Sql, most: int, *, keeps: bool = False) -> list[int] | None:
        """The jobs a query names; None when there are more than `most`."""
        found: list[int] = []
        try:
            for (number,) in self._connection.execute(query.text, query.values):
                found.append(number)
                if len(found) > most:
                    return None
        except OVER:
            if not keeps:
                raise
            # What was seen of the payloads so far is searched; the answer says that it is a part.
            self.is_partial = True
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
        """Rows with a value first, in their order, then those without, in order of creation."""
        column = SORTS[page.sort]
        if after is None or after.value is not None:
            yield from self._ordered(column, page, after, limit)
        if column in ("created_ms", "priority", "attempt"):
            return
        if after is not None and after.value is not None:
            after = None
        yield from self._ordered(column, page, after, limit, is_valueless=True)

    def _ordered(
        self,
        column: str,
        page: Page,
        after: Place | None,
        limit: int,
        *,
        is_valueless: bool = False,
    ) -> Iterator[Row]:
        sign, direction = (">", "ASC") if page.order == "asc" else ("<", "DESC")
        # The most important tier has the smallest number; descending begins with it.
        value = "-j.priority" if column == "priority" else f"j.{column}"
        key = "j.created_ms" if is_valueless else value
        extra: list[Sql] = []
        if is_valueless:
            extra.append(Sql(f"j.{column} IS NULL"))
        elif column != "created_ms":
            extra.append(Sql(f"j.{column} IS NOT NULL"))
        if after is not None:
            at = after.created_ms if is_valueless else after.value
            extra.append(Sql(f"({key}, j.id) {sign} (?, ?)", (at, after.id)))
        shown = "NULL" if is_valueless else value
        parts: list[Sql] = []
        for states in self._branches(column, is_valueless=is_valueless):
            parts.append(self._branch(column, key, shown, extra, states, is_valueless=is_valueless))
        text = " UNION ALL ".join(part.text for part in parts)
        values = tuple(value for part in parts for value in part.values)
        query = f"{text} ORDER BY k {direction}, id {direction} LIMIT ?"
        for n, shown_value, created_ms, identifier, _ in self._connection.execute(
            query, (*values, limit)
        ):
            yield n, shown_value, created_ms, identifier

    def _branches(self, column: str, *, is_valueless: bool) -> list[str]:
        """States to walk one by one, so that each walk is in order; [""] is one walk for all."""
        states = self._wanted.wanted_states
        if self._short is None and (column == "created_ms" or is_valueless):
            return states or [""]
        return [""]

    def _branch(
        self,
        column: str,
        key: str,
        shown: str,
        extra: list[Sql],
        state: str,
        *,
        is_valueless: bool,
    ) -> Sql:
        if state:
            extra = [*extra, Sql("j.state = ?", (state,))]
        by = "created_ms" if is_valueless else column
        index = "" if self._short is not None else self._index(by, state)
        where = joined([self._conditions.where(), *extra])
        if index.startswith("jobs_dead"):
            # A partial index is only used when its condition stands in the query as it is.
            where = Sql(f"j.state = 'dead' AND {where.text}", where.values)
        return Sql(
            f"SELECT j.n AS n, {shown} AS v, j.created_ms AS c, j.id AS id, {key} AS k"
            f" FROM {self._tables(index)} WHERE {where.text}",
            (*self._table_values(), *where.values),
        )

    def _index(self, column: str, state: str) -> str:
        """The index that has the jobs in the order asked for."""
        wanted = self._wanted
        if column == "created_ms":
            if wanted.queue is not None:
                return "jobs_by_queue_state" if state else "jobs_by_queue"
            return "jobs_by_state" if state else "jobs_by_creation"
        if column == "settled_ms":
            if wanted.wanted_states == ["dead"]:
                return "jobs_dead" if wanted.queue is not None else "jobs_dead_by_time"
            return ""
        return {
            "scheduled_ms": "jobs_by_schedule",
            "started_ms": "jobs_by_start",
            "completed_ms": "jobs_by_completion",
            "failed_ms": "jobs_by_failure",
            "expire_ms": "jobs_by_expiry",
        }.get(column, "")

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
    search = Search(connection, wanted)
    with Budget(connection, parameters.get("budget_ms", limits.SEARCH_BUDGET_MS)):
        rows = search.rows(page, page.limit + 1)
        has_more = len(rows) > page.limit
        jobs, shown = summaries(connection, rows[: page.limit])
    # Large payloads end a page early; the rest is on the next one.
    has_more = has_more or shown < min(len(rows), page.limit)
    total, is_exact = shown, True
    if has_more or page.cursor or search.is_partial or wanted.is_counted:
        with Budget(connection, parameters.get("count_ms", limits.SEARCH_COUNT_BUDGET_MS)):
            total, is_exact = search.count()
    last = _place(page, rows[shown - 1]) if shown else None
    cursor = page.cursor if last is None else render_cursor(last)
    is_partial = search.is_partial
    members = {
        "jobs": jobs,
        "total": max(total, shown),
        "total_is_estimate": not is_exact,
        "cursor": cursor if has_more or is_partial else None,
        "has_more": has_more or is_partial,
        "partial": is_partial,
        "duration_ms": int((monotonic() - started) * 1_000),
    }
    return encode_json(members)


@query("search_ids")
def search_ids(connection: apsw.Connection, parameters: Parameters) -> bytes:
    """Identifiers and states of matches, page by page: what bulk operations walk through.

    `{"jobs": [[id, state], ...], "cursor", "has_more", "partial", "total", "total_is_estimate"}`;
    the total is there when `count` is asked for.
    """
    wanted = msgspec.convert(parameters["filter"], Filter)
    page = msgspec.convert(parameters["page"], Page)
    search = Search(connection, wanted)
    members: dict[str, Any] = {}
    with Budget(connection, parameters.get("budget_ms", limits.SEARCH_BUDGET_MS)):
        rows = search.rows(page, page.limit + 1)
        shown = rows[: page.limit]
        members["jobs"] = _states(connection, shown)
    if parameters.get("count"):
        with Budget(connection, parameters.get("budget_ms", limits.SEARCH_BUDGET_MS)):
            total, is_exact = search.count()
        members |= {"total": total, "total_is_estimate": not is_exact}
    has_more = len(rows) > page.limit or search.is_partial
    cursor = render_cursor(_place(page, shown[-1])) if shown else page.cursor
    members |= {"cursor": cursor if has_more else None, "has_more": has_more}
    return encode_json(members | {"partial": search.is_partial})


def _states(connection: apsw.Connection, rows: list[Row]) -> list[tuple[str, str]]:
    numbers = encode_json([row[0] for row in rows]).decode()
    query = "SELECT j.id, j.state FROM json_each(?) d CROSS JOIN jobs j ON j.n = d.value"
    return list(connection.execute(query, (numbers,)))


def _place(page: Page, row: Row) -> Place:
    _, value, created_ms, identifier = row
    return Place(page.sort, page.order, value, created_ms, identifier)
