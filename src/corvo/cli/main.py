"""The command `corvo`: its sub-commands, and the one place where errors become exit codes."""

import sys

import click

from corvo import __version__
from corvo.cli.bench import bench
from corvo.cli.failure import complain, exit_code_of
from corvo.cli.jobs import JOB_COMMANDS
from corvo.cli.offline import fsck, wal
from corvo.cli.queues import QUEUE_COMMANDS
from corvo.cli.serve import server
from corvo.errors import CorvoError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="corvo")
def cli() -> None:
    """Corvo: a job-processing server. `corvo server` starts one, the rest talks to it."""


for _command in (server, *JOB_COMMANDS, *QUEUE_COMMANDS, fsck, wal, bench):
    cli.add_command(_command)


def main() -> None:
    """Run the command line; the console script and `python -m corvo` call this."""
    try:
        cli.main(prog_name="corvo", standalone_mode=True)
    except CorvoError as error:
        complain(error)
        sys.exit(exit_code_of(error))
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain at exit.
        sys.stderr.close()
        sys.exit(0)
