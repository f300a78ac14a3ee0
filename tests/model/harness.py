"""Machine and reference queue side by side: apply to both, compare all that can be seen."""

from collections import Counter
from itertools import pairwise

from corvo.keys import space
from corvo.keys.codec import encode_entry
from corvo.keys.order import successor
from corvo.machine import MACHINE_VERSION, Machine
from corvo.machine.audit import audit
from corvo.model import event as e
from corvo.model import job as j
from corvo.model.command import Command, Entry
from corvo.model.outcome import Outcome
from corvo.model.view import JobView
from corvo.storage.memory import MemoryStore
from tests.factories import START_MS
from tests.model.oracle import Oracle
from tests.model.oracle_dispatch import offer_of
from tests.model.oracle_settle import document
from tests.model.oracle_state import ReferenceJob

EVERYTHING = 1_000_000


class Pair:
    """A machine under judgement and its judge."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.machine = Machine(self.store)
        self.oracle = Oracle()
        self.oracle.begin(0, START_MS)
        self.log: list[bytes] = []
        self.states: dict[bytes, int] = {}

    @property
    def now_ms(self) -> int:
        """The time of the last entry."""
        return self.oracle.world.now_ms

    def step(self, commands: list[Command], advance_ms: int = 0) -> list[Outcome]:
        """Apply an entry to both and compare everything."""
        index = len(self.log) + 1
        now_ms = self.now_ms + advance_ms
        entry = Entry(MACHINE_VERSION, now_ms, commands)
        raw = encode_entry(entry)
        self.log.append(raw)
        before = self.store.copy()
        applied = self.machine.apply(index, raw, entry)
        problems = [f"command {x.ordinal} raised:\n{x.trace}" for x in applied.faults]
        assert not problems, "\n".join(problems)
        events = split_events(before, index, entry, applied.events)
        self.oracle.begin(index, now_ms)
        assert len(applied.outcomes) == len(commands)
        for position, command in enumerate(commands):
            found = self.oracle.apply(command, applied.outcomes[position], events[position])
            problems += [f"command {position} {command!r}:\n    {text}" for text in found]
            if found:
                break
        problems = problems or self.compare()
        problems = problems or self.follow_events(applied.events)
        if problems:
            head = f"entry {index} at +{now_ms - START_MS} ms"
            asked = [f"  {command!r}" for command in commands]
            raise AssertionError("\n".join([head, *problems, "in", *asked]))
        return applied.outcomes

    def compare(self) -> list[str]:
        """Return every difference between machine and reference queue."""
        world, problems = self.oracle.world, list[str]()
        found = self.scan_ids()
        if found != set(world.jobs):
            extra = [x.hex() for x in found - set(world.jobs)]
            missing = [x.hex() for x in set(world.jobs) - found]
            problems.append(f"jobs only in the machine: {extra}, only in the oracle: {missing}")
            return problems
        for job in world.jobs.values():
            if not job.is_doomed:
                view = self.machine.job(world.ns, job.id)
                problems += ["no view"] if view is None else compare_job(job, view)
        problems += self.compare_queues() + self.compare_batches() + self.compare_claimable()
        problems += self.compare_schedules()
        return problems or [f"audit: {text}" for text in audit(self.store)]

    def scan_ids(self) -> set[bytes]:
        """Return the ids of all jobs the machine has."""
        pairs = self.store.scan(space.JOB, successor(space.JOB), EVERYTHING)
        return {space.job_of(key) for key, _ in pairs}

    def compare_queues(self) -> list[str]:
        """Compare switches, counters and totals of every queue."""
        world, problems = self.oracle.world, list[str]()
        views = {view.record.name: view for view in self.machine.queues(world.ns)}
        if set(views) != set(world.queues):
            return [f"queues {sorted(views)}, expected {sorted(world.queues)}"]
        for name, queue in world.queues.items():
            record = views[name].record
            found = (record.paused, record.draining, record.settings, record.counts, record.totals)
            counts = world.counts(name)
            expected = (queue.paused, queue.draining, queue.settings, counts, queue.totals)
            if found != expected:
                problems.append(f"queue {name}: {found}\n    expected {expected}")
            locks = sum(owner_queue == name for owner_queue, _ in world.locks)
            if record.locks != locks:
                problems.append(f"queue {name}: {record.locks} locks, expected {locks}")
        return problems

    def compare_batches(self) -> list[str]:
        """Compare the counts of every batch."""
        world, problems = self.oracle.world, list[str]()
        for batch in world.batches.values():
            view = self.machine.batch(world.ns, batch.id)
            if view is None:
                continue  # a finished batch may be forgotten
            b = view.batch
            found = (b.total, b.pending, b.succeeded, b.failed, b.cancelled, b.finished_ms)
            pending = world.pending_members(batch.id)
            expected = (batch.total, pending, batch.succeeded, batch.failed, batch.cancelled)
            if found != (*expected, batch.finished_ms):
                problems.append(f"batch: {found}, expected {(*expected, batch.finished_ms)}")
        return problems

    def compare_schedules(self) -> list[str]:
        """Compare how far every schedule has come, and in which order they are listed."""
        world, problems = self.oracle.world, list[str]()
        views = self.machine.schedules(world.ns, "", EVERYTHING)
        known = sorted(world.schedules.values(), key=lambda schedule: schedule.spec.name)
        if [view.schedule.id for view in views] != [schedule.id for schedule in known]:
            return [f"schedules {[view.spec.name for view in views]}, expected {known}"]
        for view, s in zip(views, known, strict=True):
            r = view.schedule
            found = (r.next_ms, bool(r.paused_ms), r.revision, r.last_slot_ms, r.last_job)
            found = (*found, r.fired, r.skipped, r.runs, view.spec)
            expected = (s.next_ms, s.is_paused, s.revision, s.decided_ms, s.last_job)
            expected = (*expected, s.fired, s.skipped, s.runs, s.spec)
            if found != expected:
                problems.append(f"schedule {s.spec.name}: {found}\n    expected {expected}")
        return problems

    def compare_claimable(self) -> list[str]:
        """Whatever may be claimed now must be within the bound that parked fetches rely on."""
        problems = list[str]()
        for name in self.oracle.world.queues:
            bound, _ = self.machine.claimable(0, name, self.now_ms)
            if not bound and offer_of(self.oracle.world, name).is_sure:
                problems.append(f"queue {name} has runnable jobs but claimable says none")
        return problems

    def follow_events(self, found: e.EventBlock | None) -> list[str]:
        """Fold the events of an entry into states and compare: whoever watches sees the truth."""
        problems = list[str]()
        block = found or e.EventBlock(0, self.now_ms, [])
        assert block.at_ms == self.now_ms
        for event in block.events:
            due_ms = (event.data or {}).get("due_ms", 0)
            if event.type in (e.RETRYING, e.SNOOZED) and due_ms <= block.at_ms:
                self.states[event.job] = j.PENDING
            elif event.type in STATE_AFTER:
                self.states[event.job] = STATE_AFTER[event.type]
            elif event.type in (e.DELETED, e.PURGED) and event.job:
                self.states.pop(event.job, None)
        world = self.oracle.world
        gone = [job_id.hex() for job_id in self.states if job_id not in world.jobs]
        if gone:
            problems.append(f"removed without an event: {gone}")
        for job in world.jobs.values():
            if not job.is_doomed and self.states.get(job.id) != job.state:
                names = [e.EVENT_NAMES[x.type] for x in block.events if x.job == job.id]
                state = j.STATE_NAMES[job.state]
                problems.append(f"{job.id.hex()} is {state}, its events in this entry: {names}")
        return problems


def split_events(
    before: MemoryStore, index: int, entry: Entry, block: e.EventBlock | None
) -> list[list[e.Event]]:
    """Tell which events belong to which command, by applying the entry cut short.

    Only a fetch that met an expired job makes it matter; the others get the whole block.
    """
    events = [] if block is None else block.events
    count = len(entry.commands)
    if count == 1 or all(event.type != e.EXPIRED for event in events):
        return [events] * count
    ends = [0]
    for length in range(1, count):
        cut = Entry(entry.version, entry.now_ms, entry.commands[:length])
        applied = Machine(before.copy()).apply(index, encode_entry(cut), cut)
        ends.append(0 if applied.events is None else len(applied.events.events))
    ends.append(len(events))
    return [events[start:until] for start, until in pairwise(ends)]


STATE_AFTER = {
    e.ENQUEUED: j.PENDING,
    e.SCHEDULED: j.SCHEDULED,
    e.PROMOTED: j.PENDING,
    e.STARTED: j.ACTIVE,
    e.COMPLETED: j.COMPLETED,
    e.RETRYING: j.RETRYING,
    e.DEAD: j.DEAD,
    e.CANCELLED: j.CANCELLED,
    e.RELEASED: j.PENDING,
    e.SNOOZED: j.SCHEDULED,
    e.RECLAIMED: j.PENDING,
    e.HELD: j.HELD,
    e.APPROVED: j.PENDING,
    e.RETRIED: j.PENDING,
    e.REQUEUED: j.PENDING,
}


def compare_job(job: ReferenceJob, view: JobView) -> list[str]:
    """Compare everything a reader sees of one job."""
    record, rare = view.job, view.job.rare or j.Rare()
    pairs = {
        "state": (j.STATE_NAMES[job.state], j.STATE_NAMES[record.state]),
        "queue": (job.queue, view.queue),
        "tier": (job.tier, record.tier),
        "attempt": (job.attempt, record.attempt),
        "run": (job.run, record.run),
        "max_attempts": (job.max_attempts, record.max_attempts),
        "created_ms": (job.created_ms, record.created_ms),
        "finished_ms": (job.finished_ms, record.finished_ms),
        "checkpoint": (job.checkpoint, view.checkpoint),
        "result": (job.result, view.result),
        "expire_ms": (job.expire_ms, rare.expire_ms),
        "dead_reason": (job.dead_reason, rare.dead_reason),
        "is_cancelling": (bool(job.cancel_ms), bool(rare.cancel_ms)),
        "blocked_by": (Counter(job.waiting), Counter(view.blocked_by)),
        "errors": (job.errors, [(x.attempt, x.run, x.error) for x in view.errors]),
        "payload": (document(job.spec.payload), document(view.spec.payload)),
    }
    if job.state in (j.SCHEDULED, j.RETRYING):
        pairs["due_ms"] = (job.due_ms, record.due_ms)
    if job.state == j.ACTIVE:
        pairs["lease_until_ms"] = (job.lease_until_ms, record.lease_until_ms)
        pairs["token"] = (job.token, record.token)
        pairs["worker"] = (job.worker, record.worker)
    if job.state == j.HELD:
        pairs["hold"] = (
            (job.hold_reason, job.hold_until_ms),
            (rare.hold_reason, rare.hold_until_ms),
        )
    wrong = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    return [f"{job.id.hex()}: {name} {b!r}, expected {a!r}" for name, (a, b) in wrong.items()]
