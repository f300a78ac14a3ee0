"""The finder of bulk operations: what it asks of the view, and what it makes of the answer."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from corvo.api.finding import ViewFinder
from corvo.errors import RequestError
from corvo.model.ids import JOB, render_id
from corvo.model.job import DEAD
from corvo.scheduler.bulk import Found
from tests.factories import make_job_id


class FakeView:
    """Answers every query with the same page and remembers the question."""

    def __init__(self, **page: Any) -> None:
        self.page = page
        self.asked: tuple[str, Mapping[str, Any], int] = ("", {}, 0)

    async def query(self, name: str, parameters: Mapping[str, Any], after: int) -> bytes:
        """Answer."""
        self.asked = (name, parameters, after)
        return msgspec.json.encode(self.page)


def ask(view: FakeView, cursor: bytes = b"") -> Found:
    """Look for one page."""

    def read_filter(text: bytes, ns: int) -> dict[str, Any]:
        return msgspec.json.decode(text) | {"ns": ns}

    return asyncio.run(ViewFinder(view.query, read_filter)(3, b'{"queue":"q"}', cursor, 7, 42))


def test_page_goes_on_behind_its_cursor():
    """Oldest first, in the namespace, as fresh as the index; the cursor is handed back as given."""
    jobs = [[render_id(JOB, make_job_id(1)), "dead"]]
    view = FakeView(jobs=jobs, cursor="next", has_more=True)
    found = ask(view, b"here")
    assert found == Found(make_job_id(1), bytes([DEAD]), b"next")
    name, parameters, after = view.asked
    assert (name, after) == ("search_ids", 42)
    assert parameters["filter"] == {"queue": "q", "ns": 3}
    page = {"sort": "created_at", "order": "asc", "limit": 7, "cursor": "here"}
    assert parameters["page"] == page


def test_last_page_has_no_cursor():
    """An empty cursor is how the runner knows that these were all."""
    assert ask(FakeView(jobs=[], cursor=None, has_more=False)) == Found(b"", b"", b"")


def test_filter_that_takes_too_long_is_refused():
    """Looking again would never end."""
    with pytest.raises(RequestError):
        ask(FakeView(jobs=[], cursor=None, has_more=False, partial=True))


def test_page_that_found_nothing_in_its_time_is_gone_on_from():
    """A search that is slow but gets on is not refused: the next page goes on where it looked."""
    found = ask(FakeView(jobs=[], cursor="further", has_more=True, partial=True))
    assert found == Found(b"", b"", b"further")
