# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""`payload_jq` against jq itself, and what it says about text outside the language."""

import json
from typing import Any, cast

import apsw
import jq as oracle_package
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corvo.errors import RequestError
from corvo.model import limits
from corvo.view import functions, jq, jq_sql

oracle: Any = oracle_package
KEYS = ("a", "b", "c d", 'e"f', "", "\\", "é", "a\x00b", "$", "%_", "[0]", "#")
TEXTS = ("", "a", "ab", "abc", "welcome", "é", "a\x00b", "A", "10", "\U0001f600", "%", "x\ny")
NUMBERS = (0, 1, -1, 2, 10, 1.5, -0.5, 1e3, 2**53, 2**63 - 1, -(2**63), 1e300)
SIGNS = ("==", "!=", "<", "<=", ">", ">=")

scalars = st.one_of(
    st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.integers(-3, 3)
)
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    ),
    max_leaves=12,
)


def _step(step: str | int) -> str:
    return f"[{json.dumps(step)}]"


paths = st.lists(
    st.one_of(st.sampled_from(KEYS), st.sampled_from(("a", "b")), st.integers(-2, 3)), max_size=3
).map(lambda steps: "." + "".join(map(_step, steps)))
literals = scalars.map(json.dumps)
texts = st.sampled_from(TEXTS).map(json.dumps)
patterns = st.sampled_from(
    (
        "",
        "a",
        "^a",
        "b$",
        "^a.c$",
        "[a-c]+",
        "(w|W)el",
        "x.y",
        "x$",
        "\\d",
        "^\\w*$",
        "a{2,3}",
        "é?b",
    )
).map(json.dumps)
calls = st.one_of(
    st.just("length"),
    st.just("not"),
    st.just("any"),
    st.just("all"),
    texts.map("startswith({})".format),
    texts.map("endswith({})".format),
    patterns.map("test({})".format),
    patterns.map('test({}; "i")'.format),
    st.sampled_from(KEYS).map(lambda key: f"has({json.dumps(key)})"),
    st.integers(-1, 3).map("has({})".format),
)


def _wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    sign = st.sampled_from(SIGNS)
    return st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(("==", "!=")), inner),
        st.builds("({} {} {})".format, inner, sign, literals),
        st.builds("({} | {})".format, inner, inner),
        st.builds("({} | {})".format, inner, calls),
        st.builds("({} | any({}))".format, paths, inner),
        st.builds("({} | all({}))".format, paths, inner),
        st.builds("any({}[]; {})".format, paths, inner),
    )


expressions = st.recursive(st.one_of(paths, literals, calls), _wider, max_leaves=6)


@pytest.fixture(scope="module")
def connection() -> apsw.Connection:
    """A database in memory with the functions of the view."""
    made = apsw.Connection(":memory:")
    functions.register(made)
    return made


def ours(connection: apsw.Connection, text: str, document: Any) -> bool:
    """What the view says."""
    found = jq_sql.condition(jq.parse(text), "d.p")
    query = f"WITH d (p) AS MATERIALIZED (SELECT jsonb(?)) SELECT {found.text} FROM d"
    row: Any = connection.execute(query, (json.dumps(document), *found.values)).fetchone()
    return bool(row[0])


def theirs(text: str, document: Any) -> bool:
    """What jq says; an error is no match."""
    try:
        found: Any = oracle.compile(text).input_value(document).first()
    except ValueError:
        return False
    return found is not None and found is not False


def _is_order_mixed(text: str) -> bool:
    return any(sign in text for sign in ("<", ">"))


@settings(max_examples=300, deadline=None)
@given(text=expressions, document=documents)
@example(text=".a.b == null", document={"a": "x"})
@example(text="((.a | .b) or true)", document={"a": 1})
@example(text="(.a.b | true)", document={"a": 1})
@example(text="(. | any(.a == 1))", document=[{"a": 1}, 5])
@example(text="(. | any(.a == 1))", document=[5, {"a": 1}])
@example(text="(. | all(. == 1))", document=[])
@example(text="(.a | length)", document={"a": "a\x00b"})
@example(text="((.a | length) == 9223372036854775808)", document={"a": -(2**63)})
def test_expressions_without_order_equal_jq(
    connection: apsw.Connection, text: str, document: Any
) -> None:
    """Whatever does not order values of two types matches exactly where jq gives a true value."""
    if _is_order_mixed(text):
        return
    assert ours(connection, text, document) == theirs(text, document)


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(type(value))
    return "number" if isinstance(value, int | float) else str(type(cast("object", value)))


@settings(max_examples=150, deadline=None)
@given(left=documents, right=documents, literal=scalars, sign=st.sampled_from(SIGNS))
@example(left=True, right=False, literal=True, sign="<")
@example(left=[1, [2]], right=[1, {}], literal=None, sign="<=")
@example(left={"b": 1}, right={"a": 2}, literal=0, sign=">")
def test_order_equals_jq_within_a_type_and_never_matches_across(
    connection: apsw.Connection, left: Any, right: Any, literal: Any, sign: str
) -> None:
    """`<` and `>` agree with jq for values of one type, and match nothing for values of two."""
    document = {"l": left, "r": right}
    cases = ((f".l {sign} .r", right), (f".l {sign} {json.dumps(literal)}", literal))
    for text, other in cases:
        is_mixed = sign not in ("==", "!=") and _kind(left) != _kind(other)
        expected = False if is_mixed else theirs(text, document)
        assert ours(connection, text, document) == expected, text


@settings(max_examples=80, deadline=None)
@given(document=documents, literal=scalars)
@example(document=["vip", "x"], literal="vip")
@example(document=["vips"], literal="vip")
@example(document="a vip b", literal="vip")
def test_contains_is_membership_for_lists_and_jq_for_the_rest(
    connection: apsw.Connection, document: Any, literal: Any
) -> None:
    """A list contains what is one of its elements; a text what is part of it."""
    text = f"contains({json.dumps(literal)})"
    if isinstance(document, list):
        kind = _kind(literal)
        items = cast("list[Any]", document)
        expected = any(_kind(item) == kind and item == literal for item in items)
    else:
        expected = theirs(text, document)
    assert ours(connection, text, document) == expected


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 1),
        (".a ==", 6),
        (".a === 1", 6),
        (".a == 1 == 2", 9),
        ("not (.a == 1)", 1),
        (".a | foo", 6),
        (".a | startswith(5)", 17),
        (".a | has(true)", 10),
        (".a | has(1.5)", 10),
        (".[1:2]", 4),
        (".a[]", 4),
        (".a | map(.b)", 6),
        (".a + 1", 4),
        (".a, .b", 3),
        ("[1]", 1),
        ("{}", 1),
        (".a // 1", 4),
        ('"abc', 1),
        ('"\\(1)"', 1),
        ('"a" "b"', 5),
        (".a as $x | $x", 7),
        ("(.a == 1", 9),
        (".a == 1)", 8),
        ('.a | test("(")', 12),
        ('.a | test("a**")', 14),
        ('.a | test("(?=a)")', 13),
        ('.a | test("\\\\1")', 12),
        ('.a | test("[b-a]")', 16),
        ('.a | test("a{9999}")', 13),
        ('.a | test("a"; "x")', 16),
        (". a", 3),
        (".a.", 4),
        ("\x00", 1),
        (".[99999999999]", 3),
        (".a | @base64", 6),
        ("input", 1),
        ("$ENV", 1),
        (".a | contains(.b)", 15),
    ],
)
def test_text_outside_the_language_is_refused_with_its_column(text: str, column: int) -> None:
    """The refusal names the field and the place."""
    with pytest.raises(RequestError) as caught:
        jq.parse(text)
    assert caught.value.status == 400
    assert caught.value.field == "payload_jq"
    assert caught.value.message.startswith(f"column {column}: ")


@pytest.mark.parametrize(
    "text",
    [
        "." + "a" * limits.JQ_BYTES_MAX,
        "(" * 100 + ".a" + ")" * 100,
        " or ".join([".a"] * 300),
        "." + ".a" * 100,
        "(" * 20 + ".a == .b" + ") == (.a == .b)" * 19 + ")",
        " | ".join(["(. == .) == (. == .)"] * 40),
    ],
)
def test_huge_expressions_are_refused(text: str) -> None:
    """No text of a client becomes an unbounded query."""
    with pytest.raises(RequestError):
        jq_sql.condition(jq.parse(text), "d.p")


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=40) | st.text(alphabet='.a[]()|"\\=<>!; 0-9not', max_size=30))
def test_any_text_is_read_or_refused(connection: apsw.Connection, text: str) -> None:
    """Random text never makes another error than a refusal, and what is read also runs."""
    try:
        node = jq.parse(text)
    except RequestError:
        return
    found = jq_sql.condition(node, "d.p")
    query = f"WITH d (p) AS (SELECT jsonb('{{}}')) SELECT {found.text} FROM d"
    connection.execute(query, found.values).fetchall()
