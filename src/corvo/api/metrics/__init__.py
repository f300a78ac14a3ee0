"""Figures for Prometheus: what is counted at the edge, and the page that shows everything.

Owns the tallies of requests (`tally`: by route pattern, method and status, with a request id and a
line of telemetry for what went wrong or was slow) and the page (`page`, `collect`: metric families
from the engine, the hub, the listener and whoever else adds a source).

Invariants: a counter only rises while the process lives; a label is a route pattern, a type, a
state or a queue, never a raw path or an id; the number of queues with labels of their own is
bounded; reading the engine happens on the loop in slices, writing the text in a thread.

Cost: a hot request pays one look-up and one addition, in `reply`. Durations of hot routes are not
measured one by one: queue time, sync time and apply time of their entries are.

Called by `api.app` and `server.wiring`. Read `collect.py` first.
"""
