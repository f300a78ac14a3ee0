"""Random histories: no wake-up is lost, no job is handed out twice, nothing is left behind."""

import asyncio
import random

import pytest

from corvo.engine import Options
from corvo.machine.audit import audit
from corvo.model.command import (
    AckJob,
    Command,
    ConfigureQueue,
    EnqueueBatch,
    FailJob,
    PauseQueue,
    ReleaseJob,
    ResumeQueue,
    SetLimit,
)
from corvo.model.job import COMPLETED, STATE_COUNT
from corvo.model.outcome import Claim, Fetched
from corvo.model.queue import SettingsPatch
from tests.support.rig import NS, Rig, fetching, turns

QUEUES = ("a", "b", "c")


class History:
    """One random history of producers, workers and operators on one engine."""

    def __init__(self, rig: Rig, chance: random.Random) -> None:
        self.rig = rig
        self.chance = chance
        self.held: dict[bytes, Claim] = {}  # claims workers have and did not end
        self.tickets: list = []
        self.enqueued = 0
        self.rejected: list[object] = []

    def step(self) -> None:
        """Let somebody do something."""
        often = (self.enqueue, self.fetch, self.end)
        seldom = (self.drop, self.configure, self.batch, self.tick)
        self.chance.choice((*often, *often, *seldom))()

    def _submit(self, command: Command) -> None:
        self.rig.engine.submit(command, lambda outcome, _: self.rejected.append(outcome))

    def enqueue(self) -> None:
        self.enqueued += 1
        fields: dict[str, object] = {}
        if self.chance.random() < 0.3:
            fields["limit_key"] = self.chance.choice("xy")
        if self.chance.random() < 0.3:
            fields["limits"] = ("named",)
        if self.chance.random() < 0.3:
            fields["group"] = self.chance.choice("gh")
        if self.chance.random() < 0.2:
            fields["tier"] = 0
        self._submit(self.rig.enqueue(self.chance.choice(QUEUES), **fields))

    def batch(self) -> None:
        count = self.chance.randint(1, 5)
        self.enqueued += count
        specs = [self.rig.enqueue(self.chance.choice(QUEUES)).spec for _ in range(count)]
        self._submit(EnqueueBatch(specs))

    def fetch(self) -> None:
        names = self.chance.sample(QUEUES, self.chance.randint(1, 3))
        timeout_ms = self.chance.choice((0, 60_000, 60_000))
        command = fetching(*names, count=self.chance.choice((1, 1, 3)))
        self.tickets.append(self.rig.engine.fetch(command, timeout_ms, self._take))

    def _take(self, fetched: Fetched, _index: int) -> None:
        for claim in fetched.claims:
            assert claim.spec.id not in self.held, "a job was handed out twice"
            self.held[claim.spec.id] = claim

    def end(self) -> None:
        if not self.held:
            return
        job = self.chance.choice(sorted(self.held))
        claim = self.held.pop(job)
        kind = self.chance.choice((AckJob, AckJob, ReleaseJob, FailJob))
        if kind is FailJob:
            self._submit(FailJob(NS, job, claim.token, "no", retry_after_ms=0))
        else:
            self._submit(kind(NS, job, claim.token))

    def drop(self) -> None:
        if self.tickets:
            self.chance.choice(self.tickets).drop()

    def configure(self) -> None:
        queue = self.chance.choice(QUEUES)
        commands = (
            PauseQueue(NS, queue),
            ResumeQueue(NS, queue),
            ConfigureQueue(NS, queue, SettingsPatch(max_concurrency=self.chance.randint(1, 4))),
            ConfigureQueue(NS, queue, SettingsPatch(key_concurrency=self.chance.randint(1, 2))),
            ConfigureQueue(NS, queue, SettingsPatch(max_concurrency=None, key_concurrency=None)),
            SetLimit(NS, "named", max=self.chance.randint(1, 3)),
        )
        self._submit(self.chance.choice(commands))

    def tick(self) -> None:
        self.rig.clock.advance(self.chance.randint(0, 20))

    def check_nobody_waits_beside_work(self) -> None:
        """When nothing is under way, no fetch is parked at a queue that has work for it."""
        room = self.rig.engine._room
        for desk in room._desks.values():
            assert desk.proposed == 0
            assert desk.wanted == 0
            if desk.tickets:
                bound, _ = self.rig.engine._machine.claimable(*desk.key, self.rig.clock.now_ms())
                assert bound == 0, (desk.key, bound, len(desk.tickets))
        assert room.parked_count == len({t for d in room._desks.values() for t in d.tickets})

    async def settle(self) -> None:
        """Let the pipeline run dry."""
        await self.rig.engine._pipeline.wait_idle()
        await turns()
        await self.rig.engine._pipeline.wait_idle()


async def play(seed: int, steps: int) -> None:
    """Play one history and bring every job to its end."""
    chance = random.Random(seed)
    options = Options(fetch_inflight_max=chance.choice((2, 64)), entry_commands_max=8)
    async with Rig(options=options, fsync=chance.choice(("always", "off"))) as rig:
        history = History(rig, chance)
        for _ in range(steps):
            rig.syncer.is_held = chance.random() < 0.5
            history.step()
            if chance.random() < 0.4:
                await turns(chance.randint(1, 3))
            if chance.random() < 0.3:
                rig.syncer.let_all_go()
            if chance.random() < 0.05:
                rig.syncer.let_all_go()
                await history.settle()
                history.check_nobody_waits_beside_work()
                assert audit(rig.store) == []
        rig.syncer.let_all_go()
        await finish(history)
        assert rig.failures == rig.reply_failures == rig.faults == []


async def finish(history: History) -> None:
    """Open every gate, take and ack all that is left, and count."""
    rig = history.rig
    await history.settle()
    for ticket in history.tickets:
        ticket.drop()
    await history.settle()
    patch = SettingsPatch(max_concurrency=None, key_concurrency=None)
    for queue in QUEUES:
        await rig.engine.perform(ResumeQueue(NS, queue))
        await rig.engine.perform(ConfigureQueue(NS, queue, patch))
    await rig.engine.perform(SetLimit(NS, "named", max=1_000))
    for _ in range(history.enqueued + 50):
        fetched = await rig.fetch(*QUEUES, count=8, timeout_ms=0).answer
        history._take(fetched, 0)
        if not history.held:
            break
        for job, claim in list(history.held.items()):
            del history.held[job]
            await rig.engine.perform(AckJob(NS, job, claim.token))
    counts = [0] * STATE_COUNT
    for view in rig.engine.read.queues(NS):
        counts = [a + b for a, b in zip(counts, view.record.counts, strict=True)]
    assert sum(counts) == history.enqueued
    # What failed often enough is dead; all else is completed and nothing waits or runs.
    assert counts[COMPLETED] + counts[6] == history.enqueued, counts
    assert audit(rig.store) == []


@pytest.mark.parametrize("first_seed", range(0, 24, 6))
def test_random_histories_end_with_every_job_done_and_nobody_waiting_beside_work(first_seed: int):
    """Whatever producers, workers, operators and the disk do, each wake-up arrives."""
    for seed in range(first_seed, first_seed + 6):
        asyncio.run(play(seed, 150))
