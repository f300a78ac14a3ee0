"""What makes time pass: looks up what is due and submits ordinary commands.

Owns the ticker. Nothing happens in the machine because a clock moved: promotion, reclaiming of
leases, deadlines, retention and the steps of long operations are commands in the log like any
other, stamped by the engine.

Invariants:

- When nothing is due, nothing is proposed: an idle server's log does not grow.
- A lease is reclaimed within a second of its expiry, and a scheduled job is promoted within a tenth
  of a second of its time, unless the pipeline itself is slower.

Deliberately absent: decisions (the machine's sweep commands decide again what is due), and
calendars.

Beside it the runner of bulk operations (`bulk.py`), which asks for one step after the other.

Started by `server`, on the leader only. Read `ticker.py`.
"""

from corvo.scheduler.bulk import BulkRunner
from corvo.scheduler.ticker import Ticker

__all__ = ["BulkRunner", "Ticker"]
