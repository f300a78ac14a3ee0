"""Commands that look at one job: inspect, why, wait."""

import sys
import time
from typing import Any, Final

import click

from corvo.cli.arguments import DURATION
from corvo.cli.client import segment
from corvo.cli.failure import EXIT_REFUSED, PatienceError
from corvo.cli.output import paint, print_columns, print_fields
from corvo.cli.session import Session, connected
from corvo.cli.visible import visible

WAIT_SECONDS: Final = 30  # of one call; a longer wait is several
EVENTS_PAGE: Final = 1_000


@click.command()
@click.argument("job_id")
@click.option("--why", is_flag=True, help="explain what the job waits for instead")
@click.option("--events", is_flag=True, help="show what happened to it instead")
@click.option("--graph", is_flag=True, help="show the jobs it is tied to instead")
@connected
def inspect(session: Session, job_id: str, *, why: bool, events: bool, graph: bool) -> None:
    """Show everything about a job."""
    if why + events + graph > 1:
        raise click.UsageError("give one of --why, --events and --graph")
    if why:
        show_why(session, job_id)
    elif events:
        show_timeline(session, job_id)
    elif graph:
        _show_graph(session, job_id)
    else:
        session.show(session.call("GET", f"/jobs/{segment(job_id)}"))


@click.command()
@click.argument("job_id")
@connected
def why(session: Session, job_id: str) -> None:
    """Explain why a job is not running: every gate it has to pass, and which are closed."""
    show_why(session, job_id)


def show_why(session: Session, job_id: str) -> None:
    """Print the gates of a job."""
    found = session.call("GET", f"/jobs/{segment(job_id)}/why")

    def render() -> None:
        print_fields({name: value for name, value in found.items() if name != "gates"})
        for gate in found.get("gates", ()):
            mark = paint("open  ", "green") if gate.get("ok") else paint("closed", "red")
            detail = visible(str(gate.get("detail") or ""))
            click.echo(f"  {mark}  {gate.get('gate')}  {detail}".rstrip())

    session.show(found, render)


def show_timeline(session: Session, job_id: str) -> None:
    """Print all that happened to a job, oldest first."""
    happened: list[dict[str, Any]] = []
    after = 0
    while True:
        query = {"after_seq": str(after), "limit": str(EVENTS_PAGE)}
        page = session.call("GET", f"/jobs/{segment(job_id)}/events", query=query)
        happened += page["events"]
        if page["next_after_seq"] is None:
            break
        after = page["next_after_seq"]
    if page.get("complete") is False:
        click.echo("older events of this job are no longer kept", err=True)
    session.show(
        happened,
        lambda: print_columns(happened, ("seq", "at", "type", "queue", "attempt", "data")),
    )


def _show_graph(session: Session, job_id: str) -> None:
    found = session.call("GET", f"/jobs/{segment(job_id)}/graph")

    def render() -> None:
        print_columns(found["jobs"], ("id", "queue", "state", "attempt", "created_at"))
        click.echo()
        print_columns(found["edges"], ("from", "type", "to"))

    session.show(found, render)


@click.command()
@click.argument("job_id")
@click.option("--timeout", type=DURATION, help="give up after this long, such as 5m; exit code 7")
@connected
def wait(session: Session, job_id: str, timeout: float | None) -> None:
    """Wait until a job has ended and show it. Exit code 0 only when it completed."""
    deadline = None if timeout is None else time.monotonic() + timeout
    path = f"/jobs/{segment(job_id)}/wait"
    while True:
        left = WAIT_SECONDS if deadline is None else deadline - time.monotonic()
        span_ms = max(0, round(min(left, WAIT_SECONDS) * 1_000))
        found = session.call("GET", path, query={"timeout": f"{span_ms}ms"})
        if found is not None:
            break
        if deadline is not None and time.monotonic() >= deadline:
            raise PatienceError(
                f"{job_id} has not ended within {timeout:g} s", hint=f"corvo why {job_id}"
            )
    session.show(found)
    if found["state"] != "completed":
        sys.exit(EXIT_REFUSED)
