"""python order.py ITEM CARD: order one piece. python order.py: list all orders and the stock."""

import sys

from jobs import database, fulfilment

if len(sys.argv) > 1:
    item, card = sys.argv[1:]
    with database() as shop:
        insert = "INSERT INTO orders (item, card, state) VALUES (?, ?, 'new') RETURNING id"
        order_id = shop.execute(insert, (item, card)).fetchone()[0]
    print(f"order {order_id}: {fulfilment(order_id).enqueue().id}")
else:
    with database() as shop:
        for row in shop.execute("SELECT id, item, state, note FROM orders ORDER BY id").fetchall():
            print(*row, sep=" | ")
        for row in shop.execute("SELECT item, pieces FROM stock ORDER BY item").fetchall():
            print("left:", *row)
