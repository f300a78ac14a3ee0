"""Lengths of time as people write them, as the integer milliseconds the rest works with."""

import math
import re
from datetime import timedelta
from typing import Final, TypeAlias, cast

# Seconds, a timedelta, or text such as "250ms", "5s", "1h30m", "7d".
Duration: TypeAlias = int | float | timedelta | str

# Units come in falling order, each at most once: "1h30m" but neither "30m1h" nor "5s5s".
_TEXT: Final = re.compile(
    r"(?:(\d{1,15})d)?(?:(\d{1,15})h)?(?:(\d{1,15})m)?(?:(\d{1,15})s)?(?:(\d{1,15})ms)?", re.ASCII
)
_STEPS_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000, 1)
_HINT: Final = 'give seconds, a timedelta, or text such as "250ms", "5s", "1h30m", "7d"'
DURATION_MS_MAX: Final = 10 * 365 * 86_400_000  # what the server accepts: ten years


def milliseconds(value: Duration, name: str = "duration") -> int:
    """Read a duration; `name` says in the error which one was wrong."""
    duration_ms = _parse(value, name)
    if not 0 <= duration_ms <= DURATION_MS_MAX:
        raise ValueError(f"{name} is {value!r}; it must lie between zero and ten years")
    return duration_ms


def maybe_milliseconds(value: Duration | None, name: str = "duration") -> int | None:
    """Read a duration that may be absent."""
    return None if value is None else milliseconds(value, name)


def render(duration_ms: int) -> int | str:
    """Write milliseconds as the API takes them: whole seconds as an integer, the rest as text."""
    seconds, rest = divmod(duration_ms, 1_000)
    return f"{duration_ms}ms" if rest else seconds


def _parse(value: Duration, name: str) -> int:
    # Safety: the annotation is a promise of typed callers only; the rest is told here.
    given = cast("object", value)
    if isinstance(given, timedelta):
        return given // timedelta(milliseconds=1)
    if isinstance(given, str):
        found = _TEXT.fullmatch(given)
        if found is None or not given:
            raise ValueError(f"{name} is {given!r}, which is not a duration; {_HINT}")
        parts = zip(found.groups(), _STEPS_MS, strict=True)
        return sum(int(part) * step_ms for part, step_ms in parts if part)
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise ValueError(f"{name} is {given!r}, which is not a duration; {_HINT}")
    return round(given * 1_000)
