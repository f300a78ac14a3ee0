"""One log, one state: whoever applies it, under whichever hash seed, from the start or half-way."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from corvo.keys.codec import decode_entry
from corvo.machine import Machine, digest
from corvo.storage.memory import MemoryStore
from tests.model.harness import Pair
from tests.model.histories import Writer

ROOT = Path(__file__).parents[2]
SEEDS = (3, 11)
ENTRIES = 150


def write_log(seed: int, entries: int = ENTRIES) -> list[bytes]:
    """Return a random log; the oracle follows only so that commands name things that exist."""
    chance = Random(seed)
    pair = Pair()
    writer = Writer(pair.oracle.world, chance)
    for _ in range(entries):
        commands = [writer.anything() for _ in range(chance.choice((1, 2, 3, 8)))]
        pair.step(commands, writer.advance_ms())
        writer.fresh.clear()
    return pair.log


def replay(log: list[bytes], store: MemoryStore, first: int = 1) -> Machine:
    """Apply a log from its bytes, starting with entry `first`."""
    machine = Machine(store)
    for index in range(first, len(log) + 1):
        raw = log[index - 1]
        machine.apply(index, raw, decode_entry(raw))
    return machine


def fingerprint(log: list[bytes]) -> tuple[bytes, bytes]:
    """Return digest of the state and chain of effects after a log."""
    store = MemoryStore()
    machine = replay(log, store)
    return digest(store), machine.chain


@pytest.mark.parametrize("seed", SEEDS)
def test_replaying_a_log_twice_gives_the_same_state(seed: int):
    """Neither state nor hash chain depends on anything but the log."""
    log = write_log(seed)
    assert fingerprint(log) == fingerprint(log)


@pytest.mark.parametrize("seed", SEEDS)
def test_replay_from_a_copy_taken_midway_gives_the_same_state(seed: int):
    """A snapshot and the log after it are as good as the whole log, wherever it was taken."""
    log = write_log(seed)
    expected = fingerprint(log)
    store = MemoryStore()
    machine = Machine(store)
    for index, raw in enumerate(log, start=1):
        machine.apply(index, raw, decode_entry(raw))
        if index % 30 == 0:
            copy = store.copy()
            resumed = replay(log, copy, index + 1)
            assert expected == (digest(copy), resumed.chain)


@pytest.mark.parametrize("seed", SEEDS)
def test_restart_after_every_entry_changes_nothing(seed: int):
    """Caches are only caches: a machine opened anew for each entry ends in the same state."""
    log = write_log(seed, 60)
    store = MemoryStore()
    machine = Machine(store)
    for index, raw in enumerate(log, start=1):
        machine = Machine(store)
        assert machine.index == index - 1
        machine.apply(index, raw, decode_entry(raw))
    assert fingerprint(log) == (digest(store), machine.chain)


def test_hash_seed_of_the_interpreter_changes_nothing(tmp_path: Path):
    """Nothing iterates over a set or over hash order: two seeds, one digest."""
    log = write_log(5)
    path = tmp_path / "log"
    path.write_text("\n".join(raw.hex() for raw in log))
    program = (
        "import sys; from pathlib import Path; "
        "from tests.model.test_determinism import fingerprint; "
        "log = [bytes.fromhex(x) for x in Path(sys.argv[1]).read_text().split()]; "
        "print(*(part.hex() for part in fingerprint(log)))"
    )
    answers = {" ".join(part.hex() for part in fingerprint(log))}
    for seed in ("0", "1", "4242"):
        environment = os.environ | {
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
        }
        finished = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        answers.add(finished.stdout.strip())
    assert len(answers) == 1
