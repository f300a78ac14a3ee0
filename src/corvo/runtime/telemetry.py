"""Diagnostics for operators: structured lines on standard error, and latency histograms.

"Log" in this project means the replicated log; what is written here is telemetry.
"""

import logging
import sys
from typing import Any, Literal, TextIO

import structlog

Level = Literal["debug", "info", "warning", "error"]
Form = Literal["text", "json"]

_LEVELS: dict[Level, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

# Format: a histogram bucket covers an eighth of a power of two, so a percentile is at most 12.5 %
# above the true value. The highest bucket ends at 2**40 microseconds, about twelve days.
_EIGHTHS_BITS = 3
_EIGHTHS = 1 << _EIGHTHS_BITS
_VALUE_BITS_MAX = 40
_VALUE_MAX = (1 << _VALUE_BITS_MAX) - 1
_BUCKETS_COUNT = (_VALUE_BITS_MAX - _EIGHTHS_BITS + 1) * _EIGHTHS


def configure(*, form: Form = "text", level: Level = "info", stream: TextIO | None = None) -> None:
    """Set how telemetry is written, once, at start."""
    target = stream if stream is not None else sys.stderr
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=target.isatty(), pad_event_to=0)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(target),
        cache_logger_on_first_use=False,
    )


def silence_unless_configured() -> None:
    """Write nothing, unless the program we run in has said how: it is not ours to speak in."""
    if not structlog.is_configured():
        quiet = structlog.make_filtering_bound_logger(logging.CRITICAL)
        structlog.configure(wrapper_class=quiet, cache_logger_on_first_use=False)


def logger(component: str) -> structlog.typing.FilteringBoundLogger:
    """A writer of telemetry that names the component on each line."""
    bound: structlog.typing.FilteringBoundLogger = structlog.get_logger(component=component)
    return bound


def bind_request(request_id: str) -> None:
    """Name the request that everything written by this task from now on belongs to."""
    structlog.contextvars.bind_contextvars(request_id=request_id)


def bound_request() -> str:
    """The request this task works for; nothing outside of one."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))


def _bucket_until(index: int) -> int:
    """The first value after the bucket."""
    if index < _EIGHTHS:
        return index + 1
    shift = (index >> _EIGHTHS_BITS) - 1
    return ((index & (_EIGHTHS - 1)) + _EIGHTHS + 1) << shift


class Histogram:
    """How long something took, in microseconds, as counts in fixed buckets. Memory never grows."""

    __slots__ = ("_counts", "_total_us")

    def __init__(self) -> None:
        self._counts = [0] * _BUCKETS_COUNT
        self._total_us = 0

    def observe(self, value_us: int) -> None:
        """Note that something took so long.

        Format: the bucket is the value itself below eight; above, it is found from the position of
        the leading bit and the three bits after it. `_bucket_until` is the way back.
        Cost: every request passes here several times; written flat it takes about 0.3 µs.
        """
        bits = value_us.bit_length()
        if value_us < 0:
            # Two clock readings on two cores can be a microsecond in the wrong order.
            value_us = bits = 0
        if bits <= 3:
            self._counts[value_us] += 1
        elif bits <= _VALUE_BITS_MAX:
            shift = bits - 4
            self._counts[(shift << 3) + (value_us >> shift)] += 1
        else:
            value_us = _VALUE_MAX
            self._counts[-1] += 1
        self._total_us += value_us

    @property
    def count(self) -> int:
        return sum(self._counts)

    @property
    def total_us(self) -> int:
        """The sum of all values."""
        return self._total_us

    def doubling(self) -> list[tuple[int, int]]:
        """Counts by power of two, not cumulative: every bound in microseconds with its count."""
        found: list[tuple[int, int]] = []
        bound, pending = 64, 0
        for index, count in enumerate(self._counts):
            pending += count
            if _bucket_until(index) == bound:
                found.append((bound, pending))
                bound, pending = bound * 2, 0
        return found

    def percentile(self, percent: int) -> int:
        """The upper end of the bucket below which this share of the values lies; 0 when empty."""
        assert 0 < percent <= 100
        # Rounded up: the median of three values is the second one.
        wanted = -(-self.count * percent // 100)
        seen = 0
        if wanted == 0:
            return 0
        for index, count in enumerate(self._counts):
            seen += count
            if seen >= wanted:
                return _bucket_until(index) - 1
        raise AssertionError("the buckets hold fewer values than were counted")

    def summary(self) -> dict[str, int | dict[str, int]]:
        """What the status page shows: count, average, percentiles and counts by power of two."""
        count = self.count
        return {
            "count": count,
            "avg_us": self._total_us // count if count else 0,
            "p50_us": self.percentile(50),
            "p90_us": self.percentile(90),
            "p99_us": self.percentile(99),
            "buckets": self.buckets(),
        }

    def buckets(self) -> dict[str, int]:
        """Counts by power of two, not cumulative: `{"le_us": count}`, without the empty ones."""
        found: dict[str, int] = {}
        for index, count in enumerate(self._counts):
            if count:
                bound = 1 << (_bucket_until(index) - 1).bit_length()
                key = str(bound - 1)
                found[key] = found.get(key, 0) + count
        return found

    def reset(self) -> None:
        self._counts = [0] * _BUCKETS_COUNT
        self._total_us = 0
