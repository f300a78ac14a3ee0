"""Search, and operations on many jobs.

`after` is the index of a write: the search index is asked to have reached it, which it waits for up
to five seconds. A bulk operation is not repeated when it may have arrived: there would be two.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from corvo_sdk.errors import ValidationError, ViewUnavailableError
from corvo_sdk.protocol.call import Call, Repeat
from corvo_sdk.protocol.endpoints.making import (
    command,
    filter_of,
    given,
    read,
    reader,
    rendered,
    write,
)
from corvo_sdk.types.search import (
    BatchesPage,
    Bulk,
    BulkPage,
    BulkResult,
    DeadGroups,
    Fulltext,
    Graph,
    JobsPage,
    Storage,
)
from corvo_sdk.values import segment

_AFTER_S: Final = 5.0  # how long the server waits for its search index
_BULK_S: Final = 25.0  # how long it works on an operation before it answers 202
_JOBS_PAGE: Final = reader(JobsPage)
_DEAD_GROUPS: Final = reader(DeadGroups)
_FULLTEXT: Final = reader(Fulltext)
_GRAPH: Final = reader(Graph)
_BATCHES_PAGE: Final = reader(BatchesPage)
_STORAGE: Final = reader(Storage)
_BULK_RESULT: Final = reader(BulkResult)
_BULK: Final = reader(Bulk)
_BULK_PAGE: Final = reader(BulkPage)


def search(
    fields: Mapping[str, Any],
    *,
    sort: str | None,
    order: str | None,
    limit: int | None,
    cursor: str | None,
    after: int | None,
) -> Call[JobsPage]:
    """`POST /jobs/search`."""
    body = filter_of(fields) | given(sort=sort, order=order, limit=limit, cursor=cursor)
    return write(
        "POST",
        "/jobs/search",
        body,
        _JOBS_PAGE,
        query=given(after=after),
        repeat=Repeat.ALWAYS,
        wait_s=_wait_s(after),
    )


def dead(
    *,
    queue: str | None,
    sort: str | None,
    order: str | None,
    limit: int | None,
    cursor: str | None,
    after: int | None,
) -> Call[JobsPage]:
    """`GET /dead`."""
    query = {
        "queue": queue,
        "sort": sort,
        "order": order,
        "limit": limit,
        "cursor": cursor,
        "after": after,
    }
    return read("/dead", _JOBS_PAGE, query=query, wait_s=_wait_s(after))


def dead_groups(*, queue: str | None, limit: int | None, after: int | None) -> Call[DeadGroups]:
    """`GET /dead/groups`."""
    query = {"queue": queue, "limit": limit, "after": after}
    return read("/dead/groups", _DEAD_GROUPS, query=query, wait_s=_wait_s(after))


def fulltext(
    q: str, *, queue: str | None, state: str | None, limit: int | None, after: int | None
) -> Call[Fulltext]:
    """`GET /search/fulltext`."""
    query = {"q": q, "queue": queue, "state": state, "limit": limit, "after": after}
    return read("/search/fulltext", _FULLTEXT, query=query, wait_s=_wait_s(after))


def graph(job_id: str, *, after: int | None) -> Call[Graph]:
    """`GET /jobs/{id}/graph`."""
    query = {"after": after}
    return read(f"/jobs/{segment(job_id)}/graph", _GRAPH, query=query, wait_s=_wait_s(after))


def batches(
    *,
    state: str | None,
    order: str | None,
    limit: int | None,
    cursor: str | None,
    after: int | None,
) -> Call[BatchesPage]:
    """`GET /batches`."""
    query = {"state": state, "order": order, "limit": limit, "cursor": cursor, "after": after}
    return read("/batches", _BATCHES_PAGE, query=query, wait_s=_wait_s(after))


def storage(*, after: int | None) -> Call[Storage]:
    """`GET /stats/storage`."""
    return read("/stats/storage", _STORAGE, query={"after": after}, wait_s=_wait_s(after))


def bulk(
    action: str,
    *,
    job_ids: Sequence[str] | None,
    matching: Mapping[str, Any] | None,
    is_dry_run: bool,
    is_async: bool,
    options: Mapping[str, Any],
) -> Call[BulkResult]:
    """`POST /jobs/bulk`."""
    if (job_ids is None) == (matching is None):
        raise ValidationError(
            "a bulk operation names its jobs either by id or by filter", field="job_ids"
        )
    body = rendered(options) | given(
        action=action,
        job_ids=None if job_ids is None else list(job_ids),
        filter=None if matching is None else filter_of(matching),
        dry_run=is_dry_run or None,
    )
    if is_async:
        body["async"] = True
    return write("POST", "/jobs/bulk", body, _BULK_RESULT, wait_s=_BULK_S)


def bulk_operations(*, limit: int | None, cursor: str | None) -> Call[BulkPage]:
    """`GET /bulk`."""
    return read("/bulk", _BULK_PAGE, query={"limit": limit, "cursor": cursor})


def bulk_operation(bulk_id: str) -> Call[Bulk]:
    """`GET /bulk/{id}`."""
    return read(f"/bulk/{segment(bulk_id)}", _BULK)


def abort_bulk(bulk_id: str) -> Call[Bulk]:
    """`POST /bulk/{id}/abort`."""
    return command("POST", f"/bulk/{segment(bulk_id)}/abort", _BULK)


def undo_bulk(bulk_id: str) -> Call[Bulk]:
    """`POST /bulk/{id}/undo`."""
    return command("POST", f"/bulk/{segment(bulk_id)}/undo", _BULK, wait_s=_BULK_S)


def cursor_after(page: JobsPage) -> str | None:
    """Where the next page begins; None at the end. Raises where a search can not go on."""
    if page.partial and page.cursor is None:
        # Ending here would look like having seen every match.
        raise ViewUnavailableError(
            "the search ran out of time and can not go on", code="QUERY_TIMEOUT", hint=page.hint
        )
    return page.cursor if page.has_more else None


def _wait_s(after: int | None) -> float:
    return 0.0 if after is None else _AFTER_S
