"""Finds in a syntax tree what could make two replays of one log differ."""

import ast
from collections.abc import Iterator

BANNED_MODULES = frozenset(
    "asyncio concurrent ctypes datetime decimal fractions io locale logging math multiprocessing os"
    " pathlib platform random rocksdict secrets selectors signal socket sqlite3 ssl statistics"
    " structlog subprocess sys tempfile threading time uuid weakref zoneinfo".split()
)

BANNED_CALLS = {
    "float": "floats round differently from what a reader expects; use integers",
    "hash": "the hash of text changes from process to process",
    "id": "an address changes from process to process",
    "open": "a decision does not read files",
    "input": "a decision does not read the terminal",
    "print": "a decision does not write to the terminal",
    "eval": "a decision is not computed from text",
    "exec": "a decision is not computed from text",
    "vars": "the attributes of an object are not an ordered list of facts",
    "globals": "the attributes of a module are not an ordered list of facts",
}

SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference"})


def _is_set(node: ast.expr) -> bool:
    """Whether the expression is visibly a set, whose order the interpreter may change."""
    match node:
        case ast.Set() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Attribute(attr=attribute)) if attribute in SET_METHODS:
            return True
        case _:
            return False


def _iterated(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated):
            yield iterated
        case ast.Call(func=ast.Name(id="list" | "tuple" | "iter" | "enumerate"), args=[first, *_]):
            yield first
        case ast.Starred(value=iterated):
            yield iterated
        case _:
            return


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module)):
            return [module]
        case _:
            return []


def _complaint(node: ast.AST) -> str | None:
    match node:
        case ast.Constant(value=float() | complex()):
            return f"the literal {node.value!r} is not an integer"
        case ast.BinOp(op=ast.Div()) | ast.AugAssign(op=ast.Div()):
            return "true division makes a float; use //"
        case ast.Call(func=ast.Name(id=name)) if name in BANNED_CALLS:
            return f"{name}(): {BANNED_CALLS[name]}"
        case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
            return "a pure function does not wait"
        case ast.Global():
            return "state outside the arguments is not replayed"
        case _:
            return None


def impurities(tree: ast.Module) -> list[tuple[int, str]]:
    """Every (line, reason) in the module that could make a replay differ."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        complaint = _complaint(node)
        if complaint is not None:
            found.append((line, complaint))
        for module in _imported(node):
            if module.partition(".")[0] in BANNED_MODULES or module.startswith("corvo.runtime"):
                found.append((line, f"import of {module}"))
        for iterated in _iterated(node):
            if _is_set(iterated):
                found.append(
                    (iterated.lineno, "the order of a set changes from process to process")
                )
    return sorted(found)
