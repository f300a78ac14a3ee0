"""python sell.py: fill sales.db with some sales of the first days of 2025."""

import sqlite3
from contextlib import closing

PRICES = {"book": 2_000, "lamp": 4_500}

with closing(sqlite3.connect("sales.db")) as sales, sales:
    sales.execute("DROP TABLE IF EXISTS sales")
    sales.execute("CREATE TABLE sales (day TEXT, region TEXT, product TEXT, cents INTEGER)")
    for day in range(5, 11):
        for region in ("north", "south"):
            for product, cents in PRICES.items():
                row = (f"2025-01-{day:02}", region, product, cents * day)
                sales.execute("INSERT INTO sales VALUES (?, ?, ?, ?)", row)
