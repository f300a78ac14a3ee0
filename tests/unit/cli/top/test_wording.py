"""How figures, ages and texts are written."""

from datetime import UTC, datetime, timedelta

import pytest

from corvo.cli.top.wording import (
    age,
    clock,
    compact,
    count,
    document,
    instant_text,
    lines,
    micros,
    plain,
    plural,
    rate,
    seconds_of,
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
    now = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    now_s = now.timestamp()
    assert age(now - timedelta(minutes=1), now_s) == "1m"
    assert age(now + timedelta(seconds=1.5), now_s) == "0ms"
    assert age(now + timedelta(minutes=10), now_s) == "in 10m"
    assert age(None, now_s) == "–"


def test_a_time_of_day_has_milliseconds() -> None:
    """Events of one second are told apart; an instant in full is as the server writes it."""
    instant = datetime(2023, 11, 14, 22, 12, 20, 125_000, tzinfo=UTC)
    assert clock(instant).endswith(":20.125")
    assert clock(None) == "–"
    assert instant_text(instant) == "2023-11-14T22:12:20.125Z"


def test_what_never_happened_has_its_place_in_an_order() -> None:
    """Before all instants, or after them where the oldest comes first."""
    instant = datetime(2023, 11, 14, tzinfo=UTC)
    assert seconds_of(None) < seconds_of(instant) < seconds_of(None, float("inf"))


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
