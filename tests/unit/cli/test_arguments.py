"""Words on the command line and what they become."""

import click
import pytest

from corvo.cli.arguments import DURATION, instant, tags_of, words
from corvo.cli.ids import parse_ids
from corvo.cli.settings import rate_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("30", 30), ("250ms", 0.25), ("5s", 5), ("1h30m", 5_400), ("7d", 604_800)],
)
def test_a_duration_is_read_as_the_server_reads_it(text: str, seconds: float) -> None:
    """A number alone is seconds; units fall."""
    assert DURATION.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5s", "1.5h", "30m1h", "5s5s", "٣s", "9" * 13])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """Also digits of other scripts, and numbers without end."""
    with pytest.raises(click.BadParameter):
        DURATION.convert(text, None, None)


def test_an_instant_without_zone_is_local() -> None:
    """What goes out always has a zone."""
    assert instant("2026-02-10T09:00:00+01:00") == "2026-02-10T09:00:00+01:00"
    assert instant("2026-02-10").startswith("2026-02-10T00:00:00")
    assert instant("2026-02-10")[-6] in "+-"
    with pytest.raises(click.BadParameter):
        instant("yesterday")


def test_tags_and_lists_are_pairs_and_words() -> None:
    """A value may hold the sign; a list may hold blanks."""
    assert tags_of(("a=b=c", "d=")) == {"a": "b=c", "d": ""}
    assert words(" a, ,b") == ["a", "b"]
    assert words(None) is None
    for pair in ("a", "=b"):
        with pytest.raises(click.BadParameter):
            tags_of((pair,))


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100/1m", {"rate": 100, "period": "1m"}),
        ("5/s", {"rate": 5, "period": "1s"}),
        ("5/10", {"rate": 5, "period": 10}),
        ("5/1h30m/7", {"rate": 5, "period": "1h30m", "burst": 7}),
    ],
)
def test_a_rate_is_read_as_people_write_it(text: str, rate: dict[str, object]) -> None:
    """Count, period and burst; the server judges the period."""
    assert rate_of(text) == rate


@pytest.mark.parametrize("text", ["5", "5/", "/1m", "x/1m", "5/1m/", "5/1m/x", "5/1m/2/3", "-5/1m"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    """Nothing is sent."""
    with pytest.raises(click.BadParameter):
        rate_of(text)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b'"\xff"', b"[" * 2_000, b'{"id": 5}', b'{"id": ""}']
)
def test_bytes_that_are_no_ids_are_a_mistake_of_usage(content: bytes) -> None:
    """Never a trace."""
    with pytest.raises(click.UsageError):
        parse_ids(content)
