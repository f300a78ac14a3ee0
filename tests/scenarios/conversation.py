"""Holds a conversation with a machine and writes down what it says."""

from corvo.keys.codec import decode_entry, encode_entry
from corvo.machine import MACHINE_VERSION, Machine, digest
from corvo.machine.audit import audit
from corvo.model.command import Entry
from corvo.storage.memory import MemoryStore
from tests.factories import START_MS
from tests.scenarios.grammar import Reader, parse_duration
from tests.scenarios.rendering import Renderer


class Conversation:
    """One machine, one clock, and the names a scenario gives to things."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.machine = Machine(self.store)
        self.now_ms = START_MS
        self.reader = Reader()
        self.renderer = Renderer(self.reader)
        self.log: list[bytes] = []
        self.said: list[str] = []

    def hold(self, text: str) -> str:
        """Go through a scenario and return it with the answers of the machine."""
        asked: list[str] = []
        for line in [*text.splitlines(), ""]:
            if asked and not line.startswith(">"):
                self.commit(asked)
                asked = []
            if line.startswith("> "):
                asked.append(line[2:])
                self.said.append(line)
            elif line.startswith("+ "):
                self.now_ms += parse_duration(line[2:].strip())
                self.said.append(line)
            elif line.startswith("? "):
                self.said += [line, *self.look(*line[2:].split())]
            elif not line.strip() or line.startswith("#"):
                self.said.append(line)
        self.replay()
        return "\n".join(self.said).rstrip("\n") + "\n"

    def commit(self, asked: list[str]) -> None:
        """Apply the commands as one entry; write down outcomes and events."""
        index = len(self.log) + 1
        commands = [self.reader.command(line, self.now_ms) for line in asked]
        entry = Entry(MACHINE_VERSION, self.now_ms, commands)
        raw = encode_entry(entry)
        self.log.append(raw)
        applied = self.machine.apply(index, raw, entry)
        assert applied.faults == []
        self.said += [self.renderer.outcome(outcome) for outcome in applied.outcomes]
        if applied.events is not None:
            self.said += [self.renderer.event(event) for event in applied.events.events]
        assert audit(self.store) == []

    def look(self, what: str, name: str) -> list[str]:
        """Read the state a scenario asks about."""
        read = self.machine
        if what == "job":
            view = read.job(0, self.reader.job(name))
            return ["no such job"] if view is None else self.renderer.job(view)
        if what == "payload":
            view = read.job(0, self.reader.job(name))
            assert view is not None
            return [self.renderer.words(view.spec.payload.decode())]
        if what == "queue":
            queue = read.queue(0, name)
            return ["no such queue"] if queue is None else self.renderer.queue(queue)
        if what == "batch":
            batch = read.batch(0, self.reader.other(name))
            return ["no such batch"] if batch is None else self.renderer.batch(batch)
        assert what == "why", what
        why = read.why(0, self.reader.job(name), self.now_ms)
        return ["no such job"] if why is None else self.renderer.why(why)

    def replay(self) -> None:
        """Apply the log again, from its bytes; the state must be the same."""
        store = MemoryStore()
        machine = Machine(store)
        for index, raw in enumerate(self.log, start=1):
            machine.apply(index, raw, decode_entry(raw))
        assert digest(store) == digest(self.store)
