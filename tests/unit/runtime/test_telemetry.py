"""Telemetry: what operators read."""

import io
import json

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from corvo.runtime import telemetry
from corvo.runtime.telemetry import Histogram


@given(st.lists(st.integers(0, 2**40 - 1), min_size=1, max_size=200), st.integers(1, 100))
def test_percentile_is_at_most_an_eighth_above_the_truth(values: list[int], percent: int) -> None:
    """The answer is never below the true percentile, and at most 12.5 % above it."""
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    true = sorted(values)[-(-len(values) * percent // 100) - 1]
    assert true <= histogram.percentile(percent) <= true + true // 8


def test_empty_histogram_answers_zero() -> None:
    """A server that has just started has no latency to report."""
    summary = Histogram().summary()
    assert summary == {
        "count": 0,
        "avg_us": 0,
        "p50_us": 0,
        "p90_us": 0,
        "p99_us": 0,
        "buckets": {},
    }


def test_values_outside_the_range_are_counted_at_its_ends() -> None:
    """A negative or absurd duration is kept as the nearest possible one, never an error."""
    histogram = Histogram()
    histogram.observe(-5)
    histogram.observe(-(2**50))
    histogram.observe(2**50)
    assert histogram.count == 3
    assert histogram.percentile(50) == 0
    assert histogram.percentile(100) == 2**40 - 1


def test_summary_counts_by_power_of_two() -> None:
    """Buckets name the largest value they hold, and together hold every value."""
    histogram = Histogram()
    for value in (0, 1, 2, 3, 500, 600, 1_023, 1_024):
        histogram.observe(value)
    assert histogram.buckets() == {"0": 1, "1": 1, "3": 2, "511": 1, "1023": 2, "2047": 1}
    assert histogram.summary()["avg_us"] == (0 + 1 + 2 + 3 + 500 + 600 + 1_023 + 1_024) // 8
    histogram.reset()
    assert histogram.count == 0


@pytest.mark.parametrize("form", ["text", "json"])
def test_lines_below_the_level_are_not_written(form: telemetry.Form) -> None:
    """The level is a threshold in both forms, and the JSON form is one object per line."""
    stream = io.StringIO()
    telemetry.configure(form=form, level="warning", stream=stream)
    try:
        writer = telemetry.logger("engine")
        writer.info("quiet")
        writer.warning("loud", queue="mail")
    finally:
        structlog.reset_defaults()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 1
    assert "loud" in lines[0]
    if form == "json":
        line = json.loads(lines[0])
        assert (line["event"], line["level"], line["queue"]) == ("loud", "warning", "mail")
        assert line["component"] == "engine"
