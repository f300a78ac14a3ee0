"""examples/order_chain, as its page says."""

import sqlite3
from contextlib import closing

from tests.examples.conftest import Start
from tests.support.worker import wait_until


def test_chain_runs_to_its_end_or_is_undone(walk: Start) -> None:
    """Results travel along the chain; a step that fails for good runs the way back, once."""
    page = walk("order_chain")
    page.step()
    page.step()

    def open_orders() -> int:
        with closing(sqlite3.connect(page.folder / "shop.db", timeout=10)) as shop:
            count = "SELECT count(*) FROM orders WHERE note IS NULL"
            return int(shop.execute(count).fetchone()[0])

    wait_until(lambda: open_orders() == 0)
    (listed,) = page.rest()
    assert listed.splitlines() == [
        "1 | book | shipped | receipt 1 for one book",
        "2 | book | refused | step 1: the card was declined",
        "3 | lamp | refused | step 0: lamp is sold out",
        "left: book 2",
        "left: lamp 0",
    ]
