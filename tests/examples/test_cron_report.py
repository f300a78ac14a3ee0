"""examples/cron_report, as its page says."""

from corvo_sdk import Client
from tests.examples.conftest import Start
from tests.support.worker import wait_until


def test_reports_follow_the_slots_of_a_schedule_in_the_code(walk: Start, client: Client) -> None:
    """The worker declares both schedules; a run now and a backfill make one report each."""
    page = walk("cron_report")
    page.step()
    page.step()
    wait_until(lambda: len(list(client.schedules())) == 2)
    listed, filled = page.rest()
    assert "sales-north" in listed
    assert "sales-south" in listed
    assert filled.strip() == "sales-north  5 of 5 slots got a job"
    wait_until(lambda: client.queue("reports").completed == 6)
    reports = {path.name: path.read_text() for path in (page.folder / "reports").glob("*")}
    week = [f"north-2025-01-{day:02}.csv" for day in range(5, 10)]
    assert sorted(reports)[:5] == week
    assert reports[week[0]] == "product,cents\nbook,10000\nlamp,22500\n"
    assert len(reports) == 6  # the sixth is about yesterday
