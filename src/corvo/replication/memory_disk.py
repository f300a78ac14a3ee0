"""A disk in memory that can lose power, for tests, the simulator and `--ephemeral`.

The model is deliberately crueller than a real disk. After a power loss

- every 512-byte sector written since the file's last sync is, independently of all others, what it
  was at that sync, what was written last, or zeros;
- a size that was not synced may be the old one or the new one;
- every create, rename and unlink since the last fsync of its directory may be missing, while later
  ones are there.

What was synced is there, byte for byte. `power_loss` builds the disk that remains, leaving this one
as it is, so a test can draw many remains of one moment. `fail_at` and `stop_at` break the n-th
changing operation: with an error the caller sees, or with the end of the process.
"""

import errno
import os
from collections.abc import Callable
from typing import TypeAlias

from corvo.replication.disk import locked_error

SECTOR_BYTES = 512
CAPACITY_BYTES = 1 << 40

# Given the number of options, pick one; a test passes `random.Random(seed).randrange`.
Chooser: TypeAlias = Callable[[int], int]


class PowerLossError(BaseException):
    """The process ends here; not an `Exception`, so that no handler can survive it."""


class _File:
    # `data` is what a reader sees; `synced` is what certainly survives; `dirty` names the sectors
    # in which the two may differ.
    __slots__ = ("data", "dirty", "synced")

    def __init__(self, content: bytes = b"") -> None:
        self.data = bytearray(content)
        self.synced = bytearray(content)
        self.dirty: set[int] = set()

    def write(self, content: bytes, offset: int) -> None:
        until = offset + len(content)
        if until > len(self.data):
            self.data.extend(bytes(until - len(self.data)))
        self.data[offset:until] = content
        if content:
            self.dirty.update(range(offset // SECTOR_BYTES, (until - 1) // SECTOR_BYTES + 1))

    def sync(self) -> None:
        if len(self.synced) != len(self.data):
            self.synced = bytearray(self.data)
        else:
            for sector in self.dirty:
                start = sector * SECTOR_BYTES
                self.synced[start : start + SECTOR_BYTES] = self.data[start : start + SECTOR_BYTES]
        self.dirty.clear()

    def remains(self, choose: Chooser) -> bytes:
        size = len(self.data)
        if len(self.synced) != size and choose(2):
            size = len(self.synced)
        result = bytearray(self.synced[:size].ljust(size, b"\0"))
        for sector in sorted(self.dirty):
            start = sector * SECTOR_BYTES
            until = min(start + SECTOR_BYTES, size)
            if start >= until:
                continue
            option = choose(3)
            if option == 1:
                result[start:until] = self.data[start:until]
            elif option == 2:
                result[start:until] = bytes(until - start)
        return bytes(result)


class MemoryDisk:
    """All files of one machine, in memory."""

    def __init__(self, *, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self.capacity_bytes = capacity_bytes
        self.operations_count = 0
        self.fail_at: tuple[int, int] | None = None
        self.stop_at: int | None = None
        self._directories: set[str] = set()
        self._files: dict[str, _File] = {}
        self._entries: dict[str, _File] = {}
        self._pending: list[tuple[str, str, str, _File]] = []
        self._handles: dict[int, _File | str] = {}
        self._locks: dict[int, str] = {}
        self._next_handle = 3

    # Directories and names.

    def make_directory(self, path: str) -> None:
        """Create the directory; the directory itself always survives."""
        self._directories.add(path)

    def list_names(self, path: str) -> list[str]:
        """Return the names in the directory, sorted."""
        self._check_directory(path)
        start = path + "/"
        names = {name[len(start) :] for name in self._files if name.startswith(start)}
        return sorted(name for name in names if "/" not in name)

    def lock(self, path: str) -> int:
        """Take the lock; one holder at a time, none after a power loss."""
        if path in self._locks.values():
            raise locked_error(path, str(os.getpid()))
        handle = self._new_handle(path)
        self._locks[handle] = path
        return handle

    def create(self, path: str) -> int:
        """Create a file for reading and writing; it must not exist."""
        self._step()
        self._check_directory(path.rpartition("/")[0])
        if path in self._files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._files[path] = _File()
        self._pending.append(("create", path, path, self._files[path]))
        return self._new_handle(self._files[path])

    def open(self, path: str) -> int:
        """Open an existing file for reading and writing."""
        if path not in self._files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._new_handle(self._files[path])

    def open_directory(self, path: str) -> int:
        """Open a directory, so that it can be given to `fsync`."""
        self._check_directory(path)
        return self._new_handle(path)

    def close(self, handle: int) -> None:
        """Close a handle, and give back the lock if it holds one."""
        del self._handles[handle]
        self._locks.pop(handle, None)

    def rename(self, source: str, target: str) -> None:
        """Rename within one directory; durable after an fsync of the directory."""
        self._step()
        if source not in self._files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        self._files[target] = self._files.pop(source)
        self._pending.append(("rename", source, target, self._files[target]))

    def unlink(self, path: str) -> None:
        """Remove a name; durable after an fsync of the directory."""
        self._step()
        if path not in self._files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self._pending.append(("unlink", path, path, self._files.pop(path)))

    # Bytes.

    def pread(self, handle: int, size: int, offset: int, /) -> bytes:
        """Read at most `size` bytes; fewer at the end of the file."""
        return bytes(self._file(handle).data[offset : offset + size])

    def pwrite(self, handle: int, data: bytes, offset: int, /) -> int:
        """Write the bytes where a reader sees them at once and a power loss may take them back."""
        self._step()
        self._reserve(handle, offset + len(data))
        self._file(handle).write(data, offset)
        return len(data)

    def zero_fill(self, handle: int, start: int, until: int) -> None:
        """Write zeros over a range, extending the file."""
        self._step()
        self._reserve(handle, until)
        self._file(handle).write(bytes(until - start), start)

    def size(self, handle: int) -> int:
        """Return the size of the file in bytes."""
        return len(self._file(handle).data)

    def truncate(self, handle: int, size: int) -> None:
        """Set the size of the file."""
        self._step()
        file = self._file(handle)
        if size <= len(file.data):
            del file.data[size:]
        else:
            self._reserve(handle, size)
            file.write(bytes(size - len(file.data)), len(file.data))

    def fdatasync(self, handle: int, /) -> None:
        """Make the file's bytes and size durable."""
        self._step()
        self._file(handle).sync()

    def fsync(self, handle: int, /) -> None:
        """Make a file, or every pending operation on the names of a directory, durable."""
        self._step()
        subject = self._subject(handle)
        if isinstance(subject, _File):
            subject.sync()
            return
        start = subject + "/"
        self._pending = [each for each in self._pending if not each[1].startswith(start)]
        kept = {n: f for n, f in self._entries.items() if not n.startswith(start)}
        self._entries = kept | {n: f for n, f in self._files.items() if n.startswith(start)}

    def free_bytes(self, path: str) -> int:
        """Return how many bytes may still be written."""
        self._check_directory(path)
        return self.capacity_bytes - sum(len(file.data) for file in self._files.values())

    # Disaster.

    def power_loss(self, choose: Chooser) -> "MemoryDisk":
        """Return a disk that this one may have become, had the power failed now."""
        survivor = MemoryDisk(capacity_bytes=self.capacity_bytes)
        survivor._directories = set(self._directories)
        entries = dict(self._entries)
        for operation in self._pending:
            if choose(2):
                self._settle(entries, operation)
        images: dict[int, _File] = {}
        for path in sorted(entries):
            file = entries[path]
            if id(file) not in images:
                images[id(file)] = _File(file.remains(choose))
            survivor._files[path] = images[id(file)]
        survivor._entries = dict(survivor._files)
        return survivor

    def kill(self) -> "MemoryDisk":
        """Return the disk after kill -9: everything written is there, the locks are gone."""
        survivor = MemoryDisk(capacity_bytes=self.capacity_bytes)
        survivor._directories = set(self._directories)
        survivor._files = self._files
        survivor._entries = self._entries
        survivor._pending = self._pending
        return survivor

    def content(self, path: str) -> bytes:
        """Return the bytes of a file as a reader sees them."""
        return bytes(self._files[path].data)

    def put(self, path: str, content: bytes) -> None:
        """Place a durable file, as a test that damages a log needs it."""
        self._directories.add(path.rpartition("/")[0])
        self._files[path] = self._entries[path] = _File(content)

    def remove(self, path: str) -> None:
        """Remove a file durably, as a test that damages a log needs it."""
        del self._files[path]
        self._entries.pop(path, None)

    @staticmethod
    def _settle(entries: dict[str, _File], operation: tuple[str, str, str, _File]) -> None:
        # A rename may reach the disk although the creation of its source did not: the journal that
        # carries the one carries the other.
        verb, source, target, file = operation
        if verb != "create" and entries.get(source) is file:
            del entries[source]
        if verb != "unlink":
            entries[target] = file

    def _step(self) -> None:
        self.operations_count += 1
        if self.stop_at is not None and self.operations_count >= self.stop_at:
            raise PowerLossError
        if self.fail_at is not None and self.operations_count == self.fail_at[0]:
            number = self.fail_at[1]
            raise OSError(number, os.strerror(number))

    def _reserve(self, handle: int, until: int) -> None:
        growth = until - len(self._file(handle).data)
        if growth > 0:
            used = sum(len(file.data) for file in self._files.values())
            if used + growth > self.capacity_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _new_handle(self, subject: _File | str) -> int:
        handle = self._next_handle
        self._next_handle += 1
        self._handles[handle] = subject
        return handle

    def _subject(self, handle: int) -> _File | str:
        if handle not in self._handles:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._handles[handle]

    def _file(self, handle: int) -> _File:
        subject = self._subject(handle)
        if isinstance(subject, str):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), subject)
        return subject

    def _check_directory(self, path: str) -> None:
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
