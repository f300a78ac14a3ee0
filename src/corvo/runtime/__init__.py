"""What the program borrows from the machine it runs on: time, tasks, threads and telemetry.

Owns: the clock port and its two adapters (`clock`), the one place where asyncio tasks are started
(`tasks`), threads for calls that block (`threads`), diagnostics and histograms (`telemetry`).

Invariants:

- `Clock.now_ms()` never goes back, whatever the wall clock does.
- A task that fails is never silent: the supervisor ends its wait with the failure.
- A worker thread has a bound on what waits for it, and stops only when that is done.

Deliberately absent: anything about jobs, any file, any socket, and any module state. Nothing here
starts by being imported; the composition root builds these objects and hands them down.

The pure packages (`model`, `keys`, `machine`) may not import this one: time and chance reach them
inside commands. Read `clock` first.
"""
