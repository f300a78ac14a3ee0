"""A session without any transport, on a real engine in memory: slots are never exceeded."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from corvo.api.stream.codecs import JSON, Codec
from corvo.api.stream.frames import (
    ClientFrame,
    CreditItem,
    FailItem,
    Job,
    Problem,
    PushFrame,
    ReleaseItem,
    ServerFrame,
)
from corvo.api.stream.held import Bounds
from corvo.api.stream.streams import Streams
from corvo.api.translate import Context
from corvo.api.wire import AckItem
from corvo.machine.audit import audit
from corvo.model import limits
from corvo.model.job import ACTIVE, PENDING
from tests.support.rig import NS, Rig, turns

QUEUES = ("a", "b")
IN_FLIGHT_MAX = 6
GONE = frozenset({"LEASE_LOST", "NOT_ACTIVE", "NOT_FOUND"})
LISTS = {"ack": AckItem, "fail": FailItem, "release": ReleaseItem}


class Worker:
    """An outlet that keeps its own books: what it was pushed, and what was answered for it."""

    def __init__(self) -> None:
        self.codec: Codec = JSON
        self.unsent_bytes = 0
        self.slots = dict.fromkeys(QUEUES, 0)
        self.outstanding: dict[str, Job] = {}  # from its push until its report was answered
        self.idle: dict[str, Job] = {}  # of these, not reported yet
        self.answers: list[int | None] = []

    def send(self, frame: ServerFrame) -> None:
        if isinstance(frame, PushFrame):
            for signal in frame.lost:
                self._settle(signal.job_id)
            for job in frame.jobs:
                assert job.job_id not in self.outstanding
                self.outstanding[job.job_id] = self.idle[job.job_id] = job
            for queue in {job.queue for job in frame.jobs}:
                # The fact of this file: judged by the worker, at the moment of the push.
                count = sum(job.queue == queue for job in self.outstanding.values())
                assert count <= self.slots[queue]
            assert len(self.outstanding) <= IN_FLIGHT_MAX
            return
        self.answers.append(frame.request_id)
        for result in (*frame.acks, *frame.fails, *frame.releases):
            if result.code is None or result.code in GONE:
                self._settle(result.job_id)

    def _settle(self, name: str) -> None:
        if name not in self.idle:
            self.outstanding.pop(name, None)

    def answered(self) -> None:
        """Nothing waits to be read."""

    def close(self, code: int, problem: Problem) -> None:
        raise AssertionError((code, problem))


class Play:
    """One session on a real engine, and what a worker and others do to it."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        bounds = Bounds(in_flight_max=IN_FLIGHT_MAX)
        self.streams = Streams(
            rig.engine, Context(rig.engine.new_id, limits.PAYLOAD_BYTES_MAX, lambda: 0), bounds
        )
        self.worker = Worker()
        self.session = self.streams.open(self.worker, NS)
        self.frames_count = 0

    def take(self, **fields: Any) -> None:
        self.frames_count += 1
        self.session.take(ClientFrame(request_id=self.frames_count, worker_id="w", **fields))

    def grant(self, queue: str, slots: int) -> None:
        others = sum(self.worker.slots[name] for name in QUEUES if name != queue)
        if others + slots <= IN_FLIGHT_MAX:
            self.worker.slots[queue] = slots
        self.take(credits=[CreditItem(queues=[queue], slots=slots)])

    def enqueue(self, queue: str, count: int) -> None:
        """Submit jobs and do not wait: what follows happens while they are on their way."""
        commands = [self.rig.enqueue(queue) for _ in range(count)]
        self.rig.engine.submit_many(list(commands), lambda _outcomes, _index: None)

    def report(self, kind: str, count: int) -> None:
        names = list(self.worker.idle)[:count]
        jobs = [self.worker.idle.pop(name) for name in names]
        made = [LISTS[kind](job_id=job.job_id, lease_token=job.lease_token) for job in jobs]
        self.take(**{f"{kind}s": made})

    def report_stale(self, count: int) -> None:
        names = list(self.worker.idle)[:count]
        self.take(acks=[AckItem(job_id=name, lease_token=1) for name in names])

    async def settle(self) -> None:
        for _ in range(3):
            await self.rig.engine.perform(self.rig.enqueue("unrelated"))
            await turns(4)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grant"), st.sampled_from(QUEUES), st.integers(0, 4)),
        st.tuples(st.just("enqueue"), st.sampled_from(QUEUES), st.integers(1, 6)),
        st.tuples(st.just("report"), st.sampled_from(sorted(LISTS)), st.integers(0, 3)),
        st.tuples(st.just("stale"), st.just(""), st.integers(0, 3)),
        st.tuples(st.just("turn"), st.just(""), st.integers(1, 3)),
        st.tuples(st.just("settle"), st.just(""), st.just(0)),
    ),
    max_size=30,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
@example(steps=[("grant", "a", 4), ("settle", "", 0), ("enqueue", "a", 4), ("grant", "a", 1)])
def test_slots_are_never_exceeded(steps: list[tuple[str, Any, int]]) -> None:
    """Whatever is granted, enqueued and reported in whatever order, by the worker's own books."""
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, Any, int]]) -> None:
    async with Rig() as rig:
        play = Play(rig)
        for step in steps:
            await _step(play, *step)
        await play.settle()
        assert play.worker.answers == list(range(1, play.frames_count + 1))
        views = [rig.engine.read.queue(NS, queue) for queue in QUEUES]
        active = sum(view.record.counts[ACTIVE] for view in views if view is not None)
        # Nothing is active that the worker was not told of, and the session counts as it does.
        assert active == len(play.worker.outstanding) == len(play.session.supply.held)
        # Slots are used: what is pending while one is free would be a job nobody gets.
        for queue, view in zip(QUEUES, views, strict=True):
            if view is not None and view.record.counts[PENDING]:
                held = sum(job.queue == queue for job in play.worker.outstanding.values())
                assert held >= play.worker.slots[queue]
        play.streams.disconnect(play.session)
        assert audit(rig.store) == []
        assert rig.reply_failures == []


async def _step(play: Play, name: str, what: str, number: int) -> None:
    if name == "grant":
        play.grant(what, number)
    elif name == "enqueue":
        play.enqueue(what, number)
    elif name == "report":
        play.report(what, number)
    elif name == "stale":
        play.report_stale(number)
    elif name == "turn":
        await turns(number)
    else:
        await play.settle()


async def _slow() -> tuple[int, int]:
    async with Rig() as rig:
        play = Play(rig)
        play.worker.unsent_bytes = 1 << 20
        play.grant("a", 3)
        await rig.put("a", 3)
        await play.settle()
        before = len(play.worker.idle)
        play.worker.unsent_bytes = 0
        play.session.supply.pump()
        await play.settle()
        return before, len(play.worker.idle)


def test_nothing_is_claimed_for_a_client_that_does_not_read() -> None:
    """Above the mark of unsent bytes no fetch is made; below it the jobs come."""
    assert asyncio.run(_slow()) == (0, 3)
