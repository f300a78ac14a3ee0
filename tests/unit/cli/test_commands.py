"""The table of commands: each loads, is called what the table says, and is documented."""

from collections.abc import Iterator

import click
import pytest

from corvo.cli.failure import (
    EXIT_CODES,
    CallError,
    PatienceError,
    SetupError,
    UnreachableError,
    exit_code_of,
)
from corvo.cli.main import COMMANDS, cli
from corvo.cli.reference import rewrite
from corvo.errors import CorruptionError, StorageError
from corvo.replication.disk import DirectoryLockedError, DiskFullError
from corvo.server.config import ConfigError
from tests.tidy.source import ROOT

REFERENCE = ROOT / "docs" / "reference" / "cli.md"
WITHOUT_OUTPUT = {
    "corvo server",  # prints its address and lives on
    "corvo worker",  # the options are the SDK's
    "corvo completion",  # prints a script
    "corvo top",  # shows screens
}


def _commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, f"{path} {name}")
    else:
        yield path, command


ALL = dict(_commands(cli, "corvo"))


@pytest.mark.parametrize("name", COMMANDS)
def test_command_loads_under_its_name_and_is_documented(name: str) -> None:
    """A command in the table exists, has a help text, and stands in the reference."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.help
    assert f"`corvo {name}" in REFERENCE.read_text(encoding="utf-8")


def test_the_reference_is_made_from_the_commands() -> None:
    """`make reference` would change nothing."""
    page = REFERENCE.read_text(encoding="utf-8")
    assert rewrite(page) == page
    for path in ALL:
        assert f"# {path}\n" in page, path


@pytest.mark.parametrize("path", ALL)
def test_every_command_takes_the_forms_of_output(path: str) -> None:
    """--output is on all of them; those that talk to a server also take --url and --profile."""
    options = {name for each in ALL[path].params for name in each.opts}
    if path in WITHOUT_OUTPUT:
        return
    assert "--output" in options
    if "--url" in options:
        assert {"--api-key", "--profile"} <= options


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CallError("no", code="NOT_FOUND", status=404, hint=None), 1),
        (ConfigError("no"), 2),
        (SetupError("no"), 2),
        (UnreachableError("no"), 3),
        (CallError("later", code="OVERLOADED", status=429, hint=None), 3),
        (CallError("later", code="DRAINING", status=503, hint=None), 3),
        (DirectoryLockedError("no"), 4),
        (CorruptionError("no"), 5),
        (StorageError("no"), 6),
        (DiskFullError("no"), 6),
        (PatienceError("no"), 7),
    ],
)
def test_every_kind_of_failure_has_its_exit_code(error: Exception, code: int) -> None:
    """Scripts can tell what went wrong; the reference and the help list the numbers."""
    assert exit_code_of(error) == code
    assert str(code) in EXIT_CODES
    assert f"| {code} |" in REFERENCE.read_text(encoding="utf-8")
