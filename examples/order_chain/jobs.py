"""An order in three steps, each beginning when the one before has completed, and the way back."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager

from corvo_sdk import Corvo, Discard, chain
from corvo_sdk.task import TaskCall

app = Corvo("shop")

SCHEMA = """
CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, pieces INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
    id INTEGER PRIMARY KEY, item TEXT NOT NULL, card TEXT NOT NULL, state TEXT NOT NULL, note TEXT);
INSERT OR IGNORE INTO stock VALUES ('book', 3), ('lamp', 0);
"""


@contextmanager
def database() -> Generator[sqlite3.Connection, None, None]:
    """Open the shop's database for one transaction."""
    with closing(sqlite3.connect("shop.db", timeout=10)) as connection:
        connection.executescript(SCHEMA)
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection


def advance(connection: sqlite3.Connection, order_id: int, before: str, after: str) -> bool:
    """Move an order on; False when it was moved by an earlier attempt of the same step."""
    change = "UPDATE orders SET state = ? WHERE id = ? AND state = ?"
    return connection.execute(change, (after, order_id, before)).rowcount == 1


@app.task(queue="orders", retries=5)
def reserve(order_id: int) -> str:
    """Take a piece from the stock; the result goes to the next step."""
    with database() as shop:
        item: str = shop.execute("SELECT item FROM orders WHERE id = ?", [order_id]).fetchone()[0]
        if advance(shop, order_id, "new", "reserved"):
            take = "UPDATE stock SET pieces = pieces - 1 WHERE item = ? AND pieces > 0"
            if shop.execute(take, [item]).rowcount == 0:
                # Leaves the block with an exception, so nothing of this transaction stays.
                raise Discard(f"{item} is sold out")
    return item


@app.task(queue="orders", retries=5)
def charge(order_id: int, previous_result: str = "") -> str:
    """Take the money; a card that is declined today is declined tomorrow."""
    with database() as shop:
        row = shop.execute("SELECT card FROM orders WHERE id = ?", [order_id]).fetchone()
        if row[0] == "declined":
            raise Discard("the card was declined")
        advance(shop, order_id, "reserved", "paid")
    return f"receipt {order_id} for one {previous_result}"


@app.task(queue="orders", retries=5)
def ship(order_id: int, previous_result: str = "") -> None:
    """Send the parcel, with what the charge gave."""
    with database() as shop:
        advance(shop, order_id, "paid", "shipped")
        shop.execute("UPDATE orders SET note = ? WHERE id = ?", [previous_result, order_id])


@app.task(queue="orders", retries=20)
def undo(order_id: int, error: str = "", failed_step: int = 0) -> None:
    """Give back what the steps before the failed one took."""
    with database() as shop:
        if advance(shop, order_id, "reserved", "refused"):
            row = shop.execute("SELECT item FROM orders WHERE id = ?", [order_id]).fetchone()
            shop.execute("UPDATE stock SET pieces = pieces + 1 WHERE item = ?", row)
        advance(shop, order_id, "new", "refused")
        note = f"step {failed_step}: {error}"
        shop.execute("UPDATE orders SET note = ? WHERE id = ?", [note, order_id])


def fulfilment(order_id: int) -> TaskCall[str]:
    """Make the chain of an order; enqueued as a whole, it runs step by step."""
    return chain(
        reserve.call(order_id),
        charge.call(order_id),
        ship.call(order_id),
        on_failure=undo.call(order_id),
    )
