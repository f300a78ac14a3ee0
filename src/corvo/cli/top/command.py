"""The command `corvo top`; the screens and their libraries are loaded when it runs."""

import os
import sys
from importlib.util import find_spec

import click

from corvo.cli.session import Session, located
from corvo.errors import CorvoError
from corvo.runtime.clock import SystemClock

INTERVAL_S = 2.0


class TerminalError(CorvoError):
    """The screens can not be shown here."""

    code = "CONFIG_INVALID"


@click.command()
@located
@click.option(
    "--interval",
    type=click.FloatRange(0.2, 60.0),
    default=INTERVAL_S,
    show_default=True,
    help="seconds between two looks",
)
@click.option("--queue", default="", help="begin with this queue, or queues whose name has it")
def top(*, session: Session, interval: float, queue: str) -> None:
    """Watch queues, jobs, failures and workers, and act on them. Keys: ?."""
    _check_terminal()
    # Loaded late: the libraries of the screens are an extra, and dear to load.
    from corvo.cli.top.app import TopApp  # noqa: PLC0415
    from corvo.cli.top.source import connect  # noqa: PLC0415
    from corvo_sdk.errors import CorvoError as CallError  # noqa: PLC0415

    try:
        source = connect(session.url, session.api_key)
    except CallError as error:
        raise TerminalError(error.message, hint=error.hint) from error
    app = TopApp(source, SystemClock(), interval_s=interval, queue=queue)
    app.run()
    if app.return_code:
        sys.exit(app.return_code)


def _check_terminal() -> None:
    if find_spec("textual") is None:
        raise TerminalError(
            "corvo top needs the extra for screens", hint="pip install 'corvo[top]'"
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise TerminalError(
            "corvo top needs a terminal", hint="for scripts: corvo queues --output json"
        )
