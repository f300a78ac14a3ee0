"""What one types on the Jobs page, read as a search."""

from typing import Any

import pytest

from corvo.cli.top.filters import FilterError, parse, quoted


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("", {}),
        ("queue:emails", {"queue": "emails"}),
        ("state:dead,held", {"state": ["dead", "held"]}),
        ("tag:tenant=acme tag:x=", {"tags": {"tenant": "acme", "x": ""}}),
        ('error:"no route" worker:w1', {"error_contains": "no route", "worker_id": "w1"}),
        ('jq:".amount > 100"', {"payload_jq": ".amount > 100"}),
        ("hello  world", {"payload_contains": "hello world"}),
        ("job_01ABC", {"job_id_prefix": "job_01ABC"}),
        ("kind:abc queue:a/b.c", {"error_fingerprint": "abc", "queue": "a/b.c"}),
        ('"queue:x"', {"payload_contains": "queue:x"}),
        ("a@b.c:80", {"payload_contains": "a@b.c:80"}),
    ],
)
def test_filters_become_the_body_of_a_search(text: str, body: dict[str, Any]) -> None:
    """Names are those of the API in short; words are looked for in the payload."""
    assert parse(text) == body


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("state:paused", "paused is not a state"),
        ("state:,", "lacks its value"),
        ("queue:", "queue: lacks its value"),
        ("queue: x", "queue: lacks its value"),
        ("tag:tenant", "lacks its value"),
        ("colour:red", "colour: is not a filter"),
        ('error:"open', "not closed"),
        ("x" * 501, "at most 500"),
    ],
)
def test_what_can_not_be_read_is_named(text: str, complaint: str) -> None:
    """A mistake is refused with a sentence about it."""
    with pytest.raises(FilterError) as caught:
        parse(text)
    assert complaint in caught.value.message


def test_a_value_with_spaces_is_quoted_and_read_back() -> None:
    """What a key types for somebody is what that somebody could type."""
    assert parse(f"worker:{quoted('host 1')}") == {"worker_id": "host 1"}
    assert quoted("plain") == "plain"
