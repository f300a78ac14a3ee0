"""What can be said about the jobs of a task: once where it is declared, again at each enqueue.

Names here are those of the decorator; `wire_options` turns them into those of the API. Options with
a place for arguments (`unique`, `group`, `limit_key`) are templates: `"invoice:{invoice_id}"`.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack, cast, get_args

import msgspec
from msgspec import Struct

from corvo_sdk.control import aware
from corvo_sdk.duration import Duration, milliseconds, render
from corvo_sdk.payload import Encoded
from corvo_sdk.schema import encode_hook

Priority = Literal["critical", "high", "normal"]
Backoff = Literal["none", "fixed", "linear", "exponential"]
UniqueMode = Literal["until_done", "until_start", "window", "replace"]
DependencyPolicy = Literal["fail", "run", "hold"]

# True: the task and its arguments; text: a template; a function: called with the arguments.
UniqueKey: TypeAlias = bool | str | Callable[..., str]

TASK_TAG: Final = "task"  # names the task of a job; every enqueue of a task sets it
_HASH_DIGITS: Final = 32


class Unique(Struct, frozen=True):
    """At most one job with the same key at a time, in one queue.

    `period` bounds how long a key is held; `mode` says until when. See docs/sdk/tasks.md.
    """

    key: UniqueKey = True
    period: Duration | None = None
    mode: UniqueMode | None = None


class CallOptions(TypedDict, total=False):
    """What `with_options` takes: everything about one enqueue."""

    queue: str
    priority: Priority
    retries: int
    backoff: Backoff
    base_delay: Duration
    max_delay: Duration
    jitter: float
    unique: UniqueKey | Unique | None
    tags: Mapping[str, str]
    expire_after: Duration
    group: str
    limit_key: str
    limits: Sequence[str]
    cost: int
    at: datetime
    delay: Duration
    depends_on: Sequence[str]
    on_dependency_failure: DependencyPolicy
    parent_id: str
    hold: bool
    idempotency_key: str


class TaskOptions(TypedDict, total=False):
    """What the decorator takes besides queue and name."""

    priority: Priority
    retries: int
    backoff: Backoff
    base_delay: Duration
    max_delay: Duration
    jitter: float
    timeout: Duration
    lease: Duration
    unique: UniqueKey | Unique | None
    tags: Mapping[str, str]
    expire_after: Duration
    group: str
    limit_key: str
    limits: Sequence[str]
    cost: int
    process: bool
    at_most_once: bool


class Options(Struct, frozen=True, kw_only=True):
    """The options of a declared task, checked; durations in milliseconds."""

    job: dict[str, Any]  # what every job of the task gets, in the names of `CallOptions`
    timeout_ms: int | None = None  # of one attempt, kept by the worker
    lease_ms: int | None = None  # what the worker asks for when it fetches
    process: bool = False  # run in a process instead of a thread
    at_most_once: bool = False  # acknowledge before running


_RENAMED: Final = {
    "retries": "max_retries",
    "backoff": "retry_backoff",
    "base_delay": "retry_base_delay",
    "max_delay": "retry_max_delay",
    "jitter": "retry_jitter",
}
_DURATIONS: Final = frozenset({"base_delay", "max_delay", "expire_after"})
_TEMPLATES: Final = frozenset({"group", "limit_key"})
_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "priority": get_args(Priority),
    "backoff": get_args(Backoff),
    "on_dependency_failure": get_args(DependencyPolicy),
}
_KNOWN: Final = frozenset(CallOptions.__annotations__)


def task_options(**given: Unpack[TaskOptions]) -> Options:
    """Check the options of a declaration."""
    job = cast("dict[str, Any]", dict(given))
    timeout_ms = _taken(job, "timeout")
    lease_ms = _taken(job, "lease")
    process, at_most_once = job.pop("process", False), job.pop("at_most_once", False)
    return Options(
        job=check_options(job),
        timeout_ms=timeout_ms,
        lease_ms=lease_ms,
        process=process,
        at_most_once=at_most_once,
    )


def check_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse what can be seen to be wrong without a job: names, choices, durations, zones."""
    for name, value in given.items():
        if name not in _KNOWN:
            known = ", ".join(sorted(_KNOWN))
            raise TypeError(f"there is no option {name!r}; known are {known}")
        if name in _CHOICES and value not in _CHOICES[name]:
            raise ValueError(f"{name} is {value!r}; it is one of {', '.join(_CHOICES[name])}")
        if name in _DURATIONS or name == "delay":
            milliseconds(value, name)
        if name == "at":
            aware(value, name)
        if name == "unique":
            _unique_of(value)
    if "at" in given and "delay" in given:
        raise TypeError("at and delay both say when; give one of them")
    return dict(given)


def merge(first: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """Lay options over others; tags are joined, and a new time replaces the old one."""
    merged = {**first, **then}
    if "at" in then:
        merged.pop("delay", None)
    if "delay" in then:
        merged.pop("at", None)
    if "tags" in first and "tags" in then:
        merged["tags"] = {**first["tags"], **then["tags"]}
    return merged


def wire_options(task: str, options: Mapping[str, Any], encoded: Encoded) -> dict[str, Any]:
    """Say the options of one job in the names of the API; the queue is not among them."""
    wire: dict[str, Any] = {}
    for name, value in options.items():
        if name in {"queue", "unique", "at", "delay", "tags"} or value is None:
            continue
        if name in _DURATIONS:
            wire[_RENAMED.get(name, name)] = render(milliseconds(value, name))
        elif name in _TEMPLATES:
            wire[name] = fill(task, name, value, encoded.arguments)
        else:
            wire[_RENAMED.get(name, name)] = value
    wire["tags"] = {**options.get("tags", {}), TASK_TAG: task}
    if "at" in options:
        wire["scheduled_at"] = instant(options["at"])
    elif "delay" in options:
        # Counted by the server: its clock and this one may differ.
        wire["delay"] = render(milliseconds(options["delay"], "delay"))
    unique = _unique_of(options.get("unique"))
    if unique is not None:
        wire["unique_key"] = _key(task, unique.key, encoded)
        if unique.period is not None:
            wire["unique_period"] = render(milliseconds(unique.period, "unique period"))
        if unique.mode is not None:
            wire["unique_mode"] = unique.mode
    return wire


def instant(value: datetime) -> str:
    """Write an instant as the API reads it."""
    return aware(value, "at").astimezone(UTC).isoformat(timespec="milliseconds")


def fill(task: str, option: str, template: str, arguments: Mapping[str, Any]) -> str:
    """Put arguments into a template; fields of a single object are known by their names, too."""
    if "{" not in template:
        return template
    names = dict(arguments)
    if len(arguments) == 1:
        names = {**_fields(next(iter(arguments.values()))), **names}
    try:
        return template.format_map(names)
    except (KeyError, IndexError, AttributeError, ValueError) as error:
        known = ", ".join(sorted(names)) or "none"
        problem = f"the template {template!r} of {option} does not fit its arguments ({known})"
        raise ValueError(f"{task}: {problem}: {error!r}") from error


def _fields(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return dict(cast("Mapping[str, Any]", value))
    names = getattr(value, "__struct_fields__", None) or getattr(value, "__dict__", {})
    return {name: getattr(value, name) for name in names}


def _unique_of(value: Any) -> Unique | None:
    if value is None or value is False:
        return None
    unique: Unique = value if isinstance(value, Unique) else Unique(value)
    key: object = unique.key
    if key is not True and not isinstance(key, str) and not callable(key):
        raise TypeError("unique is True, a template, a function giving the key, or Unique(...)")
    if unique.mode is not None and unique.mode not in get_args(UniqueMode):
        modes = ", ".join(get_args(UniqueMode))
        raise ValueError(f"the mode of unique is {unique.mode!r}; it is one of {modes}")
    if unique.period is not None:
        milliseconds(unique.period, "unique period")
    return unique


def _key(task: str, key: UniqueKey, encoded: Encoded) -> str:
    if isinstance(key, str):
        return fill(task, "unique", key, encoded.arguments)
    if callable(key):
        return key(**encoded.arguments)
    # Neither the order of members nor a default that was spelt out makes a difference.
    plain = msgspec.json.decode(encoded.payload)
    if encoded.left_out:
        plain = {**encoded.left_out, **plain}
    canonical = msgspec.json.encode(plain, enc_hook=encode_hook, order="sorted")
    digest = hashlib.sha256(canonical).hexdigest()
    return f"{task}:{digest[:_HASH_DIGITS]}"


def _taken(given: dict[str, Any], name: str) -> int | None:
    value = given.pop(name, None)
    if value is None:
        return None
    duration_ms = milliseconds(value, name)
    if duration_ms == 0:
        raise ValueError(f"{name} is zero; leave it out for none")
    return duration_ms
