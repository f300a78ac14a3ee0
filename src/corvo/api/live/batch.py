"""A slice of the feed as the hub shares it out: rendered once, found by queue, job and type."""

from typing import Any, Final

from ulid_transform import bytes_to_ulid

from corvo.api.live.filters import Filter
from corvo.api.render import encode
from corvo.api.values import render_instant
from corvo.model.event import EVENT_NAMES, Event, EventBlock
from corvo.model.ids import JOB, render_id

PIECE_BYTES: Final = 64 * 1024  # a stream writes this much before it looks whether it may go on

_NAMES: Final = tuple(name.encode() for name in EVENT_NAMES)


def event_members(seq: int, at_ms: int, event: Event) -> dict[str, Any]:
    """One event as an object."""
    return {
        "seq": seq,
        "type": EVENT_NAMES[event.type],
        "at": render_instant(at_ms),
        "job_id": render_id(JOB, event.job) if event.job else None,
        "queue": event.queue or None,
        "data": event_data(event),
    }


def event_data(event: Event) -> dict[str, Any]:
    """What changed: attempt where there is one, and the fields of this type; instants as text."""
    data: dict[str, Any] = {"attempt": event.attempt} if event.attempt else {}
    for name, value in (event.data or {}).items():
        if name.endswith("_ms") and isinstance(value, int):
            data[name[:-3] + "_at"] = render_instant(value) if value else None
        else:
            data[name] = value
    return data


def render_event(seq: int, at: bytes, event: Event) -> bytes:
    """One event as a block of the stream. Neither names nor JSON hold a line break."""
    name = _NAMES[event.type]
    job = b'"job_%b"' % bytes_to_ulid(event.job).encode() if event.job else b"null"
    queue = b'"%b"' % event.queue.encode() if event.queue else b"null"
    if event.data is None:
        data = b'{"attempt":%d}' % event.attempt if event.attempt else b"{}"
    else:
        data = encode(event_data(event))
    return (
        b'event: %b\nid: %d\ndata: {"seq":%d,"type":"%b","at":"%b","job_id":%b,"queue":%b,'
        b'"data":%b}\n\n'
    ) % (name, seq, seq, name, at, job, queue, data)


class Batch:
    """Some blocks of the feed in a row. Rendering waits until somebody asks."""

    __slots__ = (
        "_by_job",
        "_by_ns",
        "_by_queue",
        "_by_type",
        "_pieces",
        "_rendered",
        "blocks",
        "first_seq",
    )

    def __init__(self, blocks: list[EventBlock]) -> None:
        assert blocks
        self.blocks = blocks
        self.first_seq = blocks[0].first_seq
        self._rendered: list[bytes] | None = None
        self._pieces: dict[int, list[bytes]] = {}  # everything, by namespace
        self._by_ns: dict[int, list[int]] | None = None
        self._by_queue: dict[str, list[int]] | None = None
        self._by_job: dict[bytes, list[int]] = {}
        self._by_type: dict[int, list[int]] = {}

    @property
    def last_seq(self) -> int:
        """The sequence number of its last event."""
        block = self.blocks[-1]
        return block.first_seq + len(block.events) - 1

    @property
    def events_count(self) -> int:
        return sum(len(block.events) for block in self.blocks)

    def matches(self, wanted: Filter) -> bool:
        """Whether any event may pass; never wrong when it says no."""
        return bool(self._candidates(wanted))

    def select(self, wanted: Filter, after_seq: int) -> list[bytes]:
        """Render the events that pass and follow `after_seq`, in pieces to be written."""
        skipped = max(0, after_seq + 1 - self.first_seq)
        is_whole = wanted.is_open and not skipped
        if is_whole and wanted.ns in self._pieces:
            return self._pieces[wanted.ns]
        chosen = self._candidates(wanted)
        if not chosen:
            return []
        rendered, events = self._all(), self._events()
        pieces = _joined([rendered[i] for i in chosen if i >= skipped and wanted.passes(events[i])])
        if is_whole:
            self._pieces[wanted.ns] = pieces
        return pieces

    def _events(self) -> list[Event]:
        if len(self.blocks) == 1:
            return self.blocks[0].events
        return [event for block in self.blocks for event in block.events]

    def _all(self) -> list[bytes]:
        if self._rendered is None:
            rendered: list[bytes] = []
            for block in self.blocks:
                at = render_instant(block.at_ms).encode()
                for seq, event in enumerate(block.events, block.first_seq):
                    rendered.append(render_event(seq, at, event))
            self._rendered = rendered
        return self._rendered

    def _candidates(self, wanted: Filter) -> list[int]:
        """Places of events that may pass, by the narrowest index there is."""
        if wanted.is_open:
            return self._namespaces().get(wanted.ns, [])
        if self._by_queue is None:
            self._by_queue = self._index()
        if wanted.jobs is not None:
            tables = [self._by_job[job] for job in wanted.jobs if job in self._by_job]
        elif wanted.queues is not None:
            named = [name for name in wanted.queues if name in self._by_queue]
            if wanted.queue_prefixes:
                named = [name for name in self._by_queue if wanted.passes_queue(name)]
            tables = [self._by_queue[name] for name in named]
        else:
            assert wanted.types is not None
            tables = [self._by_type[kind] for kind in wanted.types if kind in self._by_type]
        if len(tables) == 1:
            return tables[0]
        return sorted(place for table in tables for place in table)

    def _namespaces(self) -> dict[int, list[int]]:
        if self._by_ns is None:
            self._by_ns = {}
            for place, event in enumerate(self._events()):
                self._by_ns.setdefault(event.ns, []).append(place)
        return self._by_ns

    def _index(self) -> dict[str, list[int]]:
        # Cost: built once for all streams with a filter; without such streams, never.
        by_queue: dict[str, list[int]] = {}
        for place, event in enumerate(self._events()):
            by_queue.setdefault(event.queue, []).append(place)
            self._by_job.setdefault(event.job, []).append(place)
            self._by_type.setdefault(event.type, []).append(place)
        return by_queue


def _joined(parts: list[bytes]) -> list[bytes]:
    """Join into pieces of a size that is written at once."""
    pieces: list[bytes] = []
    start = size = 0
    for place, part in enumerate(parts):
        size += len(part)
        if size >= PIECE_BYTES:
            pieces.append(b"".join(parts[start : place + 1]))
            start, size = place + 1, 0
    if start < len(parts):
        pieces.append(b"".join(parts[start:]))
    return pieces
