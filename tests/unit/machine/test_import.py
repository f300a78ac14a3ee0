"""Export and import of records: what a history left comes back as it was, on another server."""

from random import Random

import pytest
from msgspec.structs import replace

from corvo.keys.codec import decode_entry, encode_entry
from corvo.machine import MACHINE_VERSION, Machine
from corvo.machine.audit import audit
from corvo.model import command as c
from corvo.model import job as jb
from corvo.model import outcome as o
from corvo.model.record import BatchImport, JobImport
from corvo.model.record_command import ImportedRecord
from corvo.storage.memory import MemoryStore
from tests.model.harness import Pair
from tests.model.histories import Writer

START_MS = 1_700_000_000_000


def apply(machine: Machine, *commands: c.Command, now_ms: int = 0) -> list[o.Outcome]:
    """Apply commands as one entry, through its encoding."""
    now_ms = max(now_ms, machine.now_ms)
    raw = encode_entry(c.Entry(MACHINE_VERSION, now_ms, list(commands)))
    return machine.apply(machine.index + 1, raw, decode_entry(raw)).outcomes


def export(machine: Machine, ns: int = 0, limit: int = 7) -> list[ImportedRecord]:
    """Everything of a namespace, in the order an import wants."""
    records: list[ImportedRecord] = list(machine.export_queues(ns))
    after = ""
    while found := machine.export_limits(ns, after, limit):
        records += found
        after = found[-1].name
    members: dict[bytes, list[bytes]] = {}
    for is_waiting in (False, True):
        last = b""
        while True:
            jobs, pairs, last = machine.export_jobs(ns, last, limit, is_waiting=is_waiting)
            records += jobs
            for batch, job in pairs:
                members.setdefault(batch, []).append(job)
            if not last:
                break
    last = b""
    while batches := machine.export_batches(ns, last, limit, members):
        records += batches
        last = batches[-1].id
    return records


def make_history(seed: int) -> Pair:
    """A machine with a random history behind it."""
    pair = Pair()
    writer = Writer(pair.oracle.world, Random(seed))
    for _ in range(60):
        pair.step([writer.anything() for _ in range(4)], writer.advance_ms())
        writer.fresh.clear()
    # What was cleared is removed in steps; a job that waits for such a parent is told then.
    pair.step([c.StepOperations(), c.StepOperations()], 0)
    return pair


def settled_copy(record: ImportedRecord) -> ImportedRecord:
    """What a record is after an import: an active job is pending again, its attempt not burnt."""
    if isinstance(record, JobImport) and record.state == jb.ACTIVE:
        attempt = max(0, record.attempt - 1)
        return replace(record, state=jb.PENDING, attempt=attempt)
    return record


@pytest.mark.parametrize("seed", range(12))
def test_an_import_of_an_export_is_the_same_namespace(seed: int):
    """States, attempts, errors, documents, locks, dependencies, batches: all are as they were."""
    pair = make_history(seed)
    records = export(pair.machine)
    assert sum(isinstance(record, JobImport) for record in records) > 5
    store = MemoryStore()
    other = Machine(store)
    for start in range(0, len(records), 13):
        (imported,) = apply(
            other, c.ImportRecords(0, records[start : start + 13]), now_ms=pair.machine.now_ms
        )
        assert isinstance(imported, o.Imported)
        assert imported.refused == []
        assert audit(store) == []
    assert audit(store) == []
    # A cancelled-but-active job ends at the import, and its ending is told: leave those aside.
    asked = {r.spec.id for r in records if isinstance(r, JobImport) and r.cancel_ms}
    if not asked:
        assert export(other) == [settled_copy(record) for record in records]


@pytest.mark.parametrize("seed", range(4))
def test_a_second_import_changes_nothing(seed: int):
    """Every record of the first is refused by the second as already there."""
    pair = make_history(seed)
    records = export(pair.machine)
    store = MemoryStore()
    other = Machine(store)
    apply(other, c.ImportRecords(0, records), now_ms=pair.machine.now_ms)
    before = export(other)
    (again,) = apply(other, c.ImportRecords(0, before))
    assert isinstance(again, o.Imported)
    assert again.taken == 0
    assert {refusal.code for _, refusal in again.refused} == {o.ALREADY_EXISTS}
    assert export(other) == before
    assert audit(store) == []


@pytest.mark.parametrize("seed", range(4))
def test_an_imported_namespace_lives_on(seed: int):
    """Whatever time and workers do to imported jobs, every invariant holds."""
    pair = make_history(100 + seed)
    store = MemoryStore()
    other = Machine(store)
    apply(other, c.ImportRecords(0, export(pair.machine)), now_ms=pair.machine.now_ms)
    writer = Writer(pair.oracle.world, Random(seed))
    writer.jobs = writer.others = 10_000  # ids are the server's to make, and never made twice
    now_ms = other.now_ms
    for _ in range(40):
        now_ms += writer.advance_ms()
        apply(other, *(writer.anything() for _ in range(4)), now_ms=now_ms)
        writer.fresh.clear()
        assert audit(store) == []


def test_the_same_import_gives_the_same_bytes():
    """An import is a command like any other: alone, in steps and on every replica alike."""
    records = export(make_history(3).machine)
    chains: list[bytes] = []
    for _ in range(2):
        machine = Machine(MemoryStore())
        apply(machine, c.ImportRecords(0, records), now_ms=START_MS)
        chains.append(machine.chain)
    assert chains[0] == chains[1]


def make_record(number: int, **fields: object) -> JobImport:
    """A pending job."""
    spec = jb.Spec(bytes(15) + bytes([number]), 0, "q", b"{}")
    base = JobImport(spec, "q", jb.PENDING, 2, START_MS, 3)
    return replace(base, **fields)


def test_a_job_whose_parent_is_not_there_is_refused():
    """It would wait for ever."""
    machine = Machine(MemoryStore())
    record = make_record(2, waiting_for=(bytes(16),))
    (answer,) = apply(machine, c.ImportRecords(0, [record]), now_ms=START_MS)
    assert isinstance(answer, o.Imported)
    assert [(n, r.code) for n, r in answer.refused] == [(0, o.DEPENDENCY_NOT_FOUND)]


def test_a_batch_whose_counts_do_not_add_up_is_refused():
    """Its callback would fire early or never."""
    store = MemoryStore()
    machine = Machine(store)
    batch = BatchImport(b"\x01" * 16, 3, 1, 0, 0, [])
    (answer,) = apply(machine, c.ImportRecords(0, [batch]), now_ms=START_MS)
    assert isinstance(answer, o.Imported)
    assert [r.code for _, r in answer.refused] == [o.VALIDATION_ERROR]
    assert audit(store) == []
