"""From a backup archive to a data directory that a server can open.

    check and unpack ─▶ open ─▶ compare with the manifest ─▶ audit ─▶ log at index + 1 ─▶ new epoch

All of it happens in `restore.partial` inside the directory; the log and then the store get their
names at the very end. Safety: a server refuses a directory in which that folder is left, and a log
without its store, so a restore that was interrupted can never be mistaken for an empty server.

The history gets a new epoch: entries after the backup were answered once and are not here, so an
index may come to name another entry than it did. Cursors of the feed carry the epoch and notice.
"""

import secrets
import shutil
from pathlib import Path

from msgspec import Struct

from corvo.api import archive
from corvo.errors import CorruptionError, CorvoError, StorageError
from corvo.keys.codec import encode_entry
from corvo.machine import MACHINE_VERSION, Machine
from corvo.machine.audit import audit
from corvo.machine.kv import Store
from corvo.model.command import Entry, SetEpoch
from corvo.replication import FsyncPolicy, LocalLog, RealDisk
from corvo.server.identity import cluster_id, node_id
from corvo.server.layout import Layout
from corvo.storage.checkpoint import sync_path, sync_tree
from corvo.storage.memory import CHECKPOINT_NAME, MemoryStore
from corvo.storage.rocks import RocksStore

_PAIRS_PER_BATCH = 2_000
_PROBLEMS_SHOWN = 3


class Restored(Struct, frozen=True):
    """What a restore brought back."""

    index: int  # where the restored history goes on
    backup_index: int
    epoch: str
    server_version: str
    files: int
    size_bytes: int


def refuse_unfinished_restore(layout: Layout) -> None:
    """Raise when a restore into this directory did not finish."""
    if Path(layout.partial).exists():
        raise StorageError(
            f"a restore into {layout.directory} did not finish",
            code="CONFIG_INVALID",
            hint=f"remove {layout.directory} and run `corvo restore` again",
        )


def restore(source: Path, data_dir: Path, *, cluster_name: str, node_name: str) -> Restored:
    """Restore a backup into a directory that is empty or not there. Blocks.

    Raises `CorruptionError` when the archive is not what was written, and leaves the directory as
    it was.
    """
    layout = Layout(str(data_dir))
    if data_dir.exists() and any(data_dir.iterdir()):
        raise StorageError(
            f"{data_dir} is not empty",
            code="CONFIG_INVALID",
            hint="a backup is restored into an empty directory only",
        )
    existed = data_dir.exists()
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        disk = RealDisk()
        lock = disk.lock(layout.lock)
    except OSError as error:
        raise StorageError(f"{data_dir} can not be used: {error}") from error
    try:
        return _restore(source, layout, cluster_name, node_name)
    except BaseException:
        _undo(data_dir, layout, existed=existed)
        raise
    finally:
        disk.close(lock)


def _undo(data_dir: Path, layout: Layout, *, existed: bool) -> None:
    for path in (layout.partial, layout.wal, layout.store):
        shutil.rmtree(path, ignore_errors=True)
    Path(layout.lock).unlink(missing_ok=True)
    if not existed:
        shutil.rmtree(data_dir, ignore_errors=True)


def _restore(source: Path, layout: Layout, cluster_name: str, node_name: str) -> Restored:
    inner = Layout(layout.partial)
    unpacked = Path(layout.partial, "unpacked")
    try:
        unpacked.mkdir(parents=True)
        manifest = archive.unpack(source, unpacked)
    except CorvoError:
        raise
    except OSError as error:
        raise StorageError(f"{source} can not be unpacked: {error}") from error
    store = _open(unpacked, Path(inner.store))
    try:
        machine = _check(store, manifest)
        epoch = _begin_history(machine, inner.wal, cluster_name, node_name)
        index = machine.index
    finally:
        store.close()
    shutil.rmtree(unpacked, ignore_errors=True)
    sync_tree(Path(layout.partial))
    # The log first: a log without its store is refused by every start.
    Path(inner.wal).rename(layout.wal)
    Path(inner.store).rename(layout.store)
    sync_path(Path(layout.directory))
    Path(layout.partial).rmdir()
    sync_path(Path(layout.directory))
    size = source.stat().st_size
    files = len(manifest.files)
    return Restored(index, manifest.index, epoch.hex(), manifest.server_version, files, size)


def _open(unpacked: Path, target: Path) -> Store:
    """Open the unpacked store for writing; one that was in memory is written to disk."""
    if not (unpacked / CHECKPOINT_NAME).exists():
        unpacked.rename(target)
        return RocksStore(str(target))
    pairs = MemoryStore.load(str(unpacked)).pairs()
    store = RocksStore(str(target))
    for start in range(0, len(pairs), _PAIRS_PER_BATCH):
        store.write(pairs[start : start + _PAIRS_PER_BATCH])
    return store


def _check(store: Store, manifest: archive.Manifest) -> Machine:
    """Compare the store with what the manifest says, and check every invariant."""
    machine = Machine(store)
    stands = (machine.index, machine.chain.hex(), machine.epoch.hex(), machine.seq)
    said = (manifest.index, manifest.chain, manifest.epoch, manifest.seq)
    if stands != said:
        raise CorruptionError(
            f"the store stands at {stands}, the manifest says {said}",
            hint="take the backup again, or use another one",
        )
    if machine.version > MACHINE_VERSION:
        raise CorruptionError(
            f"the data speaks machine version {machine.version}, this program {MACHINE_VERSION}",
            hint="use the version of corvo that wrote it, or a newer one",
        )
    problems = audit(store)
    if problems:
        shown = "; ".join(problems[:_PROBLEMS_SHOWN])
        raise CorruptionError(
            f"the restored state violates {len(problems)} invariants: {shown}",
            hint="use another backup, and report this one",
        )
    return machine


def _begin_history(machine: Machine, wal: str, cluster_name: str, node_name: str) -> bytes:
    """Start a log behind the store, whose first entry names the new history."""
    epoch = secrets.token_bytes(16)
    log = LocalLog.open(
        RealDisk(),
        wal,
        policy=FsyncPolicy.parse("always"),
        cluster_id=cluster_id(cluster_name),
        node_id=node_id(node_name),
    )
    try:
        log.reset_to(machine.index)
        entry = Entry(machine.version, machine.now_ms, [SetEpoch(epoch, machine.epoch)])
        raw = encode_entry(entry)
        index = log.append(raw)
        log.sync(lambda: None)
        machine.apply(index, raw, entry)
    finally:
        log.close()
    assert machine.epoch == epoch
    return epoch
