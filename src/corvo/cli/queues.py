"""Commands about queues: list them, pause, resume, clear, drain, destroy."""

import time
from typing import Any

import click

from corvo.cli.client import API, Client, segment
from corvo.cli.output import client_options, print_json, print_table

COUNTED = ("pending", "blocked", "active", "scheduled", "retrying", "held", "completed", "dead")
DRAIN_POLL_SECONDS = 0.5


@click.command()
@client_options
def queues(url: Client, output: str) -> None:
    """List all queues with their counts."""
    listed: list[dict[str, Any]] = url.call("GET", f"{API}/queues").body
    if output == "json":
        print_json(listed)
        return
    if not listed:
        click.echo("no queues yet; enqueue a job and its queue appears")
        return
    rows = [[queue["name"], *(_count(queue, name) for name in COUNTED), _mark(queue)]
            for queue in listed]  # fmt: skip
    print_table(["queue", *COUNTED, "state"], rows)


def _count(queue: dict[str, Any], name: str) -> str:
    return str(queue.get(name, 0))


def _mark(queue: dict[str, Any]) -> str:
    if queue.get("draining"):
        return "draining"
    return "paused" if queue.get("paused") else "open"


def _change(name: str, text: str) -> click.Command:
    @click.argument("queue")
    @client_options
    def change(url: Client, output: str, queue: str) -> None:
        answer = url.call("POST", f"{API}/queues/{segment(queue)}/{name}").body
        _print_change(output, queue, answer)

    return click.command(name, help=text)(change)


def _print_change(output: str, queue: str, answer: dict[str, Any]) -> None:
    if output == "json":
        print_json(answer)
        return
    removed = f"  removed {answer['removed']}" if "removed" in answer else ""
    click.echo(f"{queue}  {answer.get('status', 'ok')}{removed}")


@click.command()
@click.argument("queue")
@click.option("--wait/--no-wait", default=True, help="return when no job is active any more")
@client_options
def drain(url: Client, output: str, queue: str, *, wait: bool) -> None:
    """Pause a queue and wait until its active jobs have ended."""
    path = f"{API}/queues/{segment(queue)}"
    answer = url.call("POST", f"{path}/drain").body
    while wait and answer.get("active", 0) > 0:
        time.sleep(DRAIN_POLL_SECONDS)
        answer["active"] = int(_count(url.call("GET", path).body, "active"))
    _print_change(output, queue, answer)


@click.command()
@click.argument("queue")
@click.option("--confirm", is_flag=True, help="yes, remove the queue and every job in it")
@client_options
def destroy(url: Client, output: str, queue: str, *, confirm: bool) -> None:
    """Delete a queue and every job in it."""
    query = {"confirm": "true"} if confirm else None
    _print_change(
        output, queue, url.call("DELETE", f"{API}/queues/{segment(queue)}", query=query).body
    )


pause = _change("pause", "Stop handing out jobs of a queue.")
resume = _change("resume", "Hand out jobs of a queue again.")
clear = _change("clear", "Remove the waiting jobs of a queue.")
