"""Which instants an expression means, in a time zone: the only place with a calendar.

    timing = parse("0 9 * * MON-FRI", "Europe/Berlin")
    timing.next_ms(after_ms)              first slot after an instant, 0 when there is none
    last_ms(timing, after_ms, until_ms)   last slot within (after, until]

Five fields, or six with seconds first; names, ranges, steps, `L`, `LW`, `#`, `?`; `@daily` and its
relatives; `@every 90s`. A day must match both day fields when one of them begins with a star, and
either of them otherwise.

When clocks change there are two kinds of expressions, as in the cron of old. One that names its
hours and minutes means a time on the wall: in the gap it comes right after it, in the fold once, at
the first of the two. One with a star in hour or minute means a rhythm, and follows elapsed time.

Cost: a slot takes 0.1 to 2 ms, so nobody may walk over many of them on the loop.
"""

import difflib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Final, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

from corvo.errors import RequestError
from corvo.model import limits

ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EVERY_MS_MAX: Final = 366 * 86_400_000

_EVERY: Final = re.compile(r"@every\s+(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?")
_EVERY_STEPS_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000)
_LAST_NAMED: Final = re.compile(r"\b(SUN|MON|TUE|WED|THU|FRI|SAT)L\b")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS: Final = (
    ("second", "0-59"),
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of month", "1-31, L or LW"),
    ("month", "1-12 or JAN-DEC"),
    ("day of week", "0-7 or SUN-SAT, 5L for the last Friday, 5#2 for the second"),
)
_HINT: Final = (
    'five fields "minute hour day month weekday", six with seconds first, '
    "@hourly, @daily, @weekly, @monthly, @yearly or @every 90s"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_MINUTE: Final = timedelta(minutes=1)
# No zone sets its clocks and sets them back within three days.
_CHANGES_APART_S: Final = 3 * 86_400


class Timing(Protocol):
    """The slots of an expression: whole seconds, as milliseconds since 1970."""

    def next_ms(self, after_ms: int) -> int:
        """Return the first slot after an instant; 0: there is none within fifty years."""
        ...


class _Rhythm:
    """`@every`: multiples of a duration since 1970, wherever the server was started."""

    def __init__(self, every_ms: int) -> None:
        self._every_ms = every_ms

    def next_ms(self, after_ms: int) -> int:
        slot_ms = (after_ms // self._every_ms + 1) * self._every_ms
        return slot_ms if slot_ms <= limits.TIME_MS_MAX else 0


class _Calendar:
    """A cron expression in a time zone.

    The library walks over times on the wall, without a zone: its own way over a change of clocks
    knows whole hours only, and five fields only. What a time on the wall means is decided here.
    """

    def __init__(self, expression: str, zone: ZoneInfo) -> None:
        self._expression = expression
        self._zone = zone
        fields = expression.split()
        # A time on the wall, not a rhythm: see the top of this module.
        self._is_wall = not (fields[-4].startswith("*") or fields[-5].startswith("*"))

    def next_ms(self, after_ms: int) -> int:
        find = self._next_on_wall if self._is_wall else self._next_in_rhythm
        try:
            slot_ms = find(after_ms // 1_000) * 1_000
        except (OverflowError, ValueError, StopIteration):
            # The calendar ends in 9999; an expression may have no day within fifty years.
            return 0
        return slot_ms if slot_ms <= limits.TIME_MS_MAX else 0

    def _next_on_wall(self, after_s: int) -> int:
        walk = CronSim(self._expression, _wall(after_s + self._offset_s(after_s)))
        while True:
            slot_s = self._instant_s(next(walk))
            # Safety: in a fold, and right after a gap, the time on the wall lies behind us.
            if slot_s > after_s:
                return slot_s

    def _instant_s(self, wall: datetime) -> int:
        """The first instant that shows this time; of one that is never shown, the one after it."""
        found = wall.replace(tzinfo=self._zone)
        if not _exists(found):
            wall = wall.replace(second=0)
            while not _exists(found):
                wall += _MINUTE
                found = wall.replace(tzinfo=self._zone)
        return _seconds(found.astimezone(UTC))

    def _next_in_rhythm(self, after_s: int) -> int:
        """Every instant that shows a matching time, so between changes of clocks and onward."""
        offset_s = self._offset_s(after_s)
        while True:
            wall = next(CronSim(self._expression, _wall(after_s + offset_s)))
            slot_s = _seconds(wall.replace(tzinfo=UTC)) - offset_s
            change_s = self._change_s(after_s, slot_s, offset_s)
            if not change_s:
                return slot_s
            # The clock was set before it came to that: look on from there, with the new offset.
            offset_s = self._offset_s(change_s)
            after_s = change_s - 1

    def _change_s(self, after_s: int, until_s: int, offset_s: int) -> int:
        """The first second within (after, until] with another offset; 0 when there is none."""
        low_s = after_s
        while low_s < until_s:
            high_s = min(low_s + _CHANGES_APART_S, until_s)
            if self._offset_s(high_s) != offset_s:
                while low_s + 1 < high_s:
                    middle_s = (low_s + high_s) // 2
                    if self._offset_s(middle_s) == offset_s:
                        low_s = middle_s
                    else:
                        high_s = middle_s
                return high_s
            low_s = high_s
        return 0

    def _offset_s(self, at_s: int) -> int:
        offset = datetime.fromtimestamp(at_s, self._zone).utcoffset()
        assert offset is not None
        return offset // _SECOND


def _wall(local_s: int) -> datetime:
    return (_EPOCH + timedelta(seconds=local_s)).replace(tzinfo=None)


def _exists(moment: datetime) -> bool:
    back = moment.astimezone(UTC).astimezone(moment.tzinfo)
    return back.replace(tzinfo=None) == moment.replace(tzinfo=None)


def _seconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _SECOND


def last_ms(timing: Timing, after_ms: int, until_ms: int) -> int:
    """Return the last slot within (after, until]; 0 when there is none.

    Cost: about forty steps, however many slots lie between.
    """
    found = timing.next_ms(after_ms)
    if not 0 < found <= until_ms:
        return 0
    low_ms, high_ms = after_ms, until_ms
    while low_ms + 1 < high_ms:
        middle_ms = (low_ms + high_ms) // 2
        slot_ms = timing.next_ms(middle_ms)
        if 0 < slot_ms <= until_ms:
            found, low_ms = slot_ms, slot_ms
        else:
            high_ms = middle_ms
    return found


def slots(timing: Timing, after_ms: int, until_ms: int, limit: int) -> list[int]:
    """Return up to `limit` slots within (after, until]."""
    return list(islice(_walk(timing, after_ms, until_ms), limit))


def _walk(timing: Timing, after_ms: int, until_ms: int) -> Iterator[int]:
    slot_ms = timing.next_ms(after_ms)
    while 0 < slot_ms <= until_ms:
        yield slot_ms
        slot_ms = timing.next_ms(slot_ms)


# --- reading -----------------------------------------------------------------------------------


@lru_cache(maxsize=1_024)
def parse(expression: str, timezone: str) -> Timing:
    """Read an expression and a time zone. Raises `RequestError` that says where it is wrong."""
    zone = parse_zone(timezone)
    if len(expression.encode()) > limits.CRON_BYTES_MAX:
        raise _wrong(f"the expression is longer than {limits.CRON_BYTES_MAX} bytes")
    text = expression.strip()
    if text.startswith("@"):
        lowered = text.lower()
        if lowered.startswith("@every"):
            return _Rhythm(_every_ms(lowered))
        if lowered not in ALIASES:
            known = ", ".join(ALIASES)
            raise _wrong(f"{text!r} is not known", hint=f"one of {known}, or @every 90s")
        return _Calendar(ALIASES[lowered], zone)
    return _Calendar(_checked(text), zone)


def _every_ms(text: str) -> int:
    found = _EVERY.fullmatch(text)
    parts = zip(found.groups(), _EVERY_STEPS_MS, strict=True) if found is not None else ()
    every_ms = sum(int(part) * step_ms for part, step_ms in parts if part)
    if not 1_000 <= every_ms <= EVERY_MS_MAX:
        hint = "such as @every 90s, @every 1h30m; at least 1s and at most 366d"
        raise _wrong("this is not a duration that can be repeated", hint=hint, column=8)
    return every_ms


def _checked(text: str) -> str:
    """Return the expression as the library reads it, after finding what it would refuse."""
    words = list(re.finditer(r"\S+", text.upper()))
    if len(words) not in {5, 6}:
        raise _wrong(f"an expression has five or six fields, this has {len(words)}", hint=_HINT)
    names = _FIELDS[6 - len(words) :]
    fields: list[str] = []
    for position, word in enumerate(words):
        name, allowed = names[position]
        field = word.group()
        if field == "?" and name.startswith("day"):
            field = "*"
        if name == "day of week":
            field = _LAST_NAMED.sub(lambda found: f"{_DAYS.index(found.group(1))}L", field)
        _check_terms(field, word.start() + 1, name, allowed)
        fields.append(field)
    expression = " ".join(fields)
    try:
        CronSim(expression, _EPOCH)
    except CronSimError as error:
        # Every field is fine by itself: the day exists in none of the months.
        name = names[-3][0]
        message = f"{name} {fields[-3]!r} is in none of the months {fields[-2]!r}"
        raise _wrong(message, column=words[-3].start() + 1) from error
    return expression


def _check_terms(field: str, column: int, name: str, allowed: str) -> None:
    place = next(index for index, known in enumerate(_FIELDS) if known[0] == name)
    for term in field.split(","):
        alone = ["*"] * 6
        alone[place] = term or "-"
        try:
            # A term that is empty leaves five fields, which would be another expression.
            CronSim(" ".join(alone), _EPOCH)
        except (CronSimError, AssertionError, ValueError, TypeError) as error:
            message = f"{name}: {term!r} at column {column} is not understood"
            raise _wrong(message, hint=f"{name} is {allowed}", column=column) from error
        column += len(term) + 1


def _wrong(message: str, *, hint: str = _HINT, column: int = 0) -> RequestError:
    if column and "column" not in message:
        message = f"{message}, at column {column}"
    return RequestError(message, field="cron", hint=hint)


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    # Cost: walks over the files of the time zone database; a few milliseconds, once.
    return frozenset(available_timezones())


def parse_zone(name: str) -> ZoneInfo:
    """Find a time zone by its IANA name. Raises `RequestError`."""
    try:
        if name in _zones():
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        message = "this time zone cannot be read"
        raise RequestError(message, field="timezone") from error
    by_lower = {zone.lower(): zone for zone in _zones()}
    shown = name[:64]
    near = difflib.get_close_matches(shown.lower(), by_lower, n=3, cutoff=0.6)
    known = ", ".join(by_lower[zone] for zone in near)
    hint = f"did you mean {known}?" if near else "an IANA name such as Europe/Berlin or UTC"
    raise RequestError(f"there is no time zone {shown!r}", field="timezone", hint=hint)
