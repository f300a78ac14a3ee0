"""How commands are grouped into one commit changes nothing but the number of commits.

`apply_stepwise` commits and forgets all caches after every command of the entry. Byte for byte the
same store, the same outcomes and the same events must come out.
"""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.keys import codec, space
from corvo.keys.codec import decode_entry, encode_entry
from corvo.keys.order import successor
from corvo.machine import MACHINE_VERSION, Machine
from corvo.model.command import Command, Entry
from corvo.storage.memory import MemoryStore
from tests.factories import START_MS
from tests.model.harness import Pair
from tests.model.histories import Writer
from tests.model.profiles import IS_LONG, SETTINGS

SEEDS = range(400) if IS_LONG else range(12)


def contents(store: MemoryStore) -> dict[bytes, bytes]:
    """Return everything in a store but what counts commits: chain and commit counters.

    Safety: a key that is put and deleted within one entry never reaches the grouped store, so the
    chain over effects differs by design; the state may not.
    """
    everything = dict(store.scan(b"\x00", b"\xff\xff", 10_000_000))
    meta = codec.decode_meta(everything[space.META])
    meta.chain = b""
    everything[space.META] = codec.encode(meta)
    for key, value in everything.items():
        if key[:1] == space.QUEUE:
            record = codec.decode_queue(value)
            record.commits = 0
            everything[key] = codec.encode(record)
    return everything


def compare(grouped: MemoryStore, stepwise: MemoryStore) -> None:
    """Point at the first key that differs."""
    one, two = contents(grouped), contents(stepwise)
    different = sorted(key for key in one.keys() | two.keys() if one.get(key) != two.get(key))
    assert [(key, one.get(key), two.get(key)) for key in different[:3]] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_one_commit_per_command_gives_the_same_bytes(seed: int):
    """Any mix of commands in one group commit behaves as if applied one by one."""
    chance = Random(seed)
    pair = Pair()
    writer = Writer(pair.oracle.world, chance)
    store = MemoryStore()
    machine = Machine(store)
    for _ in range(25):
        commands = [writer.anything() for _ in range(chance.choice((2, 5, 12)))]
        outcomes = pair.step(commands, writer.advance_ms())
        writer.fresh.clear()
        raw = pair.log[-1]
        assert outcomes == machine.apply_stepwise(len(pair.log), raw, decode_entry(raw))
        compare(pair.store, store)


@given(chance=st.randoms(use_true_random=False), count=st.integers(2, 10))
@SETTINGS
def test_grouping_of_a_random_entry_changes_nothing(chance: Random, count: int):
    """The same, with entries that Hypothesis can shrink to the two commands that clash."""
    writer = Writer(Pair().oracle.world, chance)
    commands: list[Command] = [writer.anything() for _ in range(count)]
    entry = Entry(MACHINE_VERSION, START_MS, commands)
    raw = encode_entry(entry)
    grouped, stepwise = MemoryStore(), MemoryStore()
    one = Machine(grouped).apply(1, raw, entry)
    two = Machine(stepwise).apply_stepwise(1, raw, entry)
    assert one.outcomes == two
    compare(grouped, stepwise)


def test_event_blocks_are_the_same():
    """Sequence numbers stay dense and the events of an entry are one block either way."""
    chance = Random(99)
    pair = Pair()
    writer = Writer(pair.oracle.world, chance)
    for _ in range(30):
        pair.step([writer.anything() for _ in range(4)], writer.advance_ms())
        writer.fresh.clear()
    seq = 0
    for _, block in pair.machine.events(0, 1_000):
        assert block.first_seq == seq + 1
        seq += len(block.events)
    assert seq == pair.machine.seq
    kept = pair.store.scan(space.EVENT, successor(space.EVENT), 1_000)
    assert len(kept) <= len(pair.log)
