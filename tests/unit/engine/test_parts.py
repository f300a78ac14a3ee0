"""The small parts of the engine: identifiers, weights, the wheel, the feed, the registry."""

import asyncio
import gc

from corvo.engine import feed as feed_module
from corvo.engine.admission import OPEN, Admission, Bounds
from corvo.engine.collector import settle_collector
from corvo.engine.feed import EVENT_BYTES, Feed
from corvo.engine.identity import IdSource
from corvo.engine.weight import weigh
from corvo.engine.wheel import Wheel
from corvo.engine.workers import FORGET_MS, STALE_MS, WorkerRegistry
from corvo.keys.codec import encode
from corvo.model.command import AckJob, EnqueueBatch, EnqueueJob, FailJob, FetchJobs
from corvo.model.event import ENQUEUED, Event, EventBlock
from corvo.model.ids import group_of
from corvo.model.job import Chain, Spec, Step
from corvo.runtime.clock import VirtualClock


def test_identifiers_rise_within_a_millisecond_and_across():
    """Ids are strictly rising, also when the clock stands still."""
    clock = VirtualClock()
    source = IdSource(clock, group=7)
    ids = []
    for _ in range(50):
        ids.extend(source.new_id() for _ in range(20))
        clock.advance(1)
    assert ids == sorted(set(ids))
    assert {group_of(identifier) for identifier in ids} == {7}
    assert {len(identifier) for identifier in ids} == {16}


def test_the_highest_random_start_leaves_room_to_count():
    """Counting behind the largest random tail does not spill into the group."""
    source = IdSource(VirtualClock(), random_bits=lambda bits: (1 << bits) - 1)
    assert {group_of(source.new_id()) for _ in range(1000)} == {0}


def test_identifiers_of_two_sources_differ():
    """Two processes in the same millisecond do not collide."""
    clock = VirtualClock()
    first, second = IdSource(clock), IdSource(clock)
    assert not {first.new_id() for _ in range(100)} & {second.new_id() for _ in range(100)}


def test_weights_are_never_much_below_the_encoded_size():
    """For commands that may be large the estimate is within a tenth of the encoding."""
    big = b'"' + b"x" * 50_000 + b'"'
    spec = Spec(bytes(16), 0, "q", big)
    chain = Chain(bytes(16), (Step("a", big), Step("b", big)))
    chained = Spec(bytes(16), 0, "q", b"{}", chain=chain, tags={"a": "b"})
    commands = [
        EnqueueJob(spec),
        EnqueueJob(chained),
        EnqueueBatch([spec, chained]),
        AckJob(0, bytes(16), 1, big, big),
        FailJob(0, bytes(16), 1, "e" * 8000, "b" * 30_000),
        FetchJobs(0, ["queue"] * 10, "w"),
    ]
    for command in commands:
        size = len(encode(command))
        assert size * 0.9 <= weigh(command) <= size + 600


def test_the_wheel_calls_back_in_order_and_forgets_who_left():
    """Items run out slot by slot; one that was removed is not called."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        called: list[str] = []
        done = asyncio.Event()

        def on_due(item: str) -> None:
            called.append(item)
            if item == "last":
                done.set()

        wheel: Wheel[str] = Wheel(loop, on_due)
        wheel.add(wheel.slot_after(90), "last")
        wheel.add(wheel.slot_after(5), "first")
        gone = wheel.slot_after(5)
        wheel.add(gone, "gone")
        wheel.remove(gone, "gone")
        assert not wheel.is_past(gone)
        await done.wait()
        assert called == ["first", "last"]
        assert wheel.is_past(gone)
        wheel.add(wheel.slot_after(1), "never")
        wheel.close()
        assert called == ["first", "last"]

    asyncio.run(run())


def block(first_seq: int, count: int = 1) -> EventBlock:
    """Make a block of events."""
    return EventBlock(first_seq, 0, [Event(ENQUEUED, bytes(16), "q")] * count)


def test_the_feed_answers_from_the_ring_and_falls_back_to_the_store():
    """Below the floor of the ring the store is asked, above it never."""
    stored = [(index, block(index)) for index in range(1, 6)]
    asked: list[int] = []

    def load(after_index: int, limit: int) -> list[tuple[int, EventBlock]]:
        asked.append(after_index)
        return [item for item in stored if item[0] > after_index][:limit]

    feed = Feed(5, load)
    for index in (6, 8, 9):
        feed.append(index, block(index))
    assert [index for index, _ in feed.read(5, 1 << 20)] == [6, 8, 9]
    assert [index for index, _ in feed.read(7, 1 << 20)] == [8, 9]
    assert feed.read(9, 1 << 20) == []
    assert asked == []
    assert [index for index, _ in feed.read(2, 1 << 20)] == [3, 4, 5]
    assert asked == [2]


def test_a_slice_of_the_feed_is_about_as_large_as_asked_and_never_empty():
    """The first block is given whatever its size; further ones only while they fit."""
    feed = Feed(0, lambda _after, _limit: [])
    for index in range(1, 10):
        feed.append(index, block(index, 10))
    assert len(feed.read(0, 1)) == 1
    assert len(feed.read(0, 30 * EVENT_BYTES)) == 3


def test_the_ring_is_bounded():
    """However much happens, the ring holds at most its bound, and its floor rises."""
    feed = Feed(0, lambda _after, _limit: [])
    for index in range(1, 3 * feed_module.BLOCKS_MAX):
        feed.append(index, block(index))
    figures = feed.statistics()
    assert figures["blocks_count"] <= feed_module.BLOCKS_MAX
    assert figures["events_count"] == figures["blocks_count"]
    assert [index for index, _ in feed.read(figures["floor_index"], 100)] == [
        figures["floor_index"] + 1
    ]


def test_a_worker_is_healthy_then_stale_then_forgotten():
    """A worker that says nothing is stale after a minute and gone after ten."""
    clock = VirtualClock()
    registry = WorkerRegistry(clock)
    registry.observe_fetch(FetchJobs(0, ["a"], "w1", "host"), "1.2", 4)
    (view,) = registry.list(0)
    assert (view.id, view.status, view.slots, view.jobs_held) == ("w1", "healthy", 4, 0)
    clock.advance(STALE_MS + 1)
    assert registry.list(0)[0].status == "stale"
    registry.observe_heartbeat(0, "w1", 1)
    assert (registry.list(0)[0].status, registry.list(0)[0].jobs_held) == ("healthy", 1)
    clock.advance(FORGET_MS + 1)
    registry.tidy()
    assert registry.list() == []


def test_the_registry_is_bounded_and_forgets_the_longest_unseen():
    """Invented worker names push out stale workers, never grow the registry."""
    clock = VirtualClock()
    registry = WorkerRegistry(clock, workers_max=10)
    registry.observe_heartbeat(0, "old", 0)
    clock.advance(STALE_MS + 1)
    for number in range(100):
        registry.observe_heartbeat(0, f"w{number}", 0)
        assert len(registry) <= 10
    assert "old" not in [view.id for view in registry.list()]


def test_a_draining_worker_says_so():
    """A worker that announced its end is shown as draining."""
    registry = WorkerRegistry(VirtualClock())
    registry.observe_fetch(FetchJobs(0, ["a"], "w"), draining=True)
    assert registry.list()[0].status == "draining"


def test_the_time_to_come_back_follows_the_measured_rate():
    """At 1,000 commands a second, 500 pending take half a second."""
    admission = Admission(Bounds())
    admission.enter(OPEN)
    assert admission.retry_after_ms(500) == 1_000
    for _ in range(20):
        admission.observe_applied(1_000, 1.0)
    assert 490 <= admission.retry_after_ms(500) <= 510
    assert admission.retry_after_ms(10_000_000) == 30_000


def test_the_collector_is_settled():
    """What lives at the start is frozen and young objects are collected rarely."""
    before = gc.get_threshold()
    try:
        settle_collector()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > before[0]
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
