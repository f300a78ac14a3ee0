"""Metric families, put together with few words, and their text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from corvo.api.http.exchange import TIMES_SUM
from corvo.api.live.figures import BUCKETS_S, Times
from corvo.runtime.telemetry import Histogram

PREFIX: Final = "corvo_"
CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

# Places of the times of answers that are shown as buckets: 65 microseconds to 69 seconds.
_FIRST_PLACE: Final = 16
_LAST_PLACE: Final = 36

Labelled = Iterable[tuple[Sequence[str], float]]


class Page:
    """Families in the order they were added. Filled on the loop, rendered anywhere."""

    def __init__(self) -> None:
        self._families: list[Metric] = []

    def gauge(self, name: str, text: str, value: float) -> None:
        """Add a figure that may fall."""
        self._families.append(GaugeMetricFamily(PREFIX + name, text, value=value))

    def counter(self, name: str, text: str, value: float) -> None:
        """Add a figure that only rises; `_total` is added to its name."""
        self._families.append(CounterMetricFamily(PREFIX + name, text, value=value))

    def gauges(self, name: str, text: str, labels: Sequence[str], values: Labelled) -> None:
        """Add one figure per set of labels."""
        family = GaugeMetricFamily(PREFIX + name, text, labels=labels)
        for label, value in values:
            family.add_metric(label, value)
        self._families.append(family)

    def counters(self, name: str, text: str, labels: Sequence[str], values: Labelled) -> None:
        """Add one rising figure per set of labels."""
        family = CounterMetricFamily(PREFIX + name, text, labels=labels)
        for label, value in values:
            family.add_metric(label, value)
        self._families.append(family)

    def histogram(self, name: str, text: str, times: Histogram) -> None:
        """Add times measured in microseconds, in buckets that double."""
        family = HistogramMetricFamily(PREFIX + name, text)
        total = 0
        buckets: list[tuple[str, float]] = []
        for bound_us, count in times.doubling():
            total += count
            if bound_us <= 1 << 24:  # seventeen seconds; what is above is in the last bucket
                buckets.append((str(bound_us / 1e6), total))
        buckets.append(("+Inf", total))
        family.add_metric((), buckets, sum_value=times.total_us / 1e6)
        self._families.append(family)

    def durations(
        self, name: str, text: str, label: str, values: Iterable[tuple[str, Times]]
    ) -> None:
        """Add times measured in milliseconds, one histogram per label."""
        family = HistogramMetricFamily(PREFIX + name, text, labels=[label])
        for value, times in values:
            total = 0
            buckets: list[tuple[str, float]] = []
            for bound, count in zip((*BUCKETS_S, "+Inf"), times.counts, strict=True):
                total += count
                buckets.append((str(bound), total))
            family.add_metric([value], buckets, sum_value=times.total_ms / 1000)
        self._families.append(family)

    def answer_times(self, name: str, text: str, times: Mapping[str, Sequence[int]]) -> None:
        """Add how long answers took, one histogram per route, in buckets that double."""
        family = HistogramMetricFamily(PREFIX + name, text, labels=["route"])
        for route, counts in sorted(times.items()):
            total = 0
            buckets: list[tuple[str, float]] = []
            for place, count in enumerate(counts[:TIMES_SUM]):
                total += count
                if _FIRST_PLACE <= place <= _LAST_PLACE:
                    buckets.append((str((1 << place) / 1e9), total))
            buckets.append(("+Inf", total))
            family.add_metric([route], buckets, sum_value=counts[TIMES_SUM] / 1e9)
        self._families.append(family)

    def take(self, family: Metric) -> None:
        """Add a family that somebody else made."""
        self._families.append(family)

    def collect(self) -> Iterator[Metric]:
        """Be what the client library renders."""
        return iter(self._families)

    def render(self) -> bytes:
        """Write the page as text."""
        return generate_latest(self)  # pyright: ignore[reportArgumentType]
