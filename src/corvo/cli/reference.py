"""Writes the generated parts of docs/reference/cli.md from the commands; `make reference` runs it.

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`; what is outside is written by
hand and kept.
"""

import re
import sys
from collections.abc import Callable, Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Final

import click

from corvo.cli.failure import EXIT_CODES
from corvo.cli.main import COMMANDS, cli

_PART: Final = re.compile(r"(<!-- generated: ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
# Described once, at the top of the page.
_SHARED: Final = frozenset({"url", "api_key", "profile", "output", "help"})
# Described on a page of their own, or by the program that gets them.
_ELSEWHERE: Final = {
    "server": "The flags are the [settings](config.md).",
    "worker": "The options are those of the worker: `corvo worker --help`.",
}


def rewrite(page: str) -> str:
    """The page with its generated parts as the commands are now."""
    return _PART.sub(lambda found: found[1] + PARTS[found[2]]() + found[3], page)


def exit_codes() -> str:
    """The table of exit codes."""
    rows = [f"| {code} | {text} |" for code, text in EXIT_CODES.items()]
    return "\n".join(["| code | meaning |", "|---|---|", *rows]) + "\n"


def commands() -> str:
    """Every command under its heading."""
    lines: list[str] = []
    for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
        named = {name: e for name, e in COMMANDS.items() if e.section == section}
        lines += [f"## {section}", "", "| command | |", "|---|---|"]
        lines += [f"| [`corvo {name}`](#corvo-{name}) | {e.text} |" for name, e in named.items()]
        lines.append("")
        for name in named:
            command = cli.get_command(click.Context(cli), name)
            assert command is not None
            lines += _described(command, f"corvo {name}", "###")
    return "\n".join(lines) + "\n"


def _described(command: click.Command, path: str, level: str) -> Iterator[str]:
    context = click.Context(command, info_name=path)
    pieces = " ".join([path, *command.collect_usage_pieces(context)])
    yield from (f"{level} {path}", "", "```", pieces, "```", "")
    yield from (_text(command), "")
    elsewhere = _ELSEWHERE.get(path.removeprefix("corvo "))
    if elsewhere:
        yield from (elsewhere, "")
        return
    options = [each for each in command.params if isinstance(each, click.Option)]
    rows = [_row(each, context) for each in options if each.name not in _SHARED]
    if rows:
        yield from ("| option | |", "|---|---|", *rows, "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _described(inner, f"{path} {name}", "####")


def _text(command: click.Command) -> str:
    return cleandoc(command.help or "").replace("\b\n", "")


def _row(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None
    names, text = (" ".join(each.split()).replace("|", "\\|") for each in record)
    return f"| `{names}` | {text} |"


PARTS: Final[dict[str, Callable[[], str]]] = {"commands": commands, "exit codes": exit_codes}


def main() -> None:
    """Rewrite the page named on the line."""
    path = Path(sys.argv[1])
    path.write_text(rewrite(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
