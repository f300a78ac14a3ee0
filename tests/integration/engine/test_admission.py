"""Bounds at the door, and what is still let in when it is half shut."""

import asyncio

import pytest

from corvo.engine import Options
from corvo.engine.admission import Bounds
from corvo.errors import OverloadedError, UnavailableError
from corvo.model.command import AckJob, FailJob, HeartbeatJob, ReleaseJob
from corvo.model.outcome import Ended
from tests.support.rig import NS, Rig, fetching, turns


def ignore(_outcome: object, _index: int) -> None:
    """Nobody waits."""


def test_past_the_bound_a_command_is_refused_with_a_time_to_come_back():
    """The command past `pending_max` is refused; once the backlog is gone it enters."""

    async def run() -> None:
        async with Rig(options=Options(bounds=Bounds(pending_max=10))) as rig:
            await rig.put(count=10)
            rig.syncer.is_held = True
            for _ in range(10):
                rig.engine.submit(rig.enqueue(), ignore)
            with pytest.raises(OverloadedError) as refusal:
                rig.engine.submit(rig.enqueue(), ignore)
            assert 0 < refusal.value.retry_after_ms <= 30_000
            await turns()
            rig.syncer.let_all_go()
            await turns(5)
            await rig.put()
            assert rig.engine.status()["admission"]["refused_count"] == 1

    asyncio.run(run())


def test_bytes_are_bounded_too():
    """A few huge payloads fill the queue as many small ones do."""

    async def run() -> None:
        async with Rig(options=Options(bounds=Bounds(pending_bytes_max=50_000))) as rig:
            rig.syncer.is_held = True
            payload = b'"' + b"x" * 60_000 + b'"'
            rig.engine.submit(rig.enqueue(payload=payload), ignore)
            with pytest.raises(OverloadedError):
                rig.engine.submit(rig.enqueue(), ignore)

    asyncio.run(run())


def test_finished_work_may_leave_while_producers_flood():
    """An ack enters although the queue is full for producers."""

    async def run() -> None:
        async with Rig(options=Options(bounds=Bounds(pending_max=5))) as rig:
            await rig.put()
            fetched = await rig.fetch("q").answer
            claim = fetched.claims[0]
            rig.syncer.is_held = True
            for _ in range(5):
                rig.engine.submit(rig.enqueue(), ignore)
            with pytest.raises(OverloadedError):
                rig.engine.submit(rig.enqueue(), ignore)
            done: list[object] = []
            ack = AckJob(NS, claim.spec.id, claim.token)
            rig.engine.submit(ack, lambda outcome, _: done.append(outcome))
            await turns()
            rig.syncer.let_all_go()
            await turns(5)
            assert isinstance(done[0], Ended)

    asyncio.run(run())


def test_a_group_is_taken_whole_or_not_at_all():
    """A group that does not fit leaves nothing behind; alone it may exceed the bound."""

    async def run() -> None:
        async with Rig(options=Options(bounds=Bounds(pending_max=5))) as rig:
            rig.engine.submit(rig.enqueue(), ignore)
            with pytest.raises(OverloadedError):
                rig.engine.submit_many([rig.enqueue() for _ in range(8)], ignore)
            await turns(5)
            assert rig.engine.status()["pipeline"]["applied_count"] == 1
            assert len(await rig.perform_all([rig.enqueue() for _ in range(8)])) == 8

    asyncio.run(run())


def test_draining_refuses_new_work_and_lets_running_work_end():
    """While draining: enqueue and fetch are refused; ack, fail, heartbeat, release are taken."""

    async def run() -> None:
        async with Rig() as rig:
            await rig.put(count=4)
            fetched = await rig.fetch("q", count=4).answer
            await rig.engine.drain()
            for command in (rig.enqueue(), fetching("q")):
                with pytest.raises(UnavailableError) as refusal:
                    rig.engine.submit(command, ignore)
                assert refusal.value.code == "DRAINING"
            with pytest.raises(UnavailableError):
                rig.fetch("q")
            ids = [(claim.spec.id, claim.token) for claim in fetched.claims]
            for kind, (job, token) in zip(
                (HeartbeatJob, AckJob, FailJob, ReleaseJob), ids, strict=True
            ):
                outcome, _ = await rig.engine.perform(kind(NS, job, token))
                assert type(outcome).__name__ in ("Beaten", "Ended")

    asyncio.run(run())


def test_draining_answers_parked_fetches_empty():
    """Every parked fetch is answered at once, and one that is under way is not parked again."""

    async def run() -> None:
        async with Rig() as rig:
            polls = [rig.fetch("q", f"r{number}") for number in range(50)]
            await rig.engine.drain()
            for poll in polls:
                assert await poll.ids() == []
            assert rig.engine.status()["fetches"]["parked_count"] == 0

    asyncio.run(run())


def test_nothing_is_taken_before_the_start():
    """Between recovery and `start` every command is refused as starting."""

    async def run() -> None:
        rig = Rig()
        with pytest.raises(UnavailableError) as refusal:
            rig.engine.submit(rig.enqueue(), ignore)
        assert refusal.value.code == "STARTING"
        await rig.engine.close()

    asyncio.run(run())


def test_a_stalling_store_shrinks_the_queue_in_front_of_it():
    """While the store reports a stall, admission takes a quarter, and all of it afterwards."""

    async def run() -> None:
        async with Rig(options=Options(bounds=Bounds(pending_max=100))) as rig:
            admission = rig.engine._admission
            admission.observe_store(is_stalled=True)
            assert admission.pending_max == 25
            admission.observe_store(is_stalled=False)
            assert admission.pending_max == 100

    asyncio.run(run())
