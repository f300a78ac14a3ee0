"""How the parts of a job are written on its page."""

from datetime import UTC, datetime, timedelta

from corvo.cli.top.sheets import errors_sheet, fields_sheet, timeline_sheet
from corvo_sdk.types import Job, JobError, JobEvent
from corvo_sdk.types.jobs import JobWorker

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_fields_are_shown_unless_they_are_empty() -> None:
    """Lists, numbers and zero are worth a line; what is empty or as usual is not."""
    job = Job(
        id="job_1",
        queue="q",
        state="pending",
        max_retries=3,
        chain_step=0,
        depends_on=["job_2", "job_3"],
        limits=["gpu"],
        tags={"tenant": "acme"},
        created_at=NOW - timedelta(minutes=5),
        scheduled_at=NOW + timedelta(minutes=5),
        payload={"to": "anna"},
        worker=JobWorker(id="crane-9", hostname="crane"),
    )
    shown = fields_sheet(job, NOW.timestamp()).plain
    fields = {line[:14].strip(): line[15:] for line in shown.splitlines()}
    assert fields["tries"] == "0 of 3"
    assert fields["worker"] == "crane-9 on crane"
    assert fields["depends on"] == '["job_2","job_3"]'
    assert fields["limits"] == '["gpu"]'
    assert fields["chain step"] == "0"
    assert fields["tag tenant"] == "acme"
    assert fields["created"].endswith("5m ago")
    assert fields["scheduled"].endswith("in 5m")
    assert '"to": "anna"' in shown
    assert not {"priority", "group", "blocked by", "started", "result"} & fields.keys()


def test_the_last_error_comes_first_with_its_backtrace() -> None:
    """Older ones have their message only."""
    errors = [
        JobError(attempt=n, error=f"no {n}", at=NOW, backtrace=f"line {n}", worker="w")
        for n in (1, 2)
    ]
    job = Job(id="job_1", queue="q", state="dead", errors=errors)
    assert errors_sheet(job, NOW.timestamp() + 60).plain.splitlines() == [
        "Errors  2",
        "try 2  1m ago  w",
        "no 2",
        "  line 2",
        "try 1  1m ago  w",
        "no 1",
    ]


def test_an_event_without_a_time_has_its_line() -> None:
    """What the server leaves out is a dash; lengths of time are read as such."""
    shown = timeline_sheet([JobEvent(seq=1, type="retrying", data={"delay_ms": 1500})], "").plain
    assert shown.splitlines()[1] == f"–  {'retrying':<14}  delay 1.5s"
