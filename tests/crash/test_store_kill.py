"""The store without its own log, killed: it reopens at an exact prefix of what was written."""

import os
import random
import subprocess
import sys
from pathlib import Path

from corvo.storage.memory import MemoryStore
from corvo.storage.rocks import RocksStore
from tests.crash.store_writer import APPLIED, batch_at

ROOT = Path(__file__).resolve().parents[2]
KILLS = 6
LAST = b"\xff" * 8


def _write_until_killed(directory: str, seed: int, flushes: int) -> int:
    """Run the writer, kill it after so many flushes, and return what it said was durable."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "crash" / "store_writer.py"), directory, str(seed)],
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    durable = 0
    for _ in range(flushes):
        line = process.stdout.readline()
        assert line, "the writer ended by itself"
        durable = int(line)
    process.kill()
    # What it managed to say before it died counts as well; a torn last line does not.
    rest = process.stdout.read()
    for line in rest[: rest.rfind(b"\n") + 1].splitlines():
        durable = int(line)
    process.stdout.close()
    process.wait()
    return durable


def test_killed_store_reopens_at_an_exact_prefix(tmp_path: Path) -> None:
    """After each kill −9 all families, ranges and the applied index are those of one moment.

    The moment is never before the last flush that returned, and the process goes on from there.
    """
    seed = 20_240_601
    chance = random.Random(seed)
    directory = str(tmp_path / "store")
    expected = MemoryStore()
    replayed = 0
    for _ in range(KILLS):
        durable = _write_until_killed(directory, seed, flushes=chance.randrange(5, 60))
        store = RocksStore(directory, is_read_only=True)
        applied = int(store.get(APPLIED) or b"0")
        assert applied >= durable
        assert applied >= replayed
        while replayed < applied:
            replayed += 1
            expected.write(*batch_at(seed, replayed))
        assert store.scan(b"", LAST, 10_000) == expected.pairs()
        store.close()
    assert replayed > 100
