"""One webhook: what it still has to get, what to try when, and when to leave it alone.

    feed ──fill──▶ outstanding ──take_due──▶ (a try) ──finish──▶ done, or later, or dead letter
                        │
                        └── the first one holds the cursor; what is done beyond it is remembered

No clock, no sockets: the dispatcher brings the time and makes the tries.

An endpoint that keeps failing is suspended: nothing is sent but one probe after a pause that
doubles up to an hour. Meanwhile the feed keeps its events; a probe costs a delivery none of its
tries, so an outage of any length loses nothing that retention does not remove.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from msgspec import Struct

from corvo.model import limits
from corvo.model.command import RecordDeliveries
from corvo.model.event import Event, EventBlock
from corvo.model.webhook import DeadLetter, Progress, Try, Webhook, WebhookView, event_types
from corvo.webhooks.delivery import (
    DEAD,
    DELIVERED,
    FAILED,
    WAITING,
    Happening,
    Record,
    Result,
    delivery_id,
    lapse,
    of_line,
)

FEED_BYTES = 131_072  # of the feed looked at in one turn
CONCURRENCY = 4
BACKOFF_FACTOR = 4
BACKOFF_MS_MAX = 600_000
SUSPENSION_MS_MAX = 3_600_000

ReadFeed = Callable[[int, int], list[tuple[int, EventBlock]]]


class Pace(Struct, frozen=True):
    """How fast things are tried and told. The defaults are the server's; tests are in a hurry."""

    rest_ms: int = 5  # between two turns, at least
    reload_ms: int = 1_000  # how often the list of webhooks is looked at
    save_ms: int = 2_000  # after deliveries
    idle_save_ms: int = 15_000  # when only the cursor moved
    backoff_ms: int = 2_000  # before the second try; four times as long before each further one
    suspension_ms: int = 60_000  # the first one; each further one is twice as long
    failures_max: int = 10  # failed tries in a row before a suspension


class Pending(Struct, gc=False):
    """A delivery that is not done with."""

    record: Record
    index: int  # entry its event belongs to
    is_running: bool = False
    is_probe: bool = False


class Endpoint:
    """The window of one webhook over the feed."""

    def __init__(self, view: WebhookView, pace: Pace, tries: Sequence[Try] = ()) -> None:
        self._pace = pace
        self.webhook = view.webhook
        # The stored log comes newest first, several lines about one delivery included.
        self.log: OrderedDict[bytes, Record] = OrderedDict()
        for line in reversed(tries):
            self._file(of_line(line))
        self._news: dict[bytes, Try] = {}  # lines for the next report, the latest of each delivery
        self.running_count = 0
        self.manual_count = 0  # tries made by hand, under way
        self.is_urgent = False  # something a reader of the store should see soon
        self.has_delivered = False
        self._letters: list[DeadLetter] = []
        self._revived: list[int] = []
        self._delivered = self._failed = self._skipped = 0
        self._next_ms = 0  # nothing is due before; 0: not known
        self.resume(view.progress)
        self.configure(view.webhook)
        self._told: tuple[int, int] | None = self._cursor()
        for record in self.log.values():
            if record.happening is not None and record.happening.seq <= self._read_seq:
                lapse(record)

    def resume(self, progress: Progress) -> None:
        """Take up the cursor where the store has it."""
        self.epoch = progress.epoch
        self._read_index, self._read_seq = progress.index, progress.seq
        self._done = set(progress.done)
        self._outstanding: dict[int, Pending] = {}
        self.saved_index = progress.index
        self.failures, self.rounds = progress.failures, progress.rounds
        self.suspended_ms = progress.suspended_ms
        self._last_ms, self._last_status = progress.last_ms, progress.last_status
        self._last_error = progress.last_error
        self._next_ms = 0

    def configure(self, webhook: Webhook) -> None:
        """Take up a change by an operator, which ends a suspension."""
        if webhook.version != self.webhook.version:
            self.failures = self.rounds = self.suspended_ms = 0
        self.webhook = webhook
        types = [number for pattern in webhook.events for number in event_types(pattern)]
        self._types = frozenset(types)
        self._queues = frozenset(webhook.queues)
        self._queue_starts = tuple(name[:-1] for name in webhook.queues if name.endswith("*"))
        self._next_ms = 0

    # --- taking from the feed -----------------------------------------------------------------

    def fill(self, read: ReadFeed) -> bool:
        """Take what matches from the feed; return whether there may be more at once."""
        # Cost: a slice may come from the store, so it is asked for when half the window is free.
        if len(self._outstanding) + len(self._done) > limits.WEBHOOK_WINDOW_MAX // 2:
            return False
        blocks = read(self._read_index, FEED_BYTES)
        for index, block in blocks:
            missing = block.first_seq - self._read_seq - 1
            if missing > 0:
                # Retention removed events before their turn.
                self._skipped += missing
                self._read_seq += missing
            if not self._take(index, block):
                return False
            self._read_index = index
        return bool(blocks)

    def _take(self, index: int, block: EventBlock) -> bool:
        first_seq = block.first_seq
        for position in range(self._read_seq + 1 - first_seq, len(block.events)):
            event = block.events[position]
            seq = first_seq + position
            if self.matches(event) and seq not in self._done:
                if self._is_full():
                    return False
                self._outstanding[seq] = Pending(self._record(seq, block.at_ms, event), index)
                self._next_ms = 0
            self._read_seq = seq
        return True

    def _record(self, seq: int, at_ms: int, event: Event) -> Record:
        """A delivery to be made; the log knows the tries it had before a restart."""
        identifier = delivery_id(self.webhook.id, seq)
        known = self.log.get(identifier)
        if known is not None and known.status == WAITING:
            known.next_ms = 0  # somebody restarted the server: look at once, at no extra charge
            return known
        return Record(identifier, Happening(seq, at_ms, event))

    def _is_full(self) -> bool:
        return len(self._outstanding) + len(self._done) >= limits.WEBHOOK_WINDOW_MAX

    def matches(self, event: Event) -> bool:
        """Whether this webhook wants an event."""
        if event.type not in self._types or event.ns != self.webhook.ns:
            return False
        if not self.webhook.queues:
            return True
        queue = event.queue
        return bool(queue) and (queue in self._queues or queue.startswith(self._queue_starts))

    # --- trying -------------------------------------------------------------------------------

    def take_due(self, now_ms: int) -> list[Pending]:
        """Deliveries to try now; each is counted as running until `finish`."""
        is_probe = self.suspended_ms > 0
        room = CONCURRENCY - self.running_count
        if is_probe:
            room = 1 if now_ms >= self.suspended_ms and not self.running_count else 0
        if len(self._letters) >= limits.WEBHOOK_WINDOW_MAX:
            # The machine takes no reports (the disk is full); memory is not the place to pile up.
            return []
        if room <= 0 or (now_ms < self._next_ms and not is_probe):
            return []
        taken: list[Pending] = []
        earliest_ms = now_ms + BACKOFF_MS_MAX
        for pending in self._outstanding.values():
            if pending.is_running:
                continue
            # A probe need not wait for the pause of its own delivery: the suspension was one.
            if pending.record.next_ms > now_ms and not is_probe:
                earliest_ms = min(earliest_ms, pending.record.next_ms)
                continue
            if len(taken) == room:
                earliest_ms = 0
                break
            pending.is_running, pending.is_probe = True, is_probe
            taken.append(pending)
        self.running_count += len(taken)
        self._next_ms = earliest_ms
        return taken

    def finish(self, pending: Pending, result: Result, now_ms: int) -> None:
        """Take note of how a try went."""
        self.running_count -= 1
        pending.is_running = False
        self._next_ms = 0
        record = pending.record
        assert record.happening is not None
        if self._outstanding.get(record.happening.seq) is not pending:
            # Sent by hand meanwhile, or the cursor was set anew; what it said still counts.
            self._observe(result, now_ms)
            return
        record.attempts += not pending.is_probe or result.is_success
        self._observe(result, now_ms)
        _conclude(record, result, now_ms)
        if result.is_success:
            self._close(record.happening.seq)
            self._delivered += 1
            self.has_delivered = True
        elif record.attempts > self.webhook.retry_limit:
            record.status = DEAD
            self._close(record.happening.seq)
            self._bury(record, result, now_ms)
        else:
            record.status = WAITING
            record.next_ms = now_ms + self._pause_ms(record)
        self._log(record)

    def finish_test(self, record: Record, result: Result, now_ms: int) -> None:
        """Take note of a test; it says nothing about the events and changes nothing for them."""
        record.attempts = 1
        _conclude(record, result, now_ms)
        self._log(record)

    def _log(self, record: Record) -> None:
        """Put a delivery at the end of the log, here and in the next report."""
        self._file(record)
        self._news.pop(record.id, None)
        self._news[record.id] = record.line()
        if len(self._news) > limits.WEBHOOK_TRIES_KEPT:
            del self._news[next(iter(self._news))]

    def _file(self, record: Record) -> None:
        self.log[record.id] = record
        self.log.move_to_end(record.id)
        while len(self.log) > limits.WEBHOOK_TRIES_KEPT:
            self.log.popitem(last=False)

    def finish_by_hand(self, record: Record, result: Result, now_ms: int) -> None:
        """Take note of a delivery that somebody asked to repeat."""
        record.attempts += 1
        self._observe(result, now_ms)
        was_dead = record.status == DEAD
        next_ms = record.next_ms
        _conclude(record, result, now_ms)
        seq = record.happening.seq if record.happening is not None else 0
        is_outstanding = seq in self._outstanding
        if result.is_success:
            self._delivered += 1
            self._revived.append(seq)
            if is_outstanding:
                self._close(seq)
        elif is_outstanding:
            record.status, record.next_ms = WAITING, next_ms
        elif was_dead:
            record.status = DEAD
        self._log(record)
        self.is_urgent = True

    def _observe(self, result: Result, now_ms: int) -> None:
        self._last_ms, self._last_status = now_ms, result.status
        self._last_error = result.error
        if result.is_success:
            self.is_urgent = self.is_urgent or self.suspended_ms > 0
            self.failures = self.rounds = self.suspended_ms = 0
            return
        self.failures += 1
        is_over = self.suspended_ms and now_ms >= self.suspended_ms
        if is_over or (self.failures >= self._pace.failures_max and not self.suspended_ms):
            pause_ms = self._pace.suspension_ms << min(self.rounds, 16)
            self.suspended_ms = now_ms + min(pause_ms, SUSPENSION_MS_MAX)
            self.rounds += 1
            self.is_urgent = True

    def _pause_ms(self, record: Record) -> int:
        exponent = max(0, record.attempts - 1)
        pause_ms = min(self._pace.backoff_ms * BACKOFF_FACTOR**exponent, BACKOFF_MS_MAX)
        # Between three quarters and the whole: a burst that failed together comes back spread out.
        return pause_ms - pause_ms * record.id[-1] // 1_024

    def _close(self, seq: int) -> None:
        del self._outstanding[seq]
        self._done.add(seq)

    def _bury(self, record: Record, result: Result, now_ms: int) -> None:
        happening = record.happening
        assert happening is not None
        self._failed += 1
        self._letters.append(
            DeadLetter(
                happening.seq,
                happening.at_ms,
                happening.event,
                record.attempts,
                result.status,
                result.error,
                now_ms,
            )
        )
        self.is_urgent = True

    @property
    def outstanding_count(self) -> int:
        """Deliveries that are not done with."""
        return len(self._outstanding)

    def is_waiting(self, seq: int) -> bool:
        """Whether an event is still to be delivered."""
        return seq in self._outstanding

    # --- telling ------------------------------------------------------------------------------

    def _cursor(self) -> tuple[int, int]:
        first = next(iter(self._outstanding.values()), None)
        if first is None:
            return self._read_index, self._read_seq
        assert first.record.happening is not None
        return first.index - 1, first.record.happening.seq - 1

    @property
    def has_news(self) -> bool:
        """Whether a report would change anything."""
        has_lines = self.has_delivered or bool(self._news)
        return has_lines or self.is_urgent or self._told != self._cursor()

    def next_due_ms(self, now_ms: int) -> int | None:
        """When something may be tried that waits for nothing but the time; None: nothing does."""
        if not self._outstanding or len(self._letters) >= limits.WEBHOOK_WINDOW_MAX:
            return None
        if self.suspended_ms:
            return self.suspended_ms if not self.running_count else None
        return max(now_ms, self._next_ms) if self.running_count < CONCURRENCY else None

    def report(self) -> RecordDeliveries:
        """Make the report of what happened since the last one."""
        index, seq = self._cursor()
        self._told = index, seq
        # Cost: what the cursor has passed need not be remembered; the set stays in the window.
        self._done = {done for done in self._done if done > seq}
        report = RecordDeliveries(
            self.webhook.ns,
            self.webhook.id,
            self.epoch,
            index,
            seq,
            sorted(self._done),
            self._delivered,
            self._failed,
            self._skipped,
            self.failures,
            self.rounds,
            self.suspended_ms,
            self._last_status,
            self._last_error,
            self._last_ms,
            tuple(self._letters),
            tuple(self._revived),
            tuple(self._news.values()),
        )
        self._news = {}
        self._letters, self._revived = [], []
        self._delivered = self._failed = self._skipped = 0
        self.is_urgent = self.has_delivered = False
        return report

    def take_back(self, report: RecordDeliveries) -> None:
        """A report was refused: its news go into the next one."""
        self._delivered += report.delivered
        self._failed += report.failed
        self._skipped += report.skipped
        self._letters[:0] = report.letters
        self._revived[:0] = report.revived
        told = {line.delivery: line for line in report.tries if line.delivery not in self._news}
        kept = [*told.values(), *self._news.values()][-limits.WEBHOOK_TRIES_KEPT :]
        self._news = {line.delivery: line for line in kept}
        self._told = None


def _conclude(record: Record, result: Result, now_ms: int) -> None:
    """Write into a record how its last try went."""
    record.result, record.tried_ms, record.next_ms = result, now_ms, 0
    record.status = DELIVERED if result.is_success else FAILED
