"""The worker runtime: takes jobs from the server, runs handlers, reports what came of them.

One event loop fetches, runs async handlers and reports; sync handlers run in threads, tasks with
`process=True` in processes. Two threads beside the loop keep the worker honest when a handler
blocks it: the heart renews leases over a connection of its own, the watch compares the lease of
every job with the clock and names whoever holds the loop.

    fetching ──jobs──▶ runtime ──▶ execution ──verdict──▶ reporting
       ▲                 │                                    │
       └──── links ◀─────┴── heart, watch (threads) ──────────┘ links

Invariant: a job in hand is known to the heart from the moment it was fetched until its report was
answered. Invariant: what a handler did becomes a report in one place, `execution.execute`.

Deliberately absent: retries of handlers (the server counts attempts) and any state on disk (what a
worker forgets, the lease gives back).

Read first: `runtime.py`, then `execution.py`.
"""
