"""Invariants of bulk operations and of what is kept to undo them."""

from collections import Counter

from corvo.keys import codec, space
from corvo.keys.order import unpack_u16, unpack_u32
from corvo.machine.picture import Picture, pairs
from corvo.model import bulk as bk
from corvo.model.bulk import Bulk


def _all(picture: Picture) -> dict[bytes, Bulk]:
    found = (codec.decode_bulk(value) for _, value in pairs(picture.store, space.BULK))
    return {bulk.id: bulk for bulk in found}


def bulks(picture: Picture) -> list[str]:
    """What was processed adds up, and exactly the targets behind the cursor are written down."""
    listed: Counter[bytes] = Counter()
    numbers: dict[bytes, list[int]] = {}
    for key, value in pairs(picture.store, space.BULK_CHUNK):
        chunk = codec.decode_bulk_chunk(value)
        listed[key[1:17]] += len(chunk.states)
        numbers.setdefault(key[1:17], []).append(unpack_u32(key, 17)[0])
    found: list[str] = []
    for bulk in _all(picture).values():
        name = f"bulk operation {bulk.id.hex()}"
        if bulk.processed != bulk.affected + bulk.errors + sum(bulk.skipped.values()):
            found.append(f"{name} processed {bulk.processed}, which is not the sum of its parts")
        is_open = bulk.status in (bk.COLLECTING, bk.RUNNING) and bulk.task.action != bk.CLEAR
        expected = list(range(bulk.chunk, bulk.chunks)) if is_open else []
        if numbers.pop(bulk.id, []) != expected:
            found.append(f"{name} has chunks other than {bulk.chunk} to {bulk.chunks}")
        left = bulk.total - bulk.processed + bulk.offset
        if is_open and listed[bulk.id] != left:
            found.append(f"{name} lists {listed[bulk.id]} jobs and has {left} to go")
        if bool(bulk.finished_ms) == (bulk.status in (bk.COLLECTING, bk.RUNNING)):
            found.append(f"{name} is {bk.STATUS_NAMES[bulk.status]} and finished, or neither")
    found += [f"chunks of an unknown bulk operation {key.hex()}" for key in numbers]
    return found


def tombstones(picture: Picture) -> list[str]:
    """Each operation has the tombstones it says, and a removed job has none while it exists."""
    known = _all(picture)
    counts: Counter[bytes] = Counter()
    found: list[str] = []
    for key, value in pairs(picture.store, space.TOMBSTONE):
        counts[key[1:17]] += 1
        tombstone = codec.decode_tombstone(value)
        if not tombstone.mark and tombstone.job.id in picture.jobs:
            found.append(f"job {tombstone.job.id.hex()} exists and is buried")
    for bulk in known.values():
        if bulk.tombstones != counts.pop(bulk.id, 0):
            found.append(f"bulk operation {bulk.id.hex()} has not its {bulk.tombstones} tombstones")
        if bulk.tombstones and bulk.finished_ms and not bulk.undo_until_ms:
            found.append(f"tombstones of bulk operation {bulk.id.hex()} are kept for ever")
    found += [f"tombstones of an unknown bulk operation {key.hex()}" for key in counts]
    return found


def cleared_spaces(picture: Picture) -> list[str]:
    """A space whose clearing can be undone is still being cleared, by an operation that exists."""
    known = _all(picture)
    at_work = {
        (operation.ns, operation.space)
        for _, value in pairs(picture.store, space.OPERATION)
        for operation in (codec.decode_operation(value),)
    }
    found: list[str] = []
    for key, value in pairs(picture.store, space.CLEARED_SPACE):
        where = unpack_u16(key, 1)[0], unpack_u32(key, 3)[0]
        if value not in known or where not in at_work:
            found.append(f"space {where} is said to be cleared by {value.hex()}")
    return found
