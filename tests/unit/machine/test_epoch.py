"""The name of a history: given once, replaced only by who knows it, and kept by the store."""

from corvo.keys import space
from corvo.keys.codec import decode_meta, encode, encode_entry
from corvo.machine import MACHINE_VERSION, Machine
from corvo.machine.audit import audit
from corvo.model import command as c
from corvo.model import event as e
from corvo.model import outcome as o
from corvo.storage.memory import MemoryStore

FIRST, SECOND = b"\x01" * 16, b"\x02" * 16


def apply(machine: Machine, command: c.Command) -> tuple[o.Outcome, list[e.Event]]:
    """Apply one command in an entry of its own."""
    entry = c.Entry(MACHINE_VERSION, machine.now_ms, [command])
    applied = machine.apply(machine.index + 1, encode_entry(entry), entry)
    return applied.outcomes[0], applied.events.events if applied.events else []


def test_a_new_machine_has_no_name_and_takes_one():
    """Zeros until somebody names it; the name outlives the caches."""
    store = MemoryStore()
    machine = Machine(store)
    assert machine.epoch == bytes(16)
    outcome, events = apply(machine, c.SetEpoch(FIRST))
    assert outcome == o.Swept(1)
    assert [event.type for event in events] == [e.HISTORY_STARTED]
    assert machine.epoch == FIRST
    assert Machine(store).epoch == FIRST
    assert audit(store) == []


def test_a_name_is_replaced_only_by_who_knows_it():
    """Two nodes that both found no name do not rename each other's history."""
    machine = Machine(MemoryStore())
    apply(machine, c.SetEpoch(FIRST))
    outcome, events = apply(machine, c.SetEpoch(SECOND))
    assert isinstance(outcome, o.Rejected)
    assert outcome.code == o.INVALID_STATE
    assert events == []
    assert machine.epoch == FIRST
    assert apply(machine, c.SetEpoch(SECOND, FIRST))[0] == o.Swept(1)
    assert machine.epoch == SECOND


def test_no_name_and_a_short_name_are_refused():
    """Zeros mean that there is none."""
    machine = Machine(MemoryStore())
    for epoch in (bytes(16), b"", b"short", b"\x01" * 17):
        outcome, _ = apply(machine, c.SetEpoch(epoch))
        assert isinstance(outcome, o.Rejected)
        assert outcome.code == o.VALIDATION_ERROR


def test_a_meta_record_from_before_has_no_name():
    """Old bytes decode: the field is the last one and has a default."""
    store = MemoryStore()
    machine = Machine(store)
    apply(machine, c.PromoteJobs())
    raw = store.get(space.META)
    assert raw is not None
    meta = decode_meta(raw)
    old = encode(tuple(getattr(meta, name) for name in meta.__struct_fields__[:-1]))
    store.write([(space.META, old)])
    assert Machine(store).epoch == bytes(16)
    assert Machine(store).index == machine.index
