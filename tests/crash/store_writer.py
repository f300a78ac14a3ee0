"""The process that the crash test kills: writes batches until it dies.

    python store_writer.py DIRECTORY SEED

Batch `n` is a pure function of (seed, n), and puts `n` under the key `applied`. After every flush
the process prints the index that was applied before the flush began: from then on it is durable.
"""

import random
import sys
import threading

from corvo.storage.rocks import RocksStore

APPLIED = b"applied"
FAMILIES = 20
Batch = tuple[list[tuple[bytes, bytes | None]], list[tuple[bytes, bytes]]]


def batch_at(seed: int, index: int) -> Batch:
    """Puts and deletions in twenty families, now and then a cleared range, and the index itself."""
    chance = random.Random(seed * 1_000_003 + index)
    writes: list[tuple[bytes, bytes | None]] = []
    for family in range(FAMILIES):
        key = b"%c%03d" % (65 + family, chance.randrange(200))
        writes.append((key, None if chance.random() < 0.2 else b"%d|%d" % (index, family) * 8))
    cleared: list[tuple[bytes, bytes]] = []
    if index % 50 == 0:
        family = 65 + chance.randrange(FAMILIES)
        cleared.append((b"%c050" % family, b"%c100" % family))
    writes.append((APPLIED, b"%d" % index))
    return writes, cleared


def main(directory: str, seed: int) -> None:
    # A small memtable, so that flushes and compactions happen all the time.
    store = RocksStore(directory, memtable_bytes=1 << 17)
    applied = int(store.get(APPLIED) or b"0")
    progress = [applied]

    def flush_forever() -> None:
        while True:
            before = progress[0]
            store.flush()
            print(before, flush=True)  # noqa: T201 - the parent reads it

    threading.Thread(target=flush_forever, daemon=True).start()
    while True:
        applied += 1
        store.write(*batch_at(seed, applied))
        progress[0] = applied


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
