"""The command `corvo`: its sub-commands, and the one place where errors become exit codes."""

import sys
from importlib import import_module
from typing import Any, Final, NamedTuple

import click

from corvo import __version__
from corvo.cli.failure import (
    EXIT_CODES,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_REFUSED,
    EXIT_USAGE,
    complain,
    exit_code_of,
)
from corvo.errors import CorvoError


class Entry(NamedTuple):
    """Where a command is found, under which heading, and what it is for."""

    module: str
    section: str
    text: str


# The attribute of the module is the command's name, with an underscore for a dash.
# Cost: loading all of them takes 0.4 s, of which `corvo enqueue` in a shell loop needs a quarter;
# the texts stand here, so that the list can be printed without loading any.
COMMANDS: Final[dict[str, Entry]] = {
    "enqueue": Entry("enqueue", "Jobs", "Enqueue a job into QUEUE, or many."),
    "inspect": Entry("jobs", "Jobs", "Show everything about a job."),
    "why": Entry("jobs", "Jobs", "Explain why a job is not running."),
    "wait": Entry("jobs", "Jobs", "Wait until a job has ended and show it."),
    "retry": Entry("changes", "Jobs", "Run jobs again with their attempts reset."),
    "requeue": Entry("changes", "Jobs", "Run dead jobs again, keeping their history."),
    "cancel": Entry("changes", "Jobs", "Cancel jobs; active ones are asked to stop."),
    "move": Entry("changes", "Jobs", "Move a job to another queue."),
    "priority": Entry("changes", "Jobs", "Change the priority of a job."),
    "delete": Entry("changes", "Jobs", "Remove jobs and all they left behind."),
    "clone": Entry("changes", "Jobs", "Enqueue a copy of a job."),
    "hold": Entry("changes", "Jobs", "Set jobs aside until somebody decides."),
    "approve": Entry("changes", "Jobs", "Let held jobs run."),
    "reject": Entry("changes", "Jobs", "Refuse held jobs: they are dead."),
    "search": Entry("search", "Finding", "Find jobs."),
    "held": Entry("search", "Finding", "List jobs that wait for approval."),
    "dead": Entry("search", "Finding", "List dead jobs, or their kinds of error."),
    "batches": Entry("search", "Finding", "List batches, or show one."),
    "bulk": Entry("bulk", "Finding", "Do something to many jobs; undo it."),
    "events": Entry("events", "Finding", "Show what happened to a job, or happens anywhere."),
    "tail": Entry("events", "Finding", "Follow what happens, as it happens."),
    "queues": Entry("queues", "Queues", "List all queues with their counts."),
    "queue": Entry("settings", "Queues", "Show one queue, or change its settings."),
    "pause": Entry("queues", "Queues", "Stop handing out jobs of queues."),
    "resume": Entry("queues", "Queues", "Hand out jobs of queues again."),
    "drain": Entry("queues", "Queues", "Pause a queue and wait for its active jobs."),
    "clear": Entry("queues", "Queues", "Remove the waiting jobs of a queue."),
    "destroy": Entry("queues", "Queues", "Delete a queue and every job in it."),
    "concurrency": Entry("settings", "Queues", "Limit how many jobs of a queue run at once."),
    "throttle": Entry("settings", "Queues", "Limit how many jobs of a queue start in a time."),
    "limits": Entry("settings", "Queues", "Named limits that hold across queues."),
    "schedules": Entry("schedules", "Automation", "Recurring jobs."),
    "webhooks": Entry("webhooks", "Automation", "Endpoints that get events."),
    "worker": Entry("worker", "Automation", "Run the tasks of a Python application."),
    "server": Entry("serve", "Server", "Start a server."),
    "status": Entry("status", "Server", "Show the health of the server and its queues."),
    "cluster": Entry("status", "Server", "The servers that keep the log together."),
    "workers": Entry("status", "Server", "List workers the server has heard of lately."),
    "version": Entry("status", "Server", "Print the versions of command and server."),
    "top": Entry("top", "Server", "Watch the server on a screen."),
    "doctor": Entry("doctor", "Server", "Check this machine, its settings and the server."),
    "bench": Entry("bench", "Server", "Measure a running server."),
    "seed": Entry("seed", "Server", "Fill a server with data to look at."),
    "backup": Entry("backup", "Data", "Save everything as one archive."),
    "restore": Entry("backup", "Data", "Restore a backup into an empty directory."),
    "export": Entry("backup", "Data", "Write everything as lines of JSON."),
    "import": Entry("backup", "Data", "Bring back lines of an export."),
    "rebuild-view": Entry("status", "Data", "Build the search index anew."),
    "fsck": Entry("offline", "Data", "Check a data directory without a server."),
    "wal": Entry("offline", "Data", "Look at the log without a server."),
    "completion": Entry("completion", "Shell", "Print the completion script of a shell."),
}


class LazyGroup(click.Group):
    """A group that loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        # A command may be named like a word of the language.
        found = import_module(f"corvo.cli.{entry.module}")
        name = cmd_name.replace("-", "_")
        return getattr(found, name, None) or getattr(found, f"{name}_")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            # What could have been meant is in the table; the group itself has loaded nothing.
            name = error.command_name
            raise click.exceptions.NoSuchCommand(name, possibilities=COMMANDS, ctx=ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            listed = [(n, e.text) for n, e in COMMANDS.items() if e.section == section]
            with formatter.section(section):
                formatter.write_dl(listed)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Exit codes"):
            formatter.write_dl([(code, text) for code, text in EXIT_CODES.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="corvo")
def cli() -> None:
    """Corvo: a job-processing server. `corvo server` starts one, the rest talks to it.

    CORVO_URL and CORVO_API_KEY name the server, or a profile of ~/.config/corvo/config.toml does.
    """


def main() -> None:
    """Run the command line; the console script and `python -m corvo` call this."""
    sys.exit(run(None))


def run(arguments: list[str] | None) -> int:
    """Run one command; returns its exit code."""
    try:
        outcome: Any = cli.main(arguments, prog_name="corvo", standalone_mode=False)
    except CorvoError as error:
        complain(error)
        return exit_code_of(error)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return EXIT_USAGE
    except click.ClickException as error:
        complain(_usage(error))
        return EXIT_USAGE if isinstance(error, click.UsageError) else EXIT_REFUSED
    except click.Abort as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            return EXIT_INTERRUPTED
        print("aborted: nothing was changed", file=sys.stderr)
        return EXIT_REFUSED
    except UnicodeEncodeError:
        complain(CorvoError("a word on the line is not UTF-8", code="USAGE"))
        return EXIT_USAGE
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain at exit.
        sys.stderr.close()
        return EXIT_OK
    return outcome if isinstance(outcome, int) else EXIT_OK


def _usage(error: click.ClickException) -> CorvoError:
    """A mistake on the line as an error like any other: one sentence, and where to look."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "corvo"
    return CorvoError(error.format_message(), code="USAGE", hint=f"{path} --help")
