"""The window of one webhook, under any order of tries, failures, saves and crashes."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corvo.keys.codec import encode_entry
from corvo.machine import MACHINE_VERSION, Machine
from corvo.machine.audit import audit
from corvo.model import command as c
from corvo.model import event as e
from corvo.model import limits
from corvo.storage.memory import MemoryStore
from corvo.webhooks.delivery import Result
from corvo.webhooks.endpoint import Endpoint, Pace, Pending
from tests.factories import START_MS, make_enqueue, make_other_id
from tests.model.profiles import SETTINGS

HOOK = make_other_id(77)
GOOD = Result(True, 200, "", 1)
BAD = Result(False, 500, "no", 1)
PACE = Pace(failures_max=5, suspension_ms=1_000, backoff_ms=100)


class World:
    """A machine, its feed, and one endpoint that may be lost and rebuilt at any time."""

    def __init__(self, **fields: object) -> None:
        self.machine = Machine(MemoryStore())
        self.store = self.machine._state.store
        self.now_ms = START_MS
        self.jobs = 0
        create = c.CreateWebhook(0, HOOK, "http://x/", ("enqueued",), **fields)  # type: ignore[arg-type]
        self.do(create)
        self.reads = 0
        self.crash()
        self.delivered: list[int] = []
        self.running: list[Pending] = []

    def do(self, *commands: c.Command) -> None:
        """Apply an entry."""
        entry = c.Entry(MACHINE_VERSION, self.now_ms, list(commands))
        raw = encode_entry(entry)
        applied = self.machine.apply(self.machine.index + 1, raw, entry)
        assert applied.faults == []

    def produce(self, count: int) -> None:
        """Let things happen, wanted and unwanted."""
        fresh = [make_enqueue(self.jobs + number) for number in range(count)]
        self.jobs += count
        self.do(*fresh, c.PauseQueue(0, "mail"), c.ResumeQueue(0, "mail"))

    def feed(self, after: int, _bytes: int) -> list[tuple[int, e.EventBlock]]:
        """Read a small slice."""
        self.reads += 1
        return self.machine.events(after, 3)

    def crash(self) -> None:
        """Lose everything in memory."""
        view = self.machine.webhook(0, HOOK)
        assert view is not None
        self.endpoint = Endpoint(view, PACE, self.machine.webhook_tries(0, HOOK))
        self.running = []

    def turn(self) -> None:
        """Read and start what is due."""
        while self.endpoint.fill(self.feed):
            pass
        self.running += self.endpoint.take_due(self.now_ms)

    def finish(self, pending: Pending, *, is_good: bool) -> None:
        """End a try."""
        self.running.remove(pending)
        assert pending.record.happening is not None
        if is_good:
            self.delivered.append(pending.record.happening.seq)
        self.endpoint.finish(pending, GOOD if is_good else BAD, self.now_ms)

    def save(self) -> None:
        """Report to the machine."""
        self.do(self.endpoint.report())

    def drain(self) -> None:
        """Let everything succeed until nothing is left."""
        for _ in range(10_000):
            self.now_ms += 3_600_000
            self.turn()
            if not self.running and not self.endpoint.outstanding_count:
                break
            for pending in list(self.running):
                self.finish(pending, is_good=True)
        self.save()

    @property
    def wanted(self) -> list[int]:
        """Numbers of all events the webhook must get."""
        return [
            block.first_seq + position
            for _, block in self.machine.events(0, 100_000)
            for position, event in enumerate(block.events)
            if event.type == e.ENQUEUED
        ]


@given(chance=st.randoms(use_true_random=False), retry_limit=st.integers(0, 3))
@SETTINGS
def test_every_event_is_delivered_or_filed(chance: Random, retry_limit: int):
    """Whatever fails and crashes in between; and what was written down as done is not repeated."""
    world = World(retry_limit=retry_limit)
    settled: set[int] = set()  # done according to the store when it crashed
    for _ in range(chance.randint(1, 40)):
        world.now_ms += chance.choice((0, 50, 500, 5_000))
        match chance.randrange(6):
            case 0:
                world.produce(chance.choice((1, 2, 20)))
            case 1 | 2:
                world.turn()
            case 3:
                world.save()
            case 4 if chance.random() < 0.3:
                world.crash()
                view = world.machine.webhook(0, HOOK)
                assert view is not None
                done = {seq for seq in world.wanted if seq <= view.progress.seq}
                settled = done | set(view.progress.done)
            case _:
                for pending in list(world.running):
                    happening = pending.record.happening
                    assert happening is not None
                    assert happening.seq not in settled
                    world.finish(pending, is_good=chance.random() < 0.5)
        assert world.endpoint.running_count == len(world.running) <= 4
        assert audit(world.store) == []
    world.drain()
    letters = [letter.seq for letter in world.machine.dead_letters(0, HOOK, 5_000)]
    assert set(world.delivered) | set(letters) == set(world.wanted)
    view = world.machine.webhook(0, HOOK)
    assert view is not None
    # Events of its own may follow the last wanted: it may end suspended, with nothing to send.
    assert view.progress.seq >= max(world.wanted, default=0)
    assert view.progress.done == []


def test_window_is_bounded_and_the_feed_is_left_alone_meanwhile():
    """An endpoint that does not answer holds a bounded number of deliveries, and reads no more."""
    world = World()
    world.produce(limits.WEBHOOK_WINDOW_MAX * 3)
    world.turn()
    assert world.endpoint.outstanding_count == limits.WEBHOOK_WINDOW_MAX
    reads = world.reads
    world.turn()
    assert world.reads == reads
    assert len(world.running) == 4


def test_events_that_retention_removed_are_counted():
    """A gap in the feed does not stop delivery, and does not go unnoticed."""
    world = World()
    world.produce(5)
    world.now_ms += 10_000
    world.do(c.TrimEvents(keep_ms=1))
    world.produce(1)
    world.drain()
    view = world.machine.webhook(0, HOOK)
    assert view is not None
    # Five jobs, a queue made, paused and resumed.
    assert (view.progress.skipped, view.progress.delivered) == (8, 1)


def test_refused_report_is_made_again_with_everything_in_it():
    """A full disk does not lose counts or dead letters."""
    world = World(retry_limit=0)
    world.produce(2)
    world.turn()
    for pending, is_good in zip(list(world.running), (True, False), strict=True):
        world.finish(pending, is_good=is_good)
    refused = world.endpoint.report()
    assert not world.endpoint.has_news
    world.endpoint.take_back(refused)
    assert world.endpoint.has_news
    again = world.endpoint.report()
    assert replace(again) == refused


def test_pause_between_tries_grows_and_is_bounded():
    """Four times as long each time, never more than ten minutes, never less than three quarters."""
    world = World(retry_limit=20)
    world.endpoint._pace = replace(PACE, failures_max=1_000)
    world.produce(1)
    pauses: list[int] = []
    for _ in range(12):
        world.turn()
        (pending,) = world.running
        world.finish(pending, is_good=False)
        pauses.append(pending.record.next_ms - world.now_ms)
        world.now_ms = pending.record.next_ms
    expected = [min(100 * 4**n, 600_000) for n in range(12)]
    for pause_ms, whole_ms in zip(pauses, expected, strict=True):
        assert whole_ms * 3 // 4 <= pause_ms <= whole_ms
