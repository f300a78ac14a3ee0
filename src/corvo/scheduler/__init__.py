"""What makes time pass: looks up what is due and submits ordinary commands.

Owns the ticker, and the calendar that schedules are read with. Nothing happens in the machine
because a clock moved: promotion, reclaiming of leases, deadlines, retention and the steps of long
operations are commands in the log like any other, stamped by the engine. So are the slots of
schedules: `cron.py` says which instants an expression means in a time zone, and the machine gets
integers.

Invariants:

- When nothing is due, nothing is proposed: an idle server's log does not grow.
- A lease is reclaimed within a second of its expiry, and a scheduled job is promoted within a tenth
  of a second of its time, unless the pipeline itself is slower.
- A slot gives one job: whoever proposes it, and however often, the machine decides once.

Deliberately absent: decisions (the machine's commands decide again what is due).

Beside it the runner of bulk operations (`bulk.py`), which asks for one step after the other.

Started by `server`, on the leader only. Read `ticker.py`, then `cron.py` and `slots.py`.
"""

from corvo.scheduler.bulk import BulkRunner
from corvo.scheduler.ticker import Ticker

__all__ = ["BulkRunner", "Ticker"]
