"""Commands about webhooks: list, show, create, update, delete, test, deliveries, redeliver."""

from typing import Any, Final

import click

from corvo.cli.arguments import STRICT, given
from corvo.cli.client import segment
from corvo.cli.groups import DefaultGroup
from corvo.cli.output import cell, print_columns, print_table
from corvo.cli.session import Session, connected

_LISTED: Final = ("id", "url", "events", "queues", "status", "waiting", "delivered", "failed")
_WRITABLE: Final = ("url", "events", "queues", "enabled", "retry_limit", "timeout")


@click.group(cls=DefaultGroup, default="list")
def webhooks() -> None:
    """Endpoints that get events; without a sub-command: list them."""


@webhooks.command("list")
@connected
def list_webhooks(session: Session) -> None:
    """List all webhooks, the oldest first."""
    listed = session.call("GET", "/webhooks")

    def render() -> None:
        if not listed:
            click.echo("no webhooks yet; corvo webhooks create URL")
            return
        print_columns(listed, _LISTED)

    session.show(listed, render)


@webhooks.command()
@click.argument("webhook_id", metavar="WEBHOOK")
@connected
def show(session: Session, webhook_id: str) -> None:
    """Show everything about WEBHOOK."""
    session.show(session.call("GET", _path(webhook_id)))


def _options(function: Any) -> Any:
    for decorate in (
        click.option("--timeout", help="for one try, such as 10s"),
        click.option("--retry-limit", type=int, help="tries after the first one"),
        click.option("--enabled/--disabled", default=None),
        click.option("--secret", help="signs what is sent; never shown again"),
        click.option("--queue", "queues", multiple=True, help="only these; repeatable"),
        click.option("--event", "events", multiple=True, help="job.*, completed, …; repeatable"),
    ):
        function = decorate(function)
    return function


def _fields(options: dict[str, Any]) -> dict[str, Any]:
    fields = given(options)
    return {name: list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownArgumentType]
            for name, value in fields.items()}  # fmt: skip


@webhooks.command()
@click.argument("target", metavar="URL")
@_options
@connected
def create(session: Session, target: str, **options: Any) -> None:
    """Send events from now on to URL: all, or those of --event and --queue."""
    body = {"url": target} | _fields(options)
    session.show(session.call("POST", "/webhooks", body, query=STRICT))


@webhooks.command()
@click.argument("webhook_id", metavar="WEBHOOK")
@click.option("--target", help="other address")
@_options
@connected
def update(session: Session, webhook_id: str, target: str | None, **options: Any) -> None:
    """Change WEBHOOK: what is given is replaced, the rest stays."""
    fields = _fields(options) | ({"url": target} if target else {})
    if not fields:
        raise click.UsageError("say what is to be changed; corvo webhooks update --help")
    found: dict[str, Any] = session.call("GET", _path(webhook_id))
    body = {name: found[name] for name in _WRITABLE if found.get(name) is not None} | fields
    session.show(session.call("PUT", _path(webhook_id), body, query=STRICT))


@webhooks.command()
@click.argument("webhook_id", metavar="WEBHOOK")
@connected
def delete(session: Session, webhook_id: str) -> None:
    """Remove WEBHOOK and its dead letters."""
    answer = session.call("DELETE", _path(webhook_id))
    session.show(answer, lambda: click.echo(f"{webhook_id}  {answer['status']}"))


@webhooks.command()
@click.argument("webhook_id", metavar="WEBHOOK")
@connected
def test(session: Session, webhook_id: str) -> None:
    """Send a test event to WEBHOOK now and show what came of it."""
    session.show(session.call("POST", f"{_path(webhook_id)}/test"))


@webhooks.command()
@click.argument("webhook_id", metavar="WEBHOOK")
@connected
def deliveries(session: Session, webhook_id: str) -> None:
    """List the latest deliveries to WEBHOOK, the newest first."""
    found = session.call("GET", f"{_path(webhook_id)}/deliveries")["deliveries"]
    session.show(found, lambda: _print_deliveries(found))


@webhooks.command("dead-letters")
@click.argument("webhook_id", metavar="WEBHOOK")
@connected
def dead_letters(session: Session, webhook_id: str) -> None:
    """List what WEBHOOK never took, the oldest first."""
    found = session.call("GET", f"{_path(webhook_id)}/dead-letters")["dead_letters"]
    session.show(found, lambda: _print_deliveries(found))


def _print_deliveries(found: list[dict[str, Any]]) -> None:
    headings = ["id", "status", "event", "job", "attempts", "tried", "code", "error"]
    rows: list[list[str]] = []
    for each in found:
        event: dict[str, Any] = each.get("event") or {}
        values = [each.get("id"), each.get("status"), event.get("type"), event.get("job_id")]
        values += [each.get(name) for name in ("attempts", "tried_at", "status_code", "error")]
        rows.append([cell(value) for value in values])
    print_table(headings, rows)


@webhooks.command()
@click.argument("webhook_id", metavar="WEBHOOK")
@click.argument("delivery_id", metavar="DELIVERY")
@connected
def redeliver(session: Session, webhook_id: str, delivery_id: str) -> None:
    """Try one DELIVERY to WEBHOOK once more, now; of the log or of the dead letters."""
    path = f"{_path(webhook_id)}/deliveries/{segment(delivery_id)}/redeliver"
    session.show(session.call("POST", path))


def _path(webhook_id: str) -> str:
    return f"/webhooks/{segment(webhook_id)}"
