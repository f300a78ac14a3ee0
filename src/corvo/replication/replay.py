"""Reading entries back from an open log, in order, leaving out what later records replaced."""

from bisect import bisect_right
from collections.abc import Iterator

from corvo.replication.disk import Disk, storage_error
from corvo.replication.record import Kind, segment_mark
from corvo.replication.recovery import Damage
from corvo.replication.segment import BatchReader, Entry, Segment, Window
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
    overwrites = list(wal.overwrites)
    expected = after_index + 1
    for entry in _records(disk, directory, _segments_from(segments, expected)):
        envelope = entry.envelope
        if envelope.index < expected or envelope.kind not in (Kind.NORMAL, Kind.CONF):
            continue
        if envelope.sequence > final_record:
            break
        if overwrites and _is_replaced(overwrites, envelope.sequence, envelope.index):
            continue
        if envelope.index != expected:
            break
        expected += 1
        yield entry
    if expected <= final_index:
        name = segments[-1].name
        Damage(name, 0, expected, "the log changed since it was opened").refuse()


def _segments_from(segments: list[Segment], index: int) -> list[Segment]:
    # The last segment that was begun at or below the index: what came before it was either below
    # the index already or replaced since.
    start = 0
    for position, segment in enumerate(segments):
        if segment.header.first_index <= index:
            start = position
    return segments[start:]


def _records(disk: Disk, directory: str, segments: list[Segment]) -> Iterator[Entry]:
    try:
        for segment in segments:
            header = segment.header
            handle = disk.open(f"{directory}/{segment.name}")
            try:
                reader = BatchReader(
                    Window(disk, handle),
                    mark=segment_mark(header.identity, header.sequence),
                    group=header.identity.group,
                    sequence=header.first_record,
                    chain=header.previous_chain,
                )
                for batch in reader.batches():
                    yield from batch
            finally:
                disk.close(handle)
    except OSError as error:
        raise storage_error("reading the log failed", error) from error


def _is_replaced(overwrites: list[tuple[int, int]], sequence: int, index: int) -> bool:
    later = bisect_right(overwrites, (sequence, 1 << 62))
    return any(first <= index for _, first in overwrites[later:])
