"""What may be asked of jobs: the filter, the order, and the cursor that goes on where a page ended.

A filter arrives checked (`api.filters` reads the client's JSON), travels to the view as MessagePack
and becomes SQL in `search`. All conditions must hold; None and empty are no condition.
"""

import base64
import binascii
from typing import Any, Final

import msgspec
from msgspec import Struct

from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.job import STATE_NAMES

# What a client may sort by, and the column. `finished_at` is the time it settled, however.
SORTS: Final[dict[str, str]] = {
    "created_at": "created_ms",
    "scheduled_at": "scheduled_ms",
    "started_at": "started_ms",
    "completed_at": "completed_ms",
    "failed_at": "failed_ms",
    "finished_at": "settled_ms",
    "expire_at": "expire_ms",
    "priority": "priority",
    "attempt": "attempt",
}
ORDERS: Final = ("desc", "asc")


class Range(Struct, frozen=True, array_like=True, gc=False):
    """Milliseconds, both ends excluded."""

    after_ms: int | None = None
    before_ms: int | None = None


class Filter(Struct, kw_only=True, omit_defaults=True):
    """Conditions on jobs of one namespace."""

    ns: int
    queue: str | None = None
    states: list[str] = []
    priority: int | None = None
    tags: dict[str, str] = {}
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
    attempt_min: int | None = None
    attempt_max: int | None = None
    created: Range = Range()
    scheduled: Range = Range()
    started: Range = Range()
    completed: Range = Range()
    expire: Range = Range()

    @property
    def is_counted(self) -> bool:
        """Whether counters know how many jobs match: nothing but queue and states is asked."""
        plain = Filter(ns=self.ns, queue=self.queue, states=self.states)
        return self == plain

    @property
    def wanted_states(self) -> list[str]:
        """States asked for, each once; empty when all are."""
        wanted = [name for name in STATE_NAMES if name in self.states]
        return [] if len(wanted) == len(STATE_NAMES) else wanted


class Page(Struct, kw_only=True, omit_defaults=True):
    """Which part of the matches, in which order."""

    sort: str = "created_at"
    order: str = "desc"
    cursor: str | None = None
    limit: int = limits.SEARCH_LIMIT_DEFAULT


class Place(Struct, frozen=True, array_like=True, gc=False):
    """Where a page ended: the order it was in, the last value, and the last job.

    Jobs without a value come last, whatever the order; among them the time of creation decides.
    """

    sort: str
    order: str
    value: int | None
    created_ms: int
    id: str
    # Looking at all payloads first took too long on an earlier page: walk in order from the start.
    is_walk: bool = False


_decode_place: Final = msgspec.msgpack.Decoder(Place).decode


def render_cursor(place: Place) -> str:
    """Write a cursor. Clients hand it back and do not look inside."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(place)).decode().rstrip("=")


def parse_cursor(page: Page) -> Place | None:
    """Read the cursor of a page; None when it begins at the start. Raises `RequestError`."""
    if not page.cursor:
        return None
    # A cursor is short; of a long text the beginning is enough to see that it is none.
    text = page.cursor[: limits.SEARCH_CURSOR_BYTES_MAX]
    try:
        padded = text + "=" * (-len(text) % 4)
        place = _decode_place(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        message = "this is not a cursor of an earlier answer"
        raise RequestError(message, field="cursor", hint="leave it out to begin anew") from error
    if (place.sort, place.order) != (page.sort, page.order):
        message = f"this cursor belongs to a search by {place.sort} {place.order}"
        raise RequestError(message, field="cursor", hint="keep sort and order from page to page")
    is_small = all(abs(number) < 2**63 for number in (place.value or 0, place.created_ms))
    if not is_small:
        raise RequestError("this is not a cursor of an earlier answer", field="cursor")
    return place


def parameters(wanted: Struct, **more: Any) -> dict[str, Any]:
    """A filter or a page as parameters of a query."""
    return msgspec.to_builtins(wanted, str_keys=True) | more
