"""The filter of a search as a client writes it, and its translation. Bulk operations use it too."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from corvo.api import wire
from corvo.api.translate import TIERS
from corvo.api.values import check_note, parse_instant
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.job import STATE_NAMES
from corvo.view import jq
from corvo.view.filters import ORDERS, SORTS, Filter, Page, Range, parse_cursor

Attempts = Annotated[int, Meta(ge=0, le=limits.SAFE_INTEGER_MAX)]
Tags = Annotated[dict[str, str], Meta(max_length=limits.TAGS_COUNT_MAX)]
Words = str | Annotated[list[str], Meta(max_length=len(STATE_NAMES) * 4)]

_TIMES: Final = ("created", "scheduled", "started", "completed", "expire")
_TEXTS: Final = (
    "queue",
    "payload_contains",
    "error_contains",
    "error_fingerprint",
    "worker_id",
    "batch_id",
    "parent_id",
    "chain_id",
    "unique_key",
    "group",
    "job_id_prefix",
)
_SORT_HINT: Final = "one of: " + ", ".join(SORTS)
_LIMIT_HINT: Final = f"1 to {limits.SEARCH_LIMIT_MAX}; the cursor of an answer gives the next page"


class FilterFields(Struct, kw_only=True):
    """Conditions; all given ones must hold."""

    queue: str | None = None
    state: Words | None = None
    priority: wire.Priority | None = None
    tags: Tags | None = None
    payload_contains: str | None = None
    payload_jq: str | None = None
    error_contains: str | None = None
    error_fingerprint: str | None = None
    has_errors: bool | None = None
    worker_id: str | None = None
    batch_id: str | None = None
    parent_id: str | None = None
    chain_id: str | None = None
    unique_key: str | None = None
    group: str | None = None
    job_id_prefix: str | None = None
    attempt_min: Attempts | None = None
    attempt_max: Attempts | None = None
    created_after: wire.Instant | None = None
    created_before: wire.Instant | None = None
    scheduled_after: wire.Instant | None = None
    scheduled_before: wire.Instant | None = None
    started_after: wire.Instant | None = None
    started_before: wire.Instant | None = None
    completed_after: wire.Instant | None = None
    completed_before: wire.Instant | None = None
    expire_after: wire.Instant | None = None
    expire_before: wire.Instant | None = None


class SearchRequest(FilterFields, kw_only=True):
    """`POST /jobs/search`."""

    sort: str | None = None
    order: Literal["asc", "desc"] | None = None
    cursor: str | None = None
    limit: int | None = None


def filter_of(fields: FilterFields, ns: int) -> Filter:
    """Check a filter. Raises `RequestError`."""
    wanted: dict[str, Any] = {}
    for name in _TEXTS:
        text = getattr(fields, name)
        if text is not None:
            # Empty: no condition where a part of a text is asked for; as a name it matches none.
            wanted[name] = check_note(text, name, limits.SEARCH_TEXT_BYTES_MAX)
    for key, value in (fields.tags or {}).items():
        check_note(key, "tags", limits.SEARCH_TEXT_BYTES_MAX)
        check_note(value, "tags", limits.SEARCH_TEXT_BYTES_MAX)
    for name in _TIMES:
        ends = [_instant(fields, f"{name}_{end}") for end in ("after", "before")]
        wanted[name] = Range(*ends)
    if fields.payload_jq is not None:
        jq.parse(fields.payload_jq)
    return Filter(
        ns=ns,
        states=states_of(fields.state),
        priority=None if fields.priority is None else TIERS[fields.priority],
        tags=fields.tags or {},
        payload_jq=fields.payload_jq,
        has_errors=fields.has_errors,
        attempt_min=fields.attempt_min,
        attempt_max=fields.attempt_max,
        **wanted,
    )


def _instant(fields: FilterFields, name: str) -> int | None:
    text = getattr(fields, name)
    return None if text is None else parse_instant(text, name)


def states_of(words: str | list[str] | None) -> list[str]:
    """Check the names of states; one may stand alone."""
    names = [words] if isinstance(words, str) else words or []
    for name in names:
        if name not in STATE_NAMES:
            hint = "any of: " + ", ".join(STATE_NAMES)
            raise RequestError(f"{name[:40]!r} is not a state", field="state", hint=hint)
    return names


def page_of(
    *,
    sort: str | None = None,
    order: str | None = None,
    cursor: str | None = None,
    limit: int | None = None,
) -> Page:
    """Check which part of the matches is wanted. Raises `RequestError`."""
    sort, order = sort or "created_at", order or "desc"
    if sort not in SORTS:
        raise RequestError(f"{sort[:40]!r} is not a sort order", field="sort", hint=_SORT_HINT)
    if order not in ORDERS:
        raise RequestError("order is asc or desc", field="order")
    limit = limits.SEARCH_LIMIT_DEFAULT if limit is None else limit
    if not 1 <= limit <= limits.SEARCH_LIMIT_MAX:
        raise RequestError("the limit is out of range", field="limit", hint=_LIMIT_HINT)
    page = Page(sort=sort, order=order, cursor=cursor or None, limit=limit)
    parse_cursor(page)
    return page
