"""`corvo server`: flags from the table of settings, then the server's own main function."""

import os
import sys

import click

from corvo.server import config
from corvo.server.options import NOTICES, OPTIONS, REFUSALS, Option


def _flag(option: Option) -> click.Option:
    # The default is None: only a flag that was given comes before environment and file.
    text = f"{option.help}  [{option.variable}]"
    if option.is_flag:
        return click.Option([f"--{option.name}"], is_flag=True, default=None, help=text)
    shown = f"{text}  [default: {option.default}]"
    return click.Option([f"--{option.name}"], metavar=option.placeholder, help=shown)


def _parameters() -> list[click.Parameter]:
    parameters: list[click.Parameter] = [
        click.Option(["--config"], metavar="PATH", help="TOML file with settings  [CORVO_CONFIG]")
    ]
    parameters += [_flag(option) for option in OPTIONS]
    for name in (*NOTICES, *REFUSALS):
        # Given with or without a value: both spellings are in use.
        parameters.append(
            click.Option([f"--{name}"], is_flag=False, flag_value="true", hidden=True)
        )
    return parameters


def _serve(**given: object) -> None:
    from corvo.server.run import run  # noqa: PLC0415 - `corvo --help` need not load the server

    flags = {name.replace("_", "-"): value for name, value in given.items()}
    sys.exit(run(config.load(flags, os.environ)))


server = click.Command(
    "server",
    params=_parameters(),
    callback=_serve,
    help="Start a server. Every flag is also an environment variable and a line of the TOML file.",
)
