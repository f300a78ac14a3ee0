"""How results are printed: tables for people; JSON, lines of JSON or YAML for programs."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

import click
import msgspec

from corvo.cli import yaml
from corvo.cli.visible import visible

FORMS: Final = ("table", "json", "jsonl", "yaml")
_CELL_CHARACTERS: Final = 60
_COLOURS: Final[dict[str, str]] = {
    "completed": "green",
    "ok": "green",
    "healthy": "green",
    "delivered": "green",
    "active": "cyan",
    "running": "cyan",
    "pending": "blue",
    "scheduled": "blue",
    "retrying": "yellow",
    "held": "yellow",
    "paused": "yellow",
    "draining": "yellow",
    "warning": "yellow",
    "stale": "yellow",
    "dead": "red",
    "failed": "red",
    "failing": "red",
    "suspended": "red",
    "cancelled": "magenta",
}


class Printer(msgspec.Struct, frozen=True):
    """Prints results in one form. `is_named`: somebody asked for it, it is not the default."""

    form: str = "table"
    is_named: bool = False

    @property
    def is_for_people(self) -> bool:
        return self.form == "table"

    def show(self, value: object, render: Callable[[], None] | None = None) -> None:
        """Print a result; `render` prints it for people, by default a line per member."""
        if self.form == "json":
            print_json(value)
        elif self.form == "jsonl":
            is_many = isinstance(value, list | tuple)
            for item in cast("list[Any]", value) if is_many else [value]:
                self.line(item)
        elif self.form == "yaml":
            click.echo(yaml.render(msgspec.to_builtins(value)), nl=False)
        elif render is not None:
            render()
        else:
            print_fields(cast("dict[str, Any]", value))

    def line(self, value: object) -> None:
        """Print one item of a stream, which has no end that could close an array."""
        if self.form == "yaml":
            click.echo("---\n" + yaml.render(msgspec.to_builtins(value)), nl=False)
        else:
            click.echo(msgspec.json.encode(value).decode())


def is_coloured() -> bool:
    """Whether colours are wanted: on a terminal, and nobody said no."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(text: str, colour: str) -> str:
    """Colour a text where colours are wanted."""
    return click.style(text, fg=colour) if is_coloured() else text


def print_json(value: object) -> None:
    """Print one JSON document, indented, members in the order the server gave them."""
    encoded = msgspec.json.encode(value)
    click.echo(msgspec.json.format(encoded, indent=2).decode())


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print aligned columns: text to the left, numbers to the right; states in their colour."""
    lines = [list(headings), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    for number, line in enumerate(lines):
        cells = [
            cell.rjust(width) if cell.isdigit() else cell.ljust(width)
            for cell, width in zip(line, widths, strict=True)
        ]
        cells[-1] = cells[-1].rstrip()
        if is_coloured():
            bold = number == 0
            cells = [click.style(cell, bold=True) if bold else _coloured(cell) for cell in cells]
        click.echo("  ".join(cells).rstrip())


def _coloured(cell: str) -> str:
    colour = _COLOURS.get(cell.strip())
    return click.style(cell, fg=colour) if colour else cell


def print_fields(document: dict[str, Any]) -> None:
    """Print one object a line per member; nested values as compact JSON, empty ones not at all."""
    width = max((len(name) for name in document), default=0)
    for name, value in document.items():
        if value is None or value in ([], {}, ""):
            continue
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        shown = _coloured(visible(text)) if is_coloured() else visible(text)
        click.echo(f"{visible(name).ljust(width)}  {shown}")


def cell(value: object) -> str:
    """Write a value into a table: its first line, cut to what fits; nothing is a dash."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return cell(", ".join(cell(item) for item in cast("list[Any]", value)))
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = visible((text.splitlines() or [""])[0])
    return text if len(text) <= _CELL_CHARACTERS else text[: _CELL_CHARACTERS - 1] + "…"


def print_columns(items: Iterable[dict[str, Any]], names: Sequence[str]) -> None:
    """Print these members of each object as a table; the heading is the member's name."""
    headings = [name.removesuffix("_at").replace("_", " ") for name in names]
    print_table(headings, [[cell(item.get(name)) for name in names] for item in items])
