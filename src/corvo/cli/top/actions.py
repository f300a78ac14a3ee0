"""What one can do to jobs from a screen: the request, and the sentence about its outcome."""

import asyncio
from typing import Final

from msgspec import Struct

from corvo.cli.top.source import Source
from corvo.cli.top.wording import count, plural
from corvo_sdk.types import Bulk, BulkOptions, BulkResult, SearchFilter
from corvo_sdk.types.search import BulkAction

FOLLOW_S = 0.5
FOLLOWED_S_MAX = 120.0  # then the operation goes on unwatched


class Action(Struct, frozen=True):
    """One verb of the bulk interface."""

    name: BulkAction
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
    filter: SearchFilter | None = None
    count: int = 0
    label: str = ""


async def preview(source: Source, action: Action, target: Target) -> Target:
    """Count what a filter means now; jobs given by name are counted already."""
    if target.filter is None:
        return target
    # The queue is only needed for the body to be whole: a dry run moves nothing.
    queue = "dry-run" if action.name == "move" else None
    found = await _bulk(source, action, target, queue, is_dry_run=True)
    return Target(filter=target.filter, count=found.matched or 0, label=target.label)


async def perform(
    source: Source, action: Action, target: Target, queue: str | None = None
) -> BulkResult | Bulk:
    """Do it, and wait for the end of an operation that takes its time."""
    result = await _bulk(source, action, target, queue)
    if not result.is_accepted or result.bulk_operation_id is None:
        return result
    return await _ended(source, await source.operation(result.bulk_operation_id))


async def undo(source: Source, operation_id: str) -> Bulk:
    """Take an operation back, as far as nobody has touched its jobs since."""
    return await _ended(source, await source.undo(operation_id))


async def _bulk(
    source: Source, action: Action, target: Target, queue: str | None, *, is_dry_run: bool = False
) -> BulkResult:
    options: BulkOptions = {} if queue is None else {"move_to_queue": queue}
    return await source.bulk(
        action.name,
        job_ids=target.job_ids if target.filter is None else None,
        matching=target.filter,
        is_dry_run=is_dry_run,
        **options,
    )


async def _ended(source: Source, bulk: Bulk) -> Bulk:
    waited_s = 0.0
    while not bulk.is_finished and waited_s < FOLLOWED_S_MAX:
        await asyncio.sleep(FOLLOW_S)
        waited_s += FOLLOW_S
        bulk = await source.operation(bulk.id)
    return bulk


def sentence(action: Action, result: BulkResult | Bulk) -> str:
    """What an operation did, in one line."""
    if result.status in {"collecting", "running"}:
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


def undone(result: Bulk) -> str:
    """What an undo did, in one line."""
    said = f"brought back {plural(result.restored, 'job')}"
    if result.not_restored:
        said += f" · {count(result.not_restored)} were touched since and stay as they are"
    return said
