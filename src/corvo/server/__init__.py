"""The composition root: settings in, a running server out.

Owns: reading settings (`options` lists them, `config` resolves them), building every part once in
the order of its dependencies (`wiring`), and the life of the process (`run`: signals, drain, exit
codes, the banner).

Invariants: only `config` reads the environment and configuration files; only `wiring` chooses
adapters (RocksDB or memory, files or memory); a part is built once and closed in reverse order.

Deliberately absent: any rule about jobs, any route, any retry of a failed disk operation. What can
not be repaired here ends the process with an exit code that names it.

Called by `corvo.cli.serve`. Read `wiring.py` first.
"""
