"""Corvo: a job-processing server.

One command starts it, producers enqueue over HTTP, workers fetch under a lease and report back.
The packages, from the rules to the edge: `model`, `keys`, `machine` (pure), `runtime`, `storage`,
`replication`, `engine`, `scheduler`, `api`, `server`, `cli`. ARCHITECTURE.md is the map.
"""

__version__ = "0.1.0"
