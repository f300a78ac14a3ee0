"""Commands about a server as a whole: status, cluster, workers, version, rebuild-view."""

import platform
import time
from typing import Any, Final

import click

from corvo import __version__
from corvo.cli.failure import CallError, UnreachableError
from corvo.cli.output import print_columns, print_fields, print_table
from corvo.cli.progress import Bar
from corvo.cli.session import Session, connected

_COUNTS: Final = ("pending", "active", "scheduled", "retrying", "held", "dead", "completed")
_WORKER: Final = ("id", "hostname", "version", "status", "queues", "slots", "jobs")
REBUILD_POLL_SECONDS: Final = 0.2


@click.command()
@connected
def status(session: Session) -> None:
    """Show the health of the server and the counts of its queues."""
    found = session.call("GET", "/cluster/status")
    queues = session.call("GET", "/queues")

    def render() -> None:
        print_cluster(found)
        click.echo()
        totals = [str(sum(queue[name] for queue in queues)) for name in _COUNTS]
        rows = [[queue["name"], *(str(queue[name]) for name in _COUNTS)] for queue in queues]
        headings = ["queue", *_COUNTS]
        print_table(headings, [*rows, [f"{len(queues)} queues", *totals]])

    session.show({"cluster": found, "queues": queues}, render)


def print_cluster(found: dict[str, Any]) -> None:
    """Print the plain figures of a server, and its view."""
    plain = {
        name: value
        for name, value in found.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }
    print_fields(plain | {"view": found.get("view")})


@click.group()
def cluster() -> None:
    """The servers that keep the log together."""


@cluster.command("status")
@connected
def cluster_status(session: Session) -> None:
    """Show where the log stands, who leads, and how far everybody has come."""
    found = session.call("GET", "/cluster/status")
    session.show(found, lambda: print_cluster(found))


@click.command()
@connected
def workers(session: Session) -> None:
    """List workers the server has heard of lately."""
    listed = session.call("GET", "/workers")

    def render() -> None:
        if not listed:
            click.echo("no worker has called yet")
            return
        print_columns(listed, (*_WORKER, "last_heartbeat_at", "last_fetch_at"))

    session.show(listed, render)


@click.command()
@click.option("--client", "client_only", is_flag=True, help="do not ask the server")
@connected
def version(session: Session, *, client_only: bool) -> None:
    """Print the versions of this command and of the server."""
    found: dict[str, Any] = {"version": __version__, "python": platform.python_version()}
    if not client_only:
        try:
            info = session.call("GET", "/info")
        except (CallError, UnreachableError) as error:
            # The version of the command is an answer by itself; that no server runs is part of it.
            found |= {"server": None, "server_error": error.message}
        else:
            found |= {"server": info["server_version"], "api": info["api_version"]}
            found |= {"features": info["features"]}
    session.show(found)


@click.command("rebuild-view")
@click.option("--wait/--no-wait", default=True, help="return when it is built")
@connected
def rebuild_view(session: Session, *, wait: bool) -> None:
    """Build the search index anew from the store, while everything goes on."""
    found = session.call("POST", "/admin/rebuild-sqlite")
    with Bar("building the search index") as bar:
        while wait:
            found = session.call("GET", "/admin/rebuild-sqlite")
            if found["status"] != "running":
                break
            bar.show(int(found.get("done") or 0), max(1, int(found.get("done") or 0)))
            time.sleep(REBUILD_POLL_SECONDS)
    session.show(found)
