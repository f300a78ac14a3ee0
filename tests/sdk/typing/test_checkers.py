"""Both type checkers, in their strictest mode, agree with the files beside this one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CASES = sorted(path for path in HERE.glob("*.py") if not path.name.startswith("test_"))
SOURCE = ROOT / "sdks/python/src"


def test_there_is_something_to_check() -> None:
    """An empty folder would pass every check."""
    assert [path.name for path in CASES] != []


def test_mypy_agrees(tmp_path: Path) -> None:
    """Every accepted line is accepted, and every ignore is needed."""
    options = "--strict --python-version 3.11 --no-error-summary --config-file= --cache-dir".split()
    options.append(str(tmp_path))
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, CASES)],
        env={"MYPYPATH": str(SOURCE), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout + found.stderr == ""


@pytest.mark.timeout(300)
def test_pyright_agrees(tmp_path: Path) -> None:
    """Every accepted line is accepted, and every ignore is needed."""
    settings = {
        "include": [str(path) for path in CASES],
        "extraPaths": [str(SOURCE)],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
        # The ignores of the other checker must not hide anything here.
        "enableTypeIgnoreComments": False,
        "reportUnnecessaryTypeIgnoreComment": "error",
        "reportUnusedCallResult": "none",
        "reportUnusedExpression": "none",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    options = ["--project", str(tmp_path), "--pythonpath", sys.executable]
    options += ["--outputjson", "--level", "error"]
    found = subprocess.run(
        [sys.executable, "-m", "basedpyright", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    problems = json.loads(found.stdout)["generalDiagnostics"]
    assert [
        f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']}"
        for one in problems
    ] == []
