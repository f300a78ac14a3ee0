"""`payload_jq`: a small language about one JSON document, read into a tree.

    pipe     := either ("|" either)*
    either   := both ("or" both)*
    both     := relation ("and" relation)*
    relation := term (("==" | "!=" | "<" | "<=" | ">" | ">=") term)?
    term     := path | literal | call | "(" pipe ")"
    path     := "." | ("." name | "." string | "[" string "]" | "[" integer "]")+
    call     := "not" | "length" | contains(literal) | startswith(string) | endswith(string)
              | test(string; flags?) | has(string or integer) | any | any(pipe) | any(path[]; pipe)
              | all, like any

It is a part of jq with jq's precedence, chosen so that every expression has exactly one value or an
error: there are no generators, no arithmetic, no definitions. `jq_sql` gives the tree its meaning.

What is outside the language is a `RequestError` that names the column, counted from one.
"""

import re
from typing import Final, NoReturn

import msgspec
from msgspec import Struct

from corvo.errors import RequestError
from corvo.model import limits
from corvo.view import pattern

FIELD: Final = "payload_jq"

Scalar = str | int | float | bool | None


class Path(Struct, frozen=True, gc=False):
    """Fields and array indexes, from the current value down; empty is the value itself."""

    steps: tuple[str | int, ...]


class Literal(Struct, frozen=True, gc=False):
    """A string, a number, true, false or null."""

    value: Scalar


class Compare(Struct, frozen=True, gc=False):
    """Two values and the sign between them."""

    sign: str
    left: "Node"
    right: "Node"


class Logic(Struct, frozen=True, gc=False):
    """`and` or `or`; the right side is looked at only when the left one does not decide."""

    word: str
    left: "Node"
    right: "Node"


class Pipe(Struct, frozen=True, gc=False):
    """The value of the left side is what the right side speaks about."""

    left: "Node"
    right: "Node"


class Call(Struct, frozen=True, gc=False):
    """A function of the current value, with a literal where it takes one."""

    name: str
    argument: Scalar = None
    flags: str = ""


class Each(Struct, frozen=True, gc=False):
    """`any` or `all`: a condition over the elements of the current value."""

    name: str
    condition: "Node"


Node = Path | Literal | Compare | Logic | Pipe | Call | Each


class Token(Struct, frozen=True, gc=False):
    """A piece of the text: its kind, its value, and the column it starts at."""

    kind: str  # name, string, number, sign, end
    text: str
    value: Scalar
    column: int


_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")
      | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>==|!=|<=|>=|[<>|().\[\];-])""",
    re.VERBOSE | re.ASCII,
)
_SIGNS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
_WORDS: Final = {"true": True, "false": False, "null": None}
_TEXT_CALLS: Final = frozenset({"startswith", "endswith", "test"})
_PLAIN_CALLS: Final = frozenset({"not", "length"})
_SETS: Final = frozenset({"any", "all"})
_NUMBER_DIGITS_MAX: Final = 400
_INDEX_MAX: Final = 2**31 - 1
_KNOWN: Final = (
    "known are paths (.a.b[0]), == != < <= > >=, and, or, not, contains, startswith, endswith, "
    "test, length, any, all, has, strings, numbers, true, false and null"
)


def parse(text: str) -> Node:
    """Read an expression. Raises `RequestError`."""
    if len(text.encode("utf-8", "replace")) > limits.JQ_BYTES_MAX:
        raise RequestError(f"this is longer than {limits.JQ_BYTES_MAX} bytes", field=FIELD)
    return _Parser(_tokens(text)).whole()


def _refuse(message: str, column: int, hint: str | None = None) -> NoReturn:
    raise RequestError(f"column {column}: {message}", field=FIELD, hint=hint)


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            what = "this string does not end" if text[at] == '"' else f"{text[at]!r} is not known"
            _refuse(what, at + 1, _KNOWN)
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(Token(kind, match.group(), _value(kind, match.group(), at + 1), at + 1))
        at = match.end()
    found.append(Token("end", "", None, len(text) + 1))
    return found


def _value(kind: str, text: str, column: int) -> Scalar:
    if kind == "string":
        try:
            return msgspec.json.decode(text, type=str)
        except (msgspec.DecodeError, UnicodeEncodeError):
            _refuse("this string has an escape JSON does not know", column)
    if kind == "number":
        if len(text) > _NUMBER_DIGITS_MAX:
            _refuse("this number has too many digits", column)
        return number(text)
    return text


def number(text: str) -> int | float:
    """A number as SQLite holds it: an integer of 64 bits, otherwise a float."""
    if text.isdigit():
        whole = int(text)
        if whole < 2**63:
            return whole
    value = float(text)
    # jq knows no infinity either: it clamps to the largest number.
    return min(value, 1.7976931348623157e308)


class _Parser:
    """Recursive descent over the tokens; counts nodes, so that no text becomes a huge query."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._nodes = 0

    def whole(self) -> Node:
        node = self._pipe()
        if self._now.kind != "end":
            self._refuse_here()
        return node

    # --- the text ---------------------------------------------------------------------------------

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _take(self, text: str) -> bool:
        if self._now.kind in ("sign", "name") and self._now.text == text:
            self._next()
            return True
        return False

    def _need(self, text: str) -> None:
        if not self._take(text):
            _refuse(f"{text!r} is missing here", self._now.column)

    def _refuse_here(self) -> NoReturn:
        token = self._now
        if token.kind == "end":
            _refuse("the expression ends too early", token.column, _KNOWN)
        before = self._tokens[self._at - 1] if self._at else token
        if before.text == "not" and before.kind == "name":
            _refuse("not stands after a pipe", before.column, "such as (.a == 1) | not")
        if token.text in _SIGNS:
            _refuse("comparisons do not chain", token.column, "use and")
        _refuse(f"{token.text!r} is not expected here", token.column, _KNOWN)

    def _count(self, node: Node) -> Node:
        self._nodes += 1
        if self._nodes > limits.JQ_NODES_MAX:
            _refuse("the expression is too long", self._now.column)
        return node

    # --- the grammar ------------------------------------------------------------------------------

    def _pipe(self) -> Node:
        self._depth += 1
        if self._depth > limits.JQ_DEPTH_MAX:
            _refuse("the expression is nested too deep", self._now.column)
        parts = [self._either()]
        while self._take("|"):
            parts.append(self._either())
        self._depth -= 1
        node = parts.pop()
        while parts:
            node = self._count(Pipe(parts.pop(), node))
        return node

    def _either(self) -> Node:
        node = self._both()
        while self._take("or"):
            node = self._count(Logic("or", node, self._both()))
        return node

    def _both(self) -> Node:
        node = self._relation()
        while self._take("and"):
            node = self._count(Logic("and", node, self._relation()))
        return node

    def _relation(self) -> Node:
        node = self._term()
        sign = self._now
        if sign.kind == "sign" and sign.text in _SIGNS:
            self._next()
            node = self._count(Compare(sign.text, node, self._term()))
        return node

    def _term(self) -> Node:
        token = self._now
        if token.kind in ("string", "number") or token.text == "-" or token.text in _WORDS:
            return self._count(Literal(self._literal()))
        if token.text in (".", "["):
            return self._path()
        if self._take("("):
            node = self._pipe()
            self._need(")")
            if self._now.text in (".", "["):
                _refuse("a path begins with the value", self._now.column, "use a pipe: (…) | .a")
            return node
        if token.kind != "name":
            self._refuse_here()
        return self._call()

    def _literal(self) -> Scalar:
        is_negative = self._take("-")
        token = self._next()
        if token.kind == "number" and isinstance(token.value, int | float):
            return -token.value if is_negative else token.value
        if not is_negative and token.kind == "string":
            return token.value
        if not is_negative and token.kind == "name" and token.text in _WORDS:
            return _WORDS[token.text]
        _refuse("a string, number, true, false or null belongs here", token.column)

    def _path(self) -> Path:
        path, is_iterated = self._steps()
        if is_iterated:
            _refuse("[] belongs into any(…; …) or all(…; …)", self._tokens[self._at - 1].column)
        return path

    def _steps(self) -> tuple[Path, bool]:
        """Read a path; the second value says whether it ends in `[]`."""
        steps: list[str | int] = []
        if self._now.text == "[":
            _refuse("lists are not known", self._now.column, "a path begins with a dot: .[0]")
        is_iterated = False
        while not is_iterated:
            if self._now.text == "." and self._now.kind == "sign":
                dot = self._next()
                token = self._now
                is_joined = token.column == dot.column + 1
                if token.kind == "name" and is_joined:
                    steps.append(self._next().text)
                elif token.kind == "string":
                    steps.append(str(self._next().value))
                elif token.text == "[" and token.kind == "sign":
                    is_iterated = self._bracket(steps)
                elif steps:
                    _refuse("a field belongs behind the dot", token.column)
                else:
                    break
            elif self._now.text == "[" and self._now.kind == "sign":
                is_iterated = self._bracket(steps)
            elif self._now.kind == "number" and self._now.text.startswith("."):
                _refuse("a field does not begin with a digit", self._now.column, '."1a"')
            else:
                break
            if len(steps) > limits.JSON_DEPTH_MAX:
                _refuse("the path is deeper than any payload", self._now.column)
        self._count(Path(()))
        return Path(tuple(steps)), is_iterated

    def _bracket(self, steps: list[str | int]) -> bool:
        """Read `["key"]`, `[3]` or `[]`; the last one is True."""
        self._need("[")
        if self._take("]"):
            return True
        column = self._now.column
        value = self._literal()
        if isinstance(value, bool) or not isinstance(value, str | int):
            _refuse("a string or a whole number belongs here", column)
        if isinstance(value, int) and abs(value) > _INDEX_MAX:
            _refuse("the index is out of range", column)
        if self._now.text != "]":
            _refuse("']' is missing here", self._now.column)
        self._next()
        steps.append(value)
        return False

    def _call(self) -> Node:
        token = self._next()
        name = token.text
        if name in _PLAIN_CALLS:
            if self._now.text in ("(", ".") or self._now.kind in ("string", "number"):
                self._refuse_here()
            return self._count(Call(name))
        if name in _SETS:
            return self._set(name)
        if name not in {"contains", "has", *_TEXT_CALLS}:
            _refuse(f"{name!r} is not known", token.column, _KNOWN)
        self._need("(")
        column = self._now.column
        value = self._literal()
        if name in _TEXT_CALLS and not isinstance(value, str):
            _refuse(f"{name} takes a string", column)
        if name == "has" and (isinstance(value, bool) or not isinstance(value, str | int)):
            _refuse("has takes a string or a whole number", column)
        flags = self._flags(column, value) if name == "test" else ""
        self._need(")")
        return self._count(Call(name, value, flags))

    def _flags(self, column: int, source: Scalar) -> str:
        flags = ""
        if self._take(";"):
            at = self._now.column
            value = self._literal()
            if value not in ("", "i", None):
                _refuse("the only flag of test is i", at)
            flags = str(value or "")
        assert isinstance(source, str)
        try:
            pattern.parse(source)
        except pattern.PatternError as error:
            # Where escapes stand before the place, the column is that of the pattern's start.
            shift = error.at if "\\" not in source[: error.at] else 0
            _refuse(f"in the pattern: {error}", column + 1 + shift)
        return flags

    def _set(self, name: str) -> Node:
        if not self._take("("):
            return self._count(Each(name, Path(())))
        start = self._at
        if self._now.text == ".":
            path, is_iterated = self._steps()
            if is_iterated and self._take(";"):
                condition = self._pipe()
                self._need(")")
                return self._count(Pipe(path, Each(name, condition)))
            self._at = start
        condition = self._pipe()
        self._need(")")
        return self._count(Each(name, condition))
