"""Names, notes and docstrings: what a reader relies on to find the way."""

import ast
import re

from tests.tidy.source import ROOT, SDK, SOURCE, functions, modules, name_of, parse, shipped_modules

FORBIDDEN_NAMES = frozenset(
    {"base", "common", "core", "handler", "helpers", "manager", "misc", "service", "types", "utils"}
)

# What users import by this name: `corvo_sdk.types`.
NAMES_KEPT = frozenset({"sdks/python/src/corvo_sdk/types"})
# Resolves its names when they are first used, which takes two functions (PEP 562).
LAZY_PACKAGES = frozenset({"sdks/python/src/corvo_sdk/__init__.py"})

# Spelt in two halves, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
HOME_PATH = re.compile(r"/(home|root|Users)/\w|/" r"work/|/tmp/ven" r"v")

IGNORED_FOLDERS = frozenset(
    {".git", ".venv", "build", "data", "dist", "node_modules", ".pytest_cache", ".ruff_cache"}
)
TEXT_SUFFIXES = frozenset({".cfg", ".lock", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"})


def _texts() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if IGNORED_FOLDERS.intersection(parts) or not path.is_file():
            continue
        if path.suffix in TEXT_SUFFIXES or path.name in {"Makefile", "run"}:
            found.append((name_of(path), path.read_text(encoding="utf-8")))
    return found


def test_no_module_has_a_name_that_says_nothing() -> None:
    """Modules are nouns of the domain; `utils` and its cousins collect what has no home."""
    found = [name_of(path) for path in shipped_modules() if path.stem in FORBIDDEN_NAMES]
    found += [
        name_of(path)
        for folder in (SOURCE, SDK)
        for path in folder.rglob("*")
        if path.is_dir() and path.name in FORBIDDEN_NAMES
    ]
    assert set(found) - NAMES_KEPT == set()


def test_no_unfinished_business_is_left_in_the_text() -> None:
    """A note about work to be done belongs in an issue, where it is seen."""
    assert [name for name, text in _texts() if UNFINISHED.search(text)] == []


def test_no_path_of_one_machine_is_left_in_the_text() -> None:
    """Files speak of paths below the project, never of somebody's disk."""
    assert [name for name, text in _texts() if HOME_PATH.search(text)] == []


def test_every_package_says_what_it_owns() -> None:
    """Each package's `__init__` has a docstring of at least a few lines."""
    found: list[str] = []
    for path in shipped_modules():
        if path.name == "__init__.py":
            docstring = ast.get_docstring(parse(path)) or ""
            if len(docstring.splitlines()) < 3:
                found.append(name_of(path))
    assert found == []


def test_packages_only_export() -> None:
    """An `__init__` holds a docstring, imports and plain names; code lives in modules."""
    allowed = ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign | ast.Expr
    found = [
        f"{name_of(path)}:{node.lineno}"
        for path in shipped_modules()
        if path.name == "__init__.py" and name_of(path) not in LAZY_PACKAGES
        for node in parse(path).body
        if not isinstance(node, allowed)
    ]
    assert found == []


def test_every_test_states_its_fact() -> None:
    """The docstring of a test says what is true when it passes."""
    found = [
        f"{name_of(path)}:{function.name}"
        for path in modules(ROOT / "tests")
        for function in functions(parse(path))
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]
    assert found == []


def test_no_test_sleeps() -> None:
    """Tests wait on facts: a sleep is either too short on one machine or too long on all."""
    found: list[str] = []
    for path in modules(ROOT / "tests"):
        for node in ast.walk(parse(path)):
            match node:
                case ast.Call(func=ast.Attribute(attr="sleep"), args=[ast.Constant(value=0)]):
                    continue  # Yielding to the loop once is not waiting.
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="time" | "asyncio"), attr="sleep")
                ):
                    found.append(f"{name_of(path)}:{node.lineno}")
                case _:
                    continue
    assert found == []


def test_markdown_pages_have_exactly_one_title() -> None:
    """Every page of the tree has one title, outside its code blocks."""
    found = [name for name, text in _texts() if name.endswith(".md") and len(_titles(text)) != 1]
    assert found == []


def _titles(text: str) -> list[str]:
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^# .+$", outside, flags=re.MULTILINE)
