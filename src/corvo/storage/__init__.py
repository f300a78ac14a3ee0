"""The key-value store: adapters of the port `machine.kv`, one on disk and one in memory.

Owns: RocksDB through `rocks`, the sorted dictionary of tests and simulation in `memory`, and the
ceremony of a complete copy on disk in `checkpoint`.

Invariants:

- One batch is atomic: after a crash the store holds an exact prefix of the batches written. The
  machine puts its applied index into the same batch as the effects, so recovery is replay.
- One column family. Families are key prefixes; with two column families, data and applied index
  were seen to disagree after a kill.
- RocksDB's own log is off. What was written since the last flush may be gone after a crash, and the
  replicated log brings it back; therefore a segment is released only after a flush.
- A scan that meets a damaged block raises; it never looks like the end of the range.

Deliberately absent: any knowledge of jobs and keys, transactions (the machine has its own overlay),
snapshots for reading (use a checkpoint), retries: a store that failed once stops the process.

Only `rocks` may import rocksdict, and no exception of that library leaves it. Read `rocks` first.
"""
