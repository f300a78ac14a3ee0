"""Retry policy and its arithmetic, in integers only."""

from hashlib import blake2b

from msgspec import Struct

from corvo.model import limits

BACKOFF_NONE, BACKOFF_FIXED, BACKOFF_LINEAR, BACKOFF_EXPONENTIAL = range(4)
BACKOFF_NAMES = ("none", "fixed", "linear", "exponential")


class RetryPolicy(Struct, frozen=True, array_like=True, gc=False):
    """How often and after which delay a failed attempt is repeated."""

    max_attempts: int = limits.ATTEMPTS_DEFAULT  # total attempts; 0 counts as one
    backoff: int = BACKOFF_EXPONENTIAL
    base_ms: int = limits.RETRY_BASE_MS_DEFAULT
    max_ms: int = limits.RETRY_MAX_MS_DEFAULT
    jitter_percent: int = 0  # the delay varies by up to this share, by a stable hash


DEFAULT_RETRY = RetryPolicy()


def backoff_ms(policy: RetryPolicy, job_id: bytes, attempt: int) -> int:
    """Delay before the next attempt, after the given attempt (counted from one) failed."""
    assert attempt >= 1
    if policy.backoff == BACKOFF_NONE:
        return 0
    if policy.backoff == BACKOFF_FIXED:
        delay = policy.base_ms
    elif policy.backoff == BACKOFF_LINEAR:
        delay = policy.base_ms * attempt
    else:
        # The shift is capped so that a thousand attempts do not build a thousand-bit number.
        delay = policy.base_ms << min(attempt - 1, 40)
    delay = min(delay, policy.max_ms)
    if policy.jitter_percent:
        spread = delay * policy.jitter_percent // 100
        digest = blake2b(job_id + attempt.to_bytes(4, "big"), digest_size=4).digest()
        delay += int.from_bytes(digest, "big") % (2 * spread + 1) - spread
    return min(delay, policy.max_ms)
