"""Figures over time: rates from counters that rise, and latencies from histograms that rise."""

from collections import deque
from collections.abc import Iterable, Sequence

from msgspec import Struct

from corvo_sdk.types import Queue, Totals

HISTORY_COUNT = 60  # samples of a line of blocks
WINDOW_S = 60.0  # what a latency speaks of
SAMPLES_MAX = 64
BUCKET_PREFIXES = {
    "wait": "corvo_queue_wait_seconds_bucket{",
    "run": "corvo_queue_run_seconds_bucket{",
}


class Rate(Struct, frozen=True):
    """Jobs per second between the last two looks."""

    enqueued: float = 0.0
    completed: float = 0.0
    failed: float = 0.0


IDLE = Rate()


class _Track:
    """What is remembered about one queue."""

    __slots__ = ("history", "rate", "totals")

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self.rate = IDLE
        # Cost: most of ten thousand queues are idle; a history begins with the first movement.
        self.history: deque[float] | None = None

    def note(self, totals: Totals, elapsed_s: float) -> None:
        before, self.totals = self.totals, totals
        if before == totals:
            self.rate = IDLE
        else:
            # A queue that was deleted and made again counts from zero: never a negative rate.
            self.rate = Rate(
                max(0, totals.enqueued - before.enqueued) / elapsed_s,
                max(0, totals.completed - before.completed) / elapsed_s,
                max(0, totals.failed - before.failed) / elapsed_s,
            )
        if self.history is None and self.rate.completed > 0:
            self.history = deque(maxlen=HISTORY_COUNT)
        if self.history is not None:
            self.history.append(self.rate.completed)


class Meter:
    """Rates of all queues. Holds exactly the queues of the last look, and sixty samples of each."""

    def __init__(self) -> None:
        self._tracks: dict[str, _Track] = {}
        self._noted_at_s: float | None = None
        self.total = IDLE

    def note(self, queues: Sequence[Queue], now_s: float) -> None:
        """Take in a look at all queues, at a moment of a clock that does not jump."""
        elapsed_s = 0.0 if self._noted_at_s is None else now_s - self._noted_at_s
        if self._noted_at_s is not None and elapsed_s < 0.05:
            return  # Two looks in a blink say nothing about a rate.
        self._noted_at_s = now_s
        kept: dict[str, _Track] = {}
        enqueued = completed = failed = 0.0
        for queue in queues:
            track = self._tracks.get(queue.name)
            if track is None or elapsed_s <= 0:
                track = _Track(queue.totals)
            else:
                track.note(queue.totals, elapsed_s)
            kept[queue.name] = track
            enqueued += track.rate.enqueued
            completed += track.rate.completed
            failed += track.rate.failed
        self._tracks = kept
        self.total = Rate(enqueued, completed, failed)

    def rate(self, name: str) -> Rate:
        track = self._tracks.get(name)
        return IDLE if track is None else track.rate

    def history(self, name: str) -> Sequence[float]:
        track = self._tracks.get(name)
        return () if track is None or track.history is None else track.history


Buckets = dict[float, float]


def buckets_of(page: str) -> dict[str, Buckets]:
    """Sum the histograms of waiting and running over all queues of a metrics page."""
    found: dict[str, Buckets] = {name: {} for name in BUCKET_PREFIXES}
    for line in page.splitlines():
        for name, prefix in BUCKET_PREFIXES.items():
            if line.startswith(prefix):
                _add(found[name], line)
    return found


def _add(buckets: Buckets, line: str) -> None:
    bound = line.partition('le="')[2].partition('"')[0]
    value = line.rpartition(" ")[2]
    try:
        key, number = float(bound), float(value)
    except ValueError:
        return
    buckets[key] = buckets.get(key, 0.0) + number


class Latency:
    """A quantile of the last minute, from looks at a histogram that counts since the start."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, Buckets]] = deque(maxlen=SAMPLES_MAX)

    def note(self, buckets: Buckets, now_s: float) -> None:
        if self._looks and _counted(buckets) < _counted(self._looks[-1][1]):
            self._looks.clear()  # The server was restarted and counts anew.
        self._looks.append((now_s, buckets))
        while len(self._looks) > 2 and self._looks[1][0] <= now_s - WINDOW_S:
            self._looks.popleft()

    def quantile(self, share: float) -> float | None:
        """The bound of the bucket that holds the share, in seconds; None without a job."""
        if not self._looks:
            return None
        final = self._looks[-1][1]
        # The first look ever has nothing before it: then it is about the time since the start.
        first = self._looks[0][1] if len(self._looks) > 1 else {}
        return _quantile(
            ((bound, final[bound] - first.get(bound, 0.0)) for bound in sorted(final)), share
        )


def _counted(buckets: Buckets) -> float:
    return max(buckets.values(), default=0.0)


def _quantile(cumulative: Iterable[tuple[float, float]], share: float) -> float | None:
    steps = list(cumulative)
    if not steps or steps[-1][1] <= 0:
        return None
    wanted = share * steps[-1][1]
    below_bound = below_count = 0.0
    for bound, number in steps:
        if number >= wanted:
            if bound == float("inf"):
                return below_bound
            inside = number - below_count
            part = 1.0 if inside <= 0 else (wanted - below_count) / inside
            return below_bound + (bound - below_bound) * part
        below_bound, below_count = bound, number
    return below_bound
