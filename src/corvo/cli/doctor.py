"""`corvo doctor`: whether this machine is fit to run a server, and whether the server is well.

Each check is one function that gives findings. A finding is `ok`, a `warning` (works, and will be
regretted) or `failed`; a failed one makes the exit code 1, with `--strict` a warning does, too.
"""

import os
import platform
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from importlib import metadata
from pathlib import Path
from typing import Final

import click
import msgspec

from corvo import __version__
from corvo.cli import profile
from corvo.cli.client import API, Client
from corvo.cli.failure import EXIT_REFUSED, CallError, UnreachableError
from corvo.cli.output import print_table
from corvo.cli.session import Session, connected
from corvo.errors import CorvoError
from corvo.runtime.clock import SystemClock

FREE_BYTES_FAILED: Final = 256 << 20
FREE_BYTES_WARNING: Final = 2 << 30
OPEN_FILES_WARNING: Final = 4_096
SYNCS_COUNT: Final = 20
SYNC_MS_WARNING: Final = 20.0
SKEW_SECONDS_WARNING: Final = 5.0
YEAR_2024_MS: Final = 1_704_067_200_000
PACKAGES: Final = ("rocksdict", "msgspec", "uvloop", "apsw", "corvo-sdk")


class Finding(msgspec.Struct, frozen=True):
    """What one check says."""

    check: str
    status: str
    detail: str
    hint: str | None = None


class Patient(msgspec.Struct, frozen=True):
    """What is looked at."""

    session: Session
    data_dir: Path
    is_server_expected: bool


@click.command()
@click.option("--data-dir", type=click.Path(path_type=Path), help="else as the server would take")
@click.option("--no-server", is_flag=True, help="do not look for a running server")
@click.option("--strict", is_flag=True, help="a warning makes the exit code 1, too")
@connected
def doctor(session: Session, data_dir: Path | None, *, no_server: bool, strict: bool) -> None:
    """Check data directory, disk, clock, sync speed, versions, settings, limits and server."""
    directory, findings = _settings()
    patient = Patient(session, data_dir or directory, not no_server)
    for check in CHECKS:
        findings += check(patient)

    def render() -> None:
        rows = [[each.status, each.check, each.detail] for each in findings]
        print_table(["status", "check", "finding"], rows)
        for each in findings:
            if each.hint and each.status != "ok":
                click.echo(f"hint: {each.check}: {each.hint}", err=True)

    bad = {"failed", "warning"} if strict else {"failed"}
    is_well = not any(each.status in bad for each in findings)
    session.show({"healthy": is_well, "checks": findings}, render)
    if not is_well:
        sys.exit(EXIT_REFUSED)


def _settings() -> tuple[Path, list[Finding]]:
    """Read the settings as a server started here would; also gives its data directory."""
    from corvo.server import config  # noqa: PLC0415 - nothing else here needs the server

    try:
        found = config.load({}, os.environ)
    except CorvoError as error:
        return Path("data"), [Finding("settings", "failed", error.message, error.hint)]
    source = os.environ.get(config.CONFIG_VARIABLE, "environment and defaults")
    return Path(found.data_dir), [Finding("settings", "ok", f"valid: {source}")]


def _profiles(patient: Patient) -> Iterator[Finding]:
    path = profile.path_of(os.environ)
    if not path.exists():
        yield Finding("profiles", "ok", "no profile file")
        return
    listed = ", ".join(profile.names(os.environ)) or "none"
    if patient.session.api_key and path.stat().st_mode & 0o077:
        text = "others on this machine can read the keys in it"
        yield Finding("profiles", "warning", f"{path}: {text}", f"chmod 600 {path}")
    else:
        yield Finding("profiles", "ok", f"{path}: {listed}")


def _versions(_patient: Patient) -> Iterator[Finding]:
    found = [f"corvo {__version__}", f"python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    is_known = sys.version_info >= (3, 11)
    yield Finding("versions", "ok" if is_known else "failed", ", ".join(found))


def _directory(patient: Patient) -> Iterator[Finding]:
    path = patient.data_dir
    place = _existing(path)
    if not os.access(place, os.W_OK | os.X_OK):
        yield Finding("data directory", "failed", f"{place} can not be written to")
        return
    is_there = (path / "wal").is_dir()
    what = "not there yet; the server makes it"
    if is_there:
        from corvo.cli.offline import is_in_use  # noqa: PLC0415 - loads the store

        what = "a server has it open" if is_in_use(path) else "no server has it open"
    yield Finding("data directory", "ok", f"{path}: {what}")
    if (path / "restore.partial").exists():
        text = "a restore did not finish here"
        yield Finding("data directory", "failed", text, "restore into an empty directory")


def _existing(path: Path) -> Path:
    """The directory itself, or the nearest one above it that exists."""
    place = path.absolute()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    return place


def _disk(patient: Patient) -> Iterator[Finding]:
    free = shutil.disk_usage(_existing(patient.data_dir)).free
    detail = f"{free / (1 << 30):.1f} GiB free"
    if free < FREE_BYTES_FAILED:
        yield Finding("disk", "failed", detail, "the server stops taking jobs on a full disk")
    elif free < FREE_BYTES_WARNING:
        yield Finding("disk", "warning", detail, "make room before the disk is full")
    else:
        yield Finding("disk", "ok", detail)


def _sync(patient: Patient) -> Iterator[Finding]:
    """How long the disk takes to promise something; every group of answers waits for one."""
    place = _existing(patient.data_dir) / f".corvo-doctor-{os.getpid()}"
    took: list[float] = []
    try:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            for number in range(SYNCS_COUNT):
                os.pwrite(descriptor, bytes(4096), number * 4096)
                started = time.perf_counter()
                os.fdatasync(descriptor)
                took.append((time.perf_counter() - started) * 1_000)
        finally:
            os.close(descriptor)
            place.unlink()
    except OSError as error:
        yield Finding("sync", "failed", f"the disk can not be written to: {error.strerror}")
        return
    took.sort()
    detail = f"{took[len(took) // 2]:.2f} ms median, {took[-1]:.2f} ms worst of {len(took)}"
    is_slow = took[len(took) // 2] > SYNC_MS_WARNING
    hint = "a network or spinning disk; every enqueue waits for it" if is_slow else None
    yield Finding("sync", "warning" if is_slow else "ok", detail, hint)


def _files(_patient: Patient) -> Iterator[Finding]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_low = soft != resource.RLIM_INFINITY and soft < OPEN_FILES_WARNING
    shown = "unlimited" if soft == resource.RLIM_INFINITY else str(soft)
    detail = f"{shown} open files (at most {hard})"
    hint = f"ulimit -n {OPEN_FILES_WARNING}: each worker that waits is an open file"
    yield Finding("open files", "warning" if is_low else "ok", detail, hint if is_low else None)


def _clock(_patient: Patient) -> Iterator[Finding]:
    now_ms = SystemClock().now_ms()
    if now_ms < YEAR_2024_MS:
        yield Finding("clock", "failed", "the clock of this machine is years behind", "set it")
    else:
        yield Finding("clock", "ok", time.strftime("%Y-%m-%dT%H:%M:%S%z"))


def _server(patient: Patient) -> Iterator[Finding]:
    if not patient.is_server_expected:
        return
    session = patient.session
    client = Client(session.url, api_key=session.api_key, timeout_seconds=5)
    try:
        health = client.call("GET", "/healthz").body
        info = client.call("GET", f"{API}/info")
    except (CallError, UnreachableError) as error:
        yield Finding("server", "failed", error.message, error.hint)
        return
    version = info.body["server_version"]
    yield Finding("server", "ok", f"{session.url}: version {version}, {health['status']}")
    if version != __version__:
        detail = f"this command is {__version__}, the server {version}"
        yield Finding("server version", "warning", detail, "use the same version of both")
    view = health.get("view")
    if view not in {"ok", "off"}:
        hint = "corvo rebuild-view, if it stays so"
        yield Finding("search index", "warning", f"the search index is {view}", hint)
    date = info.headers.get("date")
    if date:
        apart = abs(parsedate_to_datetime(date).timestamp() - SystemClock().now_ms() / 1_000)
        is_skewed = apart > SKEW_SECONDS_WARNING
        detail = f"{apart:.0f} s between this clock and the server's"
        yield Finding("clock skew", "warning" if is_skewed else "ok", detail)


CHECKS: Final[tuple[Callable[[Patient], Iterator[Finding]], ...]] = (
    _profiles,
    _versions,
    _directory,
    _disk,
    _sync,
    _files,
    _clock,
    _server,
)
