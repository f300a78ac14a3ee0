"""Commands about what happens: `corvo events` and `corvo tail`."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import click
import msgspec

from corvo.cli.arguments import DURATION, complete_queue, instant
from corvo.cli.jobs import show_timeline
from corvo.cli.output import cell, paint
from corvo.cli.session import Session, connected
from corvo.cli.visible import visible
from corvo.runtime.clock import SystemClock

PAGE: Final = 1_000
_BAD: Final = frozenset({"dead", "failed", "reset", "machine.fault", "expired", "rejected"})
_GOOD: Final = frozenset({"completed", "approved", "batch.completed"})


def _filters(function: Any) -> Any:
    for decorate in (
        click.option(
            "--retry-for",
            type=DURATION,
            default="1m",
            show_default=True,
            help="how long to look for a server that went away",
        ),
        click.option("--count", type=click.IntRange(min=1), help="stop after so many events"),
        click.option("--since", help="also what happened since: 10m, a date or time, or a number"),
        click.option("--job", "job_id", help="ids of jobs, with commas"),
        click.option("--type", "types", help="completed,dead or queue.*; with commas"),
        click.option(
            "--queue", help="names, with commas; emails.* too", shell_complete=complete_queue
        ),
    ):
        function = decorate(function)
    return function


@click.command()
@click.argument("job", required=False)
@_filters
@click.option("--follow/--no-follow", default=True, help="go on with what happens next")
@connected
def events(session: Session, job: str | None, *, follow: bool, **options: Any) -> None:
    """Show what happened to JOB; without one, show what happens anywhere, as it happens."""
    if job is not None:
        options.pop("retry_for")
        if any(value is not None for value in options.values()):
            raise click.UsageError("the timeline of one job takes no filters; use --job ID")
        show_timeline(session, job)
        return
    _show(session, options, is_followed=follow)


@click.command()
@_filters
@connected
def tail(session: Session, **options: Any) -> None:
    """Follow what happens, as it happens: a line per event, until Ctrl-C."""
    _show(session, options, is_followed=True)


def _show(session: Session, options: dict[str, Any], *, is_followed: bool) -> None:
    count = options["count"]
    names = {"queue": "queue", "types": "type", "job_id": "job_id"}
    query = {name: options[key] for key, name in names.items() if options[key] is not None}
    after = None if options["since"] is None else _position(session, options["since"])
    if is_followed:
        patience = options["retry_for"]
        happening = session.client.events(query, after, patience_seconds=patience)
    else:
        happening = _kept(session, query, after or 0)
    for number, event in enumerate(happening, 1):
        _print(session, event)
        if number == count:
            return


def _kept(session: Session, query: dict[str, str], after: int) -> Iterator[dict[str, Any]]:
    """The events there are by now, oldest first."""
    last: int | None = None
    while True:
        asked = query | {"after_seq": str(after), "limit": str(PAGE)}
        page = session.call("GET", "/cluster/events", query=asked)
        last = page["last_seq"] if last is None else last
        yield from page["events"]
        # Without the second condition a busy server would never let us end.
        if page["next_after_seq"] <= after or page["next_after_seq"] >= last:
            return
        after = page["next_after_seq"]


def _position(session: Session, text: str) -> int:
    """The number of the last event before `text`: a number, an age, or an instant."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        seconds = DURATION.convert(text, None, None)
        moment = datetime.fromtimestamp(SystemClock().now_ms() / 1_000 - seconds, UTC)
    except click.BadParameter:
        moment = datetime.fromisoformat(instant(text))
    return _before(session, moment)


def _before(session: Session, moment: datetime) -> int:
    """Halve the kept events until the last one before a moment is found."""
    first = _event_after(session, 0)
    low, high = first["oldest_seq"] - 1, first["last_seq"]
    # Invariant: everything up to `low` is before the moment, everything after `high` is not.
    while low < high:
        middle = (low + high) // 2
        page = _event_after(session, middle)
        is_after = not page["events"] or datetime.fromisoformat(page["events"][0]["at"]) >= moment
        if is_after:
            high = middle
        else:
            low = page["events"][0]["seq"]
    return max(0, low)


def _event_after(session: Session, seq: int) -> Any:
    query = {"after_seq": str(max(0, seq)), "limit": "1"}
    return session.call("GET", "/cluster/events", query=query)


def _print(session: Session, event: dict[str, Any]) -> None:
    if not session.is_for_people:
        session.line(event)
        return
    kind = visible(str(event["type"]))
    name = kind.ljust(18)
    if kind in _BAD:
        name = paint(name, "red")
    elif kind in _GOOD:
        name = paint(name, "green")
    data = visible(msgspec.json.encode(event["data"]).decode()) if event.get("data") else ""
    shown = (event["at"], name, event.get("queue"), event.get("job_id"))
    click.echo("  ".join([*(cell(each) if each is not name else name for each in shown), data]))
