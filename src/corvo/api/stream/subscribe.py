"""Events over gRPC: each subscriber reads the feed at its own pace, from where it stands.

Nothing is queued for anybody: a subscriber that does not read does not advance.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from msgspec.json import encode

from corvo.api.live.batch import event_data
from corvo.api.live.filters import Filter, parse_filter
from corvo.api.stream.generated import worker_pb2 as pb
from corvo.errors import OverloadedError, UnavailableError
from corvo.model import limits
from corvo.model.event import EVENT_NAMES, Event, EventBlock
from corvo.model.ids import JOB, render_id

if TYPE_CHECKING:
    from corvo.engine import Engine

SLICE_BYTES: Final = 24 * 1024
REST_S: Final = 0.02  # between looks, so that a busy feed is read in slices and not event by event
KEEP_ALIVE_S: Final = 15.0
FULL_RETRY_MS: Final = 5_000


class Subscriptions:
    """Everybody who subscribed. `observe` is told of every event by the hub."""

    def __init__(self, engine: "Engine", *, count_max: int = limits.STREAM_OPEN_MAX) -> None:
        self._engine = engine
        self._count_max = count_max
        self._waiting: set[asyncio.Event] = set()
        self._is_draining = False

    def observe(self, _blocks: list[EventBlock]) -> None:
        """Wake everybody: there is more to read."""
        for waiting in self._waiting:
            waiting.set()

    def drain(self) -> None:
        """Send everybody home."""
        self._is_draining = True
        self.observe([])

    @property
    def count(self) -> int:
        return len(self._waiting)

    async def follow(self, request: pb.SubscribeRequest, ns: int) -> AsyncIterator[object]:
        """Yield events as messages; one without a type keeps the connection alive."""
        wanted = _filter_of(request, ns)
        if self._is_draining:
            raise UnavailableError("the server is draining", hint="connect again shortly")
        if len(self._waiting) >= self._count_max:
            message = f"there are {self._count_max} subscriptions already"
            raise OverloadedError(message, retry_after_ms=FULL_RETRY_MS)
        grown = asyncio.Event()
        self._waiting.add(grown)
        try:
            async for event in self._read(request, wanted, grown):
                yield event
        finally:
            self._waiting.discard(grown)

    async def _read(
        self, request: pb.SubscribeRequest, wanted: Filter, grown: asyncio.Event
    ) -> AsyncIterator[object]:
        engine = self._engine
        seq = request.last_event_id or engine.seq
        oldest_seq = engine.oldest_seq
        if not oldest_seq - 1 <= seq <= engine.seq:
            seq = oldest_seq - 1
            data = encode({"oldest_seq": oldest_seq}).decode()
            yield pb.SubscribeEvent(seq=seq, type="reset", data_json=data)
        index = engine.locate(seq)
        while not self._is_draining:
            grown.clear()
            found = engine.feed(index, SLICE_BYTES)
            for reached, block in found:
                index = reached
                for number, event in enumerate(block.events, block.first_seq):
                    if number > seq:
                        seq = number
                        if wanted.passes(event):
                            yield _message(number, block.at_ms, event)
            if found:
                await asyncio.sleep(REST_S)
                continue
            try:
                async with asyncio.timeout(KEEP_ALIVE_S):
                    await grown.wait()
            except TimeoutError:
                yield pb.SubscribeEvent()


def _filter_of(request: pb.SubscribeRequest, ns: int) -> Filter:
    lists = {"queue": request.queues, "job_id": request.job_ids, "type": request.types}
    return parse_filter(ns, lambda name: ",".join(lists[name]) or None)


def _message(seq: int, at_ms: int, event: Event) -> pb.SubscribeEvent:
    return pb.SubscribeEvent(
        seq=seq,
        type=EVENT_NAMES[event.type],
        job_id=render_id(JOB, event.job) if event.job else "",
        queue=event.queue,
        at_ns=at_ms * 1_000_000,
        data_json=encode(event_data(event)).decode(),
    )
