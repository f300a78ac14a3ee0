"""The machine against the reference queue, over all commands.

Two ways of asking the same question. Hypothesis searches and shrinks; seeded histories are several
times faster, so they go further. A seed that found something stays in `SEEDS_THAT_FOUND_FAULTS`.
"""

from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from corvo.model.command import Command
from tests.model.harness import Pair
from tests.model.histories import Writer
from tests.model.profiles import IS_LONG, SETTINGS

SEEDS_THAT_FOUND_FAULTS = (61, 75, 104, 131, 172, 217, 240, 487, 1053)
SEEDS = range(2_000) if IS_LONG else range(40)
ENTRIES = 60

# Safety: a Random whose draws Hypothesis records and shrinks, not a source of chance of its own.
CHANCE = st.randoms(use_true_random=False)


class MachineAgainstOracle(RuleBasedStateMachine):
    """Gathers random commands into entries, applies each entry to both, compares everything."""

    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair()
        self.writer = Writer(self.pair.oracle.world, Random(0))
        self.entry: list[Command] = []

    @rule(chance=CHANCE)
    def produce(self, chance: Random) -> None:
        """Enqueue, alone or in a batch."""
        self.write(chance, self.writer.produce)

    @rule(chance=CHANCE)
    def fetch(self, chance: Random) -> None:
        """Ask for work."""
        self.write(chance, self.writer.fetch)

    @rule(chance=CHANCE)
    def work(self, chance: Random) -> None:
        """Ack, fail, release, snooze or heartbeat."""
        self.write(chance, self.writer.work)

    @rule(chance=CHANCE)
    def operate(self, chance: Random) -> None:
        """Change one job by hand."""
        self.write(chance, self.writer.operate)

    @rule(chance=CHANCE)
    def configure(self, chance: Random) -> None:
        """Change a queue or a limit."""
        self.write(chance, self.writer.configure)

    @rule(chance=CHANCE)
    def sweep(self, chance: Random) -> None:
        """Let time do something."""
        self.write(chance, self.writer.sweep)

    @rule(chance=CHANCE)
    def schedule(self, chance: Random) -> None:
        """Change or fire a schedule."""
        self.write(chance, self.writer.schedule)

    @rule(advance_ms=st.sampled_from((0, 1, 100, 1_000, 2_500, 30_000)))
    def commit(self, advance_ms: int) -> None:
        """Apply what was gathered as one entry."""
        self.pair.step(self.entry, advance_ms)
        self.entry = []
        self.writer.fresh.clear()

    def write(self, chance: Random, draw: object) -> None:
        """Add a command; a full entry is applied at once."""
        self.writer.chance = chance
        assert callable(draw)
        self.entry.append(draw())
        if len(self.entry) >= 4:
            self.commit(0)

    def teardown(self) -> None:
        """Apply what is left."""
        if self.entry:
            self.commit(1)


def test_machine_agrees_with_the_reference_queue():
    """Every outcome, record, counter and event is what the plain reference queue says."""
    run_state_machine_as_test(MachineAgainstOracle, settings=SETTINGS)


def play(seed: int, entries: int = ENTRIES) -> Pair:
    """Apply a seeded history to a pair, comparing after every entry."""
    chance = Random(seed)
    pair = Pair()
    writer = Writer(pair.oracle.world, chance)
    for _ in range(entries):
        commands = [writer.anything() for _ in range(chance.choice((1, 1, 2, 3, 8)))]
        pair.step(commands, writer.advance_ms())
        writer.fresh.clear()
    return pair


@pytest.mark.parametrize("seed", [*SEEDS_THAT_FOUND_FAULTS, *SEEDS])
def test_seeded_history_agrees_with_the_reference_queue(seed: int):
    """A long random history leaves machine and reference queue in the same state throughout."""
    play(seed)
