"""docs/guide/migration.md: what it says you write can be written, and runs."""

import re
from pathlib import Path
from typing import Any

import pytest

from corvo_sdk.worker.command import _parser
from tests.support.server import Server
from tests.support.worker import working

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "migration.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (?P<theirs>`.*`|`.*`, `.*`) \| (?P<ours>.*) \|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


def written() -> list[str]:
    """What stands in the columns named Corvo, one piece of code a row."""
    rows = [match["ours"] for match in ROW.finditer(PAGE.read_text(encoding="utf-8"))]
    return [row[1:-1] for row in rows if CODE.fullmatch(row)]


def test_everything_in_the_columns_runs(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enqueues reach a server, declarations are taken, handles give results of a worker."""
    monkeypatch.setenv("CORVO_URL", f"http://127.0.0.1:{server.port}")
    names: dict[str, Any] = {"__name__": "page"}
    (block,) = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    exec(compile(block, PAGE.name, "exec"), names)
    with working(names["app"]):
        ran = 0
        for number, code in enumerate(written()):
            if code.startswith(("corvo-worker ", "app = ", "ctx.", "current_context")):
                continue  # the first are read below; the others need a handler around them
            if code.startswith("@"):
                code += f"\ndef declared_{number}(to: str) -> None: ..."  # noqa: PLW2901
            exec(compile(code, PAGE.name, "exec"), names)
            ran += 1
    assert ran >= 30


def test_commands_in_the_columns_are_commands() -> None:
    """The command line of the worker takes what the page says."""
    commands = [code for code in written() if code.startswith("corvo-worker ")]
    assert len(commands) == 3
    for command in commands:
        assert _parser({}).parse_args(command.split()[1:]).app == "shop.jobs:app"
