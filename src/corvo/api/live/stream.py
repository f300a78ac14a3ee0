"""One event stream: a place in what the hub shares out, and the text that is sent from there."""

import asyncio
from typing import Final, Protocol

from corvo.api.live.batch import Batch
from corvo.api.live.filters import Filter
from corvo.api.render import encode
from corvo.model.event import EventBlock

RETRY_MS: Final = 2_000  # what a client waits before it connects again
_REASONS: Final = {
    "slow": "the stream fell too far behind; connect again with Last-Event-ID to go on",
    "draining": "the server is shutting down; connect again with Last-Event-ID to go on",
}


class Source(Protocol):
    """What a stream asks of the hub."""

    position: int
    next_number: int

    def batch(self, number: int) -> Batch | None:
        """Return a batch by its number; None when it has left the ring."""
        ...

    async def read_back(self, after_index: int) -> tuple[list[EventBlock], int]:
        """Read some stored events."""
        ...

    def rest(self, stream: "Stream") -> None:
        """Note that a stream has everything."""
        ...


class Stream:
    """What one client has seen and wants to see."""

    __slots__ = (
        "_index",
        "_number",
        "_reset_seq",
        "_source",
        "_waiting",
        "filter",
        "is_beaten",
        "reason",
        "seq",
    )

    def __init__(
        self,
        source: Source,
        wanted: Filter,
        *,
        seq: int,
        number: int,
        index: int,
        reset_seq: int,
    ) -> None:
        self._source = source
        self.filter = wanted
        self.seq = seq  # every event up to here was sent or passed over
        self._number = number  # of the next batch; -1 while it reads stored events
        self._index = index  # of the log, while it reads stored events
        self._reset_seq = reset_seq
        self.is_beaten = False
        self.reason = ""  # why it ends; nothing while it goes on
        self._waiting: asyncio.Future[None] | None = None

    def opening(self) -> bytes:
        """What a client gets at once: where it stands, and whether something was lost."""
        text = b"retry: %d\nid: %d\n: corvo\n\n" % (RETRY_MS, self.seq)
        if self._reset_seq:
            members = {
                "oldest_seq": self._reset_seq,
                "hint": "events before this one are gone; read the state anew",
            }
            text += b"event: reset\nid: %d\ndata: %b\n\n" % (self.seq, encode(members))
        return text

    def closing(self) -> bytes:
        """What a client gets last."""
        members = {"reason": self.reason, "last_seq": self.seq, "hint": _REASONS[self.reason]}
        return b"event: closed\ndata: %b\n\n" % encode(members)

    def passes_over(self, batch: Batch) -> bool:
        """Skip a batch that holds nothing for this stream, which waits for the next one."""
        if batch.matches(self.filter):
            return False
        self.seq = max(self.seq, batch.last_seq)
        self._number += 1
        return True

    async def next(self) -> list[bytes]:
        """Wait for something to send; nothing means that the stream is over (see `reason`)."""
        source = self._source
        while not self.reason:
            if self._number < 0:
                pieces = await self._catch_up()
            elif self._number < source.next_number:
                pieces = self._take()
            elif self.is_beaten:
                self.is_beaten = False
                # The id moves a stream on that wants little, so that it resumes where it is.
                return [b": heartbeat\nid: %d\n\n" % self.seq]
            else:
                await self._rest()
                continue
            if pieces:
                return pieces
        return []

    def _take(self) -> list[bytes]:
        batch = self._source.batch(self._number)
        if batch is None:
            self.reason = "slow"
            return []
        pieces = batch.select(self.filter, self.seq)
        self.seq = max(self.seq, batch.last_seq)
        self._number += 1
        return pieces

    async def _catch_up(self) -> list[bytes]:
        source = self._source
        if self._index >= source.position:
            # Invariant: nothing is awaited between this look and the place in the ring.
            self._number = source.next_number
            return []
        blocks, self._index = await source.read_back(self._index)
        if not blocks:
            return []
        batch = Batch(blocks)
        pieces = batch.select(self.filter, self.seq)
        self.seq = max(self.seq, batch.last_seq)
        return pieces

    async def _rest(self) -> None:
        self._waiting = asyncio.get_running_loop().create_future()
        self._source.rest(self)
        await self._waiting
        self._waiting = None

    def wake(self) -> None:
        """Look again."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
