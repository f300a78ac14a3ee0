"""Queues and named limits.

Settings are stated, not counted, so saying them twice is saying them once. Clearing or removing a
queue a second time could hit jobs that were enqueued since.
"""

from collections.abc import Mapping
from typing import Any, Final

from corvo_sdk.protocol.call import Call, Repeat
from corvo_sdk.protocol.endpoints.making import command, given, read, reader, rendered, write
from corvo_sdk.types.queues import (
    Drained,
    Limit,
    LimitChange,
    Queue,
    QueueChange,
    Removal,
    SettingsChange,
)
from corvo_sdk.values import Duration, maybe_duration, segment

_QUEUES: Final = reader(list[Queue])
_QUEUE: Final = reader(Queue)
_CHANGE: Final = reader(QueueChange)
_DRAINED: Final = reader(Drained)
_REMOVAL: Final = reader(Removal)
_SETTINGS: Final = reader(SettingsChange)
_LIMITS: Final = reader(list[Limit])
_LIMIT: Final = reader(Limit)
_LIMIT_CHANGE: Final = reader(LimitChange)
_TWICE: Final = Repeat.ALWAYS


def queues() -> Call[list[Queue]]:
    """`GET /queues`."""
    return read("/queues", _QUEUES)


def queue(name: str) -> Call[Queue]:
    """`GET /queues/{name}`."""
    return read(f"/queues/{segment(name)}", _QUEUE)


def configure_queue(name: str, settings: Mapping[str, Any]) -> Call[SettingsChange]:
    """`PATCH /queues/{name}`."""
    path = f"/queues/{segment(name)}"
    return write("PATCH", path, rendered(settings), _SETTINGS, repeat=_TWICE)


def delete_queue(name: str, *, confirm: bool) -> Call[Removal]:
    """`DELETE /queues/{name}`."""
    suffix = "?confirm=true" if confirm else ""
    return command("DELETE", f"/queues/{segment(name)}{suffix}", _REMOVAL)


def pause(name: str) -> Call[QueueChange]:
    """`POST /queues/{name}/pause`."""
    return command("POST", f"/queues/{segment(name)}/pause", _CHANGE, repeat=_TWICE)


def resume(name: str) -> Call[QueueChange]:
    """`POST /queues/{name}/resume`."""
    return command("POST", f"/queues/{segment(name)}/resume", _CHANGE, repeat=_TWICE)


def drain(name: str) -> Call[Drained]:
    """`POST /queues/{name}/drain`."""
    return command("POST", f"/queues/{segment(name)}/drain", _DRAINED, repeat=_TWICE)


def clear(name: str) -> Call[Removal]:
    """`POST /queues/{name}/clear`."""
    return command("POST", f"/queues/{segment(name)}/clear", _REMOVAL)


def set_concurrency(name: str, maximum: int | None) -> Call[SettingsChange]:
    """`POST /queues/{name}/concurrency`."""
    path = f"/queues/{segment(name)}/concurrency"
    return write("POST", path, {"max": maximum}, _SETTINGS, repeat=_TWICE)


def throttle(
    name: str, rate: int, *, period: Duration | None, burst: int | None
) -> Call[SettingsChange]:
    """`POST /queues/{name}/throttle`."""
    body = given(rate=rate, period=maybe_duration(period), burst=burst)
    return write("POST", f"/queues/{segment(name)}/throttle", body, _SETTINGS, repeat=_TWICE)


def unthrottle(name: str) -> Call[SettingsChange]:
    """`DELETE /queues/{name}/throttle`."""
    return command("DELETE", f"/queues/{segment(name)}/throttle", _SETTINGS, repeat=_TWICE)


def limits() -> Call[list[Limit]]:
    """`GET /limits`."""
    return read("/limits", _LIMITS)


def limit(name: str) -> Call[Limit]:
    """`GET /limits/{name}`."""
    return read(f"/limits/{segment(name)}", _LIMIT)


def set_limit(
    name: str,
    *,
    maximum: int | None,
    rate: int | None,
    period: Duration | None,
    burst: int | None,
) -> Call[LimitChange]:
    """`PUT /limits/{name}`."""
    body = given(max=maximum, rate=rate, period=maybe_duration(period), burst=burst)
    return write("PUT", f"/limits/{segment(name)}", body, _LIMIT_CHANGE, repeat=_TWICE)


def delete_limit(name: str) -> Call[LimitChange]:
    """`DELETE /limits/{name}`."""
    return command("DELETE", f"/limits/{segment(name)}", _LIMIT_CHANGE)
