"""The arithmetic of retries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.model import retry
from corvo.model.retry import RetryPolicy, backoff_ms

POLICIES = st.builds(
    RetryPolicy,
    max_attempts=st.integers(0, 1_000),
    backoff=st.integers(0, 3),
    base_ms=st.integers(0, 10**9),
    max_ms=st.integers(0, 10**10),
    jitter_percent=st.integers(0, 100),
)


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (retry.BACKOFF_NONE, [0, 0, 0, 0]),
        (retry.BACKOFF_FIXED, [1_000, 1_000, 1_000, 1_000]),
        (retry.BACKOFF_LINEAR, [1_000, 2_000, 3_000, 4_000]),
        (retry.BACKOFF_EXPONENTIAL, [1_000, 2_000, 4_000, 5_000]),
    ],
)
def test_each_backoff_grows_as_its_name_says(backoff: int, delays: list[int]):
    """Exponential is base times two to the attempt minus one; all are capped."""
    policy = RetryPolicy(backoff=backoff, base_ms=1_000, max_ms=5_000)
    assert delays == [backoff_ms(policy, b"job", attempt) for attempt in (1, 2, 3, 4)]


def test_the_defaults_are_five_seconds_doubling_to_ten_minutes():
    """What a user gets who asks for nothing."""
    delays = [backoff_ms(retry.DEFAULT_RETRY, b"job", attempt) for attempt in (1, 2, 7, 8, 900)]
    assert delays == [5_000, 10_000, 320_000, 600_000, 600_000]


@given(POLICIES, st.binary(min_size=16, max_size=16), st.integers(1, 1_000))
def test_delay_is_an_integer_within_bounds(policy: RetryPolicy, job_id: bytes, attempt: int):
    """No policy yields a negative delay, one past its maximum, or one that is not whole."""
    delay_ms = backoff_ms(policy, job_id, attempt)
    assert isinstance(delay_ms, int)
    assert 0 <= delay_ms <= policy.max_ms
    assert delay_ms == backoff_ms(policy, job_id, attempt)


def test_jitter_spreads_and_stays_within_its_share():
    """Jobs that failed together do not come back together."""
    policy = RetryPolicy(backoff=retry.BACKOFF_FIXED, base_ms=10_000, jitter_percent=20)
    delays = [backoff_ms(policy, b"%016d" % n, 1) for n in range(200)]
    assert min(delays) >= 8_000
    assert max(delays) <= 12_000
    assert len(set(delays)) > 150
