"""The command line: a user of the HTTP API with a terminal.

Owns: parsing arguments, printing for people (text) and for programs (`--output json`), exit codes.
`serve` starts a server; `jobs`, `queues` and `bench` talk to a running one through `client`;
`offline` opens a data directory that no server has open (fsck, wal).

Invariants: every failure prints one sentence, its code and, where there is one, a hint, on standard
error, and ends with an exit code from `failure`; standard output holds results only.

Deliberately absent: any knowledge of the engine. Only `serve` and `offline` import below `server`.

Read `main.py` first.
"""
