"""How a job looks in a row; the lists of jobs and of failures share it."""

from collections.abc import Callable

from corvo.cli.top.columns import Cell, Column
from corvo.cli.top.palette import STATE_SIGNS
from corvo.cli.top.wording import NOTHING, age, document, instant_text, plain
from corvo_sdk.types import JobSummary

Now = Callable[[], float]


def state_cell(state: str) -> Cell:
    """A state with its sign."""
    sign, tone = STATE_SIGNS.get(state, ("?", "plain"))
    return Cell(f"{sign} {plain(state)}", tone)  # type: ignore[arg-type]


def columns(now: Now) -> list[Column[JobSummary]]:
    """Columns of a list of jobs, sorted by the server."""
    return [
        Column("id", "job", lambda job: Cell(plain(job.id)), width=30),
        Column("queue", "queue", lambda job: Cell(plain(job.queue)), width=20, rank=1),
        Column("state", "state", lambda job: state_cell(job.state), width=11),
        Column(
            "attempt",
            "tries",
            lambda job: Cell(f"{job.attempt}/{max(1, job.max_retries)}"),
            width=6,
            rank=4,
            is_number=True,
            server_order="attempt",
        ),
        Column(
            "priority",
            "priority",
            lambda job: Cell(plain(job.priority), "dim" if job.priority == "normal" else "accent"),
            width=9,
            rank=6,
            server_order="priority",
        ),
        Column(
            "created",
            "created",
            lambda job: Cell(age(job.created_at, now())),
            width=9,
            rank=2,
            is_number=True,
            server_order="created_at",
        ),
        Column(
            "started",
            "started",
            lambda job: Cell(age(job.started_at, now())),
            width=9,
            rank=5,
            is_number=True,
            server_order="started_at",
        ),
        Column(
            "finished",
            "finished",
            lambda job: Cell(age(job.finished_at, now())),
            width=9,
            rank=7,
            is_number=True,
            server_order="finished_at",
        ),
        Column("worker", "worker", _worker, width=16, rank=8),
        Column("about", "about", _about, least=34, rank=3),
    ]


def dead_columns(now: Now) -> list[Column[JobSummary]]:
    """Columns of a list of dead jobs."""
    return [
        Column("id", "job", lambda job: Cell(plain(job.id)), width=30),
        Column("queue", "queue", lambda job: Cell(plain(job.queue)), width=20, rank=1),
        Column(
            "attempt",
            "tries",
            lambda job: Cell(f"{job.attempt}/{max(1, job.max_retries)}"),
            width=6,
            rank=3,
            is_number=True,
            server_order="attempt",
        ),
        Column(
            "failed",
            "died",
            lambda job: Cell(age(job.finished_at or job.failed_at, now())),
            width=9,
            is_number=True,
            server_order="finished_at",
        ),
        Column("worker", "worker", _worker, width=16, rank=4),
        Column("about", "error", _about, least=34, rank=2),
    ]


def _worker(job: JobSummary) -> Cell:
    return Cell(plain(job.worker_id), "plain") if job.worker_id else Cell(NOTHING, "dim")


def _about(job: JobSummary) -> Cell:
    """What matters most about a job: its trouble, else what it is for."""
    if job.state in {"dead", "retrying"} and job.last_error:
        return Cell(plain(job.last_error), "bad" if job.state == "dead" else "warn")
    if job.state == "dead" and job.dead_reason:
        return Cell(plain(job.dead_reason.replace("_", " ")), "bad")
    if job.state == "held" and job.hold_reason:
        return Cell(plain(job.hold_reason), "warn")
    if job.state == "scheduled" and job.scheduled_at:
        return Cell(f"at {instant_text(job.scheduled_at)}  {document(job.payload)}", "dim")
    return Cell(document(job.payload), "dim")
