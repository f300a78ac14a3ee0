"""Which job a test means: parts of its payload, and the words that say so in an error."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from corvo_sdk.task import Task

# A part of a payload, or a question about it.
Match = Mapping[str, Any] | Callable[[Any], bool]
TaskOrName = Task[..., Any] | str | None


class Wanted(msgspec.Struct, frozen=True):
    """The jobs a test asks about; what is None does not matter."""

    task: TaskOrName = None
    match: Match | None = None
    queue: str | None = None
    state: str | None = None
    arguments: Mapping[str, Any] = {}

    def fits(self, tags: Mapping[str, str], queue: str, state: str, payload: Any) -> bool:
        """Whether a job is one of them."""
        name = name_of(self.task)
        return (
            (name is None or tags.get("task") == name)
            and self.queue in {None, queue}
            and self.state in {None, state}
            and _fits(payload, self.match)
            and _fits(payload, self.arguments)
        )

    def render(self) -> str:
        """Say it in words."""
        name = name_of(self.task)
        parts = [
            f"task {name}" if name else "",
            f"in {self.queue}" if self.queue else "",
            self.state or "",
            f"matching {self.match!r}" if self.match is not None else "",
            f"with {dict(self.arguments)!r}" if self.arguments else "",
        ]
        return ", ".join(part for part in parts if part) or "any job"


def name_of(task: TaskOrName) -> str | None:
    return task.name if isinstance(task, Task) else task


def _fits(payload: Any, match: Match | None) -> bool:
    """Whether a payload has what is asked for; objects are compared in part, all else whole."""
    if match is None:
        return True
    if callable(match):
        return match(payload)
    wanted = msgspec.to_builtins(match, str_keys=True)
    return all(
        isinstance(payload, dict) and name in payload and _has(payload[name], value)
        for name, value in wanted.items()
    )


def _has(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict) or not isinstance(value, dict):
        return bool(value == wanted)
    parts, found = cast("dict[str, Any]", wanted), cast("dict[str, Any]", value)
    return all(name in found and _has(found[name], part) for name, part in parts.items())
