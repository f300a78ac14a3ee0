"""Commands that find jobs: search, held, dead, batches."""

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import click

from corvo.cli.arguments import PRIORITIES, STRICT, complete_queue, given, instant, tags_of, words
from corvo.cli.client import API, segment
from corvo.cli.output import cell, print_columns, print_table
from corvo.cli.session import Session, connected

PAGE: Final = 1_000
TERMINAL_ROWS: Final = 50
_INSTANTS: Final = tuple(
    f"{name}_{end}"
    for name in ("created", "scheduled", "started", "completed", "expire")
    for end in ("after", "before")
)
_SHOWN: Final = ("id", "queue", "state", "attempt", "created_at", "last_error")
_HELD: Final = ("id", "queue", "created_at", "hold_reason", "payload")
_DEAD: Final = ("id", "queue", "attempt", "dead_reason", "failed_at", "last_error")
_limit = click.option(
    "--limit", type=click.IntRange(min=1), help="at most this many; piped: all of them"
)


def _times(function: Any) -> Any:
    """Add an option for each end of each span of time."""
    for name in reversed(_INSTANTS):
        flag = "--" + name.replace("_", "-")
        function = click.option(flag, name, help="date or time, such as 2026-02-10")(function)
    return function


@click.command()
@click.option("--queue", help="exact name", shell_complete=complete_queue)
@click.option("--state", help="one or more, with commas between them")
@click.option("--priority", type=click.Choice(PRIORITIES))
@click.option("--tag", "tags", multiple=True, help="NAME=VALUE; repeatable, all must match")
@click.option("--payload-contains", help="part of the payload as compact JSON")
@click.option("--payload-jq", help="condition on the payload, such as '.amount > 100'")
@click.option("--error-contains", help="part of an error")
@click.option("--error-fingerprint", help="kind of the last error, as corvo dead --groups shows")
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
@click.option("--fresh", is_flag=True, help="wait until all that was answered can be found")
@_limit
@connected
def search(session: Session, limit: int | None, *, fresh: bool, **options: Any) -> None:
    """Find jobs. Piped, it prints the id of every match: corvo search … | corvo bulk retry."""
    after = session.client.call("GET", f"{API}/livez").index if fresh else None
    query = STRICT | ({"after": str(after)} if after is not None else {})
    request = _request(options)

    def page(cursor: str | None, size: int) -> Any:
        body = request | {"limit": size} | ({"cursor": cursor} if cursor else {})
        return session.call("POST", "/jobs/search", body, query=query)

    show_found(session, page, limit, _SHOWN)


def _request(options: dict[str, Any]) -> dict[str, Any]:
    request = given(options)
    for name in _INSTANTS:
        if name in request:
            request[name] = instant(request[name])
    if "state" in request:
        request["state"] = words(request["state"])
    if "tags" in request:
        request["tags"] = tags_of(request["tags"])
    return request


Turn = Callable[[str | None, int], Any]


def show_found(session: Session, turn: Turn, limit: int | None, names: tuple[str, ...]) -> None:
    """Print what pages of jobs hold: a table on a terminal, ids in a pipe, or the form named."""
    is_table = session.is_for_people and (session.is_named or sys.stdout.isatty())
    if limit is None and is_table and sys.stdout.isatty():
        limit = TERMINAL_ROWS
    found = _pages(turn, limit)
    if is_table:
        _print_found(list(found), names)
    elif session.form == "table":
        for page in found:
            for job in page["jobs"]:
                click.echo(job["id"])
    elif session.form == "jsonl":
        for page in found:
            for job in page["jobs"]:
                session.line(job)
    else:
        session.show([job for page in found for job in page["jobs"]])


def _pages(turn: Turn, limit: int | None) -> Iterator[Any]:
    """Page after page until there is no more, or there is enough."""
    cursor: str | None = None
    while True:
        page = turn(cursor, PAGE if limit is None else min(PAGE, limit))
        yield page
        if limit is not None:
            limit -= len(page["jobs"])
        if not page["has_more"] or page["cursor"] == cursor or limit == 0:
            if page["partial"]:
                click.echo("the search took too long: this is a part of the matches", err=True)
            return
        cursor = page["cursor"]


def _print_found(pages: list[Any], names: tuple[str, ...]) -> None:
    jobs = [job for page in pages for job in page["jobs"]]
    rows = [[cell(job.get(name)) for name in names] for job in jobs]
    print_table([name.upper() for name in names], rows)
    last = pages[-1]
    sign = " at least" if last["total_is_estimate"] else ""
    click.echo(f"{len(jobs)} of{sign} {last['total']}, {last['duration_ms']} ms", err=True)


@click.command()
@click.option("--queue", help="exact name", shell_complete=complete_queue)
@_limit
@connected
def held(session: Session, queue: str | None, limit: int | None) -> None:
    """List jobs that wait for corvo approve or corvo reject. Piped, it prints their ids."""
    request = {"state": ["held"], "order": "asc"} | ({"queue": queue} if queue else {})

    def page(cursor: str | None, size: int) -> Any:
        body = request | {"limit": size} | ({"cursor": cursor} if cursor else {})
        return session.call("POST", "/jobs/search", body, query=STRICT)

    show_found(session, page, limit, _HELD)


@click.command()
@click.option("--queue", help="exact name", shell_complete=complete_queue)
@click.option("--groups", is_flag=True, help="by kind of error instead of one by one")
@_limit
@connected
def dead(session: Session, queue: str | None, limit: int | None, *, groups: bool) -> None:
    """List dead jobs, the last one first. Piped, it prints their ids."""
    query = {"queue": queue} if queue else {}
    if groups:
        _show_groups(session, query, limit)
        return

    def page(cursor: str | None, size: int) -> Any:
        asked = query | {"limit": str(size)} | ({"cursor": cursor} if cursor else {})
        return session.call("GET", "/dead", query=asked)

    show_found(session, page, limit, _DEAD)


def _show_groups(session: Session, query: dict[str, str], limit: int | None) -> None:
    found = session.call("GET", "/dead/groups", query=query | {"limit": str(limit or 100)})
    names = ("count", "error_fingerprint", "dead_reason", "error", "queues", "last_at")
    session.show(found["groups"], lambda: print_columns(found["groups"], names))
    if found["has_more"]:
        click.echo("there are more groups; --limit shows more of them", err=True)


@click.command()
@click.argument("batch_id", required=False)
@click.option("--state", type=click.Choice(["open", "finished"]))
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@connected
def batches(session: Session, batch_id: str | None, state: str | None, limit: int) -> None:
    """List batches, the newest first, or show the one with this id."""
    if batch_id is not None:
        session.show(session.call("GET", f"/batches/{segment(batch_id)}"))
        return
    query = {"state": state} if state else {}
    listed: list[dict[str, Any]] = []
    while len(listed) < limit:
        size = {"limit": str(min(PAGE, limit - len(listed)))}
        page = session.call("GET", "/batches", query=query | size)
        listed += page["batches"]
        if not page["has_more"] or not page["cursor"]:
            break
        query["cursor"] = page["cursor"]
    names = ("id", "total", "pending", "succeeded", "failed", "cancelled", "created_at")
    session.show(listed, lambda: print_columns(listed, (*names, "finished_at")))
