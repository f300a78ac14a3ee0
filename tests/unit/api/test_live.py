"""Parts of live reading by themselves: places in the feed, filters, minutes."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from corvo.api.live.batch import Batch, event_members
from corvo.api.live.figures import MINUTE_MS, Figures
from corvo.api.live.filters import Filter
from corvo.api.live.hub import Hub
from corvo.api.render import encode
from corvo.engine.feed import Feed
from corvo.model import event as ev
from corvo.model.event import EVENT_NAMES, Event, EventBlock
from corvo.runtime.clock import VirtualClock
from corvo.runtime.telemetry import Histogram
from tests.support.rig import Rig

NAMES = ["a", "a.b", "b", ""]
JOBS = [bytes(16), bytes([1] * 16), b""]
EVENTS = st.builds(
    Event,
    st.integers(0, len(EVENT_NAMES) - 1),
    st.sampled_from(JOBS),
    st.sampled_from(NAMES),
    st.integers(0, 3),
    st.sampled_from([None, {"error": "a\nb"}, {"due_ms": 1_700_000_000_000}]),
    st.integers(0, 1),
)
FILTERS = st.builds(
    Filter,
    st.integers(0, 2),
    st.none() | st.frozensets(st.integers(0, len(EVENT_NAMES) - 1), max_size=9),
    st.none() | st.frozensets(st.sampled_from(NAMES), max_size=2),
    st.sampled_from([(), ("a.",), ("",)]),
    st.none() | st.frozensets(st.sampled_from(JOBS), max_size=2),
)


def make_blocks(sizes: list[int], gaps: list[int]) -> list[tuple[int, EventBlock]]:
    """Blocks of so many events, with indexes that leave gaps, times that follow the index."""
    found: list[tuple[int, EventBlock]] = []
    index = seq = 0
    for size, gap in zip(sizes, gaps, strict=False):
        index += 1 + gap
        event = Event(ev.ENQUEUED, JOBS[0], "q")
        found.append((index, EventBlock(seq + 1, index * 10, [event] * size)))
        seq += size
    return found


@given(st.lists(EVENTS, min_size=1, max_size=30), FILTERS, st.integers(0, 40))
def test_a_batch_selects_what_passes_after_a_place(events: list[Event], wanted: Filter, after: int):
    """The indexes of a batch find exactly what looking at each event finds."""
    cut = len(events) // 2
    blocks = [EventBlock(1, 5, events[:cut])] if cut else []
    blocks.append(EventBlock(cut + 1, 7, events[cut:]))
    batch = Batch(blocks)
    expected = [
        event_members(seq, 5 if seq <= cut else 7, event)
        for seq, event in enumerate(events, 1)
        if seq > after and wanted.passes(event)
    ]
    text = b"".join(batch.select(wanted, after)).decode()
    found = [block for block in text.split("\n\n") if block]
    assert len(found) == len(expected)
    for block, members in zip(found, expected, strict=True):
        name, identifier, data = block.split("\n")
        assert name == f"event: {members['type']}"
        assert identifier == f"id: {members['seq']}"
        assert data == f"data: {encode(members).decode()}"
    assert not expected or batch.matches(wanted)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=40),
    st.lists(st.integers(0, 5), min_size=40, max_size=40),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_a_place_is_found_in_ring_and_store(
    sizes: list[int], gaps: list[int], kept: int, trimmed: int
):
    """For every seq that is kept, the block with the next event is the first one after it."""
    blocks = make_blocks(sizes, gaps)
    trimmed = min(trimmed, len(blocks) - 1)
    floor = blocks[trimmed][0]
    stored = blocks[trimmed:]

    def load(after: int, limit: int) -> list[tuple[int, EventBlock]]:
        return [item for item in stored if item[0] > after][:limit]

    split = max(trimmed, len(blocks) - kept)
    feed = Feed(blocks[split - 1][0] if split else 0, load)
    for index, block in blocks[split:]:
        feed.append(index, block)
    oldest = stored[0][1].first_seq
    last_index, last = blocks[-1][0], blocks[-1][1]
    for seq in range(oldest - 1, last.first_seq + len(last.events) - 1):
        found = feed.read(feed.locate(seq, floor), 1)[0][1]
        assert found.first_seq <= seq + 1 < found.first_seq + len(found.events)
    for at_ms in range(0, last_index * 10 + 20, 7):
        after = feed.locate_time(at_ms, floor, last_index)
        assert [i for i, _ in stored if i > after] == [i for i, b in stored if b.at_ms >= at_ms]


def test_minutes_come_back_after_a_restart():
    """The hub counts stored events into their minutes, each once, and into no other figure."""

    async def run() -> None:
        async with Rig() as rig:
            await rig.put("q", 3)
            rig.clock.advance(2 * MINUTE_MS)
            await rig.put("q", 2)
            hub = Hub(rig.engine)
            await rig.put("q", 1)
            await hub.recall()
            counts = [row[0] for _, row in hub.figures.throughput(0, "q")]
            assert (counts[-3], counts[-1], sum(counts)) == (3, 2, 5)
            assert sum(hub.figures.by_type) == 0

    asyncio.run(run())


def test_waits_count_from_the_moment_a_job_was_ready():
    """A retry waits from its promotion, a derived job from its enqueue, a new one from its id."""
    figures = Figures(VirtualClock())
    at_ms = 1_700_000_000_000
    new = at_ms.to_bytes(6, "big") + bytes(10)
    derived = (at_ms - 3_600_000).to_bytes(6, "big") + bytes(10)
    steps = [
        (0, Event(ev.ENQUEUED, new, "q")),
        (0, Event(ev.ENQUEUED, derived, "q")),
        (20, Event(ev.STARTED, new, "q", 1)),
        (20, Event(ev.STARTED, derived, "q", 1)),
        (70, Event(ev.FAILED, new, "q", 1)),
        (70, Event(ev.RETRYING, new, "q", 1, {"due_ms": at_ms + 5_000})),
        (5_000, Event(ev.PROMOTED, new, "q", 1)),
        (5_020, Event(ev.STARTED, new, "q", 2)),
        (5_030, Event(ev.RELEASED, new, "q", 1)),
        (5_050, Event(ev.STARTED, new, "q", 2)),
    ]
    for after_ms, event in steps:
        figures.observe([EventBlock(1, at_ms + after_ms, [event])])
    queue = figures.queues[0, "q"]
    assert (sum(queue.waits.counts), queue.waits.total_ms) == (4, 80)
    assert (sum(queue.runs.counts), queue.runs.total_ms) == (1, 50)


@given(st.lists(st.integers(0, 1 << 30)))
def test_doubling_buckets_hold_every_value_once(values: list[int]):
    """The buckets of a histogram add up, and each value is below the bound of its bucket."""
    times = Histogram()
    for value in values:
        times.observe(value)
    rows = times.doubling()
    assert sum(count for _, count in rows) == len(values)
    assert times.total_us == sum(values)
    for bound, _ in rows:
        below = sum(count for limit, count in rows if limit <= bound)
        assert below == sum(value < bound for value in values)
