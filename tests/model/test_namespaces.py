"""Namespaces share a machine and nothing else."""

from random import Random

import pytest
from msgspec import structs

from corvo.keys.codec import encode_entry
from corvo.machine import MACHINE_VERSION, Machine
from corvo.machine.audit import audit
from corvo.model import command as c
from corvo.model import outcome as o
from corvo.storage.memory import MemoryStore
from tests.factories import make_enqueue, make_fetch
from tests.model.harness import Pair
from tests.model.histories import Writer


def in_namespace(command: c.Command, ns: int) -> c.Command:
    """Return the same command for another namespace; sweeps are for all of them."""
    if isinstance(command, c.EnqueueJob):
        return structs.replace(command, spec=structs.replace(command.spec, ns=ns))
    if isinstance(command, c.EnqueueBatch):
        specs = [structs.replace(spec, ns=ns) for spec in command.specs]
        return structs.replace(command, specs=specs)
    return structs.replace(command, ns=ns) if hasattr(command, "ns") else command


def without_tokens(outcome: o.Outcome) -> object:
    """Leave out what counts positions in the log."""
    if isinstance(outcome, o.Fetched):
        return [(x.spec.id, x.queue, x.attempt, x.run) for x in outcome.claims]
    return outcome


@pytest.mark.parametrize("seed", range(6))
def test_a_namespace_behaves_as_if_it_were_alone(seed: int):
    """The same queues, keys and limits in another namespace change no answer."""
    chance = Random(3_000 + seed)
    pair = Pair()
    writer = Writer(pair.oracle.world, chance)
    store = MemoryStore()
    machine = Machine(store)
    noise = Writer(pair.oracle.world, Random(seed))
    noise.jobs = noise.others = 10**5  # ids are the server's and never shared; all else may be
    tokens: dict[int, int] = {}  # the other log has other positions
    for _ in range(30):
        commands = [writer.anything() for _ in range(3)]
        expected = pair.step(commands, writer.advance_ms())
        writer.fresh.clear()
        others = [in_namespace(noise.anything(), 1) for _ in range(3)]
        others = [x for x in others if hasattr(x, "ns") or hasattr(x, "spec")]
        mixed = [*others, *(with_token(command, tokens) for command in commands)]
        entry = c.Entry(MACHINE_VERSION, pair.now_ms, mixed)
        applied = machine.apply(len(pair.log), encode_entry(entry), entry)
        assert applied.faults == []
        for one, two in zip(expected, applied.outcomes[len(others) :], strict=True):
            if isinstance(one, o.Fetched) and isinstance(two, o.Fetched):
                pairs = zip(one.claims, two.claims, strict=True)
                tokens |= {x.token: y.token for x, y in pairs}
            if not isinstance(one, o.Swept):  # a sweep counts the work of both
                assert without_tokens(one) == without_tokens(two)
        assert audit(store) == []


def with_token(command: c.Command, tokens: dict[int, int]) -> c.Command:
    """Return the command with the lease token the other log has for it."""
    token = getattr(command, "token", 0)
    return structs.replace(command, token=tokens.get(token, token)) if token else command


def test_a_job_is_not_found_from_another_namespace():
    """An id is no key to what is not yours."""
    pair = Pair()
    pair.step([make_enqueue(1), make_fetch()])
    job_id = make_enqueue(1).spec.id
    commands: list[c.Command] = [
        c.AckJob(1, job_id),
        c.CancelJob(1, job_id),
        c.DeleteJob(1, job_id),
        c.MoveJob(1, job_id, "mine"),
        c.HeartbeatJob(1, job_id),
        c.FetchJobs(1, ["mail"], "w"),
    ]
    entry = c.Entry(MACHINE_VERSION, pair.now_ms, commands)
    applied = pair.machine.apply(2, encode_entry(entry), entry)
    *refused, beaten, fetched = applied.outcomes
    assert [getattr(outcome, "code", None) for outcome in refused] == [o.NOT_FOUND] * 4
    assert beaten == o.Beaten(o.BEAT_LOST)
    assert fetched == o.Fetched([])
    assert pair.machine.job(1, job_id) is None
    assert pair.machine.queues(1) == []
