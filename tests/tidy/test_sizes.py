"""Limits on modules and functions. They are ratchets: an exception may shrink and may not grow."""

from tests.tidy.source import (
    ROOT,
    SDK,
    SOURCE,
    code_lines_count,
    functions,
    is_pure,
    modules,
    name_of,
    parse,
    shipped_modules,
)

MODULE_LINES_MAX = 600
PURE_MODULE_LINES_MAX = 450
FUNCTION_LINES_MAX = 70
POSITIONAL_MAX = 6

# Path of the module, and the size it had when it was accepted.
MODULE_EXCEPTIONS: dict[str, int] = {
    # A table: the shape of every answer there is, and nothing else.
}

# "path:function", and the lines of code it had when it was accepted.
FUNCTION_EXCEPTIONS: dict[str, int] = {}


def _lines(path_text: str) -> list[str]:
    return path_text.splitlines()


def test_modules_stay_small() -> None:
    """No module is over its limit; those that were accepted larger have not grown."""
    found: list[str] = []
    for path in modules(SOURCE, SDK, ROOT / "tests"):
        size = len(_lines(path.read_text(encoding="utf-8")))
        limit = PURE_MODULE_LINES_MAX if is_pure(path) else MODULE_LINES_MAX
        if size > MODULE_EXCEPTIONS.get(name_of(path), limit):
            found.append(f"{name_of(path)}: {size} lines, at most {limit}")
    assert found == []


def test_functions_stay_short() -> None:
    """No function has more than seventy lines of code; accepted exceptions have not grown."""
    found: list[str] = []
    for path in modules(SOURCE, SDK, ROOT / "tests"):
        text = _lines(path.read_text(encoding="utf-8"))
        for function in functions(parse(path)):
            size = code_lines_count(function, text)
            key = f"{name_of(path)}:{function.name}"
            if size > FUNCTION_EXCEPTIONS.get(key, FUNCTION_LINES_MAX):
                found.append(f"{key}: {size} lines of code")
    assert found == []


def test_exceptions_name_what_exists() -> None:
    """An exception whose function or module is gone is struck from the list."""
    present = {name_of(path) for path in modules(SOURCE, SDK, ROOT / "tests")}
    named = set(MODULE_EXCEPTIONS) | {key.partition(":")[0] for key in FUNCTION_EXCEPTIONS}
    assert named - present == set()
    for key in FUNCTION_EXCEPTIONS:
        path, _, name = key.partition(":")
        assert name in {function.name for function in functions(parse(ROOT / path))}, key


def test_functions_take_few_positional_parameters() -> None:
    """Beyond six parameters, the rest are given by name."""
    found: list[str] = []
    for path in shipped_modules():
        for function in functions(parse(path)):
            arguments = [*function.args.posonlyargs, *function.args.args]
            count = len([a for a in arguments if a.arg not in {"self", "cls"}])
            if count > POSITIONAL_MAX:
                found.append(f"{name_of(path)}:{function.name}: {count} by position")
    assert found == []
