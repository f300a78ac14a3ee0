"""From a filter to SQL: conditions on a job, and the short lists of jobs an index can give.

The table of jobs is `j`, that of payloads `p`. Every value is bound; the only texts that get into
the SQL are names of columns from the tables below.
"""

import json
import re
from typing import Any, Final

from msgspec import Struct

from corvo.view import jq, jq_sql
from corvo.view.filters import Filter, Range
from corvo.view.jq_sql import Sql

# Fields of the filter that are equal to a column, which has an index of (ns, column, id).
_EQUAL: Final[dict[str, str]] = {
    "batch_id": "batch_id",
    "parent_id": "parent_id",
    "chain_id": "chain_id",
    "unique_key": "unique_key",
    "error_fingerprint": "error_fingerprint",
}
_RANGES: Final[dict[str, str]] = {
    "created": "created_ms",
    "scheduled": "scheduled_ms",
    "started": "started_ms",
    "completed": "completed_ms",
    "expire": "expire_ms",
}
_STRUCTURE: Final = re.compile(r'[",:{}\[\]]')


class Conditions(Struct, frozen=True, gc=False):
    """Conditions on the row of a job, and those that need its payload."""

    light: list[Sql]
    heavy: list[Sql]

    def where(self) -> Sql:
        """All of them."""
        return joined([*self.light, *self.heavy])


def joined(parts: list[Sql]) -> Sql:
    """All of some conditions."""
    values: tuple[Any, ...] = ()
    for part in parts:
        values += part.values
    return Sql(" AND ".join(f"({part.text})" for part in parts) or "1", values)


def conditions(wanted: Filter) -> Conditions:
    """Make the conditions of a filter. Raises `RequestError` for a bad `payload_jq`."""
    light = [Sql("j.ns = ?", (wanted.ns,))]
    if wanted.queue is not None:
        light.append(Sql("j.queue = ?", (wanted.queue,)))
    states = wanted.wanted_states
    if states:
        marks = ", ".join("?" * len(states))
        light.append(Sql(f"j.state IN ({marks})", tuple(states)))
    for field, column in _EQUAL.items():
        value = getattr(wanted, field)
        if value is not None:
            light.append(Sql(f"j.{column} = ?", (value,)))
    for field, column in _RANGES.items():
        light += _range(f"j.{column}", getattr(wanted, field))
    light += _numbers(wanted)
    if wanted.group is not None:
        light.append(Sql("j.group_name = ?", (wanted.group,)))
    if wanted.job_id_prefix:
        light.append(_prefix("j.id", wanted.job_id_prefix))
    light += _related(wanted)
    return Conditions(light, _payload(wanted))


def bounds(wanted: Filter, column: str) -> list[Sql]:
    """Make the conditions of a filter on the span of one column of times, if there are any."""
    for field, name in _RANGES.items():
        if name == column:
            return _range(f"j.{column}", getattr(wanted, field))
    return []


def _range(column: str, wanted: Range) -> list[Sql]:
    found: list[Sql] = []
    if wanted.after_ms is not None:
        found.append(Sql(f"{column} > ?", (wanted.after_ms,)))
    if wanted.before_ms is not None:
        found.append(Sql(f"{column} < ?", (wanted.before_ms,)))
    return found


def _numbers(wanted: Filter) -> list[Sql]:
    found: list[Sql] = []
    if wanted.priority is not None:
        found.append(Sql("j.priority = ?", (wanted.priority,)))
    if wanted.attempt_min is not None:
        found.append(Sql("j.attempt >= ?", (wanted.attempt_min,)))
    if wanted.attempt_max is not None:
        found.append(Sql("j.attempt <= ?", (wanted.attempt_max,)))
    if wanted.has_errors is not None:
        found.append(Sql("j.error_count > 0" if wanted.has_errors else "j.error_count = 0"))
    return found


def _prefix(column: str, prefix: str) -> Sql:
    # The text after all that begin with the prefix: no character is above the last one.
    return Sql(f"{column} >= ? AND {column} < ?", (prefix, prefix + "\U0010ffff"))


def _related(wanted: Filter) -> list[Sql]:
    """Conditions that look into tables beside that of jobs."""
    found = [
        Sql("EXISTS (SELECT 1 FROM job_tags t WHERE t.n = j.n AND t.key = ? AND t.value = ?)", pair)
        for pair in wanted.tags.items()
    ]
    if wanted.worker_id is not None:
        text = "EXISTS (SELECT 1 FROM job_workers w WHERE w.n = j.n AND w.worker_id = ?)"
        found.append(Sql(text, (wanted.worker_id,)))
    if wanted.error_contains:
        # Safety: instr and lower take a NUL for a character, LIKE takes it for the end.
        text = "SELECT 1 FROM job_errors e WHERE e.n = j.n AND instr(lower(e.error), ?) > 0"
        needle = ascii_lower(wanted.error_contains)
        found.append(Sql(f"j.error_count > 0 AND EXISTS ({text})", (needle,)))
    return found


def _payload(wanted: Filter) -> list[Sql]:
    found: list[Sql] = []
    if wanted.payload_contains:
        found.append(_payload_contains(wanted.payload_contains))
    if wanted.payload_jq is not None:
        found.append(jq_sql.condition(jq.parse(wanted.payload_jq), "p.payload"))
    return found


def _payload_contains(needle: str) -> Sql:
    """The needle is part of the payload as compact JSON, whatever the case of ASCII letters.

    Cost: writing JSONB as text takes longer than the search. A needle without brackets, quotes,
    colons and commas lies within one value, where compact text and text as received are the same.
    """
    if "\x00" in needle:
        return Sql("0")  # JSON text has none
    is_within = _STRUCTURE.search(needle) is None and needle == needle.strip()
    column = "p.payload_text" if is_within else "ifnull(json(p.payload), p.payload_text)"
    needles = {needle, json.dumps(needle)[1:-1]} if not needle.isascii() else {needle}
    parts = [Sql(f"{column} LIKE ? ESCAPE '!'", (like(text),)) for text in sorted(needles)]
    values = tuple(value for part in parts for value in part.values)
    return Sql(" OR ".join(part.text for part in parts), values)


def like(needle: str) -> str:
    """A LIKE pattern that finds a text anywhere, its wildcards taken as characters."""
    return "%" + re.sub(r"([%_!])", r"!\1", needle) + "%"


def ascii_lower(text: str) -> str:
    """Lower-case what SQLite's lower() does: ASCII letters only."""
    return text.encode().lower().decode()


def shortcuts(wanted: Filter) -> list[Sql]:
    """Queries for `n` that give all candidates of one condition from an index."""
    ns = wanted.ns
    found = [
        Sql("SELECT n FROM job_tags WHERE key = ? AND value = ?", pair)
        for pair in wanted.tags.items()
    ]
    if wanted.worker_id is not None:
        found.append(Sql("SELECT n FROM job_workers WHERE worker_id = ?", (wanted.worker_id,)))
    for field, column in _EQUAL.items():
        value = getattr(wanted, field)
        if value is not None:
            found.append(Sql(f"SELECT n FROM jobs WHERE ns = ? AND {column} = ?", (ns, value)))
    if wanted.job_id_prefix:
        prefix = _prefix("id", wanted.job_id_prefix)
        found.append(Sql(f"SELECT n FROM jobs WHERE {prefix.text}", prefix.values))
    for field, column in _RANGES.items():
        parts = _range(column, getattr(wanted, field))
        if parts:
            ends = joined(parts)
            text = f"SELECT n FROM jobs WHERE ns = ? AND {column} IS NOT NULL AND {ends.text}"
            found.append(Sql(text, (ns, *ends.values)))
    states = wanted.wanted_states
    place = [Sql("ns = ?", (ns,))]
    if wanted.queue is not None:
        place.append(Sql("queue = ?", (wanted.queue,)))
    if states:
        place.append(Sql(f"state IN ({', '.join('?' * len(states))})", tuple(states)))
    if len(place) > 1:
        where = joined(place)
        found.append(Sql(f"SELECT n FROM jobs WHERE {where.text}", where.values))
    return found
