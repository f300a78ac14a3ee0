"""Commands that change jobs named on their line: retry, cancel, move, hold, approve, ..."""

import sys
from typing import Any

import click

from corvo.cli.arguments import (
    PRIORITIES,
    STRICT,
    complete_queue,
    document,
    given,
    instant,
    tags_of,
)
from corvo.cli.client import segment
from corvo.cli.failure import EXIT_REFUSED, CallError, complain
from corvo.cli.session import Session, connected

_jobs = click.argument("job_ids", metavar="JOB…", nargs=-1, required=True)


def _change(name: str, method: str, suffix: str, text: str) -> click.Command:
    """Build a command that changes the jobs named on its line, one call each."""

    @_jobs
    @connected
    def change(session: Session, job_ids: tuple[str, ...]) -> None:
        change_each(session, method, suffix, job_ids, None)

    return click.command(name, help=text)(change)


def change_each(
    session: Session, method: str, suffix: str, job_ids: tuple[str, ...], body: object
) -> None:
    """Change one job after the other; one in the wrong state does not keep the others."""
    results: list[dict[str, Any]] = []
    is_refused = False
    for job_id in job_ids:
        path = f"/jobs/{segment(job_id)}{suffix}"
        try:
            answer: dict[str, Any] = session.call(method, path, body, query=STRICT)
        except CallError as error:
            complain(error)
            is_refused = True
            continue
        results.append(answer)
        if session.is_for_people:
            click.echo(f"{job_id}  {answer.get('status', 'ok')}")
    if not session.is_for_people:
        session.show(results)
    if is_refused:
        sys.exit(EXIT_REFUSED)


retry = _change("retry", "POST", "/retry", "Run jobs again with their attempts reset.")
requeue = _change("requeue", "POST", "/requeue", "Run dead jobs again, keeping their history.")
cancel = _change("cancel", "POST", "/cancel", "Cancel jobs; active ones are asked to stop.")
delete = _change("delete", "DELETE", "", "Remove jobs and all they left behind.")


@click.command()
@click.argument("job_id")
@click.argument("queue", shell_complete=complete_queue)
@click.option("--reset-attempts", is_flag=True, default=None, help="start counting anew")
@click.option("--keep-priority/--default-priority", default=None, help="kept by default")
@connected
def move(session: Session, job_id: str, queue: str, **options: Any) -> None:
    """Move a job to another queue."""
    change_each(session, "POST", "/move", (job_id,), {"queue": queue} | given(options))


@click.command()
@click.argument("job_id")
@click.argument("priority", type=click.Choice(PRIORITIES))
@connected
def priority(session: Session, job_id: str, priority: str) -> None:
    """Change the priority of a job that has not started."""
    change_each(session, "PUT", "/priority", (job_id,), {"priority": priority})


@click.command()
@_jobs
@click.option("--reason", help="kept with the job")
@click.option("--timeout", help="how long it waits for somebody, such as 1d")
@click.option("--timeout-action", type=click.Choice(["none", "cancel", "approve"]))
@connected
def hold(session: Session, job_ids: tuple[str, ...], **options: Any) -> None:
    """Set jobs aside until somebody approves or rejects them."""
    change_each(session, "POST", "/hold", job_ids, given(options))


@click.command()
@_jobs
@click.option("--by", help="who decided")
@click.option("--note", help="kept with the job")
@connected
def approve(session: Session, job_ids: tuple[str, ...], **options: Any) -> None:
    """Let held jobs run."""
    change_each(session, "POST", "/approve", job_ids, given(options))


@click.command()
@_jobs
@click.option("--by", help="who decided")
@click.option("--reason", help="kept with the job")
@connected
def reject(session: Session, job_ids: tuple[str, ...], **options: Any) -> None:
    """Refuse held jobs: they are dead."""
    change_each(session, "POST", "/reject", job_ids, given(options))


@click.command()
@click.argument("job_id")
@click.option("--queue", help="other queue", shell_complete=complete_queue)
@click.option("--payload", help="other payload: JSON, - or @FILE")
@click.option("--priority", type=click.Choice(PRIORITIES))
@click.option("--max-retries", type=int, help="attempts in all")
@click.option("--at", "scheduled_at", help="earliest start: a date or time")
@click.option("--unique-key", help="a clone has none unless it is given one")
@click.option("--tag", "tags", multiple=True, help="NAME=VALUE; replaces all tags; repeatable")
@connected
def clone(session: Session, job_id: str, **options: Any) -> None:
    """Enqueue a copy of a job, in whatever state that is; options say what differs."""
    tags = tags_of(options.pop("tags"))
    body: dict[str, Any] = given(options)
    if tags:
        body["tags"] = tags
    if "payload" in body:
        body["payload"] = document(body["payload"], "--payload")
    if "scheduled_at" in body:
        body["scheduled_at"] = instant(body["scheduled_at"])
    answer = session.call("POST", f"/jobs/{segment(job_id)}/clone", body, query=STRICT)

    def render() -> None:
        status = f"  {answer['status']}" if sys.stdout.isatty() else ""
        click.echo(answer["job_id"] + status)

    session.show(answer, render)
