"""The one reader of the feed for everybody who watches.

The engine says that the feed has grown; the hub reads on, at a pace that leaves the loop to those
who write: after each round it rests at least five milliseconds, and at least four times as long as
the round took, together with the writing it caused. So a few streams see an event within
milliseconds, and thousands of them take a fifth of the loop at most, however much happens.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final

from corvo.api.live.batch import Batch
from corvo.api.live.figures import MINUTE_MS, MINUTES_KEPT, Figures
from corvo.api.live.filters import Filter
from corvo.api.live.stream import Stream
from corvo.api.live.waits import Waits
from corvo.engine import Engine, Watcher
from corvo.errors import OverloadedError, UnavailableError
from corvo.model import limits
from corvo.model.event import EventBlock

SLICE_BYTES: Final = 64 * 1024
SLICES_MAX: Final = 8  # per round
REST_S: Final = 0.005
REST_S_MAX: Final = 0.25
REST_SHARE: Final = 4
WRITE_S: Final = 25e-6  # what waking one stream and writing to it costs, measured
HEARTBEAT_MS: Final = 15_000
BEAT_LOOK_S: Final = 1.0
CATCH_UP_BYTES: Final = 24 * 1024  # about 250 events, a millisecond
FULL_RETRY_MS: Final = 5_000

Observer = Callable[[list[EventBlock]], None]

DRAINING: Final = "draining"
SLOW: Final = "slow"
GONE: Final = "gone"


class Hub:
    """Reads the feed once and shares it out. Runs until cancelled."""

    def __init__(
        self,
        engine: Engine,
        *,
        heartbeat_ms: int = HEARTBEAT_MS,
        streams_max: int = limits.STREAMS_MAX,
        ring_events_max: int = limits.STREAM_RING_EVENTS_MAX,
    ) -> None:
        self._engine = engine
        self._heartbeat_s = heartbeat_ms / 1000
        self._streams_max = streams_max
        self._ring_events_max = ring_events_max
        # Invariant: every event up to `position` (an index) is in a batch before `next_number`.
        self.position = self._began_index = engine.index
        self.seq = engine.seq
        self.next_number = 0
        self._batches: deque[Batch] = deque()
        self._events_count = 0
        self._streams: set[Stream] = set()
        self._idle: dict[Stream, float] = {}  # streams that have everything, and since when
        self._wake = asyncio.Event()
        self._reading = asyncio.Lock()
        self._is_draining = False
        self._beaten_s = 0.0
        self.waits = Waits(engine)
        self.figures = Figures(engine.clock)
        self.observers: list[Observer] = []  # told of every event, once, on the loop
        self.streams_total = 0
        self.dropped_total = 0
        engine.watch(Watcher(self._wake.set, self.drain))

    # --- reading --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the feed; a failure goes upward."""
        look_s = min(BEAT_LOOK_S, self._heartbeat_s / 2)
        while True:
            try:
                async with asyncio.timeout(look_s):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            began_s = monotonic()
            woken_count = self._read_on()
            now_s = monotonic()
            if now_s - self._beaten_s >= look_s:
                self._beat(now_s)
            busy_s = now_s - began_s + woken_count * WRITE_S
            await asyncio.sleep(min(REST_S_MAX, max(REST_S, busy_s * REST_SHARE)))

    async def recall(self) -> None:
        """Count the stored events of the last hour into their minutes; once, beside `run`.

        Cost: a fifth of the loop at most, for about a second per forty thousand events.
        """
        engine = self._engine
        since_ms = engine.clock.now_ms() - MINUTES_KEPT * MINUTE_MS
        index = engine.locate_time(since_ms)
        while index < self._began_index:
            found = engine.feed(index, CATCH_UP_BYTES)
            blocks = [block for reached, block in found if reached <= self._began_index]
            if not blocks:
                return
            index = found[len(blocks) - 1][0]
            self.figures.observe_minutes(blocks)
            await asyncio.sleep(REST_S)

    def _read_on(self) -> int:
        """Share out what is new, up to a bound; return how many streams were woken."""
        woken_count = 0
        for _ in range(SLICES_MAX):
            found = self._engine.feed(self.position, SLICE_BYTES)
            if not found:
                # Entries without events are passed over.
                self.position = self._engine.index
                return woken_count
            self.position = found[-1][0]
            woken_count += self._share([block for _, block in found])
        self._wake.set()
        return woken_count

    def _share(self, blocks: list[EventBlock]) -> int:
        self.figures.observe(blocks)
        self.waits.observe(blocks)
        for observe in self.observers:
            observe(blocks)
        batch = Batch(blocks)
        self._batches.append(batch)
        self.next_number += 1
        self.seq = batch.last_seq
        self._events_count += batch.events_count
        while self._events_count > self._ring_events_max and len(self._batches) > 1:
            self._events_count -= self._batches.popleft().events_count
        woken = [stream for stream in self._idle if not stream.passes_over(batch)]
        for stream in woken:
            self.wake(stream)
        return len(woken)

    def finish(self) -> None:
        """Let observers see what is left; for the end, when `run` was cancelled while it rested."""
        while self.position < self._engine.index:
            self._read_on()

    def batch(self, number: int) -> Batch | None:
        """Return a batch by its number; None when it has left the ring."""
        place = number - (self.next_number - len(self._batches))
        return self._batches[place] if place >= 0 else None

    async def read_back(self, after_index: int) -> tuple[list[EventBlock], int]:
        """Read some stored events up to `position`: the blocks, and the index they reach.

        Cost: one reader at a time, and the others wait while it rests, so that a thousand streams
        that resume together do not take the loop from those who write.
        """
        async with self._reading:
            began_s = monotonic()
            until = self.position
            found = self._engine.feed(after_index, CATCH_UP_BYTES)
            blocks = [block for index, block in found if index <= until]
            reached = found[len(blocks) - 1][0] if blocks else until
            await asyncio.sleep(min(REST_S, (monotonic() - began_s) * REST_SHARE))
            return blocks, reached

    @property
    def recent_index(self) -> int:
        """The index after which every event is in memory, as far as the ring of the feed goes."""
        return self._engine.recent_index

    # --- streams --------------------------------------------------------------------------------

    def open(self, wanted: Filter, after_seq: int | None) -> Stream:
        """Begin a stream after a sequence number, or with what comes next."""
        if self._is_draining:
            raise UnavailableError("the server is shutting down")
        if len(self._streams) >= self._streams_max:
            message = f"there are {self._streams_max} event streams already"
            raise OverloadedError(message, retry_after_ms=FULL_RETRY_MS)
        engine = self._engine
        oldest_seq = 0
        seq = engine.seq if after_seq is None else after_seq
        if after_seq is not None:
            oldest_seq = engine.oldest_seq
            is_known = oldest_seq - 1 <= after_seq <= engine.seq
            seq, oldest_seq = (after_seq, 0) if is_known else (oldest_seq - 1, oldest_seq)
        number, index = self._place(seq)
        stream = Stream(self, wanted, seq=seq, number=number, index=index, reset_seq=oldest_seq)
        self._streams.add(stream)
        self.streams_total += 1
        return stream

    def _place(self, seq: int) -> tuple[int, int]:
        """Where the event after `seq` is: number of a batch, or -1 and an index of the log."""
        batches = self._batches
        first_number = self.next_number - len(batches)
        if batches and batches[0].first_seq <= seq + 1:
            found = bisect_right(batches, seq + 1, key=lambda batch: batch.first_seq)
            return first_number + found - 1, 0
        index = self._engine.locate(seq)
        return (self.next_number, 0) if index >= self.position else (-1, index)

    def close(self, stream: Stream) -> None:
        """Forget a stream; harmless when repeated."""
        self._streams.discard(stream)
        self._idle.pop(stream, None)
        if stream.reason == SLOW:
            self.dropped_total += 1

    def rest(self, stream: Stream) -> None:
        """A stream has everything; it is woken when there is more for it."""
        self._idle[stream] = monotonic()

    def wake(self, stream: Stream) -> None:
        """Let a stream go on."""
        self._idle.pop(stream, None)
        stream.wake()

    def leave(self, stream: Stream) -> None:
        """The client of a stream is gone."""
        stream.reason = stream.reason or GONE
        self.wake(stream)

    def _beat(self, now_s: float) -> None:
        self._beaten_s = now_s
        for stream, since_s in list(self._idle.items()):
            if now_s - since_s >= self._heartbeat_s:
                stream.is_beaten = True
                self.wake(stream)

    def drain(self) -> None:
        """End every stream and every wait: the server is going away."""
        self._is_draining = True
        for stream in list(self._streams):
            stream.reason = stream.reason or DRAINING
            self.wake(stream)
        self.waits.drain()

    def statistics(self) -> dict[str, int]:
        return {
            "streams_count": len(self._streams),
            "streams_total": self.streams_total,
            "dropped_total": self.dropped_total,
            "waits_count": self.waits.count,
            "ring_events_count": self._events_count,
            "lag_events": self._engine.seq - self.seq,
        }
