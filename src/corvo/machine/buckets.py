"""Token buckets in integers: O(1), no clock of their own, no drift worth naming.

A bucket is (tokens, tokens_ms): what it held, in millionths of a token, and when that was true. It
is brought up to date only when tokens are taken, so looking at it never rounds anything away;
taking loses less than a millionth of a token.
"""

from corvo.model.queue import Rate

TOKEN = 1_000_000


def available(rate: Rate, tokens: int, tokens_ms: int, now_ms: int) -> int:
    """Tokens there are now, in millionths. A bucket never used (tokens_ms 0) is full."""
    full = rate.burst * TOKEN
    if not tokens_ms:
        return full
    return min(full, tokens + (now_ms - tokens_ms) * rate.rate * TOKEN // rate.period_ms)


def needed(rate: Rate, cost: int) -> int:
    """Tokens a job of this cost must find. A cost above the burst waits for a full bucket only."""
    return min(cost, rate.burst) * TOKEN


def ready_ms(rate: Rate, tokens: int, tokens_ms: int, need: int) -> int:
    """First instant at which the bucket holds `need`."""
    if not tokens_ms or tokens >= need:
        return tokens_ms
    per = rate.rate * TOKEN
    return (
        tokens_ms
        - (tokens - need) * rate.period_ms // per
        + (1 if (need - tokens) * rate.period_ms % per else 0)
    )


def full_ms(rate: Rate, tokens: int, tokens_ms: int) -> int:
    """First instant at which the bucket is full and may be forgotten."""
    return ready_ms(rate, tokens, tokens_ms, rate.burst * TOKEN)
