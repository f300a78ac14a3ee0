"""What a text value means, and which ones are refused."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from corvo.api import values
from corvo.errors import RequestError
from corvo.model import limits


@pytest.mark.parametrize(
    ("given_value", "expected_ms"),
    [
        (0, 0),
        (5, 5_000),
        ("250ms", 250),
        ("5s", 5_000),
        ("10m", 600_000),
        ("1h", 3_600_000),
        ("7d", 604_800_000),
        ("1h30m", 5_400_000),
        ("1d2h3m4s5ms", 93_784_005),
        ("0s", 0),
    ],
)
def test_durations_are_seconds_or_text_with_units(given_value: int | str, expected_ms: int):
    """An integer is seconds; text has units, compound ones in falling order."""
    assert expected_ms == values.parse_duration(given_value, "delay")


@pytest.mark.parametrize(
    "given_value",
    [
        -1,
        "",
        "5",
        "-5s",
        "5 s",
        "s",
        "5x",
        "1.5s",
        "30m1h",
        "5s5s",
        "٥s",
        "1h ",
        10**30,
        "9" * 15 + "d",
    ],
)
def test_what_is_no_duration_is_refused_by_name(given_value: int | str):
    """A refusal of a duration names the field."""
    with pytest.raises(RequestError) as caught:
        values.parse_duration(given_value, "delay")
    assert caught.value.field == "delay"
    assert caught.value.code == "VALIDATION_ERROR"


@given(st.integers(0, limits.DURATION_MS_MAX))
def test_a_rendered_duration_reads_back(duration_ms: int):
    """Rendering and parsing a duration are inverse."""
    assert duration_ms == values.parse_duration(values.render_duration(duration_ms), "x")


@given(
    st.datetimes(
        datetime(1970, 1, 2),  # noqa: DTZ001 - the zone comes separately
        datetime(9999, 12, 30),  # noqa: DTZ001
        timezones=st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m))),
    )
)
def test_instants_of_any_zone_are_read_to_the_millisecond(instant: datetime):
    """The reader agrees with the calendar of the standard library, in every zone."""
    instant = instant.replace(microsecond=instant.microsecond // 1000 * 1000)
    expected = (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert expected == values.parse_instant(instant.isoformat(), "at")


@given(st.integers(0, limits.TIME_MS_MAX))
def test_a_rendered_instant_reads_back(at_ms: int):
    """Rendering and parsing an instant are inverse; the answer is UTC with milliseconds."""
    text = values.render_instant(at_ms)
    assert text.endswith("Z")
    assert len(text) == len("2026-02-11T10:00:00.000Z")
    assert at_ms == values.parse_instant(text, "at")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-02-11",
        "2026-02-11T10:00:00",
        "2026-02-30T10:00:00Z",
        "2026-13-01T10:00:00Z",
        "2026-02-11T24:00:00Z",
        "2026-02-11T10:61:00Z",
        "2026-02-11T10:00:61Z",
        "2026-02-11T10:00:00+25:00",
        "2026-02-11T10:00:00+0100",
        "1969-12-31T23:59:59Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-01:00",
        "2026-02-11T10:00:00Z\n",
        "٢٠٢٦-02-11T10:00:00Z",
        "2026-02-11T10:00:00.Z",
    ],
)
def test_an_instant_without_zone_or_outside_the_calendar_is_refused(text: str):
    """A zone is required, the date must exist, and the refusal names the field."""
    with pytest.raises(RequestError) as caught:
        values.parse_instant(text, "scheduled_at")
    assert caught.value.field == "scheduled_at"


@pytest.mark.parametrize("name", ["a", "emails.send", "a/b:c_d-e", "A" * 200])
def test_names_of_the_alphabet_are_accepted(name: str):
    """Names are 1 to 200 characters of the alphabet."""
    assert values.check_name(name, "queue") == name


@pytest.mark.parametrize("name", ["", "a b", "a\x00", "é", "a" * 201, "a\n", "{}", "a%2F", "💥"])
def test_other_names_are_refused(name: str):
    """NUL, spaces, other alphabets and long names are no names, also when asked twice."""
    for _ in range(2):
        with pytest.raises(RequestError) as caught:
            values.check_name(name, "queue")
        assert caught.value.field == "queue"


def test_the_memory_of_known_names_is_bounded():
    """Inventing names does not make the server grow."""
    for number in range(10_000):
        values.check_name(f"invented.{number}", "queue")
    assert len(values._known_names) <= values._KNOWN_NAMES_MAX


@given(st.integers(0, 140), st.integers(0, 3))
def test_depth_is_counted_exactly(depth: int, padding: int):
    """Sixty-four levels pass, sixty-five do not, whatever else is in the document."""
    text = "[" * depth + '"]]}}{{\\"[["' + "]" * depth
    text = "[" * padding + ",".join([text] * 3) + "]" * padding if padding else text
    deepest = depth + padding
    assert values.is_too_deep(text.encode()) is (deepest > limits.JSON_DEPTH_MAX)


def test_a_wide_document_is_not_a_deep_one():
    """Thousands of brackets side by side are fine."""
    assert not values.is_too_deep(b"[" + b"[],{}," * 10_000 + b"[]]")


def test_a_document_over_its_limit_is_413_and_named():
    """Size is refused with the code of size and the name of the field."""
    with pytest.raises(RequestError) as caught:
        values.check_document(Raw(b'"' + b"x" * 100 + b'"'), "payload", 100)
    assert (caught.value.status, caught.value.code) == (413, "PAYLOAD_TOO_LARGE")
    assert caught.value.field == "payload"


@given(st.text(max_size=80), st.integers(0, 100))
def test_cut_text_is_a_prefix_within_the_limit(text: str, most_bytes: int):
    """A cut report is whole characters and never longer than the limit."""
    text = text.encode(errors="replace").decode()
    cut = values.cut_text(text, most_bytes)
    assert text.startswith(cut)
    assert len(cut.encode()) <= most_bytes or len(text) * 4 <= most_bytes
    if len(text.encode()) <= most_bytes:
        assert cut == text


def test_tags_are_bounded_in_number_and_size():
    """Too many tags, control characters in keys and long values are refused."""
    for tags in (
        {str(number): "" for number in range(limits.TAGS_COUNT_MAX + 1)},
        {"a\x00": "x"},
        {"": "x"},
        {"k" * 201: "x"},
        {"k": "x" * (limits.TAG_VALUE_BYTES_MAX + 1)},
    ):
        with pytest.raises(RequestError) as caught:
            values.check_tags(tags)
        assert caught.value.field == "tags"
    assert values.check_tags({}) is None
    assert values.check_tags({"tenant": "acme\ncorp"}) == {"tenant": "acme\ncorp"}
