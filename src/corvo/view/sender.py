"""The core's end of the feed socket: answers what the view asks, from the engine.

The view pulls, so nothing is queued for it: a view that is slow or gone costs the core nothing. A
slice names its jobs many times and each record is sent once, as it stands when it is sent. That may
be newer than the slice, never older, and the view is none the wiser: it gets the later events later
and the same record again.

Cost: this runs on the loop of the write path. Records are gathered some dozens at a time, with
everything else let in between, and in the objects the machine has at hand.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from corvo.engine import Watcher
from corvo.errors import CorvoError
from corvo.model import event as ev
from corvo.model.copied import Copies, JobCopy
from corvo.model.event import EventBlock
from corvo.model.ids import BATCH, WEBHOOK, parse_id
from corvo.model.schedule import SCHEDULE
from corvo.view import frames, messages
from corvo.view.messages import Copied, Hello, Progress, Pull, Slice, Snapshot, Told, Want, Welcome
from corvo.view.pacing import Pacing
from corvo.view.standing import Standing

if TYPE_CHECKING:
    from corvo.engine import Engine

SLICE_BYTES: Final = 96 * 1024  # about a thousand events
JOBS_PER_FRAME: Final = 48  # a millisecond of the loop, as a rule
FRAME_BYTES: Final = 512 * 1024
IDLE_S: Final = 1.0  # a pull is answered after this long even when nothing happened
PACE_S: Final = 0.02  # larger slices cost less: a job that comes, starts and ends is one row then
WANTED_MAX: Final = 10_000

# After these the view can not know the spec of the job, or knows an old one.
_HAS_SPEC: Final = frozenset({ev.ENQUEUED, ev.SCHEDULED, ev.REPLACED})
_OF_SCHEDULES: Final = frozenset(range(ev.SCHEDULE_CREATED, ev.SCHEDULE_MISSED + 1))
_OF_WEBHOOKS: Final = frozenset(range(ev.WEBHOOK_CREATED, ev.WEBHOOK_RESUMED + 1))

Blocks = list[tuple[int, EventBlock]]


class _Named:
    """What the events of a slice name."""

    def __init__(self, blocks: Blocks) -> None:
        self.jobs: dict[tuple[int, bytes], bool] = {}  # and whether the spec is to be sent
        self.queues: dict[tuple[int, str], None] = {}
        self.batches: dict[tuple[int, bytes], None] = {}
        self.schedules: dict[tuple[int, bytes], None] = {}
        self.webhooks: dict[tuple[int, bytes], None] = {}
        self.since_ms = blocks[0][1].at_ms if blocks else 0
        for _, block in blocks:
            for event in block.events:
                self._add(event)

    def _add(self, event: ev.Event) -> None:
        if event.job:
            key = (event.ns, event.job)
            if event.type in _HAS_SPEC:
                self.jobs[key] = True
            elif key not in self.jobs:
                self.jobs[key] = False
        if event.queue:
            self.queues[event.ns, event.queue] = None
        data = event.data
        if data is not None:
            if event.type == ev.MOVED:
                self.queues[event.ns, data["from"]] = None
            batch_id = parse_id(BATCH, data["batch_id"]) if "batch_id" in data else None
            if batch_id is not None:
                self.batches[event.ns, batch_id] = None
            if event.type in _OF_SCHEDULES:
                schedule_id = parse_id(SCHEDULE, data["schedule_id"])
                assert schedule_id is not None
                self.schedules[event.ns, schedule_id] = None
            elif event.type in _OF_WEBHOOKS:
                webhook_id = parse_id(WEBHOOK, data["webhook_id"])
                assert webhook_id is not None
                self.webhooks[event.ns, webhook_id] = None


class Sender:
    """One connection to a view."""

    def __init__(
        self,
        engine: "Engine",
        standing: Standing,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._engine = engine
        self._standing = standing
        self._reader = reader
        self._writer = writer
        self._happened = asyncio.Event()
        self._is_waiting = False
        self._is_behind = False
        self._answered_s = 0.0
        self._pacing = Pacing()
        self._answers: dict[type[Any], Callable[[Any], Any]] = {
            Hello: self._hello,
            Pull: self._pull,
            Want: self._want,
            Snapshot: self._snapshot,
        }

    async def run(self) -> None:
        """Answer until the view is gone, which ends this with `frames.ClosedError`."""
        unwatch = self._engine.watch(Watcher(self._wake, lambda: None))
        self._standing.on_wait = self._happened.set
        try:
            while True:
                message = messages.decode_to_core(await frames.read(self._reader))
                if isinstance(message, Progress):
                    self._standing.note_progress(message)
                else:
                    await self._answers[type(message)](message)
        except ConnectionError as error:
            raise frames.ClosedError("the stream ended") from error
        finally:
            unwatch()
            self._standing.on_wait = None

    def _wake(self) -> None:
        if self._is_waiting:
            self._happened.set()

    async def _send(self, message: Any) -> None:
        began_s = self._pacing.now()
        self._writer.write(frames.pack(messages.encode(message)))
        self._pacing.count(began_s)
        await self._writer.drain()

    # --- is this a place in our history? --------------------------------------------------------

    async def _hello(self, hello: Hello) -> None:
        reason = self._mismatch(hello)
        epoch, index = self._engine.read.epoch, self._engine.index
        # One that begins anew does so from a copy of the store that is made later than this.
        self._standing.note_needed(index if reason else hello.block_position)
        await self._send(Welcome(not reason, reason, epoch, index))

    def _mismatch(self, hello: Hello) -> str:
        engine = self._engine
        if hello.position == 0:
            return "" if engine.event_floor <= 1 else "there is no file yet"
        if hello.history != engine.read.epoch:
            return "the file is of another history"
        if hello.position > engine.index:
            return "the file is ahead of the server"
        if hello.position + 1 < engine.event_floor:
            return "the feed does not reach back far enough"
        if hello.position == engine.index and hello.chain == engine.read.chain:
            return ""
        found = engine.feed(hello.block_position - 1, 1) if hello.block_position else []
        if not found or found[0][0] != hello.block_position:
            return "the place the file stands at is not kept any more"
        if messages.digest_of(*found[0]) != hello.block_digest:
            return "the file is of another history"
        return ""

    # --- what happened --------------------------------------------------------------------------

    async def _pull(self, pull: Pull) -> None:
        standing = self._standing
        standing.note_position(pull.position, pull.events, pull.block_position)
        await self._wait(pull.position)
        engine = self._engine
        reason = standing.take_rebuild()
        if not reason and pull.position + 1 < engine.event_floor:
            reason = "the feed does not reach back far enough"
        if reason:
            await self._send(self._slice([], pull.position, reason))
            return
        began_s = self._pacing.now()
        blocks = engine.feed(pull.position, SLICE_BYTES)
        position = engine.index
        self._is_behind = bool(blocks) and bool(engine.feed(blocks[-1][0], 1))
        if self._is_behind:
            position = blocks[-1][0]
        named = _Named(blocks)
        self._pacing.count(began_s)
        if blocks:
            await self._send_copies(
                list(named.jobs.items()),
                named.batches,
                named.queues,
                since_ms=named.since_ms,
            )
            if named.schedules or named.webhooks:
                await self._send(self._small_records(named))
        self._answered_s = engine.clock.monotonic()
        await self._send(self._slice(blocks, position))

    def _slice(self, blocks: Blocks, position: int, reason: str = "") -> Slice:
        engine = self._engine
        is_last = position == engine.index
        return Slice(
            blocks,
            position,
            engine.read.epoch,
            engine.read.chain if is_last else b"",
            engine.event_floor_seq,
            engine.read.now_ms,
            bool(reason),
            reason,
        )

    async def _wait(self, position: int) -> None:
        """Wait until something happened after an index; nobody waits long for those who wait."""
        standing = self._standing
        if not self._is_behind and not standing.has_waiters and not standing.wants_rebuild:
            left_s = self._answered_s + PACE_S - self._engine.clock.monotonic()
            await self._sleep(left_s, lambda: False)
        await self._sleep(self._pacing.rest_s(), lambda: False)
        await self._sleep(IDLE_S, lambda: bool(self._engine.feed(position, 1)))

    async def _sleep(self, seconds: float, is_over: Callable[[], bool]) -> None:
        """Wait so long at most, or until a fact holds, or until somebody waits for the view."""
        standing = self._standing
        if seconds <= 0:
            return
        self._is_waiting = True
        try:
            async with asyncio.timeout(seconds):
                while not (is_over() or standing.wants_rebuild):
                    if standing.has_waiters and self._engine.index > standing.position:
                        return
                    self._happened.clear()
                    await self._happened.wait()
        except TimeoutError:
            return
        finally:
            self._is_waiting = False

    # --- records --------------------------------------------------------------------------------

    async def _want(self, want: Want) -> None:
        jobs = [(key, True) for key in want.jobs[:WANTED_MAX]]
        await self._send_copies(jobs, dict.fromkeys(want.batches[:WANTED_MAX]), {}, since_ms=0)
        await self._send(Told(self._engine.index))

    async def _send_copies(
        self,
        jobs: list[tuple[tuple[int, bytes], bool]],
        batches: dict[tuple[int, bytes], None],
        queues: dict[tuple[int, str], None],
        *,
        since_ms: int,
    ) -> None:
        batches = dict(batches)
        read = self._engine.read
        position = 0
        while position < len(jobs):
            copies = Copies([], [], [], [], [], [])
            bytes_count = 0
            began_s = self._pacing.now()
            # Safety: the objects are the machine's. Nothing is awaited before they are encoded.
            while position < len(jobs) and bytes_count < FRAME_BYTES:
                (ns, identifier), has_spec = jobs[position]
                position += 1
                copy = read.copy_job(ns, identifier, has_spec=has_spec, errors_since_ms=since_ms)
                if copy is None:
                    copies.gone_jobs.append(identifier)
                    continue
                if copy.batch_id is not None:
                    batches[ns, copy.batch_id] = None
                copies.jobs.append(copy)
                bytes_count += _size_of(copy)
                if len(copies.jobs) >= JOBS_PER_FRAME:
                    break
            self._pacing.count(began_s)
            await self._send(copies)
            await asyncio.sleep(0)
        if batches or queues:
            await self._send(self._records(batches, queues))

    def _records(
        self, batches: dict[tuple[int, bytes], None], queues: dict[tuple[int, str], None]
    ) -> Copies:
        read = self._engine.read
        copies = Copies([], [], [], [], [], [])
        for ns, identifier in batches:
            found = read.batch(ns, identifier)
            if found is None:
                copies.gone_batches.append(identifier)
            else:
                copies.batches.append(found.batch)
        for ns, name in queues:
            record = read.queue_record(ns, name)
            if record is None:
                copies.gone_queues.append((ns, name))
            else:
                copies.queues.append(record)
        return copies

    def _small_records(self, named: _Named) -> Copies:
        read = self._engine.read
        copies = Copies([], [], [], [], [], [])
        for ns, identifier in named.schedules:
            schedule = read.copy_schedule(ns, identifier)
            if schedule is None:
                copies.gone_schedules.append(identifier)
            else:
                copies.schedules.append(schedule)
        for ns, identifier in named.webhooks:
            webhook = read.copy_webhook(ns, identifier)
            if webhook is None:
                copies.gone_webhooks.append(identifier)
            else:
                copies.webhooks.append(webhook)
        return copies

    async def _snapshot(self, wanted: Snapshot) -> None:
        try:
            await self._engine.snapshot(wanted.directory)
        except CorvoError as error:
            await self._send(Copied(str(error)))
        else:
            await self._send(Copied())


def _size_of(copy: JobCopy) -> int:
    """About how many bytes a copy takes; what is not counted is small."""
    size = len(copy.spec.payload) if copy.spec is not None else 0
    for document in (copy.checkpoint, copy.result):
        size += len(document) if document is not None else 0
    for _, error in copy.errors or ():
        size += len(error.error) + len(error.backtrace)
    return size + 256
