"""`corvo worker`: the worker of the Python SDK, with its own options."""

import sys
from importlib import import_module

import click

from corvo.cli.failure import SetupError


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    add_help_option=False,
    options_metavar="[OPTIONS]",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="PACKAGE.MODULE:APP…")
def worker(arguments: tuple[str, ...]) -> None:
    """Run the tasks of a Python application: `corvo worker pkg.module:app -q emails=10`.

    Everything on the line goes to the worker of the SDK; `corvo worker --help` lists its options.
    """
    try:
        command = import_module("corvo_sdk.worker.command")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("corvo_sdk"):
            raise
        raise SetupError(
            "the worker is not installed", hint="pip install corvo-sdk, or: make setup"
        ) from error
    sys.exit(command.main(list(arguments)))
