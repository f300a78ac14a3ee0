"""What the rules read: every Python file of the tree, parsed once."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "corvo"
SDK = ROOT / "sdks" / "python" / "src" / "corvo_sdk"

# Invariant: these packages decide, so they must decide the same on every node and every replay.
PURE_PACKAGES = ("keys", "machine", "model")


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def name_of(path: Path) -> str:
    """The path as people write it in an exception list."""
    return path.relative_to(ROOT).as_posix()


def modules(*folders: Path) -> list[Path]:
    """Every Python file under the folders, in a stable order."""
    found = [path for folder in folders for path in folder.rglob("*.py")]
    return sorted(path for path in found if "__pycache__" not in path.parts)


def shipped_modules() -> list[Path]:
    return modules(SOURCE, SDK)


def pure_modules() -> list[Path]:
    return modules(*(SOURCE / package for package in PURE_PACKAGES))


def is_pure(path: Path) -> bool:
    return any(path.is_relative_to(SOURCE / package) for package in PURE_PACKAGES)


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def code_lines_count(function: Function, text: list[str]) -> int:
    """Lines of code in a function: no docstring, no blank line, no comment line."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    if not body:
        return 0
    lines = text[body[0].lineno - 1 : function.end_lineno]
    return sum(1 for line in lines if line.strip() and not line.lstrip().startswith("#"))
