"""Schedules that an app declares, and bringing the server's in line with them.

What is as declared is left alone: replacing a schedule lets it stand at its next slot, so a slot
that is due at that very moment would be lost. A pause by an operator survives, unless the
declaration itself says `paused`.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, cast
from urllib.parse import quote

from msgspec import Raw, Struct
from msgspec.json import decode

from corvo_sdk.duration import Duration, milliseconds, render
from corvo_sdk.errors import AlreadyExistsError, NotFoundError
from corvo_sdk.options import instant
from corvo_sdk.task import TaskCall

if TYPE_CHECKING:
    from corvo_sdk.aio import AsyncClient
    from corvo_sdk.client import Client

Overlap = Literal["allow", "skip", "queue", "cancel"]
CatchUp = Literal["skip", "last", "all"]
ScheduleChange = Literal["created", "updated", "unchanged"]


class ScheduleOptions(TypedDict, total=False):
    """What can be said about a schedule besides what and when."""

    timezone: str
    overlap: Overlap
    catch_up: CatchUp
    jitter: Duration
    start_at: datetime
    end_at: datetime
    paused: bool


class Schedule(Struct, frozen=True):
    """A declared schedule; `body` is what the API takes."""

    name: str
    body: dict[str, Any]


_PATH: Final = "/api/v1/schedules"
_STRICT: Final = {"strict": True}
_DURATIONS: Final = frozenset(
    {"jitter", "expire_after", "retry_base_delay", "retry_max_delay", "unique_period"}
)
_INSTANTS: Final = frozenset({"start_at", "end_at"})
# What the server takes for a field that is left out; an option taken out of a declaration shows by
# the difference. Unique period and mode mean nothing without a key, and then are not looked at.
_DEFAULTS: Final[dict[str, Any]] = {
    "timezone": "UTC",
    "overlap": "allow",
    "catch_up": "last",
    "jitter": 0,
    "start_at": None,
    "end_at": None,
    "priority": "normal",
    "max_retries": 3,
    "retry_backoff": "exponential",
    "retry_base_delay": 5,
    "retry_max_delay": 600,
    "retry_jitter": 0,
    "expire_after": None,
    "unique_key": None,
    "group": None,
    "limit_key": None,
    "limits": [],
    "cost": 1,
}
# What an enqueue can have and a schedule can not.
_REFUSED: Final = (
    "scheduled_at",
    "delay",
    "depends_on",
    "on_dependency_failure",
    "parent_id",
    "hold",
    "idempotency_key",
)


def declare(cron: str, call: TaskCall[Any], name: str, options: ScheduleOptions) -> Schedule:
    """Make the declaration of a schedule."""
    job = dict(call.options)
    job.pop("trace", None)  # a declaration is no part of anybody's request
    for refused in _REFUSED:
        if refused in job:
            raise ValueError(f"schedule {name!r}: a schedule cannot have {refused}")
    body: dict[str, Any] = {"name": name, "cron": cron, "queue": call.queue, **job}
    for option, value in cast("Mapping[str, Any]", options).items():
        if option in _DURATIONS:
            body[option] = render(milliseconds(value, option))
        elif isinstance(value, datetime):
            body[option] = instant(value)
        else:
            body[option] = value
    return Schedule(name, {**body, "payload": Raw(call.payload)})


def reconcile(client: "Client", declared: Iterable[Schedule]) -> dict[str, ScheduleChange]:
    """Create what is missing and replace what differs."""
    changes: dict[str, ScheduleChange] = {}
    for schedule in declared:
        path = f"{_PATH}/{quote(schedule.name, safe='')}"
        try:
            found = client.request("GET", path).body
        except NotFoundError:
            try:
                client.request("POST", _PATH, query=_STRICT, body=schedule.body)
                changes[schedule.name] = "created"
                continue
            except AlreadyExistsError:
                # Another worker was faster, perhaps with an older declaration.
                found = client.request("GET", path).body
        changes[schedule.name] = "unchanged"
        if differs(schedule, found):
            client.request("PUT", path, query=_STRICT, body=schedule.body)
            changes[schedule.name] = "updated"
    return changes


async def areconcile(
    client: "AsyncClient", declared: Iterable[Schedule]
) -> dict[str, ScheduleChange]:
    """Create what is missing and replace what differs."""
    changes: dict[str, ScheduleChange] = {}
    for schedule in declared:
        path = f"{_PATH}/{quote(schedule.name, safe='')}"
        try:
            found = (await client.request("GET", path)).body
        except NotFoundError:
            try:
                await client.request("POST", _PATH, query=_STRICT, body=schedule.body)
                changes[schedule.name] = "created"
                continue
            except AlreadyExistsError:
                found = (await client.request("GET", path)).body
        changes[schedule.name] = "unchanged"
        if differs(schedule, found):
            await client.request("PUT", path, query=_STRICT, body=schedule.body)
            changes[schedule.name] = "updated"
    return changes


def differs(schedule: Schedule, found: Mapping[str, Any]) -> bool:
    """Say whether the server's schedule is another one than the declared."""
    wanted = {**_DEFAULTS, **schedule.body}
    wanted["payload"] = decode(wanted["payload"])
    wanted["cron"] = " ".join(wanted["cron"].split())
    return any(
        _plain(name, value) != _plain(name, found.get(name)) for name, value in wanted.items()
    )


def _plain(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _DURATIONS:
        return milliseconds(value, name)
    if name in _INSTANTS:
        # What is finer than a millisecond is cut off by both sides.
        return int(datetime.fromisoformat(value).timestamp() * 1_000)
    return value
