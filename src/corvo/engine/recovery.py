"""From a stopped process to a machine that stands where the log ends.

The store holds the effects of a prefix of the log together with the index of its last entry,
written in one atomic batch. So recovery is: open both, read the index, apply every entry after it.
"""

from collections.abc import Callable

from msgspec import DecodeError, Struct

from corvo.check import corrupt
from corvo.keys.codec import decode_entry
from corvo.machine import MACHINE_VERSION, Machine
from corvo.machine.kv import Store
from corvo.replication import LocalLog
from corvo.runtime.clock import Clock

REPORT_ENTRIES = 20_000


class Recovery(Struct, frozen=True):
    """What a start found and did, for the operator."""

    store_index: int  # where the store stood
    log_index: int  # where the log ended
    replayed_entries: int
    replayed_commands: int
    elapsed_ms: int
    notes: list[str]


def recover(
    store: Store,
    log: LocalLog,
    clock: Clock,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[Machine, Recovery]:
    """Bring the machine to the end of the log, or raise `CorruptionError`. Blocks."""
    began_s = clock.monotonic()
    machine = Machine(store)
    store_index = machine.index
    log_index = log.last_index
    notes: list[str] = []
    if machine.version > MACHINE_VERSION:
        corrupt(
            f"the data speaks machine version {machine.version}, this program {MACHINE_VERSION}",
            hint="start the version of corvo that wrote it, or a newer one",
        )
    if store_index > log_index:
        # The store was flushed, the tail of the log was not: power loss under fsync off or
        # interval. The effects are whole and in order, so the log goes on behind them.
        log.reset_to(store_index)
        notes.append(
            f"the store is at index {store_index}, beyond the end of the log at {log_index}: "
            f"the log goes on at {store_index + 1}"
        )
    elif store_index + 1 < log.first_index:
        corrupt(
            f"the log begins at {log.first_index} but the store ends at {store_index}",
            hint="restore the store that belongs to this log, or a snapshot",
        )
    commands = _replay(machine, log, on_progress)
    elapsed_ms = int((clock.monotonic() - began_s) * 1000)
    entries = machine.index - store_index
    return machine, Recovery(store_index, log_index, entries, commands, elapsed_ms, notes)


def _replay(machine: Machine, log: LocalLog, on_progress: Callable[[int, int], None] | None) -> int:
    commands_count = 0
    for count, (index, raw) in enumerate(log.replay(machine.index), start=1):
        if index != machine.index + 1:
            corrupt(f"the log continues at {index} after {machine.index}")
        try:
            entry = decode_entry(raw)
        except DecodeError as error:
            corrupt(
                f"entry {index} of the log cannot be read: {error}",
                hint="run `corvo wal verify`; it may be from a newer version of corvo",
            )
        if entry.now_ms < machine.now_ms:
            corrupt(f"time goes back at entry {index} of the log")
        machine.apply(index, raw, entry)
        commands_count += len(entry.commands)
        if on_progress is not None and count % REPORT_ENTRIES == 0:
            on_progress(index, log.last_index)
    assert machine.index == log.last_index, (machine.index, log.last_index)
    return commands_count
