"""The one door: everything that changes or reads jobs goes through `Engine`.

Owns the path of a command from a caller to the disk and of its outcome back: admission, group
commit, applying, parked fetches, recovery after a stop, flushing and pruning, the feed of recent
events, the registry of live workers, and the source of identifiers.

Invariants:

- Outcomes are delivered only for entries that are as durable as the fsync policy promises.
- Entries are applied in the order of the log, each exactly once, on the event loop.
- The stamp of an entry is never earlier than the stamp before it.
- A fetch that finds nothing writes nothing: it waits in memory. No wake-up is lost, because parking
  and applying share one thread and every entry names the queues it touched.
- Everything that waits is bounded: pending commands and bytes, parked fetches, fetches in flight
  per queue, the ring of events, the registry of workers.
- A failed write, sync, flush or apply ends the process through the injected `fatal`.

Deliberately absent: JSON and HTTP (they are `api`), the decision what may happen (`machine`), the
bytes of the log (`replication`), and the loop that makes time pass (`scheduler`).

Called by `api`, `scheduler` and `server`. Read `engine.py`, then `batch.py`, then `waiters.py`.
"""

from corvo.engine.engine import Engine, Hooks, Options, Watcher

__all__ = ["Engine", "Hooks", "Options", "Watcher"]
