"""The disk port: the few operations the log needs, and the adapter for real files.

A handle is a small integer. For `RealDisk` it is the file descriptor itself, so that the hot path
costs no wrapper and a sync can be given to the kernel directly. Every operation raises `OSError`
on failure; `storage_error` turns one into the coded exception that leaves this package.
"""

import errno
import fcntl
import os
from typing import Protocol

from corvo.errors import StorageError

ZERO_CHUNK = bytes(1 << 20)
LOCK_NAME = "LOCK"


class DiskFullError(StorageError):
    """The disk has no room for the next log segment; nothing was written."""

    code = "DISK_FULL"


class DirectoryLockedError(StorageError):
    """Another process has the data directory open."""

    code = "DIRECTORY_LOCKED"


class Disk(Protocol):
    """What a log needs of a disk. Paths are plain strings, joined with a slash."""

    def make_directory(self, path: str) -> None:
        """Create the directory and its parents, durably; an existing one is fine."""
        ...

    def list_names(self, path: str) -> list[str]:
        """Return the names in the directory, sorted."""
        ...

    def lock(self, path: str) -> int:
        """Take the lock file or raise `DirectoryLockedError`; closing the handle gives it back."""
        ...

    def create(self, path: str) -> int:
        """Create a file for reading and writing; it must not exist."""
        ...

    def open(self, path: str) -> int:
        """Open an existing file for reading and writing."""
        ...

    def open_directory(self, path: str) -> int:
        """Open a directory, so that it can be given to `fsync`."""
        ...

    def close(self, handle: int) -> None:
        """Close a handle; says nothing about durability."""
        ...

    def pread(self, handle: int, size: int, offset: int, /) -> bytes:
        """Read at most `size` bytes; fewer at the end of the file."""
        ...

    def pwrite(self, handle: int, data: bytes, offset: int, /) -> int:
        """Write and return how many bytes were taken, as the system call does."""
        ...

    def zero_fill(self, handle: int, start: int, until: int) -> None:
        """Write zeros over a range, extending the file; real bytes, not a hole."""
        ...

    def size(self, handle: int) -> int:
        """Return the size of the file in bytes."""
        ...

    def truncate(self, handle: int, size: int) -> None:
        """Set the size of the file."""
        ...

    def fdatasync(self, handle: int, /) -> None:
        """Make the file's bytes and size durable."""
        ...

    def fsync(self, handle: int, /) -> None:
        """Make a file with its metadata, or the entries of a directory, durable."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename within one directory; durable after an fsync of the directory."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a name; durable after an fsync of the directory."""
        ...

    def free_bytes(self, path: str) -> int:
        """Return how many bytes an ordinary user may still write."""
        ...


class RealDisk:
    """Files of the operating system."""

    # Cost: the two calls of the hot path are the system calls themselves, without a frame between.
    pread = staticmethod(os.pread)
    pwrite = staticmethod(os.pwrite)
    fdatasync = staticmethod(os.fdatasync)
    fsync = staticmethod(os.fsync)

    def make_directory(self, path: str) -> None:
        """Create missing parents first and sync each parent, so the whole path survives."""
        if os.path.isdir(path):
            return
        parent = os.path.dirname(os.path.abspath(path))
        self.make_directory(parent)
        # Two processes may race to create it; the lock file decides between them later.
        try:
            os.mkdir(path, 0o750)
        except FileExistsError:
            return
        handle = self.open_directory(parent)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def list_names(self, path: str) -> list[str]:
        """Return the names in the directory, sorted."""
        return sorted(os.listdir(path))

    def lock(self, path: str) -> int:
        """Lock with flock, which the kernel releases when the process dies, however it dies."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            os.close(handle)
            raise locked_error(path, owner) from error
        except OSError:
            os.close(handle)
            raise
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        return handle

    def create(self, path: str) -> int:
        """Create a file for reading and writing; it must not exist."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)

    def open(self, path: str) -> int:
        """Open an existing file for reading and writing."""
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def open_directory(self, path: str) -> int:
        """Open a directory, so that it can be given to `fsync`."""
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self, handle: int) -> None:
        """Close a handle; says nothing about durability."""
        os.close(handle)

    def zero_fill(self, handle: int, start: int, until: int) -> None:
        """Write zeros; `fallocate` would leave unwritten extents whose conversion costs a sync."""
        offset = start
        while offset < until:
            offset += os.pwrite(handle, ZERO_CHUNK[: until - offset], offset)

    def size(self, handle: int) -> int:
        """Return the size of the file in bytes."""
        return os.fstat(handle).st_size

    def truncate(self, handle: int, size: int) -> None:
        """Set the size of the file."""
        os.ftruncate(handle, size)

    def rename(self, source: str, target: str) -> None:
        """Rename within one directory; durable after an fsync of the directory."""
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        """Remove a name; durable after an fsync of the directory."""
        os.unlink(path)

    def free_bytes(self, path: str) -> int:
        """Return how many bytes an ordinary user may still write."""
        facts = os.statvfs(path)
        return facts.f_bavail * facts.f_frsize


def locked_error(path: str, owner: str) -> DirectoryLockedError:
    """Build the refusal of a second open, naming the process that holds the lock if it is known."""
    who = f"process {owner}" if owner else "another process"
    return DirectoryLockedError(
        f"the log directory is in use by {who} (lock file {path})",
        hint="stop that server first, or use another --data-dir",
    )


def storage_error(action: str, error: OSError) -> StorageError:
    """Translate a failed disk operation; a full disk has its own class and code."""
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(f"{action}: {reason}", hint="free some disk space")
    return StorageError(f"{action}: {reason}", hint="check the disk, then restart the server")


def write_all(disk: Disk, handle: int, data: bytes, offset: int) -> None:
    """Write every byte; a short write goes on where it stopped, one that takes none is an error."""
    written = disk.pwrite(handle, data, offset)
    while written < len(data):
        taken = disk.pwrite(handle, data[written:], offset + written)
        if taken == 0:
            raise OSError(errno.EIO, "the disk took no bytes")
        written += taken
