"""Commands about queues: list, show, pause, resume, clear, drain, destroy."""

import time
from typing import Any, Final

import click

from corvo.cli.arguments import DURATION, complete_queue, queue_argument
from corvo.cli.client import segment
from corvo.cli.failure import PatienceError
from corvo.cli.output import print_table
from corvo.cli.progress import Bar, confirm
from corvo.cli.session import Session, connected

COUNTED: Final = (
    "pending",
    "blocked",
    "active",
    "scheduled",
    "retrying",
    "held",
    "completed",
    "dead",
)
DRAIN_POLL_SECONDS: Final = 0.5


@click.command()
@connected
def queues(session: Session) -> None:
    """List all queues with their counts."""
    listed: list[dict[str, Any]] = session.call("GET", "/queues")

    def render() -> None:
        if not listed:
            click.echo("no queues yet; enqueue a job and its queue appears")
            return
        rows = [
            [queue["name"], *(str(queue.get(name, 0)) for name in COUNTED), _mark(queue)]
            for queue in listed
        ]
        print_table(["queue", *COUNTED, "state"], rows)

    session.show(listed, render)


def _mark(queue: dict[str, Any]) -> str:
    if queue.get("draining"):
        return "draining"
    return "paused" if queue.get("paused") else "open"


def _change(name: str, text: str) -> click.Command:
    @click.argument(
        "names", metavar="QUEUE…", nargs=-1, required=True, shell_complete=complete_queue
    )
    @connected
    def change(session: Session, names: tuple[str, ...]) -> None:
        answers = [session.call("POST", f"/queues/{segment(queue)}/{name}") for queue in names]
        _show_changes(session, list(names), answers)

    return click.command(name, help=text)(change)


def _show_changes(session: Session, names: list[str], answers: list[dict[str, Any]]) -> None:
    def render() -> None:
        for queue, answer in zip(names, answers, strict=True):
            removed = f"  removed {answer['removed']}" if "removed" in answer else ""
            click.echo(f"{queue}  {answer.get('status', 'ok')}{removed}")
            if answer.get("bulk_operation_id"):
                click.echo(f"undo with: corvo bulk undo {answer['bulk_operation_id']}", err=True)

    session.show(answers[0] if len(answers) == 1 else answers, render)


pause = _change("pause", "Stop handing out jobs of queues.")
resume = _change("resume", "Hand out jobs of queues again.")


@click.command()
@queue_argument
@click.option("--yes", is_flag=True, help="do not ask")
@connected
def clear(session: Session, queue: str, *, yes: bool) -> None:
    """Remove the waiting jobs of a queue: pending, blocked, scheduled, retrying."""
    confirm(f"Remove every waiting job of {queue}?", is_sure=yes)
    _show_changes(session, [queue], [session.call("POST", f"/queues/{segment(queue)}/clear")])


@click.command()
@queue_argument
@click.option("--wait/--no-wait", default=True, help="return when no job is active any more")
@click.option("--timeout", type=DURATION, help="wait at most this long, such as 5m; exit code 7")
@connected
def drain(session: Session, queue: str, timeout: float | None, *, wait: bool) -> None:
    """Pause a queue and wait until its active jobs have ended."""
    path = f"/queues/{segment(queue)}"
    answer = session.call("POST", f"{path}/drain")
    deadline = None if timeout is None else time.monotonic() + timeout
    first = answer["active"]
    with Bar(f"draining {queue}", first) as bar:
        while wait and answer["active"] > 0:
            if deadline is not None and time.monotonic() >= deadline:
                message = f"{answer['active']} jobs of {queue} are still active"
                raise PatienceError(message, hint=f"corvo search --queue {queue} --state active")
            bar.show(max(0, first - answer["active"]))
            time.sleep(DRAIN_POLL_SECONDS)
            answer["active"] = session.call("GET", path)["active"]
    if wait:
        answer["status"] = "drained"
    _show_changes(session, [queue], [answer])


@click.command()
@queue_argument
@click.option("--confirm", is_flag=True, help="yes, remove the queue and every job in it")
@connected
def destroy(session: Session, queue: str, *, confirm: bool) -> None:
    """Delete a queue and every job in it."""
    query = {"confirm": "true"} if confirm else None
    answer = session.call("DELETE", f"/queues/{segment(queue)}", query=query)
    _show_changes(session, [queue], [answer])
