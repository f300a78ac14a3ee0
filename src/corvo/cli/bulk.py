"""The command about many jobs at once: `corvo bulk`."""

import sys
import time
from typing import Any

import click
import msgspec

from corvo.cli.client import API, Client, segment
from corvo.cli.failure import EXIT_REFUSED
from corvo.cli.output import client_options, print_fields, print_json
from corvo.model.limits import BULK_IDS_MAX

STRICT = {"strict": "true"}
ACTIONS = (
    "retry",
    "delete",
    "cancel",
    "move",
    "requeue",
    "change_priority",
    "hold",
    "approve",
    "reject",
)
FOLLOW_UPS = ("status", "abort", "undo")
UNFINISHED = ("collecting", "running", "undoing")
POLL_SECONDS = 0.5
# What the word after the action means; the other actions have none.
TARGETS = {"move": "move_to_queue", "change_priority": "priority"}


@click.command()
@click.argument("action", type=click.Choice((*ACTIONS, *FOLLOW_UPS)))
@click.argument("target", required=False)
@click.option("--filter", "filter_text", help="JSON: the jobs that match; else ids on stdin")
@click.option("--reason", help="kept with jobs that are held or rejected")
@click.option("--dry-run", is_flag=True, help="count and show a sample; change nothing")
@click.option("--wait/--no-wait", default=True, help="return when a large operation is over")
@client_options
def bulk(url: Client, output: str, action: str, target: str | None, **options: Any) -> None:
    """Do ACTION to many jobs: those --filter matches, or those whose ids come on standard input.

    TARGET is the queue of `move`, the priority of `change_priority`, and the id of the operation
    for `status`, `abort` and `undo`.
    """
    if action in FOLLOW_UPS:
        _follow_up(url, output, action, target, wait=options["wait"])
        return
    body = _request(action, target, options)
    if options["filter_text"] is not None:
        answers = [_start(url, body | {"filter": _filter(options["filter_text"])}, options)]
    else:
        ids = list(dict.fromkeys(sys.stdin.read().split()))
        if not ids:
            raise click.UsageError("no job ids on standard input, and no --filter")
        parts = [ids[at : at + BULK_IDS_MAX] for at in range(0, len(ids), BULK_IDS_MAX)]
        answers = [_start(url, body | {"job_ids": part}, options) for part in parts]
    for answer in answers:
        _print(output, answer)
    if any(answer.get("errors") for answer in answers):
        sys.exit(EXIT_REFUSED)


def _request(action: str, target: str | None, options: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"action": action}
    name = TARGETS.get(action)
    if (name is None) != (target is None):
        text = f"{action} needs a target" if name else f"{action} takes no target"
        raise click.UsageError(text)
    if name is not None:
        body[name] = target
    if options["reason"] is not None:
        body["reason"] = options["reason"]
    if options["dry_run"]:
        body["dry_run"] = True
    return body


def _filter(text: str) -> msgspec.Raw:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise click.BadParameter(f"is not JSON: {error}", param_hint="--filter") from error
    return msgspec.Raw(text.encode())


def _start(url: Client, body: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = url.call("POST", f"{API}/jobs/bulk", body, query=STRICT).body
    if answer.get("status") == "processing" and options["wait"]:
        return _wait(url, answer["bulk_operation_id"])
    return answer


def _wait(url: Client, name: str) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = url.call("GET", f"{API}/bulk/{segment(name)}").body
        if found["status"] not in UNFINISHED:
            return found
        if sys.stderr.isatty():
            click.echo(f"\r{found['processed']} of {found['total']}", err=True, nl=False)
        time.sleep(POLL_SECONDS)


def _follow_up(url: Client, output: str, action: str, name: str | None, *, wait: bool) -> None:
    if name is None:
        raise click.UsageError(f"{action} needs the id of an operation")
    path = f"{API}/bulk/{segment(name)}"
    if action == "status":
        found = url.call("GET", path).body
    else:
        found = url.call("POST", f"{path}/{action}").body
        if wait and found["status"] in UNFINISHED:
            found = _wait(url, name)
    if output == "json":
        print_json(found)
    elif action == "undo":
        click.echo(
            f"{found['status']}  restored {found['restored']}{_reasons(found, 'not_restored')}"
        )
    else:
        print_fields(found)


def _reasons(answer: dict[str, Any], name: str) -> str:
    count = answer.get(name, 0)
    if not count:
        return ""
    reasons = ", ".join(f"{reason} {n}" for reason, n in answer[f"{name}_reasons"].items())
    return f"  {name.replace('_', ' ')} {count} ({reasons})"


def _print(output: str, answer: dict[str, Any]) -> None:
    if output == "json":
        print_json(answer)
        return
    if answer.get("status") == "processing":
        click.echo(f"{answer['bulk_operation_id']}  processing {answer['estimated_total']} jobs")
        return
    verb = "would affect" if answer.get("dry_run") else "affected"
    errors = f"  errors {answer['errors']}" if answer["errors"] else ""
    click.echo(f"{verb} {answer['affected']}{_reasons(answer, 'skipped')}{errors}")
    for job in answer.get("sample", ()):
        payload = msgspec.json.encode(job["payload"]).decode()
        click.echo(f"  {job['job_id']}  {job['queue']}  {job['state']}  {payload[:60]}")
    if answer.get("undo_until"):
        click.echo(f"undo with: corvo bulk undo {answer['bulk_operation_id']}", err=True)
