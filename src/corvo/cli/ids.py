"""Job ids from a pipe: words, a JSON array, or lines of JSON; of an object its id is taken.

Whatever `corvo search` prints can be read here, and so can what jq or grep made of it.
"""

from typing import IO, Any, Final, cast

import click

from corvo.cli.arguments import JsonError, parse_json

IDS_BYTES_MAX: Final = 1 << 30  # five million jobs with their payloads are less than this


def read_ids(file: IO[bytes]) -> list[str]:
    """Read all ids, each once, in their order."""
    content = file.read(IDS_BYTES_MAX + 1)
    if len(content) > IDS_BYTES_MAX:
        raise click.UsageError(f"more than {IDS_BYTES_MAX} bytes on standard input")
    return parse_ids(content)


def parse_ids(content: bytes) -> list[str]:
    """Find the ids in whatever form they come."""
    text = content.strip()
    if not text or text == b"null":
        return []
    if text[:1] in b'[{"':
        found = [_id_of(item) for item in _items(text)]
    else:
        try:
            found = text.decode().split()
        except UnicodeDecodeError as error:
            raise click.UsageError("standard input is neither ids nor JSON") from error
    return list(dict.fromkeys(found))


def _items(text: bytes) -> list[Any]:
    try:
        whole: Any = parse_json(text)
    except JsonError:
        return _lines(text)
    if isinstance(whole, dict):
        page = cast("dict[str, Any]", whole)
        # The answer of a search as the API gives it, saved by somebody with curl.
        return page["jobs"] if isinstance(page.get("jobs"), list) else [page]
    return cast("list[Any]", whole) if isinstance(whole, list) else [whole]


def _lines(text: bytes) -> list[Any]:
    items: list[Any] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            items.append(parse_json(line))
        except JsonError as error:
            raise click.UsageError(f"line {number} of standard input {error}") from error
    return items


def _id_of(item: Any) -> str:
    if isinstance(item, dict):
        members = cast("dict[str, Any]", item)
        item = members.get("id", members.get("job_id"))
    if not isinstance(item, str) or not item:
        raise click.UsageError("an item on standard input has no id: neither text nor an object")
    return item
