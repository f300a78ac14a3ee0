"""Commands about schedules: list, show, create, update, pause, resume, run, preview, backfill."""

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
from corvo.cli.failure import CallError
from corvo.cli.groups import DefaultGroup
from corvo.cli.output import print_columns
from corvo.cli.session import Session, connected

PAGE = 1_000


@click.group(cls=DefaultGroup, default="list")
def schedules() -> None:
    """Recurring jobs; without a sub-command: list them."""


@schedules.command("list")
@connected
def list_schedules(session: Session) -> None:
    """List all schedules by name."""
    listed: list[dict[str, Any]] = []
    while True:
        query = {"limit": str(PAGE)} | ({"after": listed[-1]["name"]} if listed else {})
        page: list[dict[str, Any]] = session.call("GET", "/schedules", query=query)
        listed += page
        if len(page) < PAGE:
            break

    def render() -> None:
        if not listed:
            click.echo("no schedules yet; corvo schedules create NAME CRON QUEUE")
            return
        names = ("name", "status", "cron", "timezone", "queue", "next_run_at", "last_run_at")
        print_columns(listed, names)

    session.show(listed, render)


@schedules.command()
@click.argument("schedule")
@connected
def show(session: Session, schedule: str) -> None:
    """Show one SCHEDULE, by name or id."""
    session.show(session.call("GET", _path(schedule)))


def _job_options(function: Any) -> Any:
    """Add what can be said about a schedule beside its name, expression and queue."""
    for decorate in (
        click.option("--tag", "tags", multiple=True, help="NAME=VALUE; repeatable"),
        click.option("--unique-key", help="no job while another one with this key is live"),
        click.option("--expire-after", help="give up when a job did not start by then"),
        click.option("--max-retries", type=int, help="attempts in all, the first one included"),
        click.option("--priority", type=click.Choice(PRIORITIES)),
        click.option("--group", help="fairness group within the queue"),
        click.option("--limit", "limits", multiple=True, help="named limit; repeatable"),
        click.option("--end-at", help="no slot from this instant on"),
        click.option("--start-at", help="no slot before this instant"),
        click.option("--jitter", help="fire up to this much later, such as 30s"),
        click.option("--catch-up", type=click.Choice(["skip", "last", "all"])),
        click.option("--overlap", type=click.Choice(["allow", "skip", "queue", "cancel"])),
        click.option("--timezone", help="IANA name such as Europe/Berlin; default UTC"),
    ):
        function = decorate(function)
    return function


def _fields(options: dict[str, Any]) -> dict[str, Any]:
    tags = tags_of(options.pop("tags"))
    fields: dict[str, Any] = given(options)
    if tags:
        fields["tags"] = tags
    for name in ("start_at", "end_at"):
        if name in fields:
            fields[name] = instant(fields[name])
    if "payload" in fields:
        fields["payload"] = document(fields["payload"])
    return fields


@schedules.command()
@click.argument("name")
@click.argument("cron")
@click.argument("queue", shell_complete=complete_queue)
@click.argument("payload", default="{}")
@_job_options
@click.option("--paused", is_flag=True, default=None, help="create it paused")
@click.option("--replace", is_flag=True, help="replace the schedule when the name is taken")
@connected
def create(session: Session, name: str, *, replace: bool, **options: Any) -> None:
    """Create the schedule NAME: a job in QUEUE whenever CRON says so. PAYLOAD is JSON."""
    body = {"name": name} | _fields(options)
    try:
        answer = session.call("POST", "/schedules", body, query=STRICT)
    except CallError as error:
        if not replace or error.code != "NAME_TAKEN":
            raise
        answer = session.call("PUT", _path(name), body, query=STRICT)
    session.show(answer)


# What a schedule is shown with and can be replaced with; the rest is the server's.
_WRITABLE = (
    *("name", "cron", "timezone", "queue", "payload", "priority", "unique_key", "unique_period"),
    *("unique_mode", "max_retries", "retry_backoff", "retry_base_delay", "retry_max_delay"),
    *("retry_jitter", "expire_after", "tags", "group", "limit_key", "limits", "cost"),
    *("overlap", "catch_up", "jitter", "start_at", "end_at"),
)


@schedules.command()
@click.argument("schedule")
@click.option("--name", help="other name")
@click.option("--cron", help="other expression")
@click.option("--queue", help="other queue", shell_complete=complete_queue)
@click.option("--payload", help="other payload: JSON, - or @FILE")
@_job_options
@connected
def update(session: Session, schedule: str, **options: Any) -> None:
    """Change SCHEDULE: what is given is replaced, the rest stays, and so does how far it came."""
    fields = _fields(options)
    if not fields:
        raise click.UsageError("say what is to be changed; corvo schedules update --help")
    found: dict[str, Any] = session.call("GET", _path(schedule))
    body = {name: found[name] for name in _WRITABLE if found.get(name) is not None} | fields
    session.show(session.call("PUT", _path(schedule), body, query=STRICT))


def _change(name: str, text: str) -> click.Command:
    @click.argument("schedule")
    @connected
    def change(session: Session, schedule: str) -> None:
        is_delete = name == "delete"
        path = _path(schedule) + ("" if is_delete else f"/{name}")
        answer = session.call("DELETE" if is_delete else "POST", path)

        def render() -> None:
            following = answer.get("job_id") or answer.get("next_run_at") or ""
            click.echo(f"{schedule}  {answer['status']}  {following}".rstrip())

        session.show(answer, render)

    return click.command(name, help=text)(change)


@schedules.command()
@click.argument("schedule", required=False)
@click.option("--cron", help="preview this expression instead of a schedule")
@click.option("--timezone", help="of --cron; default UTC")
@click.option("--count", default=5, show_default=True, help="how many runs")
@connected
def preview(
    session: Session, schedule: str | None, cron: str | None, timezone: str | None, count: int
) -> None:
    """Print the next runs of SCHEDULE, or of an expression."""
    if (schedule is None) == (cron is None):
        raise click.UsageError("name a SCHEDULE or give --cron")
    if schedule is not None:
        answer = session.call("GET", f"{_path(schedule)}/preview", query={"count": str(count)})
    else:
        body = {"cron": cron, "timezone": timezone, "count": count}
        answer = session.call("POST", "/schedules/preview", body, query=STRICT)
    session.show(answer, lambda: click.echo("\n".join(answer["runs"])))


@schedules.command()
@click.argument("schedule")
@click.option("--from", "start", required=True, help="first instant, such as 2030-01-31T09:00:00Z")
@click.option("--to", "until", required=True, help="first instant no longer meant")
@connected
def backfill(session: Session, schedule: str, start: str, until: str) -> None:
    """Make the jobs of past slots of SCHEDULE that have none."""
    body = {"from": instant(start), "to": instant(until)}
    answer = session.call("POST", f"{_path(schedule)}/backfill", body, query=STRICT)

    def render() -> None:
        made = len(answer["job_ids"])
        click.echo(f"{schedule}  {made} of {answer['slots']} slots got a job")

    session.show(answer, render)


def _path(schedule: str) -> str:
    return f"/schedules/{segment(schedule)}"


schedules.add_command(_change("pause", "Fire no slot of SCHEDULE until it is resumed."))
schedules.add_command(_change("resume", "Go on with the slots of SCHEDULE from now on."))
schedules.add_command(_change("run", "Make a job of SCHEDULE now."))
schedules.add_command(_change("delete", "Forget SCHEDULE; its jobs stay."))
