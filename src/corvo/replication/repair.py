"""The only code that changes a log on purpose: cutting a torn tail, setting damaged files aside.

Nothing here deletes a byte that was ever a record. A file that leaves the log keeps its bytes under
the suffix `.broken`, and every step is synced before the next, so an interrupted repair is simply
done again at the next start.
"""

from corvo.replication.disk import Disk, write_all
from corvo.replication.recovery import Cut, Walk
from corvo.replication.segment import BROKEN_SUFFIX, WINDOW_BYTES, Window


def apply_cut(disk: Disk, directory: str, walk: Walk) -> Cut:
    """Cut the log at the end of its last whole batch; return the cut with the name of the copy."""
    assert walk.cut is not None
    set_aside(disk, directory, [each.name for each in walk.segments[walk.keep_count :]])
    kept = walk.segments[walk.keep_count - 1]
    assert kept.header is not None
    path = f"{directory}/{kept.name}"
    copy_name = copy_broken(disk, directory, kept.name, walk.end_offset)
    handle = disk.open(path)
    try:
        disk.zero_fill(handle, walk.end_offset, kept.header.segment_bytes)
        disk.fsync(handle)
    finally:
        disk.close(handle)
    return Cut(kept.name, walk.end_offset, walk.cut.next_index, walk.cut.reason, copy_name)


def set_aside(disk: Disk, directory: str, names: list[str]) -> None:
    """Take files out of the log by renaming them; a file of nothing but zeros is removed."""
    for name in names:
        path = f"{directory}/{name}"
        handle = disk.open(path)
        try:
            is_blank = Window(disk, handle).last_nonzero(0) == 0
        finally:
            disk.close(handle)
        if is_blank:
            disk.unlink(path)
        else:
            disk.rename(path, f"{directory}/{_free_name(disk, directory, name)}")
    if names:
        sync_directory(disk, directory)


def copy_broken(disk: Disk, directory: str, name: str, cut_offset: int) -> str:
    """Copy a segment up to its last byte that is not zero; return "" if the cut loses nothing."""
    source = disk.open(f"{directory}/{name}")
    try:
        window = Window(disk, source)
        end = window.last_nonzero(cut_offset)
        if end == cut_offset:
            return ""
        copy_name = _free_name(disk, directory, name)
        target = disk.create(f"{directory}/{copy_name}")
        try:
            for start in range(0, end, WINDOW_BYTES):
                write_all(disk, target, window.read(start, min(WINDOW_BYTES, end - start)), start)
            disk.fsync(target)
        finally:
            disk.close(target)
    finally:
        disk.close(source)
    sync_directory(disk, directory)
    return copy_name


def sync_directory(disk: Disk, directory: str) -> None:
    """Make the names in the directory durable."""
    handle = disk.open_directory(directory)
    try:
        disk.fsync(handle)
    finally:
        disk.close(handle)


def _free_name(disk: Disk, directory: str, name: str) -> str:
    names = set(disk.list_names(directory))
    candidate = name + BROKEN_SUFFIX
    number = 1
    while candidate in names:
        candidate = f"{name}{BROKEN_SUFFIX}.{number}"
        number += 1
    return candidate
