"""What the emitter writes, a reader of YAML reads back as the same value."""

from typing import Any

import pytest
import yaml as reader
from hypothesis import given
from hypothesis import strategies as st

from corvo.cli.yaml import render

texts = st.text(st.characters(codec="utf-8"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, str):
        # A reader of YAML 1.1 takes 1e22 for text, because it wants a point and a sign.
        return float(right) == left
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and left == right


@given(values)
def test_every_json_value_survives(value: Any) -> None:
    """Whatever the API can answer comes back the same from a stock reader."""
    assert _same(value, reader.safe_load(render(value)))


@pytest.mark.parametrize(
    "word",
    [
        *("yes", "No", "ON", "null", "~", "true", "1", "1.5", "0x1F", "1:30", "2026-02-11", ""),
        *(" lead", "trail ", "a: b", "- a", "#c", "a #b", "&a", "*a", "!a", "%a", "@a", "`a"),
        *("{a}", "[a]", "'a'", '"a"', "a\nb", "\t", "\x7f", "\x85", "\u2028", "\ufeff", "é", "🦉"),
        *("=", "<<", "...", "---", "NaN", ".inf", "0o7", "1_000", "-"),
    ],
)
def test_a_text_that_looks_like_something_else_stays_a_text(word: str) -> None:
    """As a value, as a member's name and in a list."""
    document = {"value": word, word or "empty": 1, "list": [word]}
    assert reader.safe_load(render(document)) == document


def test_a_document_reads_as_people_write_it() -> None:
    """Plain words stay plain, lists and objects are indented."""
    job = {"id": "job_1", "tags": {"team": "a"}, "errors": [{"at": "now", "count": 1}], "empty": []}
    assert render(job) == (
        "id: job_1\ntags:\n  team: a\nerrors:\n  - at: now\n    count: 1\nempty: []\n"
    )
