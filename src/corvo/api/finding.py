"""Finding the jobs of a bulk operation: its filter, asked of the view page by page.

    find = ViewFinder(view.query, read_filter)
    runner = BulkRunner(engine, find)

The view answers the query `search_ids` (parameters `filter` and `page`) with `{"jobs": [[id,
state], ...], "cursor", "has_more", "partial"}`. Oldest first: jobs enqueued meanwhile come last,
and none is found twice.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.json import Decoder

from corvo.errors import RequestError
from corvo.model.ids import JOB, parse_id
from corvo.model.job import STATE_NAMES
from corvo.scheduler.bulk import Found

BUDGET_MS: Final = 5_000

# The name of a query, its parameters, and the index the view must have reached.
Ask = Callable[[str, Mapping[str, Any], int], Awaitable[bytes]]
# The JSON of a filter and a namespace, to the parameter `filter`. Raises `RequestError`.
ReadFilter = Callable[[bytes, int], Mapping[str, Any]]


class _Page(Struct):
    jobs: list[tuple[str, str]]
    cursor: str | None = None
    has_more: bool = False
    partial: bool = False


_decode: Final = Decoder(_Page).decode


class ViewFinder:
    """Implements `scheduler.bulk.Finder` over the view."""

    def __init__(self, ask: Ask, read_filter: ReadFilter) -> None:
        self._ask = ask
        self._read_filter = read_filter

    async def __call__(
        self, ns: int, filter_text: bytes, cursor: bytes, limit: int, index: int
    ) -> Found:
        """Return the next page of matches."""
        page: dict[str, Any] = {"sort": "created_at", "order": "asc", "limit": limit}
        if cursor:
            page["cursor"] = cursor.decode()
        wanted = self._read_filter(filter_text, ns)
        query = {"filter": wanted, "page": page, "budget_ms": BUDGET_MS}
        found = _decode(await self._ask("search_ids", query, index))
        if found.partial and not found.cursor:
            # Asking again would look at the same jobs for as long, and get no further. A part with
            # a cursor, even an empty one, is a page like any other.
            raise RequestError(
                f"nothing was found within {BUDGET_MS} ms",
                field="filter",
                hint="name a queue or a state as well",
            )
        ids = [parse_id(JOB, name) for name, _ in found.jobs]
        return Found(
            b"".join(job_id for job_id in ids if job_id is not None),
            bytes(STATE_NAMES.index(state) for _, state in found.jobs),
            (found.cursor or "").encode() if found.has_more else b"",
        )
