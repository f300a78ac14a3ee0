"""Commands about single jobs: enqueue, inspect, why, retry, cancel, move, delete."""

import sys
from typing import Any

import click
import msgspec

from corvo.cli.client import API, Client, segment
from corvo.cli.failure import EXIT_REFUSED, CallError, complain
from corvo.cli.output import client_options, print_fields, print_json

STRICT = {"strict": "true"}  # a misspelt field is an error, never silently ignored


def document(text: str) -> object:
    """Read the JSON of an argument; `-` reads standard input."""
    source = sys.stdin.buffer.read() if text == "-" else text.encode()
    try:
        msgspec.json.decode(source)
    except msgspec.DecodeError as error:
        hint = 'quote it for the shell: \'{"to": "a@example.com"}\''
        raise click.BadParameter(f"is not JSON: {error}; {hint}", param_hint="PAYLOAD") from error
    # The bytes go out as they came in, so that large numbers keep every digit.
    return msgspec.Raw(source)


def tags_of(pairs: tuple[str, ...]) -> dict[str, str]:
    tags: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--tag")
        tags[name] = value
    return tags


@click.command()
@click.argument("queue")
@click.argument("payload", default="{}")
@click.option("--priority", type=click.Choice(["critical", "high", "normal"]))
@click.option("--max-retries", type=int, help="attempts in all, the first one included")
@click.option("--at", "scheduled_at", help="earliest start, such as 2030-01-31T09:00:00Z")
@click.option("--expire-after", help="give up when it did not start by then, such as 1h")
@click.option("--unique-key", help="refuse a second job of the queue with this key")
@click.option("--unique-period", help="how long the key counts, such as 1h")
@click.option("--group", help="fairness group within the queue")
@click.option("--limit-key", help="key that limits of the queue apply to")
@click.option("--depends-on", multiple=True, help="job that must be completed first; repeatable")
@click.option("--tag", "tags", multiple=True, help="NAME=VALUE; repeatable")
@click.option("--idempotency-key", help="a repeated call with this key changes nothing")
@client_options
def enqueue(url: Client, output: str, queue: str, payload: str, **options: Any) -> None:
    """Enqueue a job into QUEUE. PAYLOAD is JSON; `-` reads it from standard input."""
    body: dict[str, object] = {"queue": queue, "payload": document(payload)}
    tags = tags_of(options.pop("tags"))
    body |= {name: value for name, value in options.items() if value not in (None, ())}
    if tags:
        body["tags"] = tags
    answer = url.call("POST", f"{API}/enqueue", body, query=STRICT)
    if output == "json":
        print_json(answer.body)
    elif sys.stdout.isatty():
        click.echo(f"{answer.body['job_id']}  {answer.body['status']}")
    else:
        click.echo(answer.body["job_id"])


@click.command()
@click.argument("job_id")
@click.option("--why", is_flag=True, help="explain what the job waits for")
@client_options
def inspect(url: Client, output: str, job_id: str, *, why: bool) -> None:
    """Show everything about a job."""
    path = f"{API}/jobs/{segment(job_id)}" + ("/why" if why else "")
    document = url.call("GET", path).body
    if output == "json":
        print_json(document)
        return
    gates = document.pop("gates", [])
    print_fields(document)
    for gate in gates:
        mark = "open  " if gate.get("ok") else "closed"
        click.echo(f"  {mark}  {gate.get('gate')}  {gate.get('detail') or ''}".rstrip())


def _change(name: str, method: str, suffix: str, text: str) -> click.Command:
    """Build a command that changes the jobs named on its line, one call each."""

    @click.argument("job_ids", nargs=-1, required=True)
    @client_options
    def change(url: Client, output: str, job_ids: tuple[str, ...]) -> None:
        _change_each(url, output, method, suffix, job_ids, None)

    return click.command(name, help=text)(change)


@click.command()
@click.argument("job_id")
@click.argument("queue")
@client_options
def move(url: Client, output: str, job_id: str, queue: str) -> None:
    """Move a job to another queue."""
    _change_each(url, output, "POST", "/move", (job_id,), {"queue": queue})


def _change_each(
    url: Client,
    output: str,
    method: str,
    suffix: str,
    job_ids: tuple[str, ...],
    body: object,
) -> None:
    results: list[object] = []
    is_refused = False
    for job_id in job_ids:
        try:
            answer = url.call(method, f"{API}/jobs/{segment(job_id)}{suffix}", body)
        except CallError as error:
            # One job in the wrong state does not keep the others from being changed.
            complain(error)
            is_refused = True
            continue
        results.append(answer.body)
        if output == "text":
            status = answer.body.get("status", "ok") if answer.body else "ok"
            click.echo(f"{job_id}  {status}")
    if output == "json":
        print_json(results)
    if is_refused:
        sys.exit(EXIT_REFUSED)


retry = _change("retry", "POST", "/retry", "Run jobs again with their attempts reset.")
cancel = _change("cancel", "POST", "/cancel", "Cancel jobs; active ones are asked to stop.")
delete = _change("delete", "DELETE", "", "Remove jobs and all they left behind.")
