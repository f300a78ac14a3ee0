"""What may happen: the pure state machine.

    from corvo.machine import Machine
    machine = Machine(store)
    applied = machine.apply(index, raw, entry)

Owns every rule about jobs, queues, leases, limits, batches, chains and dependencies. `apply.py` is
the one door in; `state.py` holds the caches and the writes of an entry; the other modules are the
rules, one subject each; `audit.py` states every invariant as a function.

Architecture invariant: no clock, no randomness, no I/O beyond get, scan and one atomic write, no
floats in decisions, no iteration over anything unordered. Time and ids come in with the entry.
Architecture invariant: a job ends in exactly one place, `settle.py`.

Deliberately absent: waiting, timers, HTTP, text ids (except inside payloads it composes).
Read `apply.py`, `places.py`, `settle.py`, then the rest as you need it.
"""

from corvo.machine.apply import MACHINE_VERSION, Applied, Fault
from corvo.machine.facade import Machine, digest
from corvo.machine.sweep import SweepPolicy

__all__ = ["MACHINE_VERSION", "Applied", "Fault", "Machine", "SweepPolicy", "digest"]
