"""examples/crawler, as its page says."""

import json
import sqlite3
from contextlib import closing

from corvo_sdk import Client
from tests.examples.conftest import Start
from tests.support.worker import wait_until


def test_two_workers_together_keep_to_the_limit(walk: Start, client: Client) -> None:
    """Every page is read once, the site is never asked too often, what is missing is given up."""
    page = walk("crawler", "8000")
    for _ in range(4):
        page.step()

    def is_over() -> bool:
        queue = client.queue("crawl")
        return not (queue.pending or queue.active or queue.retrying) and queue.completed >= 29

    wait_until(is_over)
    report = json.loads(page.rest()[0])
    with closing(sqlite3.connect(page.folder / "pages.db")) as pages:
        titles = {title for (title,) in pages.execute("SELECT title FROM pages")}
    assert titles == {f"Page {number}" for number in range(1, 30)}
    assert report["requests"] == 59
    assert report["refused"] == 0
    assert report["busiest"] <= 15  # ten, a burst of one, and what the network pushed together
    queue = client.queue("crawl")
    assert (queue.completed, queue.dead) == (29, 30)
