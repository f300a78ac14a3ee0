"""Commands that find: search, status."""

import re
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click

from corvo.cli.client import API, Client
from corvo.cli.output import client_options, print_fields, print_json, print_table

PAGE = 1_000
STRICT = {"strict": "true"}
_INSTANTS = tuple(
    f"{name}_{end}"
    for name in ("created", "scheduled", "started", "completed", "expire")
    for end in ("after", "before")
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SHOWN = ("id", "queue", "state", "attempt", "created_at", "last_error")
_ERROR_CHARACTERS = 60


def instant(text: str) -> str:
    """Read an instant as people write it: a date alone, or a time without zone, is local time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a date or time; 2026-02-10 is") from error
    if moment.tzinfo is None:
        moment = moment.astimezone()
    return moment.isoformat()


def _times(function: Any) -> Any:
    """Add an option for each end of each span of time."""
    for name in reversed(_INSTANTS):
        flag = "--" + name.replace("_", "-")
        function = click.option(flag, name, help="date or time, such as 2026-02-10")(function)
    return function


@click.command()
@click.option("--queue", help="exact name")
@click.option("--state", help="one or more, with commas between them")
@click.option("--priority", type=click.Choice(["critical", "high", "normal"]))
@click.option("--tag", "tags", multiple=True, help="NAME=VALUE; repeatable, all must match")
@click.option("--payload-contains", help="part of the payload as compact JSON")
@click.option("--payload-jq", help="condition on the payload, such as '.amount > 100'")
@click.option("--error-contains", help="part of an error")
@click.option("--error-fingerprint", help="kind of the last error, as the dead letter groups it")
@click.option("--has-errors/--no-errors", default=None)
@click.option("--worker-id", help="worker of any attempt")
@click.option("--batch-id")
@click.option("--parent-id")
@click.option("--chain-id")
@click.option("--unique-key")
@click.option("--group")
@click.option("--job-id-prefix")
@click.option("--attempt-min", type=int)
@click.option("--attempt-max", type=int)
@_times
@click.option("--sort", help="created_at, started_at, completed_at, priority, attempt, …")
@click.option("--order", type=click.Choice(["asc", "desc"]))
@click.option("--limit", type=click.IntRange(min=1), help="at most this many; piped: all of them")
@client_options
def search(url: Client, output: str, **options: Any) -> None:
    """Find jobs. Piped, it prints the id of every match: corvo search … | corvo bulk retry."""
    is_terminal = sys.stdout.isatty()
    limit = options.pop("limit")
    if limit is None and is_terminal and output == "text":
        limit = 50
    found = _pages(url, _request(options), limit)
    if output == "json":
        print_json([job for page in found for job in page["jobs"]])
    elif not is_terminal:
        for page in found:
            for job in page["jobs"]:
                click.echo(job["id"])
    else:
        _print_found(list(found))


def _request(options: dict[str, Any]) -> dict[str, Any]:
    request = {name: value for name, value in options.items() if value not in (None, (), "")}
    for name in _INSTANTS:
        if name in request:
            request[name] = instant(request[name])
    if "state" in request:
        request["state"] = [word.strip() for word in request["state"].split(",") if word.strip()]
    if "tags" in request:
        pairs = [pair.partition("=") for pair in request["tags"]]
        if not all(name and equals for name, equals, _ in pairs):
            raise click.BadParameter("a tag is NAME=VALUE", param_hint="--tag")
        request["tags"] = {name: value for name, _, value in pairs}
    return request


def _pages(url: Client, request: dict[str, Any], limit: int | None) -> Iterator[Any]:
    """Page after page until there is no more, or there is enough."""
    while True:
        size = PAGE if limit is None else min(PAGE, limit)
        page = url.call("POST", f"{API}/jobs/search", request | {"limit": size}, query=STRICT).body
        yield page
        if limit is not None:
            limit -= len(page["jobs"])
        is_stuck = page["cursor"] == request.get("cursor")
        if not page["has_more"] or is_stuck or limit == 0:
            if page["partial"]:
                click.echo("the search took too long: this is a part of the matches", err=True)
            return
        request["cursor"] = page["cursor"]


def _print_found(pages: list[Any]) -> None:
    jobs = [job for page in pages for job in page["jobs"]]
    rows = [[_cell(job[name]) for name in _SHOWN] for job in jobs]
    print_table([name.upper() for name in _SHOWN], rows)
    last = pages[-1]
    sign = " at least" if last["total_is_estimate"] else ""
    click.echo(f"{len(jobs)} of{sign} {last['total']}, {last['duration_ms']} ms", err=True)


def _cell(value: Any) -> str:
    text = "" if value is None else str(value).splitlines()[0] if str(value) else ""
    return text if len(text) <= _ERROR_CHARACTERS else text[: _ERROR_CHARACTERS - 1] + "…"


_COUNTS = ("pending", "active", "scheduled", "retrying", "held", "dead", "completed")


@click.command()
@client_options
def status(url: Client, output: str) -> None:
    """Show the health of the server and the counts of its queues."""
    cluster = url.call("GET", f"{API}/cluster/status").body
    queues = url.call("GET", f"{API}/queues").body
    if output == "json":
        print_json({"cluster": cluster, "queues": queues})
        return
    plain = {
        name: value
        for name, value in cluster.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }
    print_fields(plain | {"view": cluster.get("view")})
    click.echo()
    totals = [str(sum(queue[name] for queue in queues)) for name in _COUNTS]
    rows = [[queue["name"], *(str(queue[name]) for name in _COUNTS)] for queue in queues]
    headings = ["QUEUE", *(name.upper() for name in _COUNTS)]
    print_table(headings, [*rows, [f"{len(queues)} queues", *totals]])
