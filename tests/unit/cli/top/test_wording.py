"""How figures, ages and texts are written."""

import pytest

from corvo.cli.top.wording import (
    age,
    clock,
    compact,
    count,
    document,
    lines,
    micros,
    plain,
    plural,
    rate,
    span,
    spark,
)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (1234, "1,234"), (9_999_999, "9,999,999"), (12_345_678, "12.3M")]
)
def test_counts_are_exact_until_they_would_not_fit(number: int, text: str) -> None:
    """Below ten million every digit is shown."""
    assert count(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(999, "999"), (1_000, "1.0k"), (123_456, "123k"), (4.5e9, "4.5G")]
)
def test_compact_numbers_have_at_most_five_characters(number: float, text: str) -> None:
    """The unit grows with the number."""
    assert compact(number) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "–"), (0.01, "<0.1"), (0.5, "0.5"), (42, "42"), (1500, "1.5k")]
)
def test_a_trickle_is_not_nothing(value: float, text: str) -> None:
    """Nothing is a dash, and whatever is above nothing is not."""
    assert rate(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0ms"), (0.25, "250ms"), (9.94, "9.9s"), (59, "59s"), (60, "1m"), (192, "3m12s"),
     (3_661, "1h01m"), (90_000, "1d01h")],
)  # fmt: skip
def test_spans_have_two_units_at_most(seconds: float, text: str) -> None:
    """A length of time fits into a column, and never is negative."""
    assert span(seconds) == text


def test_microseconds_become_milliseconds() -> None:
    """A time of the server is written in the unit one reads best."""
    assert [micros(n) for n in (575, 3_583, 250_000)] == ["575µs", "3.6ms", "250ms"]


def test_ages_look_back_and_ahead() -> None:
    """An instant to come is marked; a clock two seconds off does not make one."""
    now_s = 1_700_000_000.0
    assert age("2023-11-14T22:12:20.000Z", now_s) == "1m"
    assert age("2023-11-14T22:13:21.500Z", now_s) == "0ms"
    assert age("2023-11-14T22:23:20.000Z", now_s) == "in 10m"
    assert age(None, now_s) == "–"
    assert age("soon", now_s) == "–"


def test_a_time_of_day_has_milliseconds() -> None:
    """Events of one second are told apart; what is no instant is shown as it came."""
    assert clock("2023-11-14T22:12:20.125Z").endswith(":20.125")
    assert clock("soon") == "soon"
    assert clock(None) == "–"


def test_the_highest_value_fills_its_cell() -> None:
    """A line of blocks is as wide as asked, the latest at the right, nothing is the base line."""
    assert spark([0, 1, 8], 5) == "  ▁▂█"
    assert spark([1, 2, 3, 4], 2) == "▆█"
    assert spark([0, 0], 3) == " ▁▁"
    assert spark([], 3) == "   "


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\x1b[31mb", "a·[31mb"),
        ("one\ntwo\tthree", "one⏎two three"),
        ("right\u202eleft", "right·left"),
        ("Grüße 日本", "Grüße 日本"),
        ("\x00\x7f\x9b", "···"),
    ],
)
def test_nothing_a_terminal_acts_upon_is_left(text: str, shown: str) -> None:
    """Control characters and marks of direction become a dot."""
    assert plain(text) == shown


def test_long_texts_are_cut() -> None:
    """A payload of a quarter of a megabyte costs what a cell costs."""
    assert len(plain("x" * 300_000)) == 2_000
    assert len(document({"x": "y" * 300_000})) <= 2_000
    assert lines("a\nb\nc", 2) == ["a", "b", "… 1 more lines"]


def test_nouns_agree_with_their_counts() -> None:
    """One job, two jobs."""
    assert [plural(n, "job") for n in (0, 1, 2_000)] == ["0 jobs", "1 job", "2,000 jobs"]
