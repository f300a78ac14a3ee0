"""Routes answered by the view: search, dead letter, full text, graph, batches, storage.

The view makes the JSON; it goes out as it comes. Arguments are checked here, so that a mistake is
answered also while the view is down.
"""

from typing import TYPE_CHECKING, Any, Final

from corvo.api.decode import Reader
from corvo.api.filters import SearchRequest, filter_of, page_of, states_of
from corvo.api.routing import Answer, Call, Table, not_found
from corvo.api.values import check_note
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.ids import JOB, parse_id
from corvo.view.filters import Filter, parameters

if TYPE_CHECKING:
    from corvo.view.client import ViewClient

_PREFIX: Final = "/api/v1"
_SEARCH: Final = Reader(SearchRequest)


class SearchRoutes:
    """The operations that read the view."""

    def __init__(self, view: "ViewClient") -> None:
        self._view = view

    def table(self) -> Table:
        """Paths, methods and operations; before those of jobs, whose paths have a parameter."""
        return {
            f"{_PREFIX}/jobs/search": {"POST": self.search},
            f"{_PREFIX}/jobs/{{id}}/graph": {"GET": self.graph},
            f"{_PREFIX}/dead": {"GET": self.dead},
            f"{_PREFIX}/dead/groups": {"GET": self.dead_groups},
            f"{_PREFIX}/search/fulltext": {"GET": self.fulltext},
            f"{_PREFIX}/batches": {"GET": self.batches},
            f"{_PREFIX}/stats/storage": {"GET": self.storage},
        }

    async def search(self, call: Call) -> Answer:
        """`POST /jobs/search`."""
        request = call.read(_SEARCH)
        wanted = filter_of(request, call.principal.ns)
        page = page_of(
            sort=request.sort, order=request.order, cursor=request.cursor, limit=request.limit
        )
        query = {"filter": parameters(wanted), "page": parameters(page)}
        return await self._ask(call, "search_jobs", query)

    async def dead(self, call: Call) -> Answer:
        """`GET /dead`: dead jobs, those that died last first."""
        wanted = Filter(ns=call.principal.ns, states=["dead"], queue=_text(call, "queue"))
        page = page_of(
            sort=call.query("sort") or "finished_at",
            order=call.query("order"),
            cursor=call.query("cursor"),
            limit=_limit(call),
        )
        query = {"filter": parameters(wanted), "page": parameters(page)}
        return await self._ask(call, "search_jobs", query)

    async def dead_groups(self, call: Call) -> Answer:
        """`GET /dead/groups`: dead jobs by kind of error."""
        limit = page_of(limit=_limit(call)).limit
        query = {"ns": call.principal.ns, "queue": _text(call, "queue"), "limit": limit}
        return await self._ask(call, "dead_groups", query)

    async def fulltext(self, call: Call) -> Answer:
        """`GET /search/fulltext`: jobs by words."""
        text = _text(call, "q")
        if not text:
            raise RequestError("q is missing", field="q", hint="such as ?q=welcome")
        limit = _limit(call)
        limit = limits.SEARCH_LIMIT_DEFAULT if limit is None else limit
        if not 1 <= limit <= limits.FULLTEXT_LIMIT_MAX:
            hint = f"1 to {limits.FULLTEXT_LIMIT_MAX}"
            raise RequestError("the limit is out of range", field="limit", hint=hint)
        state = call.query("state")
        states_of(state)
        query = {"q": text, "limit": limit, "queue": _text(call, "queue"), "state": state}
        return await self._ask(call, "fulltext", query | {"ns": call.principal.ns})

    async def graph(self, call: Call) -> Answer:
        """`GET /jobs/{id}/graph`: what the job is tied to."""
        if parse_id(JOB, call.argument) is None:
            raise not_found("job")
        query = {"ns": call.principal.ns, "job_id": call.argument}
        return await self._ask(call, "job_graph", query)

    async def batches(self, call: Call) -> Answer:
        """`GET /batches`: the newest first."""
        page = page_of(order=call.query("order"), cursor=call.query("cursor"), limit=_limit(call))
        words = {None: None, "open": True, "finished": False}
        state = call.query("state")
        if state not in words:
            raise RequestError("state is open or finished", field="state")
        query = {"ns": call.principal.ns, "page": parameters(page), "is_open": words[state]}
        return await self._ask(call, "batches", query)

    async def storage(self, call: Call) -> Answer:
        """`GET /stats/storage`: what takes how much space."""
        return await self._ask(call, "storage", {"ns": call.principal.ns})

    async def _ask(self, call: Call, name: str, query: dict[str, Any]) -> Answer:
        return Answer(200, await self._view.query(name, query, call.after))


def _text(call: Call, name: str) -> str | None:
    text = call.query(name)
    return None if text is None else check_note(text, name, limits.SEARCH_TEXT_BYTES_MAX)


def _limit(call: Call) -> int | None:
    text = call.query("limit")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise RequestError("this is not a whole number", field="limit")
    return int(text)


def read_filter(text: bytes, ns: int) -> dict[str, Any]:
    """Read the filter of a bulk operation, strictly: a misspelt field would match too much."""
    return parameters(filter_of(_SEARCH.read(text, b"strict=true"), ns))
