"""Random histories with bulk operations in them, drawn from what a machine holds.

The reference queue knows nothing of operations, so the writer here looks into the store for jobs
that exist. What it writes is applied to one machine; the tests compare that with others.
"""

from random import Random

from corvo.keys import codec, space
from corvo.keys.codec import encode_entry
from corvo.keys.order import successor
from corvo.machine import MACHINE_VERSION, Machine
from corvo.machine.apply import Applied
from corvo.machine.audit import audit
from corvo.model import bulk as bk
from corvo.model import command as c
from corvo.model import job as j
from corvo.model.outcome import Rejected
from corvo.storage.memory import MemoryStore
from tests.factories import START_MS, make_job_id
from tests.model.histories import Writer
from tests.model.oracle_state import World

EVERYTHING = 1_000_000
UNDO_MS = 40_000


class Rig:
    """One machine over a memory store, and the log that led there."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.machine = Machine(self.store)
        self.log: list[bytes] = []
        self.now_ms = START_MS

    def step(self, commands: list[c.Command], advance_ms: int = 0) -> Applied:
        """Apply an entry; nothing may fault, and every invariant holds afterwards."""
        self.now_ms += advance_ms
        entry = c.Entry(MACHINE_VERSION, self.now_ms, commands)
        raw = encode_entry(entry)
        self.log.append(raw)
        applied = self.machine.apply(len(self.log), raw, entry)
        assert [fault.trace for fault in applied.faults] == []
        problems = audit(self.store)
        assert problems == [], (problems, commands)
        return applied

    def jobs(self) -> dict[bytes, j.Job]:
        """Every job record, doomed or not."""
        pairs = self.store.scan(space.JOB, successor(space.JOB), EVERYTHING)
        return {key[3:]: codec.decode_job(value) for key, value in pairs}

    def bulk(self, bulk_id: bytes) -> bk.Bulk:
        """Read an operation that exists."""
        found = self.machine.bulk(0, bulk_id)
        assert found is not None
        return found

    def finish(self, bulk_id: bytes, limit: int = 3) -> bk.Bulk:
        """Take steps until an operation has nothing left to do."""
        while (found := self.bulk(bulk_id)).status in bk.UNFINISHED:
            command: c.Command = c.StepBulk(0, bulk_id, limit)
            if found.task.action == bk.CLEAR and found.status == bk.RUNNING:
                command = c.StepOperations(limit)
            (answer,) = self.step([command]).outcomes
            assert not isinstance(answer, Rejected), answer
        return found


class BulkWriter(Writer):
    """Draws commands, bulk operations among them, for a rig."""

    def __init__(self, rig: Rig, chance: Random) -> None:
        super().__init__(World(0), chance)
        self.rig = rig
        self.bulks: list[bytes] = []

    def some_job(self, *states: int) -> bytes:
        """Name a job of the machine, mostly one in one of the given states."""
        if self.fresh and self.maybe(15):
            return self.chance.choice(self.fresh)
        known = self.rig.jobs()
        fitting = [job.id for job in known.values() if job.state in states] if states else []
        if fitting and self.maybe(85):
            return self.chance.choice(fitting)
        return self.chance.choice(sorted(known)) if known else make_job_id(10**6)

    def token(self, job_id: bytes) -> int:
        """Return the token of a job's last lease, or none."""
        job = self.rig.jobs().get(job_id)
        return 0 if job is None or self.maybe(25) else job.token

    def task(self) -> bk.BulkTask:
        """Draw what is done to each job."""
        return bk.BulkTask(
            self.chance.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8)),
            self.queue(),
            self.maybe(30),
            not self.maybe(30),
            self.chance.randrange(3),
            "because",
            self.chance.choice((0, 2_000)),
            self.chance.randrange(3),
            "ann",
        )

    def targets(self, most: int = 12) -> tuple[bytes, bytes]:
        """Draw jobs with the state each is in, with any, or seldom with a wrong one."""
        known = self.rig.jobs()
        names = [self.some_job() for _ in range(self.chance.randint(0, most))]
        states: list[int] = []
        for name in names:
            state = known[name].state if name in known else j.PENDING
            choice = self.chance.randrange(10)
            states.append(state if choice < 5 else bk.ANY_STATE_BYTE if choice < 9 else j.DEAD)
        return b"".join(names), bytes(states)

    def start(self, task: bk.BulkTask | None = None) -> c.StartBulk:
        """Draw the beginning of an operation."""
        bulk_id = self.other_id()
        self.bulks.append(bulk_id)
        return c.StartBulk(
            0,
            bulk_id,
            task or self.task(),
            *self.targets(),
            is_sealed=self.maybe(60),
            unknown=self.chance.choice((0, 0, 2)),
            undo_ms=self.chance.choice((0, UNDO_MS, UNDO_MS)),
        )

    def handle(self) -> c.Command:
        """Draw something about an operation that exists, or seldom does not."""
        if not self.bulks:
            return self.start()
        bulk_id = self.chance.choice(self.bulks[-6:])
        bulk = self.rig.machine.bulk(0, bulk_id)
        kind = self.chance.randrange(10)
        if kind < 3:
            return c.StepBulk(0, bulk_id, self.chance.choice((1, 3, 100)), self.maybe(10))
        if kind < 5:
            number = bulk.chunks if bulk is not None and self.maybe(80) else 0
            return c.FillBulk(0, bulk_id, number, *self.targets(), self.maybe(60))
        if kind < 6:
            return c.AbortBulk(0, bulk_id, self.chance.choice(("", "no")))
        return c.UndoBulk(0, bulk_id)

    def anything(self) -> c.Command:
        """Draw any command."""
        self.world.now_ms = self.rig.now_ms
        kind = self.chance.randrange(100)
        if kind < 10:
            return self.start()
        if kind < 25:
            return self.handle()
        if kind < 29:
            bulk_id = self.other_id()
            self.bulks.append(bulk_id)
            return c.ClearQueue(0, self.queue(), bulk_id, UNDO_MS)
        if kind < 35:
            return c.StepOperations(self.chance.choice((1, 2, 500)))
        return super().anything()
