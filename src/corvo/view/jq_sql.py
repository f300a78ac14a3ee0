"""The tree of `payload_jq` as parameterised SQL over JSONB.

A condition becomes an SQL expression with three values: 1 (true), 0 (false) and NULL (jq would stop
with an error, or an order is asked of values of different types). Only 1 is a match. Logic of jq is
not logic of SQL: `null or true` is true in SQL, while an error ends a jq program; so `and` and `or`
are written as CASE, which looks at the right side only when the left one does not decide.

A value becomes two expressions: its type, one of those of `json_type` or 'error', and the value.
Nothing of the user's text gets into the SQL: paths, strings and numbers are all bound.

Difference to jq, on purpose: `contains` of a list is membership. Differences that follow from
JSONB: of equal keys in one object the first one counts, and numbers beyond 64 bits are floats.
"""

import json
import re
from typing import Any, Final

from msgspec import Struct

from corvo.errors import RequestError
from corvo.model import limits
from corvo.view.jq import FIELD, Call, Compare, Each, Literal, Logic, Node, Path, Pipe, Scalar

_LEAST: Final = "(-9223372036854775807 - 1)"
_NUMBERS: Final = "'integer', 'real'"
_PLAIN: Final = re.compile(r"[A-Za-z0-9 @._:+=-]{2,200}", re.ASCII)  # one spelling, or \\u


class Sql(Struct, frozen=True, gc=False):
    """A piece of SQL and what is bound to its question marks, in order."""

    text: str
    values: tuple[Any, ...] = ()


class Value(Struct, frozen=True, gc=False):
    """A value: its type, itself, and where further steps are looked up."""

    kind: Sql
    value: Sql
    root: Sql | None = None  # JSONB to look into; None: a scalar that was computed
    root_kind: Sql | None = None  # type of the root, when it may be no container
    steps: tuple[str | int, ...] = ()
    is_number: bool = False  # a number, or NULL where it is an error


def condition(node: Node, document: str) -> Sql:
    """SQL that is 1 where the document matches; `document` is a column of JSONB or NULL."""
    root = Value(
        Sql(f"json_type({document})"), Sql(f"jsonb_extract({document}, '$')"), root=Sql(document)
    )
    found = _Compiler().matched(node, root)
    if len(found.text) > limits.JQ_SQL_CHARACTERS_MAX:
        raise RequestError("the expression is too complex", field=FIELD)
    return found


def _sql(*parts: "str | Sql") -> Sql:
    """Join pieces, and what is bound to them."""
    texts: list[str] = []
    values: tuple[Any, ...] = ()
    size = 0
    for part in parts:
        text = part if isinstance(part, str) else part.text
        texts.append(text)
        size += len(text)
        if not isinstance(part, str):
            values += part.values
    if size > 4 * limits.JQ_SQL_CHARACTERS_MAX:
        raise RequestError("the expression is too complex", field=FIELD)
    return Sql("".join(texts), values)


def _path_text(steps: tuple[str | int, ...]) -> str:
    """A path as SQLite reads it; keys are JSON strings: no character of theirs means more."""
    text = "$"
    for step in steps:
        if isinstance(step, str):
            text += "." + json.dumps(step)
        elif step < 0:
            text += f"[#{step}]"
        else:
            text += f"[{step}]"
    return text


class _Compiler:
    def __init__(self) -> None:
        self._aliases = 0

    # --- the whole --------------------------------------------------------------------------------

    def matched(self, node: Node, root: Value) -> Sql:
        """SQL that is 1 exactly where the node is true; elsewhere it may be 0 or NULL.

        Cost: between false and error there is nothing to tell here, so the usual conditions on one
        field need one look into the document for most rows, where `truth` needs two or three.
        """
        match node:
            case Logic("and", left, right):
                return _sql(self.matched(left, root), " AND ", self.matched(right, root))
            case Compare(sign, Path(steps), Literal(value)) if steps:
                found = _field_against(_field(root, steps), sign, value)
            case Pipe(Path(steps), Call() as call) if steps and call.name not in ("not", "length"):
                found = _and_likely(root, call, self._call(call, _field(root, steps)))
            case Pipe(Path(steps), Compare(sign, Call("length"), Literal(value))) if steps:
                found = self._length_matched(node, sign, value, root, steps)
            case _:
                found = None
        if found is None:
            assert root.root is not None
            found = _sql(root.root, " IS NOT NULL AND (", self.truth(node, root), ") IS 1")
        return found

    def _length_matched(
        self, node: Node, sign: str, value: Scalar, root: Value, steps: tuple[str | int, ...]
    ) -> Sql | None:
        """Lists first: their length needs no more than one look."""
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        field = _field(root, steps)
        operator = {"==": "=", "!=": "<>"}.get(sign, sign)
        return _sql(
            "CASE ", field.kind, " WHEN 'array' THEN ", _array_length(field),
            Sql(f" {operator} ? ELSE (", (value,)), self.truth(node, root), ") END",
        )  # fmt: skip

    # --- conditions -------------------------------------------------------------------------------

    def truth(self, node: Node, now: Value) -> Sql:
        """Whether the value of a node counts as true."""
        match node:
            case Logic(word, left, right):
                decided = "1" if word == "or" else "0"
                other = "0" if word == "or" else "1"
                return _sql(
                    "CASE ", self.truth(left, now), f" WHEN {decided} THEN {decided}",
                    f" WHEN {other} THEN ", self.truth(right, now), " END",
                )  # fmt: skip
            case Compare():
                return self._compare(node, now)
            case Pipe(left, right):
                inner = self.value(left, now)
                found = self.truth(right, inner)
                if _looks_at_input(right):
                    return found
                return _sql("CASE WHEN ", inner.kind, " <> 'error' THEN ", found, " END")
            case Each():
                return self._each(node, now)
            case Call("not"):
                return _sql("1 - ", _is_true(now))
            case Call("length"):
                return _is_true(self.value(node, now))
            case Call():
                return self._call(node, now)
            case Literal(value):
                return Sql("0" if value is None or value is False else "1")
            case Path():
                return _is_true(self.value(node, now))

    # --- values -----------------------------------------------------------------------------------

    def value(self, node: Node, now: Value) -> Value:
        """The value of a node."""
        match node:
            case Path(()):
                return now
            case Path(steps):
                return _lookup(now, steps)
            case Literal(value):
                return Value(Sql(f"'{_kind_of(value)}'"), Sql("?", (_bound(value),)))
            case Call("length"):
                return _length(now)
            case Pipe(left, right):
                inner = self.value(left, now)
                found = self.value(right, inner)
                if _looks_at_input(right):
                    return found
                kind = _sql("CASE WHEN ", inner.kind, " = 'error' THEN 'error' ELSE ", found.kind)
                return Value(_sql(kind, " END"), found.value)
            case _:
                truth = self.truth(node, now)
                kind = _sql("CASE ", truth, " WHEN 1 THEN 'true' WHEN 0 THEN 'false'")
                return Value(_sql(kind, " ELSE 'error' END"), Sql("NULL"))

    # --- comparisons ------------------------------------------------------------------------------

    def _compare(self, node: Compare, now: Value) -> Sql:
        if isinstance(node.right, Literal) and not isinstance(node.left, Literal):
            return _against(node.sign, self.value(node.left, now), node.right.value)
        if isinstance(node.left, Literal) and not isinstance(node.right, Literal):
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(node.sign, node.sign)
            return _against(turned, self.value(node.right, now), node.left.value)
        return _between(node.sign, self.value(node.left, now), self.value(node.right, now))

    # --- functions --------------------------------------------------------------------------------

    def _call(self, node: Call, now: Value) -> Sql:
        argument = node.argument
        match node.name:
            case "contains":
                return _contains(now, argument)
            case "startswith":
                found = _sql("instr(", now.value, Sql(", ?) = 1", (argument,)))
            case "endswith":
                assert isinstance(argument, str)
                found = _ends(now, argument.encode())
            case "test":
                found = _sql("corvo_test(", now.value, Sql(", ?, ?)", (argument, node.flags)))
            case _:
                return _has(now, argument)
        return _sql("CASE ", now.kind, " WHEN 'text' THEN ", found, " END")

    def _each(self, node: Each, now: Value) -> Sql:
        self._aliases += 1
        alias = f"e{self._aliases}"
        element = Value(
            Sql(f"{alias}.type"),
            Sql(f"{alias}.value"),
            root=Sql(f"{alias}.value"),
            root_kind=Sql(f"{alias}.type"),
        )
        truth = self.truth(node.condition, element)
        # The first element that decides, in the order of the list; 2 is an error.
        goes_on, decides = ("0", "1") if node.name == "any" else ("1", "0")
        return _sql(
            "CASE WHEN ", now.kind, " IN ('array', 'object') THEN CASE (SELECT ifnull(r, 2) FROM (",
            "SELECT ", truth, " AS r FROM ", _elements(now),
            f" AS {alias}) WHERE r IS NOT {goes_on} LIMIT 1)",
            f" WHEN {decides} THEN {decides} WHEN 2 THEN NULL ELSE {goes_on} END END",
        )  # fmt: skip


def _looks_at_input(node: Node) -> bool:
    """Say whether a node always evaluates its input, so that an error there is its error too."""
    match node:
        case Literal():
            return False
        case Path() | Call() | Each():
            return True
        case Compare(_, left, right):
            return _looks_at_input(left) or _looks_at_input(right)
        case Logic(_, left, _) | Pipe(left, _):
            return _looks_at_input(left)


def _kind_of(value: Scalar) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "text"
    return "integer" if isinstance(value, int) else "real"


def _bound(value: Scalar) -> Scalar:
    return None if isinstance(value, bool) else value


def _is_true(value: Value) -> Sql:
    return _sql(
        "CASE ", value.kind, " WHEN 'null' THEN 0 WHEN 'false' THEN 0 WHEN 'error' THEN NULL",
        " ELSE 1 END",
    )  # fmt: skip


def _field(root: Value, steps: tuple[str | int, ...]) -> Value:
    """A field of the document where missing and error need not be told apart: both are NULL."""
    assert root.root is not None
    path = Sql("?)", (_path_text(steps),))
    kind = _sql("json_type(", root.root, ", ", path)
    value = _sql("jsonb_extract(", root.root, ", ", path)
    return Value(kind, value, root=root.root, steps=steps)


def _and_likely(root: Value, call: Call, found: Sql) -> Sql:
    """Look first whether the bytes of a text are anywhere in the document.

    Cost: a third of what it takes to find the field. JSON may write any character as an escape, so
    a document with one is looked at closely anyway; as are texts with characters of two spellings.
    """
    text = call.argument
    if call.name == "test" or not isinstance(text, str) or _PLAIN.fullmatch(text) is None:
        return found
    assert root.root is not None
    likely = Sql(f"(instr({root.root.text}, ?) OR instr({root.root.text}, ?))")
    return _sql(Sql(likely.text, (text.encode(), rb"\u")), " AND (", found, ")")


def _field_against(field: Value, sign: str, right: Scalar) -> Sql | None:
    """Compare a field with a literal; None where missing must be told from error."""
    if right is None or sign == "!=":
        return None
    if isinstance(right, bool):
        return _sql(field.kind, f" = '{_kind_of(right)}'") if sign == "==" else None
    operator = "=" if sign == "==" else sign
    held = _sql(field.value, Sql(f" {operator} ?", (right,)))
    if isinstance(right, str):
        # Containers are blobs here, so only a text equals a text.
        return held if sign == "==" else _sql(held, " AND ", field.kind, " = 'text'")
    return _sql(held, " AND ", field.kind, f" IN ({_NUMBERS})")


def _lookup(now: Value, steps: tuple[str | int, ...]) -> Value:
    """The value some steps below another one."""
    if now.root is None:
        # Computed values are scalars: only null has members, and they are null.
        kind = _sql("CASE ", now.kind, " WHEN 'null' THEN 'null' ELSE 'error' END")
        return Value(kind, Sql("NULL"))
    whole = now.steps + steps
    path = Sql("?", (_path_text(whole),))
    # Missing is null, but only where every step on the way could be taken.
    checks: list[str | Sql] = []
    for at, step in enumerate(whole):
        wanted = "object" if isinstance(step, str) else "array"
        before = Sql("?", (_path_text(whole[:at]),))
        checks += [" AND ifnull(json_type(", now.root, ", ", before]
        checks += [f"), 'null') IN ('{wanted}', 'null')"]
    checks[0] = "ifnull(json_type("
    kind = _sql(
        "ifnull(json_type(", now.root, ", ", path, "), CASE WHEN ", *checks,
        " THEN 'null' ELSE 'error' END)",
    )  # fmt: skip
    value = _sql("jsonb_extract(", now.root, ", ", path, ")")
    if now.root_kind is not None:
        # An element of a list: scalars are SQL values there, which must not be read as JSON.
        is_container = _sql("CASE WHEN ", now.root_kind, " IN ('array', 'object') THEN ")
        kind = _sql(
            is_container, kind, " WHEN ", now.root_kind, " = 'null' THEN 'null' ELSE 'error' END"
        )
        value = _sql(is_container, value, " END")
    return Value(kind, value, root=now.root, root_kind=now.root_kind, steps=whole)


def _elements(now: Value) -> Sql:
    """The table of the elements of a container."""
    if now.root is None:
        return Sql("jsonb_each('[]')")
    return _sql("jsonb_each(", now.root, ", ", Sql("?)", (_path_text(now.steps),)))


def _length(now: Value) -> Value:
    kind = _sql(
        "CASE WHEN ", now.kind, " IN ('error', 'true', 'false') THEN 'error' WHEN ", now.kind,
        " = 'real' THEN 'real' ELSE 'integer' END",
    )  # fmt: skip
    text = now.value
    # Safety: length() of SQLite stops at a NUL, abs() fails for the least integer.
    value = _sql(
        "CASE ", now.kind, " WHEN 'null' THEN 0 WHEN 'text' THEN CASE WHEN length(", text,
        ") = octet_length(", text, ") THEN octet_length(", text, ") ELSE corvo_length(", text,
        ") END WHEN 'real' THEN abs(", now.value, ") WHEN 'integer' THEN CASE WHEN ", now.value,
        f" = {_LEAST} THEN 9223372036854775808.0 ELSE abs(", now.value, ") END",
        " WHEN 'array' THEN ", _array_length(now), " WHEN 'object' THEN (SELECT count(*) FROM ",
        _elements(now), ") END",
    )  # fmt: skip
    return Value(kind, value, is_number=True)


def _array_length(now: Value) -> Sql:
    if now.root is None:
        return Sql("0")
    return _sql("json_array_length(", now.root, ", ", Sql("?)", (_path_text(now.steps),)))


def _against(sign: str, left: Value, right: Scalar) -> Sql:
    """Compare a value with a literal."""
    if left.is_number and isinstance(right, int | float) and not isinstance(right, bool):
        operator = {"==": "=", "!=": "<>"}.get(sign, sign)
        return _sql("(", left.value, Sql(f") {operator} ?", (right,)))
    if sign in ("==", "!="):
        same, other = ("1", "0") if sign == "==" else ("0", "1")
        kind = _kind_of(right)
        if kind in ("null", "true", "false"):
            found = Sql(f" WHEN '{kind}' THEN {same}")
        else:
            is_same = _sql(left.value, Sql(f" {'=' if sign == '==' else '<>'} ?", (right,)))
            kinds = ("text",) if kind == "text" else ("integer", "real")
            found = _sql(*[part for k in kinds for part in (f" WHEN '{k}' THEN ", is_same)])
        return _sql("CASE ", left.kind, found, f" WHEN 'error' THEN NULL ELSE {other} END")
    if right is None:
        is_held = "1" if sign in ("<=", ">=") else "0"
        return _sql("CASE ", left.kind, f" WHEN 'null' THEN {is_held} END")
    if isinstance(right, bool):
        truths = {word: _ordered(sign, word == "true", right) for word in ("true", "false")}
        cases = "".join(f" WHEN '{word}' THEN {int(held)}" for word, held in truths.items())
        return _sql("CASE ", left.kind, cases, " END")
    ordered = _sql(left.value, Sql(f" {sign} ?", (right,)))
    kinds = "'text'" if isinstance(right, str) else _NUMBERS
    return _sql("CASE WHEN ", left.kind, f" IN ({kinds}) THEN ", ordered, " END")


def _ordered(sign: str, left: int, right: int) -> bool:
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[sign]


def _between(sign: str, left: Value, right: Value) -> Sql:
    """Compare two values of which neither type is known before."""
    is_equality = sign in ("==", "!=")
    operator = {"==": "=", "!=": "<>"}.get(sign, sign)
    # Types of different name that compare by value: numbers among themselves, and booleans.
    cross = ("1" if sign == "!=" else "0") if is_equality else "NULL"
    # Boolean types compare like their names: 'false' < 'true'.
    by_name = _sql(left.kind, f" {operator} ", right.kind)
    return _sql(
        "CASE WHEN 'error' IN (", left.kind, ", ", right.kind, ") THEN NULL",
        " WHEN ", left.kind, f" IN ({_NUMBERS}) THEN CASE WHEN ", right.kind,
        f" IN ({_NUMBERS}) THEN ", left.value, f" {operator} ", right.value,
        f" ELSE {cross} END",
        " WHEN ", left.kind, " IN ('true', 'false') THEN CASE WHEN ", right.kind,
        " IN ('true', 'false') THEN ", by_name, f" ELSE {cross} END",
        " WHEN ", left.kind, " <> ", right.kind, f" THEN {cross}",
        " WHEN ", left.kind, " = 'text' THEN ", left.value, f" {operator} ", right.value,
        " WHEN ", left.kind, f" = 'null' THEN 0 {operator} 0",
        " ELSE corvo_order(json(", left.value, "), json(", right.value, f")) {operator} 0 END",
    )  # fmt: skip


def _contains(now: Value, argument: Scalar) -> Sql:
    kind = _kind_of(argument)
    if kind == "text":
        same = Sql("type = 'text' AND value = ?", (argument,))
        scalar = _sql(" WHEN 'text' THEN instr(", now.value, Sql(", ?) > 0", (argument,)))
    elif kind in ("integer", "real"):
        same = Sql(f"type IN ({_NUMBERS}) AND value = ?", (argument,))
        equal = _sql(now.value, Sql(" = ?", (argument,)))
        scalar = _sql(" WHEN 'integer' THEN ", equal, " WHEN 'real' THEN ", equal)
    else:
        same = Sql(f"type = '{kind}'")
        scalar = Sql(f" WHEN '{kind}' THEN 1")
    member = _sql("EXISTS (SELECT 1 FROM ", _elements(now), " WHERE ", same, ")")
    return _sql("CASE ", now.kind, " WHEN 'array' THEN ", member, scalar, " END")


def _ends(now: Value, suffix: bytes) -> Sql:
    if not suffix:
        return Sql("1")
    # Bytes, since substr() of a text stops at a NUL; in UTF-8 a suffix is one in both readings.
    tail = _sql("substr(CAST(", now.value, Sql(" AS BLOB), ?)", (-len(suffix),)))
    return _sql(tail, Sql(" = ?", (suffix,)))


def _has(now: Value, argument: Scalar) -> Sql:
    if isinstance(argument, str):
        wanted, steps = "object", (*now.steps, argument)
    else:
        assert isinstance(argument, int)
        wanted, steps = "array", (*now.steps, argument)
        if argument < 0:
            return _sql("CASE ", now.kind, " WHEN 'array' THEN 0 WHEN 'null' THEN 0 END")
    if now.root is None:
        return _sql("CASE ", now.kind, " WHEN 'null' THEN 0 END")
    path = Sql("?", (_path_text(steps),))
    found = _sql("json_type(", now.root, ", ", path, ") IS NOT NULL")
    return _sql("CASE ", now.kind, f" WHEN '{wanted}' THEN ", found, " WHEN 'null' THEN 0 END")


# --- functions SQLite calls -----------------------------------------------------------------------

_RANKS: Final = {type(None): 0, bool: 1, int: 3, float: 3, str: 4, list: 5, dict: 6}


def order(left: str | None, right: str | None) -> int:
    """Order two documents as jq does: negative, zero or positive."""
    return _order(json.loads(left or "null"), json.loads(right or "null"))


def _order(left: Any, right: Any) -> int:
    ranks = _RANKS[type(left)], _RANKS[type(right)]
    if ranks[0] != ranks[1]:
        return ranks[0] - ranks[1]
    match ranks[0]:
        case 0:
            return 0
        case 5:
            return _order_lists(left, right)
        case 6:
            keys, others = sorted(left), sorted(right)
            if keys != others:
                return -1 if keys < others else 1
            return _order_lists([left[key] for key in keys], [right[key] for key in keys])
        case _:
            return (left > right) - (left < right)


def _order_lists(left: list[Any], right: list[Any]) -> int:
    for one, other in zip(left, right, strict=False):
        found = _order(one, other)
        if found:
            return found
    return len(left) - len(right)
