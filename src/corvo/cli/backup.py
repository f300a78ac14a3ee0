"""Commands that carry data away and bring it back: backup, restore, export, import."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from corvo.cli.client import API, Client
from corvo.cli.failure import EXIT_CORRUPT, EXIT_REFUSED, fail
from corvo.cli.output import client_options, print_json
from corvo.errors import CorruptionError

JSONL = "application/x-ndjson"
LINES_PER_CALL = 1_000
BYTES_PER_CALL = 3 << 20  # a call takes four MiB
KINDS = ("queues", "limits", "jobs", "batches", "schedules", "webhooks")

_path = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("-o", "--file", "target", type=_path, required=True, help="archive to write")
@client_options
def backup(url: Client, output: str, target: Path) -> None:
    """Save everything a server holds as one archive, while it runs."""
    from corvo.api import archive  # noqa: PLC0415 - only this command and restore need it

    partial = target.with_name(target.name + ".partial")
    try:
        with partial.open("wb") as file:
            url.download("POST", f"{API}/admin/backup", file)
        manifest = archive.unpack(partial, None)
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    size = target.stat().st_size
    summary = {"file": str(target), "index": manifest.index, "bytes": size}
    if output == "json":
        print_json({**summary, "epoch": manifest.epoch, "chain": manifest.chain})
    else:
        click.echo(f"{target}  entry {manifest.index}, {size} bytes, checksums verified")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--data-dir",
    required=True,
    envvar="CORVO_DATA_DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="directory to restore into; empty or not there",
)
@click.option("--cluster-name", default="corvo", show_default=True, envvar="CORVO_CLUSTER_NAME")
@click.option("--node-id", default="node-1", show_default=True, envvar="CORVO_NODE_ID")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
def restore(file: Path, data_dir: Path, cluster_name: str, node_id: str, output: str) -> None:
    """Restore a backup into an empty data directory; checks everything before it is used."""
    from corvo.server.restore import restore as bring  # noqa: PLC0415 - opens the store

    found = bring(file, data_dir, cluster_name=cluster_name, node_name=node_id)
    if output == "json":
        print_json(found)
        return
    click.echo(
        f"restored {found.files} files, {found.size_bytes} bytes, entry {found.backup_index}"
    )
    click.echo("every invariant holds")
    click.echo(f"start it with: corvo server --data-dir {data_dir}")


@click.command()
@click.option("-o", "--file", "target", type=_path, help="file to write; standard output if absent")
@client_options
def export(url: Client, output: str, target: Path | None) -> None:
    """Write queues, limits, jobs and batches as lines of JSON."""
    if target is None:
        url.download("GET", f"{API}/admin/export", sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    partial = target.with_name(target.name + ".partial")
    try:
        with partial.open("wb") as file:
            url.download("GET", f"{API}/admin/export", file)
        with partial.open("rb") as file:
            counts = _counts(file)
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    _print_counts(output, counts)


class _End(msgspec.Struct, tag_field="kind", tag="end"):
    queues: int
    limits: int
    jobs: int
    batches: int
    schedules: int = 0
    webhooks: int = 0


def _counts(file: IO[bytes]) -> dict[str, int]:
    """What the last line says; without it the export is not whole."""
    last = b""
    for line in file:
        last = line
    try:
        found = msgspec.json.decode(last, type=_End)
    except msgspec.DecodeError:
        fail(CorruptionError("the export is not whole: its last line is missing"), EXIT_CORRUPT)
    return {name: getattr(found, name) for name in KINDS}


def _print_counts(output: str, counts: dict[str, int]) -> None:
    if output == "json":
        print_json(counts)
    else:
        click.echo("  ".join(f"{counts[name]} {name}" for name in KINDS))


@click.command("import")
@click.argument("file", type=click.File("rb"))
@client_options
def import_(url: Client, output: str, file: IO[bytes]) -> None:
    """Bring back lines that `corvo export` wrote; `-` reads them from standard input."""
    taken: dict[str, int] = dict.fromkeys(KINDS, 0)
    refused: list[dict[str, Any]] = []
    first = 1
    for lines in _portions(file):
        body = b"".join(lines)
        answer = url.call("POST", f"{API}/admin/import", body, content_type=JSONL).body
        for name in KINDS:
            taken[name] += answer[name]
        refused += [{**each, "line": each["line"] + first - 1} for each in answer["refused"]]
        first += len(lines)
    if output == "json":
        print_json({**taken, "refused": refused})
    else:
        _print_counts(output, taken)
        for each in refused:
            print(f"line {each['line']}: {each['error']} [{each['code']}]", file=sys.stderr)
    if refused:
        sys.exit(EXIT_REFUSED)


def _portions(file: IO[bytes]) -> Iterator[list[bytes]]:
    lines: list[bytes] = []
    size = 0
    for line in file:
        if lines and (size + len(line) > BYTES_PER_CALL or len(lines) >= LINES_PER_CALL):
            yield lines
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield lines
