"""The pure packages decide the same on every node, in every process, on every replay."""

import ast

import pytest

from tests.tidy.purity import impurities
from tests.tidy.source import name_of, parse, pure_modules

PLANTED = [
    "import time",
    "from datetime import datetime",
    "import os.path",
    "from corvo.runtime.clock import Clock",
    "def f():\n    import random",
    "x = 0.5",
    "x = 1 / 2",
    "x = 4\nx /= 2",
    "x = float(3)",
    "x = hash('a')",
    "x = id(object())",
    "for x in {1, 2}:\n    pass",
    "for x in set(names):\n    pass",
    "y = [x for x in frozenset(names)]",
    "y = list({1, 2})",
    "y = tuple(first.union(second))",
    "f(*{1, 2})",
    "async def f():\n    pass",
    "def f():\n    global x\n    x = 1",
]

ALLOWED = [
    "import msgspec",
    "from corvo.model.job import Job",
    "x = 7 // 2",
    "y = 3 in {1, 2, 3}",
    "for x in sorted({2, 1}):\n    pass",
    "for x in {'a': 1}:\n    pass",
    "limits: frozenset[str] = frozenset({'a'})",
]


@pytest.mark.parametrize("text", PLANTED)
def test_planted_impurity_is_found(text: str) -> None:
    """The rule sees every pattern that was planted, so its silence means something."""
    assert impurities(ast.parse(text)) != []


@pytest.mark.parametrize("text", ALLOWED)
def test_pure_code_is_left_alone(text: str) -> None:
    """The rule does not forbid what replays the same."""
    assert impurities(ast.parse(text)) == []


def test_pure_packages_hold_nothing_that_changes_between_replays() -> None:
    """No clock, file, chance, float, address, hash or set order in model, keys and machine."""
    found = [
        f"{name_of(path)}:{line}: {reason}"
        for path in pure_modules()
        for line, reason in impurities(parse(path))
    ]
    assert found == []
