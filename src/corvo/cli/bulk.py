"""The command about many jobs at once: `corvo bulk`."""

import sys
import time
from typing import Any, Final

import click
import msgspec

from corvo.cli.arguments import PRIORITIES, STRICT, JsonError, complete_queue, given, parse_json
from corvo.cli.client import segment
from corvo.cli.failure import EXIT_REFUSED
from corvo.cli.ids import read_ids
from corvo.cli.output import print_columns, print_fields
from corvo.cli.progress import Bar, confirm
from corvo.cli.session import Session, connected
from corvo.cli.visible import visible
from corvo.model.limits import BULK_IDS_MAX

ACTIONS: Final = (
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
FOLLOW_UPS: Final = ("status", "abort", "undo")
UNFINISHED: Final = ("collecting", "running", "undoing")
# Shells write it with a dash as well, and `priority` is what the command for one job is called.
ALIASES: Final = {"change-priority": "change_priority", "priority": "change_priority"}
# A person is asked before these; what they do to a job can not be seen afterwards.
DESTRUCTIVE: Final = ("delete", "cancel", "reject")
POLL_SECONDS: Final = 0.2
# What the word after the action means, and the option that says the same.
TARGETS: Final = {"move": ("move_to_queue", "move_to"), "change_priority": ("priority", "priority")}
_LISTED: Final = (
    *("id", "action", "status", "total", "affected", "skipped", "errors"),
    *("created_at", "undo_until"),
)
_LIST_PAGE: Final = 200


@click.command()
@click.argument(
    "action", metavar="ACTION", type=click.Choice((*ACTIONS, *ALIASES, *FOLLOW_UPS, "list"))
)
@click.argument("target", required=False)
@click.option("--filter", "filter_text", help="JSON: the jobs that match; else from stdin")
@click.option("--move-to", help="queue to move to", shell_complete=complete_queue)
@click.option("--priority", type=click.Choice(PRIORITIES), help="for change_priority")
@click.option("--reset-attempts", is_flag=True, default=None, help="of moved jobs")
@click.option("--reason", help="kept with jobs that are held or rejected")
@click.option("--timeout", help="how long held jobs wait for somebody, such as 1d")
@click.option("--timeout-action", type=click.Choice(["none", "cancel", "approve"]))
@click.option("--by", help="who approved or rejected")
@click.option("--note", help="kept with approved jobs")
@click.option("--dry-run", is_flag=True, help="count and show a sample; change nothing")
@click.option("--wait/--no-wait", default=True, help="return when a large operation is over")
@click.option("--limit", type=click.IntRange(min=1), default=50, help="for list")
@click.option("--yes", is_flag=True, help="do not ask")
@connected
def bulk(session: Session, action: str, target: str | None, **options: Any) -> None:
    """Do ACTION to many jobs: those --filter matches, or those named on standard input.

    ACTION is retry, delete, cancel, move, requeue, change_priority, hold, approve or reject; list,
    status, abort and undo look after operations that were started.

    Standard input may hold ids, a JSON array or lines of JSON; of objects the id is taken, so
    whatever corvo search prints will do. TARGET is the queue of `move`, the priority of
    `change_priority`, and the id of the operation for `status`, `abort` and `undo`.
    """
    action = ALIASES.get(action, action)
    wait, limit = options.pop("wait"), options.pop("limit")
    if action == "list":
        _list(session, limit)
        return
    if action in FOLLOW_UPS:
        _follow_up(session, action, target, wait=wait)
        return
    filter_text, is_sure = options.pop("filter_text"), options.pop("yes")
    body = _request(action, target, options)
    if filter_text is not None:
        parts = [{"filter": _filter(filter_text)}]
    else:
        if sys.stdin.isatty():
            raise click.UsageError("pipe jobs into it, or name them with --filter")
        ids = read_ids(sys.stdin.buffer)
        if not ids:
            _nothing(session)
            return
        starts = range(0, len(ids), BULK_IDS_MAX)
        parts = [{"job_ids": ids[at : at + BULK_IDS_MAX]} for at in starts]
    if action in DESTRUCTIVE and not options["dry_run"]:
        _ask(session, body | parts[0], is_sure=is_sure)
    answers = [_start(session, body | part, wait=wait) for part in parts]
    session.show(
        answers[0] if len(answers) == 1 else answers,
        lambda: _print_all(answers),
    )
    if any(answer.get("errors") for answer in answers):
        sys.exit(EXIT_REFUSED)


def _request(action: str, target: str | None, options: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"action": action}
    field, option = TARGETS.get(action, (None, None))
    for other in ("move_to", "priority"):
        if other != option and options[other] is not None:
            raise click.UsageError(f"{action} takes no --{other.replace('_', '-')}")
    named = options.pop("move_to"), options.pop("priority")
    word = target or named[0] or named[1]
    if (field is None) != (word is None):
        text = f"{action} needs a target" if field else f"{action} takes no target"
        raise click.UsageError(text)
    if field is not None:
        if target and (named[0] or named[1]):
            raise click.UsageError(f"{action} needs one target, not two")
        body[field] = word
    is_dry_run = options["dry_run"]
    body |= given({name: value for name, value in options.items() if name != "dry_run"})
    return body | ({"dry_run": True} if is_dry_run else {})


def _nothing(session: Session) -> None:
    """A search that found nothing is no mistake: a pipeline that runs every night ends well."""
    click.echo("no jobs on standard input: nothing to do", err=True)
    session.show(
        {"affected": 0, "skipped": 0, "skipped_reasons": {}, "errors": 0},
        lambda: click.echo("affected 0"),
    )


def _filter(text: str) -> msgspec.Raw:
    content = text.encode(errors="surrogateescape")
    try:
        parse_json(content)
    except JsonError as error:
        raise click.BadParameter(str(error), param_hint="--filter") from error
    return msgspec.Raw(content)


def _ask(session: Session, body: dict[str, Any], *, is_sure: bool) -> None:
    """Tell a person how many jobs it is about. Cost: a dry run, only when somebody is asked."""
    if is_sure or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    dry = session.call("POST", "/jobs/bulk", body | {"dry_run": True}, query=STRICT)
    confirm(f"{body['action']} {dry['affected']} jobs?", is_sure=is_sure)


def _start(session: Session, body: dict[str, Any], *, wait: bool) -> dict[str, Any]:
    answer: dict[str, Any] = session.call("POST", "/jobs/bulk", body, query=STRICT)
    if answer.get("status") == "processing" and wait:
        return _wait(session, answer["bulk_operation_id"])
    return answer


def _wait(session: Session, name: str) -> dict[str, Any]:
    with Bar(name) as bar:
        while True:
            found: dict[str, Any] = session.call("GET", f"/bulk/{segment(name)}")
            if found["status"] not in UNFINISHED:
                return found
            bar.show(found["processed"], found["total"])
            time.sleep(POLL_SECONDS)


def _list(session: Session, limit: int) -> None:
    listed: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while len(listed) < limit:
        query = cursor | {"limit": str(min(_LIST_PAGE, limit - len(listed)))}
        page = session.call("GET", "/bulk", query=query)
        listed += page["operations"]
        if not page["has_more"]:
            break
        cursor = {"cursor": page["cursor"]}
    session.show(listed, lambda: print_columns(listed, _LISTED))


def _follow_up(session: Session, action: str, name: str | None, *, wait: bool) -> None:
    if name is None:
        raise click.UsageError(f"{action} needs the id of an operation")
    path = f"/bulk/{segment(name)}"
    if action == "status":
        found = session.call("GET", path)
    else:
        if action == "undo" and wait:
            # What is under way can not be taken back; a person who asks for it means: when it can.
            _wait(session, name)
        found = session.call("POST", f"{path}/{action}")
        if wait and found["status"] in UNFINISHED:
            found = _wait(session, name)

    def render() -> None:
        if action == "undo":
            left = _reasons(found, "not_restored")
            click.echo(f"{found['status']}  restored {found['restored']}{left}")
        else:
            print_fields(found)

    session.show(found, render)


def _reasons(answer: dict[str, Any], name: str) -> str:
    count = answer.get(name, 0)
    if not count:
        return ""
    reasons = ", ".join(f"{reason} {n}" for reason, n in answer[f"{name}_reasons"].items())
    return f"  {name.replace('_', ' ')} {count} ({reasons})"


def _print_all(answers: list[dict[str, Any]]) -> None:
    for answer in answers:
        _print(answer)


def _print(answer: dict[str, Any]) -> None:
    if answer.get("status") == "processing":
        click.echo(f"{answer['bulk_operation_id']}  processing {answer['estimated_total']} jobs")
        return
    verb = "would affect" if answer.get("dry_run") else "affected"
    errors = f"  errors {answer['errors']}" if answer["errors"] else ""
    click.echo(f"{verb} {answer['affected']}{_reasons(answer, 'skipped')}{errors}")
    for job in answer.get("sample", ()):
        payload = visible(msgspec.json.encode(job["payload"]).decode())
        click.echo(f"  {job['job_id']}  {job['queue']}  {job['state']}  {payload[:60]}")
    if answer.get("undo_until"):
        click.echo(f"undo with: corvo bulk undo {answer['bulk_operation_id']}", err=True)
