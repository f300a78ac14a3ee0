"""Rates from counters, latencies from histograms, and the pace of looking."""

import pytest

from corvo.cli.top.pacing import Link, Pace
from corvo.cli.top.rates import HISTORY_COUNT, IDLE, Latency, Meter, buckets_of
from corvo_sdk.types import Queue, Totals


def _queue(name: str, enqueued: int = 0, completed: int = 0) -> Queue:
    return Queue(name=name, totals=Totals(enqueued=enqueued, completed=completed))


def test_a_rate_is_what_was_counted_between_two_looks() -> None:
    """Twenty jobs in two seconds are ten a second, for the queue and for all of them."""
    meter = Meter()
    meter.note([_queue("a", 100, 50), _queue("b")], 10.0)
    assert meter.total == IDLE
    meter.note([_queue("a", 120, 54), _queue("b", 2)], 12.0)
    assert (meter.rate("a").enqueued, meter.rate("a").completed) == (10.0, 2.0)
    assert meter.total.enqueued == 11.0
    assert list(meter.history("a")) == [2.0]


def test_a_queue_made_anew_has_no_negative_rate() -> None:
    """Deleted and made again, its counters start at zero."""
    meter = Meter()
    meter.note([_queue("a", 100, 100)], 1.0)
    meter.note([_queue("a", 1, 0)], 2.0)
    assert meter.rate("a").enqueued == 0
    assert meter.rate("a").completed == 0


def test_memory_holds_the_queues_there_are_and_no_others() -> None:
    """A queue that is gone is forgotten, a history has an end, and idle queues have none."""
    meter = Meter()
    for look in range(200):
        meter.note([_queue("busy", 0, look * 3), _queue(f"gone-{look}"), _queue("idle")], look)
    assert set(meter._tracks) == {"busy", "gone-199", "idle"}
    assert len(meter.history("busy")) == HISTORY_COUNT
    assert meter.history("idle") == ()


PAGE = """# HELP corvo_queue_wait_seconds from ready to handed out
corvo_queue_wait_seconds_bucket{{le="0.1",queue="a"}} {0}
corvo_queue_wait_seconds_bucket{{le="1",queue="a"}} {1}
corvo_queue_wait_seconds_bucket{{le="+Inf",queue="a"}} {1}
corvo_queue_wait_seconds_bucket{{le="0.1",queue="b"}} 0
corvo_queue_wait_seconds_bucket{{le="1",queue="b"}} {0}
corvo_queue_wait_seconds_bucket{{le="+Inf",queue="b"}} {0}
corvo_queue_run_seconds_bucket{{le="odd",queue="a"}} x
"""


def test_histograms_are_summed_over_queues() -> None:
    """Lines of other figures, and lines that make no sense, are passed over."""
    found = buckets_of(PAGE.format(4, 6))
    assert found["wait"] == {0.1: 4.0, 1.0: 10.0, float("inf"): 10.0}
    assert found["run"] == {}


def test_a_latency_is_about_the_last_minute() -> None:
    """What was slow an hour ago does not count, and a restarted server counts anew."""
    latency = Latency()
    assert latency.quantile(0.5) is None
    slow = {0.1: 0.0, 1.0: 100.0, float("inf"): 100.0}
    latency.note(slow, 0.0)
    middle = latency.quantile(0.5)
    assert middle is not None
    assert 0.1 < middle <= 1.0
    fast = {0.1: 100.0, 1.0: 200.0, float("inf"): 200.0}
    latency.note(fast, 90.0)
    assert latency.quantile(0.99) is not None
    assert (latency.quantile(0.99) or 1) <= 0.1
    latency.note({0.1: 1.0, 1.0: 1.0, float("inf"): 1.0}, 91.0)
    assert (latency.quantile(0.5) or 1) <= 0.1


def test_a_dear_look_is_repeated_less_often() -> None:
    """Twenty times what it takes, when that was no hiccup, and never more than twenty seconds."""
    pace = Pace(2.0)
    assert pace.delay_s(0.02) == 2.0
    assert pace.delay_s(0.5) == 2.0
    assert pace.delay_s(0.6) == 10.0
    assert pace.delay_s(30.0) == pytest.approx(12.0)
    assert pace.delay_s(30.0) == 20.0
    assert pace.delay_s(0.1) == 2.0


def test_a_look_in_vain_backs_off_and_comes_back() -> None:
    """Half a second, then twice as long each time, at most five; a success ends it."""
    pace = Pace(2.0)
    delays: list[float] = []
    for _ in range(6):
        pace.fail()
        delays.append(pace.delay_s(0.0))
    assert delays == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    pace.succeed()
    assert pace.delay_s(0.0) == 2.0


def test_the_moment_the_server_went_away_is_kept() -> None:
    """Further failures do not move it; an answer forgets it."""
    link = Link()
    link.failed("refused", 10.0)
    link.failed("refused again", 20.0)
    assert link.down_since_s == 10.0
    link.answered()
    assert link.is_up
    assert link.down_since_s is None
