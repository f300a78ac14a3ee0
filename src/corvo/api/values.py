"""What a text value means: durations, instants, names, identifiers, documents.

Every function either returns the value or raises `RequestError` with the field it was called for;
callers deeper in a request put the path in front (`decode.under`).
"""

import re
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final

from msgspec import Raw

from corvo.api.diagnosis import TOO_DEEP
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.ids import parse_id, render_id

# Units come in falling order, each at most once: "1h30m" but neither "30m1h" nor "5s5s".
_DURATION: Final = re.compile(
    r"(?:(\d{1,15})d)?(?:(\d{1,15})h)?(?:(\d{1,15})m)?(?:(\d{1,15})s)?(?:(\d{1,15})ms)?", re.ASCII
)
_DURATION_STEPS_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000, 1)
_DURATION_NAMES: Final = ("d", "h", "m", "s", "ms")
_DURATION_HINT: Final = 'seconds as an integer, or text such as "250ms", "5s", "10m", "1h30m", "7d"'

_INSTANT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:([Zz])|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_INSTANT_HINT: Final = 'RFC 3339 with a time zone, such as "2026-02-11T10:00:00Z"'

_NAME: Final = re.compile(r"[A-Za-z0-9._:/-]{1,200}", re.ASCII)
_NAME_HINT: Final = "1 to 200 characters of A-Z a-z 0-9 . _ : / -"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_KNOWN_NAMES_MAX: Final = 4_096

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NOT_BRACKETS: Final = bytes(code for code in range(256) if code not in b"[]{}")
_BRACKET_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
# A document of fewer bytes cannot open more brackets than the limit allows and close them again.
SHALLOW_BYTES: Final = 2 * limits.JSON_DEPTH_MAX + 1

# Cost: names repeat, and looking one up here is a tenth of matching the pattern. Bounded: when full
# it starts again, so that a client inventing names cannot make it grow.
_known_names: set[str] = set()


def parse_duration(
    value: int | str,
    field: str,
    *,
    least_ms: int = 0,
    most_ms: int = limits.DURATION_MS_MAX,
) -> int:
    """Read a duration in milliseconds; integers are seconds."""
    if isinstance(value, int):
        duration_ms = value * 1_000
        if value < 0:
            raise RequestError("a duration cannot be negative", field=field, hint=_DURATION_HINT)
    else:
        found = _DURATION.fullmatch(value)
        if found is None or not value:
            raise RequestError("this is not a duration", field=field, hint=_DURATION_HINT)
        parts = zip(found.groups(), _DURATION_STEPS_MS, strict=True)
        duration_ms = sum(int(part) * step_ms for part, step_ms in parts if part)
    if not least_ms <= duration_ms <= most_ms:
        span = f"{render_duration(least_ms)} to {render_duration(most_ms)}"
        raise RequestError(f"the duration is outside {span}", field=field)
    return duration_ms


def render_duration(duration_ms: int) -> str:
    """Write a duration the way the API answers it: exact, the largest units first."""
    if duration_ms == 0:
        return "0s"
    parts: list[str] = []
    for step_ms, name in zip(_DURATION_STEPS_MS, _DURATION_NAMES, strict=True):
        count, duration_ms = divmod(duration_ms, step_ms)
        if count:
            parts.append(f"{count}{name}")
    return "".join(parts)


def parse_instant(text: str, field: str) -> int:
    """Read an RFC 3339 instant as milliseconds since 1970; what is finer is cut off."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise RequestError("this is not an instant", field=field, hint=_INSTANT_HINT)
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, _zulu, sign, zone_hours, zone_minutes = found.groups()[6:]
    if sign and (int(zone_hours) > 23 or int(zone_minutes) > 59):
        raise RequestError("this time zone does not exist", field=field, hint=_INSTANT_HINT)
    try:
        # A leap second is the second after: the clock of this system has none.
        whole = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError as error:
        message = "this date or time does not exist"
        raise RequestError(message, field=field, hint=_INSTANT_HINT) from error
    if second > 60:
        raise RequestError("a minute has 60 seconds", field=field, hint=_INSTANT_HINT)
    at_ms = int(whole.timestamp()) * 1_000 + (second // 60) * 1_000
    at_ms += int((fraction or "0").ljust(3, "0")[:3])
    if sign:
        offset_ms = (int(zone_hours) * 60 + int(zone_minutes)) * 60_000
        at_ms += offset_ms if sign == "-" else -offset_ms
    if not 0 <= at_ms <= limits.TIME_MS_MAX:
        raise RequestError("the instant is outside 1970 to 9999", field=field)
    return at_ms


def render_instant(at_ms: int) -> str:
    """Write milliseconds since 1970 as UTC with milliseconds."""
    seconds, fraction_ms = divmod(at_ms, 1_000)
    whole = datetime.fromtimestamp(seconds, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{fraction_ms:03d}Z"


def maybe_instant(at_ms: int) -> str | None:
    """Write an instant; None for zero, which everywhere means: none."""
    return render_instant(at_ms) if at_ms else None


def check_name(name: str, field: str) -> str:
    """Accept the name of a queue, a group or a limit."""
    if name in _known_names:
        return name
    if _NAME.fullmatch(name) is None:
        raise RequestError("this is not a valid name", field=field, hint=_NAME_HINT)
    if len(_known_names) >= _KNOWN_NAMES_MAX:
        _known_names.clear()
    _known_names.add(name)
    return name


def is_known_name(name: str) -> bool:
    """Say whether `check_name` accepted this name before."""
    return name in _known_names


def check_text(text: str, field: str, most_bytes: int) -> str:
    """Accept one line of text: not empty, bounded, without control characters."""
    if not text:
        raise RequestError("this cannot be empty", field=field)
    # Cost: the length in characters bounds the one in bytes; most texts never get encoded here.
    if len(text) * 4 > most_bytes and len(text.encode()) > most_bytes:
        raise RequestError(f"this is longer than {most_bytes} bytes", field=field)
    if not text.isprintable() and _CONTROL.search(text):
        raise RequestError("this has control characters", field=field)
    return text


def check_note(text: str | None, field: str, most_bytes: int = limits.REASON_BYTES_MAX) -> str:
    """Accept a remark of a person: any text, bounded; absent is empty."""
    if text is None:
        return ""
    if len(text.encode()) > most_bytes:
        raise RequestError(f"this is longer than {most_bytes} bytes", field=field)
    return text


def cut_text(text: str | None, most_bytes: int) -> str:
    """Shorten a report of a worker; it is never refused, since the failure itself must get in."""
    if text is None:
        return ""
    if len(text) * 4 <= most_bytes:
        return text
    encoded = text.encode()
    return text if len(encoded) <= most_bytes else encoded[:most_bytes].decode(errors="ignore")


def check_tags(tags: dict[str, str], field: str = "tags") -> dict[str, str] | None:
    """Accept tags: keys are one line of text, values any text, both bounded."""
    if len(tags) > limits.TAGS_COUNT_MAX:
        raise RequestError(f"more than {limits.TAGS_COUNT_MAX} tags", field=field)
    for key, value in tags.items():
        check_text(key, field, limits.NAME_BYTES_MAX)
        if len(value) * 4 > limits.TAG_VALUE_BYTES_MAX:
            check_note(value, field, limits.TAG_VALUE_BYTES_MAX)
    return tags or None


def check_document(raw: Raw, field: str, most_bytes: int = limits.PAYLOAD_BYTES_MAX) -> bytes:
    """Accept a JSON document as the bytes it was sent as.

    The decoder has checked the syntax (it refuses NaN, Infinity and lone surrogates) and `decode`
    has checked that the body is UTF-8; what is left are size and depth.
    """
    document = bytes(raw)
    if len(document) > most_bytes:
        raise RequestError(
            f"this is {len(document)} bytes; at most {most_bytes} are accepted",
            code="PAYLOAD_TOO_LARGE",
            status=413,
            field=field,
            hint="store large data elsewhere and send a reference to it",
        )
    if len(document) > SHALLOW_BYTES and is_too_deep(document):
        raise RequestError(TOO_DEEP, field=field)
    return document


def maybe_document(
    raw: Raw, field: str, most_bytes: int = limits.PAYLOAD_BYTES_MAX
) -> bytes | None:
    """Accept an optional document; absent and null are None."""
    document = check_document(raw, field, most_bytes)
    return None if not document or document == b"null" else document


def is_too_deep(document: bytes) -> bool:
    """Say whether a JSON document nests deeper than allowed.

    Cost: two counts for almost every document; only one with many brackets is looked at closely,
    and then in C: strings and everything that is no bracket are dropped, the rest is summed up.
    """
    if document.count(b"[") + document.count(b"{") <= limits.JSON_DEPTH_MAX:
        return False
    brackets = _STRING.sub(b"", document).translate(None, _NOT_BRACKETS)
    depths = accumulate(map(_BRACKET_STEP.__getitem__, brackets))
    return max(depths, default=0) > limits.JSON_DEPTH_MAX


def check_id(prefix: str, text: str, field: str) -> bytes:
    """Read an identifier of the given kind."""
    identifier = parse_id(prefix, text)
    if identifier is None:
        hint = f"{render_id(prefix, bytes(16))} has the right form"
        raise RequestError("this is not an identifier", field=field, hint=hint)
    return identifier
