"""What every command that talks to a server shares: where it is, and how results are printed."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click
import msgspec

from corvo.cli.client import DEFAULT_URL, Client

Function = TypeVar("Function", bound=Callable[..., Any])


def _connect(_context: click.Context, _parameter: click.Parameter, value: str) -> Client:
    return Client(value)


def client_options(function: Function) -> Function:
    """Add `--url` and `--output` to a command."""
    with_output = click.option(
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        envvar="CORVO_OUTPUT",
        help="text for people, json for programs",
    )(function)
    return click.option(
        "--url",
        default=DEFAULT_URL,
        envvar="CORVO_URL",
        show_default=True,
        callback=_connect,
        help="the server; also CORVO_URL",
    )(with_output)


def print_json(value: object) -> None:
    """Print one JSON document, indented, members in the order the server gave them."""
    encoded = msgspec.json.encode(value)
    click.echo(msgspec.json.format(encoded, indent=2).decode())


def print_table(headings: list[str], rows: Iterable[list[str]]) -> None:
    """Print aligned columns: text to the left, numbers to the right."""
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for line in lines:
        cells = [
            cell.rjust(width) if cell.isdigit() else cell.ljust(width)
            for cell, width in zip(line, widths, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def print_fields(document: dict[str, Any]) -> None:
    """Print one object a line per member; nested values as compact JSON, empty ones not at all."""
    width = max((len(name) for name in document), default=0)
    for name, value in document.items():
        if value is None or value in ([], {}, ""):
            continue
        shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        click.echo(f"{name.ljust(width)}  {shown}")
