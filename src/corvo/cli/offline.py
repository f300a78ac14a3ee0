"""Commands that open a data directory while no server has it: fsck and wal.

Safety: each of them holds the lock of the directory, so a server can neither be running on it nor
start meanwhile. Only `wal repair` changes anything, and it keeps a copy of all it takes out.
"""

import contextlib
import sys
from collections.abc import Generator
from pathlib import Path

import click

from corvo.cli.failure import EXIT_CORRUPT, EXIT_REFUSED
from corvo.cli.output import Printer, print_table
from corvo.cli.progress import confirm
from corvo.cli.session import printing
from corvo.errors import StorageError
from corvo.machine import Machine
from corvo.machine.audit import audit
from corvo.replication import RealDisk, tool
from corvo.replication.disk import DirectoryLockedError
from corvo.server.layout import Layout
from corvo.storage.rocks import RocksStore

_data_dir = click.option(
    "--data-dir",
    default="data",
    show_default=True,
    envvar="CORVO_DATA_DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="directory of a server that is not running",
)


@contextlib.contextmanager
def _locked(data_dir: Path) -> Generator[Layout]:
    layout = Layout(str(data_dir))
    if not Path(layout.wal).is_dir() and not Path(layout.store).is_dir():
        raise StorageError(
            f"{data_dir} is not the data directory of a server",
            code="CONFIG_INVALID",
            hint="name it with --data-dir or CORVO_DATA_DIR",
        )
    disk = RealDisk()
    lock = disk.lock(layout.lock)
    try:
        yield layout
    finally:
        disk.close(lock)


def is_in_use(data_dir: Path) -> bool:
    """Whether another process has the directory open."""
    try:
        with _locked(data_dir):
            return False
    except DirectoryLockedError:
        return True


@click.command()
@_data_dir
@printing
def fsck(printer: Printer, data_dir: Path) -> None:
    """Check every invariant of the stored jobs, queues, limits and counters."""
    with _locked(data_dir) as layout:
        log = tool.verify(RealDisk(), layout.wal)
        store = RocksStore(layout.store, is_read_only=True)
        try:
            index = Machine(store).index
            violations = audit(store)
        finally:
            store.close()
    behind = max(0, log.last_index - index)

    def render() -> None:
        click.echo(f"store at entry {index}; {behind} more in the log, applied at the next start")
        click.echo(f"log {'sound' if log.is_sound else 'DAMAGED: see corvo wal verify'}")
        for violation in violations:
            click.echo(f"violated: {violation}")
        click.echo(f"{len(violations)} violations")

    report = {"index": index, "entries_to_replay": behind, "violations": violations}
    printer.show({**report, "log_is_sound": log.is_sound}, render)
    if violations:
        sys.exit(EXIT_REFUSED)
    if not log.is_sound:
        sys.exit(EXIT_CORRUPT)


@click.group()
def wal() -> None:
    """Look at the log of a server that is not running."""


@wal.command()
@_data_dir
@printing
def verify(printer: Printer, data_dir: Path) -> None:
    """Read the whole log and judge it as a start would, changing nothing."""
    with _locked(data_dir) as layout:
        report = tool.verify(RealDisk(), layout.wal)

    def render() -> None:
        rows = [
            [each.name, str(each.first_index), str(each.size_bytes)] for each in report.segments
        ]
        print_table(["segment", "first entry", "bytes"], rows)
        click.echo(f"entries {report.first_index} to {report.last_index}")
        for note in report.notes:
            click.echo(f"note: {note}")
        if report.cut is not None:
            cut = report.cut
            click.echo(f"torn tail: {cut.name} at offset {cut.offset}: {cut.reason}")
        if report.damage is not None:
            click.echo(f"DAMAGED: {report.damage.render()}")
            click.echo(f"to keep what is before the damage: corvo wal repair --data-dir {data_dir}")
        else:
            click.echo("sound")

    printer.show({"is_sound": report.is_sound, "report": report}, render)
    if not report.is_sound:
        sys.exit(EXIT_CORRUPT)


@wal.command()
@_data_dir
@click.option("--limit", type=click.IntRange(min=1), help="print at most so many records")
@printing
def dump(printer: Printer, data_dir: Path, limit: int | None) -> None:
    """Print the envelope of every readable record."""
    with _locked(data_dir) as layout:
        lines = tool.dump(RealDisk(), layout.wal, limit)
        if not printer.is_for_people:
            printer.show(list(lines))
            return
        for line in lines:
            click.echo(
                f"{line.segment} +{line.offset}  {line.kind:<9} index {line.index} "
                f"term {line.term} sequence {line.sequence} commands {line.count} "
                f"bytes {line.length} crc {line.crc:08x}"
            )


@wal.command()
@_data_dir
@click.option("--yes", is_flag=True, help="do not ask")
@printing
def repair(printer: Printer, data_dir: Path, *, yes: bool) -> None:
    """Cut the log to its longest good prefix; what is taken out is kept beside it."""
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("entries after the damage leave the log: --yes says so")
    confirm("Entries after the damage leave the log, also answered ones. Go on?", is_sure=yes)
    with _locked(data_dir) as layout:
        report = tool.repair(RealDisk(), layout.wal)

    def render() -> None:
        for damage in report.damages:
            click.echo(f"was damaged: {damage.render()}")
        for name in report.set_aside:
            click.echo(f"kept aside: {name}")
        outcome = "repaired" if report.changed else "nothing to repair"
        click.echo(f"{outcome}; the log ends at entry {report.last_index}")

    printer.show(report, render)
