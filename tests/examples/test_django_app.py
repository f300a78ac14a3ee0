"""examples/django_app, as its page says."""

import json
import sqlite3
from contextlib import closing

import pytest

from corvo_sdk import Client
from tests.examples.conftest import Start
from tests.support.worker import wait_until

pytest.importorskip("django", reason="the example is a Django project")


def test_only_the_committed_order_gets_a_job(walk: Start, client: Client) -> None:
    """One order is rolled back with its row of the outbox; the other becomes exactly one job."""
    page = walk("django_app", "8000")
    for _ in range(4):
        page.step()
    answers = page.step()
    assert answers == '{"id": 1}{"error": "we do not have so many"}'

    def first(query: str) -> object:
        with closing(sqlite3.connect(page.folder / "shop.db", timeout=10)) as database:
            return database.execute(query).fetchone()[0]

    wait_until(lambda: first("SELECT invoice FROM shop_order") == "R-000001")
    wait_until(lambda: first("SELECT count(*) FROM corvo_outbox") == 0)
    listed = page.rest()[0]
    assert json.loads(listed) == {"orders": [{"order": "2 x lamp", "invoice": "R-000001"}]}
    assert client.queue("invoices").totals.enqueued == 1
