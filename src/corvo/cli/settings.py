"""Commands that show and change settings: queue, concurrency, throttle, limits."""

from typing import Any, Final

import click

from corvo.cli.arguments import STRICT, document, queue_argument
from corvo.cli.client import segment
from corvo.cli.groups import DefaultGroup
from corvo.cli.output import print_columns, print_fields
from corvo.cli.session import Session, connected

_NUMBERS: Final = ("max_concurrency", "key_concurrency", "retention_count", "max_payload")
_RATES: Final = ("rate", "key_rate")


@click.group(
    cls=DefaultGroup,
    default="show",
    is_named_by_argument=True,
    subcommand_metavar="[show|set] QUEUE [ARGS]...",
)
def queue() -> None:
    """One queue: show it, or change its settings. `corvo queue NAME` shows it."""


@queue.command()
@queue_argument
@connected
def show(session: Session, queue: str) -> None:
    """Show counts, totals and settings of QUEUE."""
    found = session.call("GET", f"/queues/{segment(queue)}")

    def render() -> None:
        nested = ("totals", "settings")
        print_fields({name: value for name, value in found.items() if name not in nested})
        for name in nested:
            click.echo(f"\n{name}")
            print_fields({f"  {key}": value for key, value in found.get(name, {}).items()})

    session.show(found, render)


@queue.command("set")
@queue_argument
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE…")
@connected
def set_(session: Session, queue: str, settings: tuple[str, ...]) -> None:
    """Change settings of QUEUE: `max_concurrency=10 rate=100/1m lease_duration=5m`.

    Names: max_concurrency, key_concurrency, rate, key_rate, weights, priority_mode, aging_step,
    lease_duration, retention, retention_count, require_token, max_payload, webhook_secret. A rate
    is COUNT/PERIOD or COUNT/PERIOD/BURST, weights are JSON. Nothing after the sign removes it.
    """
    body: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{setting!r} is not NAME=VALUE", param_hint="NAME=VALUE")
        body[name.replace("-", "_")] = _value(name.replace("-", "_"), text)
    answer = session.call("PATCH", f"/queues/{segment(queue)}", body, query=STRICT)
    session.show(answer, lambda: print_fields(answer["settings"]))


def _value(name: str, text: str) -> Any:
    """Read the value of a setting by its name; the server judges what it means."""
    if text == "":
        return None
    if name in _RATES:
        return rate_of(text)
    if name in _NUMBERS and text.isdigit():
        return int(text)
    if name == "require_token" and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if name == "weights":
        return document(text, "weights")
    return text


def rate_of(text: str) -> dict[str, Any]:
    """Read COUNT/PERIOD or COUNT/PERIOD/BURST."""
    parts = text.split("/")
    if len(parts) not in (2, 3) or not parts[0].isdigit() or not parts[-1]:
        raise click.BadParameter(f"{text!r} is no rate; 100/1m and 100/1m/20 are")
    rate: dict[str, Any] = {"rate": int(parts[0]), "period": _period(parts[1])}
    if len(parts) == 3:
        if not parts[2].isdigit():
            raise click.BadParameter(f"{text!r} is no rate; 100/1m and 100/1m/20 are")
        rate["burst"] = int(parts[2])
    return rate


def _period(text: str) -> int | str:
    if text.isdigit():
        return int(text)
    # 100/s is what people write for 100/1s.
    return text if text[:1].isdigit() else f"1{text}"


def _show_settings(session: Session, queue: str, answer: dict[str, Any]) -> None:
    def render() -> None:
        click.echo(queue)
        print_fields({f"  {name}": value for name, value in answer["settings"].items()})

    session.show(answer, render)


@click.command()
@queue_argument
@click.argument("maximum", metavar="MAX", type=click.IntRange(min=0))
@connected
def concurrency(session: Session, queue: str, maximum: int) -> None:
    """Let at most MAX jobs of QUEUE run at once; 0 removes the limit."""
    path = f"/queues/{segment(queue)}/concurrency"
    _show_settings(session, queue, session.call("POST", path, {"max": maximum}, query=STRICT))


@click.command()
@queue_argument
@click.argument("rate")
@connected
def throttle(session: Session, queue: str, rate: str) -> None:
    """Start at most RATE jobs of QUEUE, such as 100/1m or 100/1m/20 (burst); `off` removes it."""
    path = f"/queues/{segment(queue)}/throttle"
    if rate in {"off", "0"}:
        answer = session.call("DELETE", path)
    else:
        answer = session.call("POST", path, rate_of(rate), query=STRICT)
    _show_settings(session, queue, answer)


@click.group(cls=DefaultGroup, default="list")
def limits() -> None:
    """Named limits that hold across queues; without a sub-command: list them."""


@limits.command("list")
@connected
def list_limits(session: Session) -> None:
    """List all named limits."""
    listed = session.call("GET", "/limits")

    def render() -> None:
        if not listed:
            click.echo("no limits yet; corvo limits set NAME --max 10")
            return
        print_columns(listed, ("name", "max", "rate", "period", "burst", "used"))

    session.show(listed, render)


@limits.command("show")
@click.argument("name")
@connected
def show_limit(session: Session, name: str) -> None:
    """Show the limit NAME."""
    session.show(session.call("GET", f"/limits/{segment(name)}"))


@limits.command("set")
@click.argument("name")
@click.option("--max", "maximum", type=click.IntRange(min=0), help="jobs at once")
@click.option("--rate", help="starts in a time, such as 100/1m or 100/1m/20 (burst)")
@connected
def set_limit(session: Session, name: str, maximum: int | None, rate: str | None) -> None:
    """Create or replace the limit NAME."""
    body = rate_of(rate) if rate else {}
    if maximum is not None:
        body["max"] = maximum
    if not body:
        raise click.UsageError("give --max, --rate or both")
    session.show(session.call("PUT", f"/limits/{segment(name)}", body, query=STRICT))


@limits.command("delete")
@click.argument("name")
@connected
def delete_limit(session: Session, name: str) -> None:
    """Remove the limit NAME; jobs that name it pass freely."""
    session.show(session.call("DELETE", f"/limits/{segment(name)}"))
