"""Parts shared by the tests of the log: how to open one, fill it, damage it and read it back."""

from collections.abc import Callable

from corvo.errors import CorruptionError, StorageError
from corvo.replication import FsyncPolicy, LocalLog, MemoryDisk
from corvo.replication.disk import Disk
from corvo.replication.sync import DurableSync, OnDone, OnFailure

DIRECTORY = "/log"
CLUSTER_ID = bytes(range(16))


def open_log(
    disk: Disk,
    *,
    directory: str = DIRECTORY,
    policy: str = "always",
    segment_bytes: int = 8192,
    group: int = 0,
    cluster_id: bytes = CLUSTER_ID,
    syncer: DurableSync | None = None,
) -> LocalLog:
    """Open a log with small segments."""
    return LocalLog.open(
        disk,
        directory,
        policy=FsyncPolicy.parse(policy),
        cluster_id=cluster_id,
        node_id=7,
        group=group,
        segment_bytes=segment_bytes,
        syncer=syncer,
    )


def payload(index: int, size: int = 40) -> bytes:
    """Make a payload that says which entry it is and has no zero byte."""
    text = f"entry-{index}-".encode()
    return (text * (size // len(text) + 1))[:size]


def append_synced(log: LocalLog, *sizes: int) -> None:
    """Append entries of these sizes and sync after each."""
    for size in sizes:
        log.append(payload(log.last_index + 1, size))
        log.sync(lambda: None)
        assert log.synced_index == log.last_index


def contents(log: LocalLog) -> list[tuple[int, bytes]]:
    """Read everything the log can replay."""
    return list(log.replay(log.first_index - 1))


def segment_paths(disk: Disk, directory: str = DIRECTORY) -> list[str]:
    """List the segment files, oldest first."""
    names = disk.list_names(directory)
    return [f"{directory}/{name}" for name in names if name.endswith(".wal")]


def try_contents(disk: MemoryDisk) -> list[tuple[int, bytes]] | str:
    """Open, read and drop the log; a refusal comes back as its sentence."""
    try:
        log = open_log(disk)
    except CorruptionError as error:
        return error.message
    return contents(log)


class LateSync:
    """Syncs at once and tells so only when asked, as a disk does that works beside the loop."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._on_done: OnDone | None = None

    def start(
        self,
        files: tuple[int, ...],
        directories: tuple[int, ...],
        on_done: OnDone,
        on_failure: OnFailure,
    ) -> None:
        """Make durable what is written now, and keep the answer back."""
        assert on_failure is not None
        for handle in files:
            self._disk.fdatasync(handle)
        for handle in directories:
            self._disk.fsync(handle)
        self._on_done = on_done

    def finish(self) -> None:
        """Give the answer."""
        on_done, self._on_done = self._on_done, None
        assert on_done is not None
        on_done()

    def close(self) -> None:
        """Forget the answer."""
        self._on_done = None


def noop() -> None:
    """Serve as a callback nobody waits for."""


def collect_failures() -> tuple[list[StorageError], Callable[[StorageError], None]]:
    """Return a list and a callback that fills it."""
    failures: list[StorageError] = []
    return failures, failures.append
