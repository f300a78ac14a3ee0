"""Reading entries back from an open log, in order, leaving out what later records replaced."""

from bisect import bisect_right
from collections.abc import Iterator

from corvo.replication.disk import Disk, storage_error
from corvo.replication.record import Kind, segment_mark
from corvo.replication.recovery import Damage
from corvo.replication.segment import BatchReader, Entry, Window
from corvo.replication.wal import Wal


def replay_entries(disk: Disk, directory: str, wal: Wal, after_index: int) -> Iterator[Entry]:
    """Yield the live NORMAL and CONF entries with an index above `after_index`.

    Cost: about 5 µs an entry. Everything is verified again; bytes that changed since the log was
    opened raise `CorruptionError`.
    """
    segments = wal.segments
    if after_index + 1 < wal.first_index:
        why = f"the log begins at entry {wal.first_index}, entry {after_index + 1} is gone"
        Damage(segments[0].name, 0, after_index + 1, why).refuse()
    final_record, final_index = wal.sequence - 1, wal.last_index
    start = 0
    for position, segment in enumerate(segments):
        if segment.header.first_index <= after_index + 1:
            start = position
    overwrites = list(wal.overwrites)
    expected = after_index + 1
    for segment in segments[start:]:
        header = segment.header
        try:
            handle = disk.open(f"{directory}/{segment.name}")
        except OSError as error:
            raise storage_error("reading the log failed", error) from error
        try:
            reader = BatchReader(
                Window(disk, handle),
                mark=segment_mark(header.identity, header.sequence),
                group=header.identity.group,
                sequence=header.first_record,
                chain=header.previous_chain,
            )
            for batch in reader.batches():
                for entry in batch:
                    envelope = entry.envelope
                    if envelope.index < expected or envelope.sequence > final_record:
                        continue
                    if envelope.kind not in (Kind.NORMAL, Kind.CONF):
                        continue
                    if overwrites and _is_replaced(overwrites, envelope.sequence, envelope.index):
                        continue
                    assert envelope.index == expected, "live entries are contiguous"
                    expected += 1
                    yield entry
        finally:
            disk.close(handle)
    if expected <= final_index:
        name = segments[-1].name
        Damage(name, 0, expected, "the log changed since it was opened").refuse()


def _is_replaced(overwrites: list[tuple[int, int]], sequence: int, index: int) -> bool:
    later = bisect_right(overwrites, (sequence, 1 << 62))
    return any(first <= index for _, first in overwrites[later:])
