"""Every adapter of the disk port behaves the same where no disaster happens."""

import errno
from pathlib import Path

import pytest

from corvo.replication import MemoryDisk, RealDisk
from corvo.replication.disk import DirectoryLockedError, Disk, write_all


@pytest.fixture(params=["real", "memory"])
def disk(request: pytest.FixtureRequest) -> Disk:
    """Each adapter in turn."""
    return RealDisk() if request.param == "real" else MemoryDisk()


@pytest.fixture
def folder(disk: Disk, tmp_path: Path) -> str:
    """Make a directory two levels below one that exists."""
    path = f"{tmp_path}/a/b"
    disk.make_directory(path)
    return path


def test_written_bytes_are_read_back_before_any_sync(disk: Disk, folder: str) -> None:
    """A reader sees a write at once, and past the end it sees nothing."""
    handle = disk.create(f"{folder}/file")
    write_all(disk, handle, b"hello", 0)
    write_all(disk, handle, b"there", 10)
    assert disk.pread(handle, 100, 0) == b"hello" + bytes(5) + b"there"
    assert disk.pread(handle, 3, 12) == b"ere"
    assert disk.pread(handle, 3, 50) == b""
    assert disk.size(handle) == 15
    disk.fdatasync(handle)
    disk.fsync(handle)
    disk.close(handle)


def test_create_refuses_an_existing_file_and_open_a_missing_one(disk: Disk, folder: str) -> None:
    """Create and open never do each other's work."""
    disk.close(disk.create(f"{folder}/file"))
    with pytest.raises(FileExistsError):
        disk.create(f"{folder}/file")
    with pytest.raises(FileNotFoundError):
        disk.open(f"{folder}/other")


def test_zero_fill_and_truncate_set_the_size(disk: Disk, folder: str) -> None:
    """A zero-filled file has its full size in zeros; truncating cuts or extends it."""
    handle = disk.create(f"{folder}/file")
    disk.zero_fill(handle, 0, 3_000_000)
    assert disk.size(handle) == 3_000_000
    assert not any(disk.pread(handle, 3_000_000, 0))
    write_all(disk, handle, b"x" * 10, 0)
    disk.zero_fill(handle, 5, 20)
    assert disk.pread(handle, 12, 0) == b"xxxxx" + bytes(7)
    disk.truncate(handle, 3)
    assert disk.pread(handle, 12, 0) == b"xxx"
    disk.truncate(handle, 6)
    assert disk.pread(handle, 12, 0) == b"xxx\0\0\0"


def test_names_follow_create_rename_and_unlink(disk: Disk, folder: str) -> None:
    """The listing is sorted and shows names only."""
    for name in ("b", "a", "c"):
        disk.close(disk.create(f"{folder}/{name}"))
    disk.rename(f"{folder}/a", f"{folder}/d")
    disk.unlink(f"{folder}/b")
    directory = disk.open_directory(folder)
    disk.fsync(directory)
    disk.close(directory)
    assert disk.list_names(folder) == ["c", "d"]
    with pytest.raises(FileNotFoundError):
        disk.unlink(f"{folder}/b")
    with pytest.raises(FileNotFoundError):
        disk.rename(f"{folder}/b", f"{folder}/e")


def test_a_file_stays_readable_through_its_handle_after_rename(disk: Disk, folder: str) -> None:
    """A handle belongs to the file, not to the name."""
    handle = disk.create(f"{folder}/a")
    disk.rename(f"{folder}/a", f"{folder}/b")
    write_all(disk, handle, b"later", 0)
    other = disk.open(f"{folder}/b")
    assert disk.pread(other, 5, 0) == b"later"


def test_the_lock_has_one_holder_and_comes_back_on_close(disk: Disk, folder: str) -> None:
    """A second holder is refused with the first one's process id."""
    handle = disk.lock(f"{folder}/LOCK")
    with pytest.raises(DirectoryLockedError, match=r"process \d+") as refusal:
        disk.lock(f"{folder}/LOCK")
    assert refusal.value.code == "DIRECTORY_LOCKED"
    disk.close(handle)
    disk.close(disk.lock(f"{folder}/LOCK"))


def test_a_closed_handle_is_refused(disk: Disk, folder: str) -> None:
    """Using a handle after closing it is an error, not a write somewhere else."""
    handle = disk.create(f"{folder}/a")
    disk.close(handle)
    with pytest.raises(OSError, match="Bad file") as refusal:
        disk.pwrite(handle, b"x", 0)
    assert refusal.value.errno == errno.EBADF


def test_free_space_is_known(disk: Disk, folder: str) -> None:
    """The free space of the disk is a positive number of bytes."""
    assert disk.free_bytes(folder) > 0
