"""`corvo-worker pkg.module:app`: the command that runs a worker.

Exit codes: 0 ended as asked, 1 ended by an error, 2 the command line or the app is wrong, 70 the
event loop did not answer and jobs were released without it.
"""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from corvo_sdk.worker import discovery, logs
from corvo_sdk.worker.discovery import AppNotFoundError
from corvo_sdk.worker.processes import ProcessTaskError
from corvo_sdk.worker.reload import Reloader, end_with_parent
from corvo_sdk.worker.runtime import Worker
from corvo_sdk.worker.settings import CONCURRENCY_DEFAULT, WorkerSettingsError

HEALTH_PORT_DEFAULT: Final = 9090
EXIT_USAGE: Final = 2

_log = logging.getLogger("corvo.worker")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a worker until a signal ends it."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser(os.environ)
    options = parser.parse_args(given)
    logs.set_up(options.log_format, options.log_level)
    if options.url:
        os.environ["CORVO_URL"] = options.url
    if options.reload:
        folders = [Path(folder) for folder in options.reload_dir] or [Path.cwd()]
        return Reloader(_without_reload(given), folders).run()
    try:
        worker = _worker(options)
        end_with_parent(partial(worker.stop, at_once=True))
        worker.run()
    except (AppNotFoundError, ProcessTaskError, WorkerSettingsError) as error:
        print(f"corvo-worker: {error}", file=sys.stderr)  # noqa: T201 - a command line prints
        return EXIT_USAGE
    return 0


def _worker(options: argparse.Namespace) -> Worker:
    discovery.extend_path(Path.cwd())
    app = discovery.load(options.app)
    queues: dict[str, int] = {}
    for text in options.queue or _split(os.environ.get("CORVO_QUEUES", "")):
        queues.update([parse_queue(text)])
    return Worker(
        app,
        queues=queues or None,
        concurrency=options.concurrency,
        link=options.link,
        lease=options.lease,
        shutdown_timeout_s=options.shutdown_timeout,
        stop_grace_s=options.stop_grace,
        health_port=HEALTH_PORT_DEFAULT
        if options.health_port == "default"
        else options.health_port,
        health_required=options.health_port != "default",
        health_host=options.health_host,
        worker_id=options.worker_id,
        version=options.worker_version,
        processes=options.processes,
        undeclared=options.undeclared,
    )


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="corvo-worker", description="Run the tasks of an app.")
    add = parser.add_argument
    add("app", help="pkg.module:app, or pkg.module when it has only one")
    add(
        "-q",
        "--queue",
        action="append",
        metavar="NAME[=SLOTS]",
        help="a queue to work on, with slots of its own or sharing --concurrency; may be repeated; "
        "default: CORVO_QUEUES (with commas), else every queue of the app",
    )
    add(
        "--concurrency",
        type=_positive,
        default=environment.get("CORVO_CONCURRENCY", str(CONCURRENCY_DEFAULT)),
        metavar="N",
        help="jobs at once for the queues without slots of their own; CORVO_CONCURRENCY",
    )
    add("--url", help="address of the server, several with commas; CORVO_URL")
    add("--link", choices=("auto", "http", "stream"), default="auto", help="how jobs are fetched")
    add("--lease", help='how long a job is ours without a heartbeat, such as "60s"')
    add(
        "--shutdown-timeout",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long handlers may go on after SIGTERM; then their jobs are released",
    )
    add(
        "--stop-grace",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="how long handlers may take to stop once they are asked to",
    )
    add(
        "--health-port",
        type=_port,
        default=environment.get("CORVO_HEALTH_PORT", "default"),
        metavar="PORT|off",
        help=f"port of /healthz and /metrics; {HEALTH_PORT_DEFAULT} when it is free, unless "
        "CORVO_HEALTH_PORT names another",
    )
    # Safety: nobody outside is let in by default; in a pod the probes come from outside.
    in_pod = "KUBERNETES_SERVICE_HOST" in environment
    add("--health-host", default="0.0.0.0" if in_pod else "127.0.0.1", help="where it listens")  # noqa: S104
    add("--log-format", choices=("text", "json"), default="text")
    add("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    add("--reload", action="store_true", help="start anew when a source file changes")
    add("--reload-dir", action="append", default=[], metavar="DIR", help="what to watch")
    add("--worker-id", help="the name operators see; default: host, process and a random part")
    add("--worker-version", default="", help="the version operators see")
    add("--processes", type=_positive, default=0, metavar="N", help="for tasks with process=True")
    add("--undeclared", action="store_true", help="also fetch queues no task is declared on")
    return parser


def parse_queue(text: str) -> tuple[str, int]:
    """Read NAME or NAME=SLOTS. Raises WorkerSettingsError."""
    name, sign, slots = text.strip().rpartition("=")
    if not sign:
        return slots, 0
    if not name or not slots.isdecimal() or int(slots) == 0:
        raise WorkerSettingsError(f"{text!r} is no queue; write name or name=slots")
    return name, int(slots)


def _split(text: str) -> list[str]:
    return [part for part in text.split(",") if part.strip()]


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to a day")
    return seconds


def _port(text: str) -> int | str | None:
    if text == "default":
        return text
    if text == "off":
        return None
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a port nor off")
    return int(text)


def _without_reload(arguments: Sequence[str]) -> list[str]:
    kept: list[str] = []
    rest: Any = iter(arguments)
    for argument in rest:
        if argument == "--reload-dir":
            next(rest, None)
        elif argument != "--reload" and not argument.startswith("--reload-dir="):
            kept.append(argument)
    return kept
