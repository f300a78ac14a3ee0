"""The command `corvo`: its sub-commands, and the one place where errors become exit codes."""

import sys
from importlib import import_module

import click

from corvo import __version__
from corvo.cli.failure import complain, exit_code_of
from corvo.errors import CorvoError

# Command to module; the attribute is the command's name.
# Cost: loading all of them takes 0.4 s, of which `corvo enqueue` in a shell loop needs a quarter.
COMMANDS: dict[str, str] = {
    "server": "serve",
    "enqueue": "jobs",
    "inspect": "jobs",
    "retry": "jobs",
    "cancel": "jobs",
    "move": "jobs",
    "delete": "jobs",
    "bulk": "bulk",
    "search": "search",
    "status": "search",
    "queues": "queues",
    "pause": "queues",
    "resume": "queues",
    "clear": "queues",
    "drain": "queues",
    "destroy": "queues",
    "schedules": "schedules",
    "bench": "bench",
    "backup": "backup",
    "restore": "backup",
    "export": "backup",
    "import": "backup",
    "fsck": "offline",
    "wal": "offline",
    "top": "top",
}


class LazyGroup(click.Group):
    """A group that loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        # A command may be named like a word of the language.
        found = import_module(f"corvo.cli.{module}")
        return getattr(found, cmd_name, None) or getattr(found, f"{cmd_name}_")


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="corvo")
def cli() -> None:
    """Corvo: a job-processing server. `corvo server` starts one, the rest talks to it."""


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
