"""The look that never stops: status and queues, and now and then what is dear to ask."""

from collections.abc import Callable, Sequence

from corvo.cli.top.overview import Figures
from corvo.cli.top.pacing import Link, Pace
from corvo.cli.top.rates import Latency, Meter, buckets_of
from corvo.cli.top.source import Source
from corvo.cli.top.wording import plain
from corvo.runtime.clock import Clock
from corvo_sdk.errors import CorvoError as CallError
from corvo_sdk.types import Queue

MINUTES_EVERY_S = 15.0
METRICS_EVERY_S = 10.0
# Cost: the page of metrics has forty lines for each of up to a thousand queues, made on the
# server's loop. It may take a fiftieth of the time between two looks at it.
METRICS_SHARE = 0.02


class Pulse:
    """Keeps figures and rates up to date, and knows whether anybody answers."""

    def __init__(self, source: Source, clock: Clock, interval_s: float) -> None:
        self.figures = Figures(url=source.url, wait=Latency(), run=Latency())
        self.meter = Meter()
        self.link = Link()
        self.pace = Pace(interval_s)
        self._source = source
        self._clock = clock
        self._minutes_due_s = 0.0
        self._metrics_due_s = 0.0

    async def run(self, took: Callable[[Sequence[Queue]], None], told: Callable[[], None]) -> None:
        """Look for ever; hand on the queues of each look, and tell when anything has changed."""
        while True:
            started_s = self._clock.monotonic()
            took_s = 0.0
            try:
                took(await self._look())
                took_s = self._clock.monotonic() - started_s
                told()
                await self._look_deeper()
            except CallError as error:
                self.link.failed(plain(error.message), self._clock.monotonic())
                self.pace.fail()
            told()
            await self.pace.wait(took_s)

    async def _look(self) -> list[Queue]:
        figures = self.figures
        status = await self._source.status()
        if not self.link.is_up:
            # Whoever answers after a break may be another version, with histograms from zero.
            figures.version = await self._source.version()
            self._minutes_due_s = self._metrics_due_s = 0.0
        queues = await self._source.queues()
        self.meter.note(queues, self._clock.monotonic())
        figures.status = status
        figures.take(queues, self.meter.total)
        self.link.answered()
        self.pace.succeed()
        return queues

    async def _look_deeper(self) -> None:
        now_s = self._clock.monotonic()
        if now_s >= self._minutes_due_s:
            self.figures.minutes = (await self._source.throughput()).minutes
            self._minutes_due_s = now_s + MINUTES_EVERY_S
        if now_s >= self._metrics_due_s:
            buckets = buckets_of(await self._source.metrics())
            ended_s = self._clock.monotonic()
            for name, latency in (("wait", self.figures.wait), ("run", self.figures.run)):
                if latency is not None:
                    latency.note(buckets[name], ended_s)
            self._metrics_due_s = ended_s + max(METRICS_EVERY_S, (ended_s - now_s) / METRICS_SHARE)
