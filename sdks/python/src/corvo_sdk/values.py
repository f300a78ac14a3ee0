"""Values as the server writes them: durations, instants, segments of a path, query strings."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

from corvo_sdk.errors import ValidationError

# Seconds, a timedelta, or text such as "250ms", "5s", "1h30m".
Duration = int | float | str | timedelta
# A datetime with a zone, or RFC 3339.
Instant = datetime | str

API: Final = "/api/v1"


def duration_text(value: Duration) -> str:
    """Render a duration; text is passed on, for the server to judge."""
    if isinstance(value, str):
        return value
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not 0 <= seconds < 1e12:
        raise ValidationError(f"a duration of {value!r} is out of range")
    return f"{round(seconds * 1_000)}ms"


def maybe_duration(value: Duration | None) -> str | None:
    return None if value is None else duration_text(value)


def instant_text(value: Instant) -> str:
    """Render an instant; without a zone nobody knows when it is."""
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise ValidationError(
            f"the time {value.isoformat()} has no zone",
            hint="Use an aware datetime, such as datetime.now(UTC).",
        )
    return value.isoformat()


def maybe_instant(value: Instant | None) -> str | None:
    return None if value is None else instant_text(value)


def segment(text: str) -> str:
    """Quote one segment of a path."""
    if not text or text in {".", ".."}:
        raise ValidationError(f"{text!r} can not be a name or an id")
    return quote(text, safe="")


def with_query(path: str, query: Mapping[str, Any]) -> str:
    """Add what is not None to a path."""
    given = {
        name: ("true" if value else "false") if isinstance(value, bool) else value
        for name, value in query.items()
        if value is not None
    }
    return f"{path}?{urlencode(given)}" if given else path


def seconds_of(value: Duration) -> float:
    """How long a duration is, for time-outs on this side; text in parts as the server reads it."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if not isinstance(value, str):
        return float(value)
    total, number = 0.0, ""
    text = value.replace("ms", "u")  # one letter per unit
    for sign in text:
        if sign.isdecimal():
            number += sign
        elif number and sign in _UNITS_S:
            total += int(number) * _UNITS_S[sign]
            number = ""
        else:
            raise ValidationError(f"{value!r} is not a duration", hint='such as "250ms" or "5m"')
    return total + int(number or 0)  # a bare number is seconds


_UNITS_S: Final = {"u": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
