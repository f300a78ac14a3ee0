"""What one can do to jobs from a screen: the request, and the sentence about its outcome."""

import asyncio
from typing import Any, Final

from msgspec import Struct

from corvo.cli.top.facts import BulkResult
from corvo.cli.top.source import Source
from corvo.cli.top.wording import count, plural

FOLLOW_S = 0.5
FOLLOWED_S_MAX = 120.0  # then the operation goes on unwatched


class Action(Struct, frozen=True):
    """One verb of the bulk interface."""

    name: str
    verb: str
    past: str
    note: str
    is_undoable: bool


ACTIONS: Final[dict[str, Action]] = {
    "retry": Action(
        "retry", "Retry", "retried", "They run again, with their attempts reset.", False
    ),
    "cancel": Action(
        "cancel", "Cancel", "cancelled", "Running ones are asked to stop. Undo with u.", True
    ),
    "move": Action("move", "Move", "moved", "Running ones stay. Undo with u.", True),
    "delete": Action(
        "delete", "Delete", "deleted", "With all they left behind. Undo with u, for a day.", True
    ),
}


class Target(Struct, frozen=True):
    """The jobs an action is about: some by name, or all that match a filter."""

    job_ids: list[str] = []
    filter: dict[str, Any] | None = None
    count: int = 0
    label: str = ""

    def body(self, action: str, queue: str | None = None) -> dict[str, Any]:
        """The body of a bulk call."""
        body: dict[str, Any] = {"action": action}
        if self.filter is not None:
            body["filter"] = self.filter
        else:
            body["job_ids"] = self.job_ids
        if queue is not None:
            body["move_to_queue"] = queue
        return body


async def preview(source: Source, action: Action, target: Target) -> Target:
    """Count what a filter means now; jobs given by name are counted already."""
    if target.filter is None:
        return target
    # The queue is only needed for the body to be whole: a dry run moves nothing.
    queue = "dry-run" if action.name == "move" else None
    found = await source.bulk(target.body(action.name, queue) | {"dry_run": True})
    return Target(filter=target.filter, count=found.matched, label=target.label)


async def perform(
    source: Source, action: Action, target: Target, queue: str | None = None
) -> BulkResult:
    """Do it, and wait for the end of an operation that takes its time."""
    return await _ended(source, await source.bulk(target.body(action.name, queue)))


async def undo(source: Source, operation_id: str) -> BulkResult:
    """Take an operation back, as far as nobody has touched its jobs since."""
    return await _ended(source, await source.undo(operation_id))


async def _ended(source: Source, result: BulkResult) -> BulkResult:
    waited_s = 0.0
    while result.status in {"processing", "collecting", "running", "undoing"}:
        if waited_s >= FOLLOWED_S_MAX:
            return result
        await asyncio.sleep(FOLLOW_S)
        waited_s += FOLLOW_S
        result = await source.operation(result.bulk_operation_id)
    return result


def sentence(action: Action, result: BulkResult) -> str:
    """What an operation did, in one line."""
    if result.status in {"processing", "collecting", "running"}:
        return f"{action.verb} goes on in the server: {count(result.affected)} so far"
    said = f"{action.past} {plural(result.affected, 'job')}"
    if result.skipped:
        reasons = ", ".join(
            f"{number} {reason.replace('_', ' ')}"
            for reason, number in result.skipped_reasons.items()
        )
        said += f" · skipped {count(result.skipped)}" + (f" ({reasons})" if reasons else "")
    if result.errors:
        said += f" · {plural(result.errors, 'error')}"
    if result.affected and result.undo_until:
        said += " · u takes it back"
    return said


def undone(result: BulkResult) -> str:
    """What an undo did, in one line."""
    said = f"brought back {plural(result.restored, 'job')}"
    if result.not_restored:
        said += f" · {count(result.not_restored)} were touched since and stay as they are"
    return said
