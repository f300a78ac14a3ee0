"""The table of commands: each loads, is called what the table says, and is documented."""

from pathlib import Path

import click
import pytest

from corvo.cli.failure import CallError, UnreachableError, exit_code_of
from corvo.cli.main import COMMANDS, cli
from corvo.errors import CorruptionError, StorageError
from corvo.replication.disk import DirectoryLockedError, DiskFullError
from corvo.server.config import ConfigError

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "cli.md"


@pytest.mark.parametrize("name", COMMANDS)
def test_command_loads_under_its_name_and_is_documented(name: str) -> None:
    """A command in the table exists, has a help text, and stands in the reference."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.help
    assert f"`corvo {name}" in REFERENCE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CallError("no", code="NOT_FOUND", status=404, hint=None), 1),
        (ConfigError("no"), 2),
        (UnreachableError("no"), 3),
        (CallError("later", code="OVERLOADED", status=429, hint=None), 3),
        (CallError("later", code="DRAINING", status=503, hint=None), 3),
        (DirectoryLockedError("no"), 4),
        (CorruptionError("no"), 5),
        (StorageError("no"), 6),
        (DiskFullError("no"), 6),
    ],
)
def test_every_kind_of_failure_has_its_exit_code(error: Exception, code: int) -> None:
    """Scripts can tell what went wrong; the reference lists the numbers."""
    assert exit_code_of(error) == code
    assert f"| {code} |" in REFERENCE.read_text(encoding="utf-8")
