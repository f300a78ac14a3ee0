"""Commands about schedules: list, show, create, pause, resume, run, delete, preview, backfill."""

from typing import Any

import click

from corvo.cli.client import API, Client, segment
from corvo.cli.failure import CallError
from corvo.cli.jobs import STRICT, document, tags_of
from corvo.cli.output import client_options, print_fields, print_json, print_table

PAGE = 1_000


@click.group(invoke_without_command=True)
@click.pass_context
def schedules(context: click.Context) -> None:
    """Recurring jobs; without a sub-command: list them."""
    if context.invoked_subcommand is None:
        # Not `context.invoke`, which would leave out what the options of the command do.
        list_schedules.main([], prog_name="corvo schedules list", standalone_mode=False)


@schedules.command("list")
@client_options
def list_schedules(url: Client, output: str) -> None:
    """List all schedules by name."""
    listed: list[dict[str, Any]] = []
    while True:
        query = {"limit": str(PAGE)} | ({"after": listed[-1]["name"]} if listed else {})
        page: list[dict[str, Any]] = url.call("GET", f"{API}/schedules", query=query).body
        listed += page
        if len(page) < PAGE:
            break
    if output == "json":
        print_json(listed)
        return
    if not listed:
        click.echo("no schedules yet; corvo schedules create NAME CRON QUEUE")
        return
    names = ("name", "status", "cron", "timezone", "queue", "next_run_at", "last_run_at")
    rows = [[str(schedule[name] or "-") for name in names] for schedule in listed]
    print_table([name.removesuffix("_at").replace("_", " ") for name in names], rows)


@schedules.command()
@click.argument("schedule")
@client_options
def show(url: Client, output: str, schedule: str) -> None:
    """Show one SCHEDULE, by name or id."""
    _print(output, url.call("GET", _path(schedule)).body)


@schedules.command()
@click.argument("name")
@click.argument("cron")
@click.argument("queue")
@click.argument("payload", default="{}")
@click.option("--timezone", help="IANA name such as Europe/Berlin; default UTC")
@click.option("--overlap", type=click.Choice(["allow", "skip", "queue", "cancel"]))
@click.option("--catch-up", type=click.Choice(["skip", "last", "all"]))
@click.option("--jitter", help="fire up to this much later, such as 30s")
@click.option("--start-at", help="no slot before this instant")
@click.option("--end-at", help="no slot from this instant on")
@click.option("--paused", is_flag=True, default=None, help="create it paused")
@click.option("--priority", type=click.Choice(["critical", "high", "normal"]))
@click.option("--max-retries", type=int, help="attempts in all, the first one included")
@click.option("--expire-after", help="give up when a job did not start by then, such as 1h")
@click.option("--unique-key", help="no job while another one with this key is live")
@click.option("--tag", "tags", multiple=True, help="NAME=VALUE; repeatable")
@click.option("--replace", is_flag=True, help="replace the schedule when the name is taken")
@client_options
def create(
    url: Client, output: str, name: str, cron: str, queue: str, payload: str, **options: Any
) -> None:
    """Create the schedule NAME: a job in QUEUE whenever CRON says so. PAYLOAD is JSON."""
    body: dict[str, object] = {"name": name, "cron": cron, "queue": queue}
    body["payload"] = document(payload)
    replace = options.pop("replace")
    tags = tags_of(options.pop("tags"))
    body |= {option: value for option, value in options.items() if value is not None}
    if tags:
        body["tags"] = tags
    try:
        answer = url.call("POST", f"{API}/schedules", body, query=STRICT)
    except CallError as error:
        if not replace or error.code != "NAME_TAKEN":
            raise
        answer = url.call("PUT", _path(name), body, query=STRICT)
    _print(output, answer.body)


def _change(name: str, text: str) -> click.Command:
    @click.argument("schedule")
    @client_options
    def change(url: Client, output: str, schedule: str) -> None:
        is_delete = name == "delete"
        path = _path(schedule) + ("" if is_delete else f"/{name}")
        answer = url.call("DELETE" if is_delete else "POST", path).body
        if output == "json":
            print_json(answer)
            return
        following = answer.get("job_id") or answer.get("next_run_at") or ""
        click.echo(f"{schedule}  {answer['status']}  {following}".rstrip())

    return click.command(name, help=text)(change)


@schedules.command()
@click.argument("schedule", required=False)
@click.option("--cron", help="preview this expression instead of a schedule")
@click.option("--timezone", help="of --cron; default UTC")
@click.option("--count", default=5, show_default=True, help="how many runs")
@client_options
def preview(
    url: Client,
    output: str,
    schedule: str | None,
    cron: str | None,
    timezone: str | None,
    count: int,
) -> None:
    """Print the next runs of SCHEDULE, or of an expression."""
    if (schedule is None) == (cron is None):
        raise click.UsageError("name a SCHEDULE or give --cron")
    if schedule is not None:
        answer = url.call("GET", f"{_path(schedule)}/preview", query={"count": str(count)}).body
    else:
        body = {"cron": cron, "timezone": timezone, "count": count}
        answer = url.call("POST", f"{API}/schedules/preview", body, query=STRICT).body
    if output == "json":
        print_json(answer)
        return
    for run in answer["runs"]:
        click.echo(run)


@schedules.command()
@click.argument("schedule")
@click.option("--from", "start", required=True, help="first instant, such as 2030-01-31T09:00:00Z")
@click.option("--to", "until", required=True, help="first instant no longer meant")
@client_options
def backfill(url: Client, output: str, schedule: str, start: str, until: str) -> None:
    """Make the jobs of past slots of SCHEDULE that have none."""
    body = {"from": start, "to": until}
    answer = url.call("POST", f"{_path(schedule)}/backfill", body, query=STRICT).body
    if output == "json":
        print_json(answer)
        return
    made = len(answer["job_ids"])
    click.echo(f"{schedule}  {made} of {answer['slots']} slots got a job")


def _path(schedule: str) -> str:
    return f"{API}/schedules/{segment(schedule)}"


def _print(output: str, schedule: dict[str, Any]) -> None:
    if output == "json":
        print_json(schedule)
    else:
        print_fields(schedule)


schedules.add_command(_change("pause", "Fire no slot of SCHEDULE until it is resumed."))
schedules.add_command(_change("resume", "Go on with the slots of SCHEDULE from now on."))
schedules.add_command(_change("run", "Make a job of SCHEDULE now."))
schedules.add_command(_change("delete", "Forget SCHEDULE; its jobs stay."))
