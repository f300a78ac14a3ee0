"""The command line: a user of the SDK with a terminal.

Owns: parsing arguments, printing for people (tables) and for programs (JSON, lines of JSON, YAML),
profiles, exit codes. A command is a click function that gets a `Session`, which knows the server
and how to print; `client` is the one place that touches the SDK. `serve` starts a server, `offline`
and `restore` open a data directory that no server has open.

Invariants: every failure prints one sentence, its code and, where there is one, a hint, on standard
error, and ends with an exit code from `failure`; standard output holds results only.

A command is loaded when it is used: `corvo --help` and a command in a shell loop stay quick.

To add one: write it, give it a line in `main.COMMANDS`, and run `make reference`.

Deliberately absent: any knowledge of the engine. Only `serve`, `offline`, `backup` and `doctor`
import `server` or below.

Read `main.py` first, then `session.py`.
"""
