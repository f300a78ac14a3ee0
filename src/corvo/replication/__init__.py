"""The replicated log on disk: what was promised, in order, and how it is proven after a crash.

This package owns the write-ahead log: segments of records on a disk, their recovery, their
durability and their offline tools. It carries opaque payloads and knows nothing of jobs.

Invariants:

- A record is acknowledged only after a sync that began after it was written has succeeded.
- Recovery yields a contiguous log that holds every acknowledged record and nothing that was
  never written, or it refuses to start and says where and why.
- Bytes that were synced are never written again: every batch starts on a sector of its own.
- A failed sync or write ends the log; it is never tried again, because the kernel may have
  dropped the pages it could not write.
- Segments disappear only oldest first, one directory sync each, and only below the index that
  the owner of the log released.

Deliberately absent: consensus (a raft log will write the same records through `Wal`), timers (the
engine calls `sync_now` when the policy is an interval), compression, and recycling of segments.

Called by the engine through `LocalLog`, by the command line through `tool`. Read `record` first
(the bytes), then `recovery` (what a crash may leave), then `wal` and `log`.
"""

from corvo.replication.disk import Disk, DiskFullError, RealDisk
from corvo.replication.log import LocalLog
from corvo.replication.memory_disk import MemoryDisk
from corvo.replication.policy import FsyncPolicy
from corvo.replication.sync import make_sync

__all__ = [
    "Disk",
    "DiskFullError",
    "FsyncPolicy",
    "LocalLog",
    "MemoryDisk",
    "RealDisk",
    "make_sync",
]
