"""Which instants an expression means: fields, names, time zones, and clocks that change."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corvo.errors import RequestError
from corvo.model import limits
from corvo.scheduler import cron
from tests.unit.scheduler.calendar_oracle import expected_slots

ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",  # clocks change by half an hour
    "America/Havana",  # and at midnight
    "Asia/Kolkata",
    "Africa/Casablanca",
)
# The days before clocks change somewhere in the list, and one without.
STARTS = (
    (2026, 3, 7),
    (2026, 3, 28),
    (2026, 4, 3),
    (2026, 10, 3),
    (2026, 10, 24),
    (2026, 10, 31),
    (2026, 7, 14),
)


def at(text: str) -> int:
    """Read an instant, UTC unless it says otherwise."""
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000


def show(slot_ms: int, zone: str = "UTC") -> str:
    """Write a slot as the clock of a zone shows it."""
    moment = datetime.fromtimestamp(slot_ms // 1_000, ZoneInfo(zone))
    return moment.strftime("%a %d %b %H:%M:%S")


def runs(expression: str, zone: str, after: str, count: int) -> list[str]:
    """Return the next slots as the clock of the zone shows them."""
    found = cron.slots(cron.parse(expression, zone), at(after), limits.TIME_MS_MAX, count)
    return [show(slot_ms, zone) for slot_ms in found]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 9 * * MON-FRI", ["Mon 02 Mar 09:00:00", "Tue 03 Mar 09:00:00"]),
        ("*/20 8,18 * * *", ["Sun 01 Mar 08:00:00", "Sun 01 Mar 08:20:00"]),
        ("30 */5 * * * *", ["Sun 01 Mar 00:00:30", "Sun 01 Mar 00:05:30"]),
        ("0 0 L * *", ["Tue 31 Mar 00:00:00", "Thu 30 Apr 00:00:00"]),
        ("0 0 LW * *", ["Tue 31 Mar 00:00:00", "Thu 30 Apr 00:00:00"]),
        ("0 0 * * 5L", ["Fri 27 Mar 00:00:00", "Fri 24 Apr 00:00:00"]),
        ("0 0 * * friL", ["Fri 27 Mar 00:00:00", "Fri 24 Apr 00:00:00"]),
        ("0 0 * * MON#2", ["Mon 09 Mar 00:00:00", "Mon 13 Apr 00:00:00"]),
        ("0 0 ? * SUN", ["Sun 08 Mar 00:00:00", "Sun 15 Mar 00:00:00"]),
        ("0 0 13 * FRI", ["Fri 06 Mar 00:00:00", "Fri 13 Mar 00:00:00"]),
        ("0 12 1 jan,JUL *", ["Wed 01 Jul 12:00:00", "Fri 01 Jan 12:00:00"]),
        ("@hourly", ["Sun 01 Mar 01:00:00", "Sun 01 Mar 02:00:00"]),
        ("@daily", ["Mon 02 Mar 00:00:00", "Tue 03 Mar 00:00:00"]),
        ("@weekly", ["Sun 08 Mar 00:00:00", "Sun 15 Mar 00:00:00"]),
        ("@Monthly", ["Wed 01 Apr 00:00:00", "Fri 01 May 00:00:00"]),
        ("@yearly", ["Fri 01 Jan 00:00:00", "Sat 01 Jan 00:00:00"]),
        ("@every 1h30m", ["Sun 01 Mar 01:30:00", "Sun 01 Mar 03:00:00"]),
        ("  5   0  *  *  * ", ["Sun 01 Mar 00:05:00", "Mon 02 Mar 00:05:00"]),
    ],
)
def test_an_expression_means_these_instants(expression: str, expected: list[str]):
    """Five and six fields, names, ranges, steps, last, nth, and the forms with an at sign."""
    assert runs(expression, "UTC", "2026-03-01T00:00:00", 2) == expected


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        # New York, gap: 02:00 to 03:00 on 8 March 2026.
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00",
            ["Sun 08 Mar 03:00:00", "Mon 09 Mar 02:30:00"],
        ),
        (
            "15 30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00",
            ["Sun 08 Mar 03:00:00", "Mon 09 Mar 02:30:15"],
        ),
        (
            "0,30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00",
            ["Sun 08 Mar 03:00:00", "Mon 09 Mar 02:00:00"],
        ),
        (
            "*/30 * * * *",
            "America/New_York",
            "2026-03-08T06:00",
            ["Sun 08 Mar 01:30:00", "Sun 08 Mar 03:00:00"],
        ),
        # New York, fold: 01:00 to 02:00 comes twice on 1 November 2026.
        (
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00",
            ["Sun 01 Nov 01:30:00", "Mon 02 Nov 01:30:00"],
        ),
        (
            "0 30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00",
            ["Sun 01 Nov 01:30:00", "Mon 02 Nov 01:30:00"],
        ),
        (
            "*/30 * * * *",
            "America/New_York",
            "2026-11-01T05:00",
            [
                "Sun 01 Nov 01:30:00",
                "Sun 01 Nov 01:00:00",
                "Sun 01 Nov 01:30:00",
                "Sun 01 Nov 02:00:00",
            ],
        ),
        # Half an hour, and a gap that begins at midnight.
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T00:00",
            ["Sun 04 Oct 02:30:00", "Mon 05 Oct 02:15:00"],
        ),
        (
            "0 0 * * *",
            "America/Havana",
            "2026-03-07T12:00",
            ["Sun 08 Mar 01:00:00", "Mon 09 Mar 00:00:00"],
        ),
        # A day that never was.
        (
            "0 12 * * *",
            "Pacific/Apia",
            "2011-12-29T12:00",
            ["Thu 29 Dec 12:00:00", "Sat 31 Dec 00:00:00", "Sat 31 Dec 12:00:00"],
        ),
    ],
)
def test_a_change_of_clocks_neither_loses_nor_doubles_a_time_on_the_wall(
    expression: str, zone: str, after: str, expected: list[str]
):
    """In the gap right after it, in the fold once; a rhythm follows elapsed time."""
    assert runs(expression, zone, after, len(expected)) == expected


@pytest.mark.parametrize("after", ["2026-11-01T06:10:00", "2026-11-01T05:31:00"])
def test_the_second_pass_of_a_fold_does_not_fire_again(after: str):
    """Also for somebody who starts looking in the middle of it."""
    assert runs("30 1 * * *", "America/New_York", after, 1) == ["Mon 02 Nov 01:30:00"]


FIELDS = st.tuples(
    st.sampled_from(("0", "30", "*/20", "*", "5,35", "10-12", "59", "7/15")),
    st.sampled_from(("0", "1", "2", "3", "*", "*/6", "1-3", "23", "0,2", "2/5")),
    st.sampled_from(("*", "*", "1", "8", "29", "*/2", "1-7", "4,25")),
    st.sampled_from(("*", "*", "3", "10-11", "4")),
    st.sampled_from(("*", "*", "0", "7", "1-5", "6", "*/3")),
)


@given(FIELDS, st.sampled_from(ZONES), st.sampled_from(STARTS))
@settings(max_examples=80, deadline=None)
def test_slots_are_those_found_by_looking_at_every_minute(
    fields: tuple[str, ...], zone: str, day: tuple[int, int, int]
):
    """The library, the zone and our rules agree with an oracle that knows no shortcuts."""
    expression = " ".join(fields)
    start = datetime(*day, 12, tzinfo=UTC)
    expected = expected_slots(expression, ZoneInfo(zone), start, 3)
    timing = cron.parse(expression, zone)
    start_ms = int(start.timestamp()) * 1_000
    until_ms = start_ms + 2 * 86_400_000
    found = cron.slots(timing, start_ms, until_ms, 10_000)
    assert found == [slot_ms for slot_ms in expected if start_ms < slot_ms <= until_ms]


@given(
    FIELDS,
    st.sampled_from(ZONES),
    st.sampled_from(STARTS),
    st.integers(0, 86_400_000),
    st.integers(0, 4 * 86_400_000),
)
@settings(max_examples=100, deadline=None)
def test_the_last_slot_of_a_span_is_the_end_of_a_walk_over_it(
    fields: tuple[str, ...], zone: str, day: tuple[int, int, int], ahead_ms: int, span_ms: int
):
    """Wherever one starts looking, slots are the same; the search finds the newest of them."""
    timing = cron.parse(" ".join(fields), zone)
    start_ms = int(datetime(*day, tzinfo=UTC).timestamp()) * 1_000
    walk = cron.slots(timing, start_ms, start_ms + ahead_ms + span_ms, 10_000)
    start_ms += ahead_ms
    rest = [slot_ms for slot_ms in walk if slot_ms > start_ms]
    assert timing.next_ms(start_ms) == rest[0] if rest else timing.next_ms(start_ms) != start_ms
    assert cron.last_ms(timing, start_ms, start_ms + span_ms) == (rest[-1] if rest else 0)


@pytest.mark.parametrize(
    ("expression", "where"),
    [
        ("", "five or six fields, this has 0"),
        ("0 9 * *", "this has 4"),
        ("1 2 3 4 5 6 7", "this has 7"),
        ("61 * * * *", "minute: '61' at column 1"),
        ("0 24 * * *", "hour: '24' at column 3"),
        ("0 0 1,15,32 * *", "day of month: '32' at column 10"),
        ("0 0 * FOO *", "month: 'FOO' at column 7"),
        ("0 0 * * 1#6", "day of week: '1#6' at column 9"),
        ("60 0 0 * * *", "second: '60' at column 1"),
        ("*/0 * * * *", "minute: '*/0' at column 1"),
        ("5-1 * * * *", "minute: '5-1' at column 1"),
        ("0 0 1,,2 * *", "day of month: '' at column 7"),
        ("0 0 31 2 *", "day of month '31' is in none of the months '2', at column 5"),
        ("0 0 1/-1 * *", "day of month: '1/-1' at column 5"),
        ("? * * * *", "minute: '?' at column 1"),
        ("@fortnightly", "'@fortnightly' is not known"),
        ("@every", "at column 8"),
        ("@every 0s", "at column 8"),
        ("@every 400d", "at column 8"),
        ("@every 5 minutes", "at column 8"),
        ("\u0663 * * * *", "minute: '\u0663' at column 1"),
        ("* " * 200, "longer than 256 bytes"),
    ],
)
def test_an_expression_that_is_wrong_says_where(expression: str, where: str):
    """The field, the term and its column."""
    with pytest.raises(RequestError) as caught:
        cron.parse(expression, "UTC")
    assert where in caught.value.message
    assert caught.value.field == "cron"
    assert caught.value.hint


@given(st.text("0123456789*/,-LW#?@ MONJA", max_size=24))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str):
    """No text makes anything else than slots or a refusal."""
    try:
        timing = cron.parse(text, "Europe/Berlin")
    except RequestError:
        return
    slot_ms = timing.next_ms(at("2026-03-28T00:00:00"))
    assert slot_ms == 0 or slot_ms > at("2026-03-28T00:00:00")


@pytest.mark.parametrize(
    "name", ["", "Nowhere", "../etc/passwd", "/etc/passwd", "America", "a\x00b", "x" * 5_000]
)
def test_a_time_zone_that_does_not_exist_is_refused(name: str):
    """Whatever the name would be as a path."""
    with pytest.raises(RequestError) as caught:
        cron.parse("@daily", name)
    assert caught.value.field == "timezone"


def test_a_time_zone_that_is_misspelt_gets_a_suggestion():
    """The hint names what is near."""
    with pytest.raises(RequestError) as caught:
        cron.parse("@daily", "europe/berlin")
    assert caught.value.hint is not None
    assert "Europe/Berlin" in caught.value.hint


def test_the_end_of_time_is_an_end():
    """After the last slot before the year 10000 there is none."""
    timing = cron.parse("0 0 1 1 *", "America/New_York")
    assert timing.next_ms(limits.TIME_MS_MAX - 1_000) == 0
    assert cron.parse("@every 366d", "UTC").next_ms(limits.TIME_MS_MAX - 1_000) == 0
    assert cron.parse("0 0 */31 * 5L", "UTC").next_ms(0) == 0
