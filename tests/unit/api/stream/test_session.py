"""A session without any transport, on a real engine in memory: slots are never exceeded."""

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corvo.api.stream.codecs import JSON, Codec
from corvo.api.stream.frames import (
    AnswerFrame,
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
from corvo.api.stream.session import Session
from corvo.api.stream.streams import Streams
from corvo.api.translate import Context
from corvo.api.wire import AckItem
from corvo.machine.audit import audit
from corvo.model.job import ACTIVE
from tests.support.rig import NS, Rig, turns

QUEUES = ("a", "b")
SETS = (("a",), ("b",), ("a", "b"))


class Recorder:
    """An outlet that keeps what it is given, and says how much of it was read."""

    def __init__(self) -> None:
        self.codec: Codec = JSON
        self.unsent_bytes = 0
        self.answers: list[AnswerFrame] = []
        self.jobs: dict[str, Job] = {}
        self.closed = 0
        self.on_push: Callable[[], None] = lambda: None

    def send(self, frame: ServerFrame) -> None:
        if isinstance(frame, AnswerFrame):
            self.answers.append(frame)
            return
        assert isinstance(frame, PushFrame)
        for job in frame.jobs:
            self.jobs[job.job_id] = job
        for signal in frame.lost:
            self.jobs.pop(signal.job_id, None)
        self.on_push()

    def answered(self) -> None:
        """Nothing is waiting to be read."""

    def close(self, code: int, problem: Problem) -> None:  # noqa: ARG002 - an outlet's
        self.closed = code


class Play:
    """One session and a worker that reports at random, checked after every step."""

    def __init__(self, rig: Rig, bounds: Bounds) -> None:
        self.rig = rig
        self.streams = Streams(rig.engine, Context(rig.engine.new_id), bounds)
        self.outlet = Recorder()
        self.outlet.on_push = self.check
        self.session: Session = self.streams.open(self.outlet, NS)
        self.slots: dict[tuple[str, ...], int] = {}
        self.frames_count = 0
        self.before: dict[tuple[str, ...], int] = {}  # in flight when something was last changed

    def check(self) -> None:
        """Invariant: a set has at most as many in flight as slots, or as were there before."""
        for grant in self.session.supply.grants.values():
            key = tuple(sorted(grant.queues))
            assert grant.in_flight <= max(self.slots.get(key, 0), self.before.get(key, 0))
        assert len(self.session.supply.held) <= self.streams.limits.in_flight_max

    def take(self, **fields: Any) -> None:
        self.frames_count += 1
        self.session.take(ClientFrame(request_id=self.frames_count, worker_id="w", **fields))

    def grant(self, queues: tuple[str, ...], slots: int) -> None:
        key = tuple(sorted(queues))
        held = {
            tuple(sorted(grant.queues)): grant.in_flight
            for grant in self.session.supply.grants.values()
        }
        self.before = held
        self.slots[key] = slots
        self.take(credits=[CreditItem(queues=list(queues), slots=slots)])

    async def settle(self) -> None:
        await self.rig.engine.perform(self.rig.enqueue("unrelated"))
        await turns(6)
        self.before = {
            tuple(sorted(grant.queues)): grant.in_flight
            for grant in self.session.supply.grants.values()
        }
        self.check()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grant"), st.sampled_from(SETS), st.integers(0, 4)),
        st.tuples(st.just("enqueue"), st.sampled_from(QUEUES), st.integers(1, 6)),
        st.tuples(
            st.just("report"), st.sampled_from(("ack", "fail", "release")), st.integers(0, 3)
        ),
        st.tuples(st.just("stale"), st.just(""), st.integers(0, 3)),
        st.tuples(st.just("settle"), st.just(""), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_slots_are_never_exceeded(steps: list[tuple[str, Any, int]]) -> None:
    """Whatever is granted, enqueued and reported in whatever order: in flight is within slots."""
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, Any, int]]) -> None:
    async with Rig() as rig:
        play = Play(rig, Bounds(in_flight_max=8))
        for name, what, number in steps:
            await _step(play, name, what, number)
        await play.settle()
        answers = [answer.request_id for answer in play.outlet.answers]
        assert answers == list(range(1, play.frames_count + 1))
        views = [rig.engine.read.queue(NS, queue) for queue in QUEUES]
        active = sum(view.record.counts[ACTIVE] for view in views if view is not None)
        # Nothing is active that nobody holds, and nothing is held that is not active.
        assert active == len(play.session.supply.held)
        play.streams.disconnect(play.session)
        assert audit(rig.store) == []


async def _step(play: Play, name: str, what: Any, number: int) -> None:
    if name == "grant":
        play.grant(what, number)
    elif name == "enqueue":
        await play.rig.put(what, number)
    elif name == "settle":
        await play.settle()
    else:
        jobs = list(play.outlet.jobs.values())[:number]
        if name == "stale":
            play.take(acks=[AckItem(job_id=job.job_id, lease_token=1) for job in jobs])
            return
        for job in jobs:
            del play.outlet.jobs[job.job_id]
        kinds: dict[str, Any] = {"ack": AckItem, "fail": FailItem, "release": ReleaseItem}
        items = [kinds[what](job_id=job.job_id, lease_token=job.lease_token) for job in jobs]
        play.take(**{f"{what}s": items})


async def _slow() -> tuple[int, int]:
    async with Rig() as rig:
        play = Play(rig, Bounds())
        play.slots[("a",)] = 10
        play.outlet.unsent_bytes = 1 << 20
        play.grant(("a",), 10)
        await rig.put("a", 3)
        await turns(6)
        before = len(play.outlet.jobs)
        play.outlet.unsent_bytes = 0
        play.session.supply.pump()
        await play.settle()
        return before, len(play.outlet.jobs)


def test_nothing_is_claimed_for_a_client_that_does_not_read() -> None:
    """Above the mark of unsent bytes no fetch is made; below it the jobs come."""
    assert asyncio.run(_slow()) == (0, 3)
