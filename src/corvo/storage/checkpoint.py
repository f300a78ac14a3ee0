"""A copy of the store that is either whole and on disk, or not there.

    store.checkpoint(DIRECTORY.partial)     files, some of them hard links
    fsync of every file and folder          the copy is on disk
    rename to DIRECTORY                     the copy has its name
    fsync of the parent folder              the name is on disk

A crash at any point leaves either the whole copy under its name, or a `.partial` folder that
`remove_partial` clears away at the next start.
"""

import os
import shutil
from pathlib import Path
from typing import Protocol

from corvo.errors import StorageError

PARTIAL_SUFFIX = ".partial"


class Source(Protocol):
    """What can be copied: any store."""

    def checkpoint(self, directory: str) -> None: ...


def save_checkpoint(source: Source, directory: str) -> None:
    """Copy the store to a directory that must not exist yet. Blocks; durable when it returns."""
    target = Path(directory)
    partial = target.with_name(target.name + PARTIAL_SUFFIX)
    if target.exists():
        raise StorageError(f"{directory} exists already", hint="choose another directory")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if partial.exists():
            shutil.rmtree(partial)
        source.checkpoint(str(partial))
        sync_tree(partial)
        partial.rename(target)
        sync_path(target.parent)
    except OSError as failure:
        raise StorageError(f"cannot copy the store to {directory}: {failure}") from failure


def remove_partial(parent: str) -> list[str]:
    """Clear away what a crash during a copy left in the folder; returns the names removed."""
    folder = Path(parent)
    if not folder.exists():
        return []
    try:
        found = sorted(path for path in folder.iterdir() if path.name.endswith(PARTIAL_SUFFIX))
        for path in found:
            shutil.rmtree(path)
    except OSError as failure:
        raise StorageError(f"cannot clear {parent}: {failure}") from failure
    return [path.name for path in found]


def sync_tree(directory: Path) -> None:
    """Bring every file and folder below the directory, and itself, to disk."""
    for path in sorted(directory.rglob("*"), reverse=True):
        sync_path(path)
    sync_path(directory)


def sync_path(path: Path) -> None:
    """Bring one file or one folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
