"""A report that is made by the calendar, on the days people work, about the day before."""

import csv
import sqlite3
from contextlib import closing
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from corvo_sdk import Context, Corvo

app = Corvo("reports")
ZONE = ZoneInfo("Europe/Berlin")


def day_before(instant: datetime) -> date:
    return (instant.astimezone(ZONE) - timedelta(days=1)).date()


@app.task(queue="reports", retries=10, base_delay="30s", max_delay="15m", timeout="5m")
def sales_report(ctx: Context, region: str) -> str:
    """Write the sales of a region on the day before the slot of this job."""
    # The slot and not the clock says which day is meant: a job that is late, is tried again, or is
    # made afterwards by a backfill, writes the report it was made for.
    slot = ctx.job.scheduled_at or ctx.job.created_at
    assert slot is not None
    day = day_before(slot)
    with closing(sqlite3.connect("sales.db", timeout=10)) as sales:
        query = (
            "SELECT product, sum(cents) FROM sales WHERE region = ? AND day = ? GROUP BY product"
        )
        rows = sales.execute(f"{query} ORDER BY product", (region, day.isoformat())).fetchall()
    folder = Path("reports")
    folder.mkdir(exist_ok=True)
    new, report = folder / f"{region}-{day}.new", folder / f"{region}-{day}.csv"
    with new.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("product", "cents"), *rows])
    new.replace(report)  # whole or not at all, however often the job runs
    ctx.log.info("%s has %d products", report, len(rows))
    return str(report)


# A worker tells the server about schedules when it starts; what is as declared is left alone.
for region in ("north", "south"):
    app.schedule(
        "0 7 * * mon-fri",
        sales_report.call(region),
        name=f"sales-{region}",
        timezone="Europe/Berlin",
        overlap="skip",  # the one of yesterday still runs: something is wrong, do not pile up
        catch_up="all",  # the server was down at seven: every missed day gets its report
    )
