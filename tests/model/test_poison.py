"""A command that makes the machine raise spoils only itself.

It is already in the log, so every restart and every replica will meet it again: it must be refused
the same way everywhere, leave no trace but an event, and not disturb its neighbours. Faults are
injected into any line of the machine's rules while the chosen command runs, half-done edits
included.
"""

import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest

import corvo.machine
from corvo.errors import StorageError
from corvo.keys.codec import encode_entry
from corvo.machine import MACHINE_VERSION, Machine, digest
from corvo.machine.apply import HANDLERS
from corvo.machine.audit import audit
from corvo.model import bulk as bk
from corvo.model import command as c
from corvo.model import event as e
from corvo.model import job as j
from corvo.model import outcome as o
from corvo.model.record import JobImport, QueueImport
from tests.factories import make_other_id
from tests.model.harness import Pair
from tests.model.histories import Writer
from tests.model.webhooks import WEBHOOK_KINDS, draw_webhook_command

RULES = str(Path(corvo.machine.__file__).parent)
TRIALS_PER_COMMAND = 6
KINDS = c.Command.__args__
Handler = Callable[[Any, Any], o.Outcome]


class Sabotage:
    """Raises in the n-th line that the rules execute on behalf of one command."""

    def __init__(self, victim: c.Command, line: int) -> None:
        self.victim = victim
        self.line = line
        self.lines_seen = 0
        self.depth = 0

    def trace(self, frame: FrameType, _event: str, _: Any) -> Any:
        """Follow every call into the rules."""
        if not frame.f_code.co_filename.startswith(RULES):
            return None
        if self.depth or frame.f_locals.get("command") is self.victim:
            self.depth += 1
            return self.trace_lines
        return None

    def trace_lines(self, _frame: FrameType, event: str, _: Any) -> Any:
        """Count lines while the victim runs; raise at the chosen one."""
        if event == "return":
            self.depth -= 1
        elif event == "line":
            self.lines_seen += 1
            if self.lines_seen == self.line:
                raise RuntimeError("sabotage")
        return self.trace_lines


@contextmanager
def sabotaged(victim: c.Command, line: int) -> Iterator[Sabotage]:
    """Inject a fault into the given line of the given command."""
    sabotage = Sabotage(victim, line)
    before = sys.gettrace()
    sys.settrace(sabotage.trace)
    try:
        yield sabotage
    finally:
        sys.settrace(before)


def with_kind(writer: Writer, kind: type[Any]) -> c.Command:
    """Draw a command of the given kind."""
    if kind is c.TrimEvents:
        return c.TrimEvents(keep_ms=1, keep_count=1)
    if kind is c.UpgradeMachine:
        return c.UpgradeMachine(MACHINE_VERSION)
    if kind is c.SetEpoch:
        return c.SetEpoch(b"\x07" * 16)
    if kind in WEBHOOK_KINDS:
        return draw_webhook_command(writer.chance, kind)
    if kind is c.ImportRecords:
        job = JobImport(writer.spec(), writer.queue(), j.PENDING, 2, 1, 3)
        return c.ImportRecords(0, [QueueImport("imported", 1), job])
    if kind is c.ClearQueue or kind is c.DeleteQueue:
        return kind(0, writer.queue(), make_other_id(10**6 + writer.others))
    if kind is c.StartBulk:
        names = [writer.some_job() for _ in range(4)]
        states = bytes([bk.ANY_STATE_BYTE]) * len(names)
        task = bk.BulkTask(writer.chance.choice((bk.DELETE, bk.CANCEL, bk.RETRY, bk.PRIORITY)))
        return c.StartBulk(0, make_other_id(10**6 + 1), task, b"".join(names), states, True)
    if kind is c.FillBulk:
        return c.FillBulk(0, make_other_id(10**6 + 1), 0)
    if kind in (c.StepBulk, c.AbortBulk, c.UndoBulk):
        return kind(0, make_other_id(10**6 + 1))
    for _ in range(10_000):
        found = writer.anything()
        if type(found) is kind:
            return found
    raise AssertionError(kind)


def make_pair(seed: int) -> tuple[Pair, Writer]:
    """Return a machine with some history, so that commands find something to do."""
    pair = Pair()
    writer = Writer(pair.oracle.world, Random(seed))
    for _ in range(20):
        pair.step([writer.anything() for _ in range(4)], writer.advance_ms())
        writer.fresh.clear()
    return pair, writer


def clone(pair: Pair) -> Pair:
    """Return a pair in the same state that may be spoilt."""
    other = Pair()
    other.store = pair.store.copy()
    other.machine = Machine(other.store)
    other.oracle = copy.deepcopy(pair.oracle)
    other.log, other.states = list(pair.log), dict(pair.states)
    return other


def check_poisoned(pair: Pair, commands: list[c.Command], position: int, line: int) -> bool:
    """Poison one command of an entry; return False when it has fewer lines than that."""
    trial, twin = clone(pair), clone(pair)
    index, now_ms = len(pair.log) + 1, pair.now_ms + 1_000
    entry = c.Entry(MACHINE_VERSION, now_ms, commands)
    raw = encode_entry(entry)
    with sabotaged(commands[position], line) as sabotage:
        applied = trial.machine.apply(index, raw, entry)
    if sabotage.lines_seen < line:
        return False
    refused = applied.outcomes[position]
    assert isinstance(refused, o.Rejected)
    assert refused.code == o.INTERNAL_ERROR
    assert [fault.ordinal for fault in applied.faults] == [position]
    assert "sabotage" in applied.faults[0].trace
    assert applied.events is not None
    events = applied.events.events
    assert sum(event.type == e.MACHINE_FAULT for event in events) == 1
    trial.oracle.begin(index, now_ms)
    problems: list[str] = []
    for other, command in enumerate(commands):
        if other != position:
            problems += trial.oracle.apply(command, applied.outcomes[other], events)
    assert (problems or trial.compare()) == []
    with sabotaged(commands[position], line):
        twin.machine.apply(index, raw, entry)
    assert digest(trial.store) == digest(twin.store)
    assert trial.machine.chain == twin.machine.chain
    return True


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_fault_in_any_line_of_a_command_spoils_only_that_command(kind: type[Any]):
    """INTERNAL_ERROR for the one, the right answer for the others, one state on every replica."""
    seed = KINDS.index(kind)
    pair, writer = make_pair(seed)
    chance = Random(seed)
    caught = 0
    for _ in range(TRIALS_PER_COMMAND):
        commands = [writer.anything() for _ in range(2)]
        commands.insert(1, with_kind(writer, kind))
        line = chance.choice((1, 2, 3, 5, 8, 13, 21, 40, 80, 150))
        while not check_poisoned(pair, commands, 1, line):
            line //= 2
        caught += 1
        writer.fresh.clear()
    assert caught == TRIALS_PER_COMMAND


def test_several_poisoned_commands_in_one_entry_are_all_refused(monkeypatch: pytest.MonkeyPatch):
    """One fault does not hide another: the entry is applied again without each of them."""
    pair, writer = make_pair(77)
    commands = [writer.produce() for _ in range(4)]
    victims = (commands[0], commands[2])
    for kind in (c.EnqueueJob, c.EnqueueBatch):
        monkeypatch.setitem(HANDLERS, kind, explode_after(HANDLERS[kind], victims))
    entry = c.Entry(MACHINE_VERSION, pair.now_ms, commands)
    applied = pair.machine.apply(len(pair.log) + 1, encode_entry(entry), entry)
    assert [fault.ordinal for fault in applied.faults] == [0, 2]
    codes = [getattr(outcome, "code", "") for outcome in applied.outcomes]
    assert [code == o.INTERNAL_ERROR for code in codes] == [True, False, True, False]
    assert audit(pair.store) == []


def explode_after(handler: Handler, victims: tuple[c.Command, ...]) -> Handler:
    """Do all the work of a command, then fail: the latest moment there is."""

    def explode(state: Any, command: Any) -> o.Outcome:
        outcome = handler(state, command)
        if command in victims:
            raise RuntimeError("sabotage")
        return outcome

    return explode


def test_a_failing_store_is_not_a_poisoned_command():
    """When the disk fails the process must stop; answering INTERNAL_ERROR would diverge."""
    pair, writer = make_pair(78)
    pair.store.close()
    entry = c.Entry(MACHINE_VERSION, pair.now_ms, [writer.produce()])
    with pytest.raises(StorageError):
        pair.machine.apply(len(pair.log) + 1, encode_entry(entry), entry)
