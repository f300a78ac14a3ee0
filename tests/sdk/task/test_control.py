"""Durations as people write them, and what a handler may say instead of a result."""

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from corvo_sdk.control import Control, Discard, Hold, Release, Retry, Snooze
from corvo_sdk.duration import milliseconds, render


@pytest.mark.parametrize(
    ("given", "expected_ms"),
    [
        (0, 0),
        (5, 5_000),
        (0.25, 250),
        (timedelta(minutes=1, milliseconds=1), 60_001),
        ("250ms", 250),
        ("1h30m", 5_400_000),
        ("7d", 7 * 86_400_000),
    ],
)
def test_a_duration_is_seconds_a_timedelta_or_text(given: Any, expected_ms: int) -> None:
    """All forms mean the same milliseconds."""
    assert expected_ms == milliseconds(given)


@pytest.mark.parametrize(
    "given",
    [-1, -0.5, "", "5", "5 minutes", "30m1h", "5s5s", float("nan"), float("inf"), True, None, []],
)
def test_what_is_no_duration_is_refused_by_name(given: Any) -> None:
    """The error says which option it was."""
    with pytest.raises(ValueError, match="after is"):
        milliseconds(given, "after")


def test_durations_are_written_as_the_server_reads_them() -> None:
    """Whole seconds are an integer, the rest is text."""
    assert render(90_000) == 90
    assert render(1_500) == "1500ms"


def test_control_values_carry_milliseconds() -> None:
    """Whatever form was given, the worker sees integers."""
    assert Snooze("5m").delay_ms == 300_000
    assert Retry(after=1.5).after_ms == 1_500
    assert Retry().after_ms is None
    hold = Hold("check it", timeout=timedelta(hours=1), timeout_action="cancel")
    assert (hold.reason, hold.timeout_ms, hold.timeout_action) == ("check it", 3_600_000, "cancel")


def test_a_snooze_until_an_instant_needs_a_zone() -> None:
    """An instant without a zone means another time on another machine."""
    until = datetime(2030, 1, 1, tzinfo=UTC)
    assert until == Snooze(until).until
    with pytest.raises(ValueError, match="without a time zone"):
        Snooze(until.replace(tzinfo=None))


@pytest.mark.parametrize(
    "control",
    [Snooze("5m"), Retry("1s", "later"), Discard("no"), Hold("look", 60, "approve"), Release()],
)
def test_control_values_survive_another_process(control: Control) -> None:
    """A handler in a process may say it, too."""
    copy = pickle.loads(pickle.dumps(control))
    assert type(control) is type(copy)
    assert vars(control) == vars(copy)
    assert str(control) == str(copy)


def test_all_control_values_are_of_one_family() -> None:
    """One except clause finds them all, and none of them is an operating error."""
    for kind in (Snooze, Retry, Discard, Hold, Release):
        assert issubclass(kind, Control)
        assert not issubclass(kind, OSError | ValueError | RuntimeError)
