"""How words on the command line become values: documents, tags, instants, durations, queues."""

import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

import click
import msgspec
from click.shell_completion import CompletionItem

from corvo.cli.failure import CallError, SetupError, UnreachableError

STRICT: Final = {"strict": "true"}  # a misspelt field is an error, never silently ignored
PRIORITIES: Final = ("critical", "high", "normal")
FILE_BYTES_MAX: Final = 16 << 20  # no call takes more
LINE_BYTES_MAX: Final = 4 << 20
_DURATION: Final = re.compile(
    r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?", re.ASCII
)
_STEPS: Final = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)
_COMPLETION_SECONDS: Final = 1.0
_JSON_HINT: Final = 'quote it for the shell: \'{"to": "a@example.com"}\''


class JsonError(ValueError):
    """What was read is no JSON; says why."""


def parse_json(content: bytes) -> Any:
    """Read JSON that a person or another program wrote. Raises JsonError."""
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise JsonError(f"is not JSON: {error}") from error
    except RecursionError as error:
        raise JsonError("is not JSON: it is too deep") from error


def document(text: str, name: str = "PAYLOAD") -> object:
    """Read the JSON of an argument; `-` reads standard input, `@FILE` a file."""
    source = _source(text, name)
    try:
        parse_json(source)
    except JsonError as error:
        raise click.BadParameter(f"{error}; {_JSON_HINT}", param_hint=name) from error
    # The bytes go out as they came in, so that large numbers keep every digit.
    return msgspec.Raw(source)


def _source(text: str, name: str) -> bytes:
    if text == "-":
        content = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
    elif text.startswith("@"):
        try:
            with Path(text[1:]).open("rb") as file:
                content = file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            sentence = f"{text[1:]} can not be read: {error.strerror}"
            raise click.BadParameter(sentence, param_hint=name) from error
    else:
        return text.encode(errors="surrogateescape")
    if len(content) > FILE_BYTES_MAX:
        raise click.BadParameter(f"is larger than {FILE_BYTES_MAX} bytes", param_hint=name)
    return content


def json_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that hold something, with their numbers."""
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(line) > LINE_BYTES_MAX:
            raise click.UsageError(f"line {number} is longer than {LINE_BYTES_MAX} bytes")
        if line.strip():
            yield number, line.strip()


def tags_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """Read NAME=VALUE pairs."""
    tags: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint="--tag")
        tags[name] = value
    return tags


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given; what was not given stays the server's to decide."""
    return {name: value for name, value in options.items() if value not in (None, (), "")}


def instant(text: str) -> str:
    """Read an instant as people write it: a date alone, or a time without zone, is local time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a date or time; 2026-02-10 is") from error
    if moment.tzinfo is None:
        moment = moment.astimezone()
    return moment.isoformat()


def words(text: str | None) -> list[str] | None:
    """Split a list with commas."""
    if text is None:
        return None
    return [word.strip() for word in text.split(",") if word.strip()]


class Duration(click.ParamType[float]):
    """A span of time such as 30s, 5m or 1h30m; a number alone is seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return seconds."""
        if isinstance(value, int | float):
            return float(value)
        text = str(value)
        if text.isascii() and text.isdigit() and len(text) <= 12:
            return float(text)
        found = _DURATION.fullmatch(text)
        if found is None or not text:
            self.fail(f"{text!r} is not a duration; 30s, 5m and 1h30m are", param, ctx)
        parts = zip(found.groups(), _STEPS, strict=True)
        return sum(int(part) * step for part, step in parts if part)


DURATION: Final = Duration()


def complete_queue(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of queues for the shell; nothing when no server answers at once."""
    from corvo.cli.client import API, Client  # noqa: PLC0415 - only while a shell completes
    from corvo.cli.session import session_of  # noqa: PLC0415

    given_url = context.params.get("url")
    try:
        session = session_of(given_url, None, context.params.get("profile"), None)
        client = Client(session.url, api_key=session.api_key, timeout_seconds=_COMPLETION_SECONDS)
        listed = client.call("GET", f"{API}/queues").body
    except (CallError, UnreachableError, SetupError):
        return []
    names = [queue["name"] for queue in listed]
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


queue_argument = click.argument("queue", shell_complete=complete_queue)
