"""Which events a stream wants: by queue, by job, by type; lists, and prefixes ending in a star."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from corvo.api.values import check_name
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.event import EVENT_NAMES, Event
from corvo.model.ids import JOB, parse_id

_TYPES: Final = {name: number for number, name in enumerate(EVENT_NAMES)}


class Filter(Struct, frozen=True):
    """Conditions that all must hold; None asks for nothing in particular.

    Safety: there is no filter without a namespace, so nobody can forget to ask for the caller's.
    """

    ns: int
    types: frozenset[int] | None = None
    queues: frozenset[str] | None = None
    queue_prefixes: tuple[str, ...] = ()  # part of the condition on queues
    jobs: frozenset[bytes] | None = None

    @property
    def is_open(self) -> bool:
        """Whether every event of the namespace passes."""
        return self.types is None and self.queues is None and self.jobs is None

    def passes(self, event: Event) -> bool:
        """Whether an event is wanted."""
        if event.ns != self.ns or (self.jobs is not None and event.job not in self.jobs):
            return False
        if self.types is not None and event.type not in self.types:
            return False
        return self.queues is None or self.passes_queue(event.queue)

    def passes_queue(self, queue: str) -> bool:
        """Whether events of a queue may be wanted."""
        if self.queues is None or queue in self.queues:
            return True
        return bool(self.queue_prefixes) and queue.startswith(self.queue_prefixes)


def parse_filter(ns: int, query: Callable[[str], str | None]) -> Filter:
    """Read `queue`, `job_id` and `type` for a caller of this namespace. Raises `RequestError`."""
    queues, prefixes = None, ()
    listed = _listed(query("queue"), "queue")
    if listed is not None:
        queues = frozenset(check_name(text, "queue") for text in listed if text[-1] != "*")
        prefixes = tuple(_prefix(text, "queue") for text in listed if text[-1] == "*")
    jobs = None
    listed = _listed(query("job_id"), "job_id")
    if listed is not None:
        jobs = frozenset(_job(text) for text in listed)
    types = None
    listed = _listed(query("type"), "type")
    if listed is not None:
        types = frozenset(number for text in listed for number in _types(text))
    return Filter(ns, types, queues, prefixes, jobs)


def _listed(text: str | None, field: str) -> list[str] | None:
    if text is None or text in ("", "*"):
        return None
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise RequestError("the list has an empty item", field=field)
    if len(found) > limits.FILTER_VALUES_MAX:
        raise RequestError(
            f"the list names more than {limits.FILTER_VALUES_MAX} values",
            field=field,
            hint="use a prefix such as emails.*, or open another stream",
        )
    return found


def _prefix(text: str, field: str) -> str:
    prefix = text[:-1]
    if prefix:
        check_name(prefix, field)
    return prefix


def _job(text: str) -> bytes:
    identifier = parse_id(JOB, text)
    if identifier is None:
        raise RequestError(f"{text[:64]} is not the id of a job", field="job_id")
    return identifier


def _types(text: str) -> list[int]:
    if text[-1] == "*":
        found = [number for name, number in _TYPES.items() if name.startswith(text[:-1])]
    else:
        found = [_TYPES[text]] if text in _TYPES else []
    if not found:
        hint = f"one of {', '.join(EVENT_NAMES)}; or a prefix such as queue.*"
        raise RequestError(f"there is no event of type {text[:64]}", field="type", hint=hint)
    return found
