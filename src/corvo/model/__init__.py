"""What exists: frozen values, no behaviour beyond themselves.

Owns the vocabulary every other package speaks: identifiers, job and queue records, the closed set
of commands that can be asked of the machine, the outcomes it answers with, the events it emits,
the arithmetic of retries, and every limit in the system.

Architecture invariant: nothing here reads a clock, a file or a random number, and nothing here
decides what may happen; that is `machine`. Records carry the namespace (`ns`) from the first day.

Deliberately absent: JSON shapes (they are `api.wire`) and key bytes (they are `keys`).
Read `job.py`, then `command.py`.
"""
