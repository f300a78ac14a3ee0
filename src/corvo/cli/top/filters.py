"""The line one types after `/` on the Jobs page, read as the filter of a search."""

from typing import Any, Final, cast

from corvo.errors import CorvoError
from corvo_sdk.types import SearchFilter

LENGTH_MAX = 500
STATES: Final = (
    "pending",
    "active",
    "scheduled",
    "retrying",
    "held",
    "dead",
    "completed",
    "cancelled",
)
# What one types, and what a search calls it.
FIELDS: Final[dict[str, str]] = {
    "queue": "queue",
    "error": "error_contains",
    "worker": "worker_id",
    "id": "job_id_prefix",
    "batch": "batch_id",
    "group": "group",
    "priority": "priority",
    "unique": "unique_key",
    "kind": "error_fingerprint",
    "jq": "payload_jq",
}
HELP = "queue: state: tag:k=v error: worker: id: kind: priority: batch: group: unique: jq:"


class FilterError(CorvoError):
    """A filter can not be read."""

    code = "BAD_REQUEST"


def parse(text: str) -> SearchFilter:
    """Read `queue:emails state:dead,retrying tag:tenant=acme hello` as the filter of a search.

    Words without a name are looked for in the payload, together and in their order. A value with
    spaces stands in double quotes: `jq:".amount > 100"`.
    """
    if len(text) > LENGTH_MAX:
        raise FilterError(f"a filter has at most {LENGTH_MAX} characters")
    found: dict[str, Any] = {}
    words: list[str] = []
    for name, value in _terms(text):
        if not name:
            words.append(value)
        elif name == "state":
            found["state"] = _states(value)
        elif name == "tag":
            key, equals, tag = value.partition("=")
            if not equals or not key:
                raise FilterError(f"tag:{value} lacks its value", hint="tag:tenant=acme")
            found.setdefault("tags", {})[key] = tag
        elif name in FIELDS:
            found[FIELDS[name]] = value
        else:
            raise FilterError(f"{name}: is not a filter", hint=HELP)
    if len(words) == 1 and words[0].startswith("job_"):
        found["job_id_prefix"] = words[0]
    elif words:
        found["payload_contains"] = " ".join(words)
    return cast("SearchFilter", found)


def _states(value: str) -> list[str]:
    states = [part for part in value.split(",") if part]
    for state in states:
        if state not in STATES:
            raise FilterError(f"{state} is not a state", hint=" ".join(STATES))
    if not states:
        raise FilterError("state: lacks its value", hint=" ".join(STATES))
    return states


def _terms(text: str) -> list[tuple[str, str]]:
    """Split into (name, value); the name is empty for a bare word."""
    found: list[tuple[str, str]] = []
    rest = text.strip()
    while rest:
        name = ""
        head = rest.split(None, 1)[0]
        before, colon, _ = head.partition(":")
        if colon and before.isidentifier():
            name, rest = before, rest[len(before) + 1 :]
        if rest.startswith('"'):
            value, quote, rest = rest[1:].partition('"')
            if not quote:
                raise FilterError("a double quote is not closed")
        else:
            value = rest.split(None, 1)[0] if rest and not rest[0].isspace() else ""
            rest = rest[len(value) :]
        if name and not value:
            raise FilterError(f"{name}: lacks its value", hint=HELP)
        found.append((name, value))
        rest = rest.lstrip()
    return found


def quoted(value: str) -> str:
    """A value as it is typed: in quotes when it has spaces."""
    return f'"{value}"' if " " in value or not value else value
