"""The calendar, done the plainest way: look at every minute and ask whether it matches.

Knows the part of the language that tests draw from: stars, numbers, lists, ranges, steps.
"""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

LOWEST = (0, 0, 1, 1, 0)
HIGHEST = (59, 23, 31, 12, 7)
MINUTE = timedelta(minutes=1)


def values_of(field: str, place: int) -> set[int]:
    """Return the numbers a field means."""
    found: set[int] = set()
    for term in field.split(","):
        body, _, step = term.partition("/")
        if body == "*":
            low, high = LOWEST[place], HIGHEST[place]
        else:
            start, _, until = body.partition("-")
            low = int(start)
            high = int(until) if until else (HIGHEST[place] if step else low)
        found |= set(range(low, high + 1, int(step or 1)))
    return found


def is_match(fields: list[str], values: list[set[int]], wall: datetime) -> bool:
    """Say whether a time on the wall, to the minute, is one the expression names."""
    minutes, hours, days, months, weekdays = values
    is_day = wall.day in days
    is_weekday = wall.isoweekday() in weekdays or wall.isoweekday() % 7 in weekdays
    has_star = fields[2].startswith("*") or fields[4].startswith("*")
    fits = (is_day and is_weekday) if has_star else (is_day or is_weekday)
    return wall.minute in minutes and wall.hour in hours and wall.month in months and fits


def expected_slots(expression: str, zone: ZoneInfo, start: datetime, days: int) -> list[int]:
    """Return all slots of some days, in milliseconds since 1970, ascending."""
    fields = expression.split()
    values = [values_of(field, place) for place, field in enumerate(fields)]
    is_rhythm = fields[0].startswith("*") or fields[1].startswith("*")
    found: set[int] = set()
    if is_rhythm:
        moment = start.astimezone(UTC)
        for _ in range(days * 1_440):
            moment += MINUTE
            if is_match(fields, values, moment.astimezone(zone).replace(tzinfo=None)):
                found.add(int(moment.timestamp()) * 1_000)
        return sorted(found)
    wall = start.astimezone(zone).replace(tzinfo=None)
    for _ in range(days * 1_440):
        wall += MINUTE
        if is_match(fields, values, wall):
            found.add(int(_moment(wall, zone).timestamp()) * 1_000)
    return sorted(found)


def _moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first instant that shows this time on the wall, or, in a gap, the one right after it."""
    while True:
        moment = wall.replace(tzinfo=zone).astimezone(UTC)
        if moment.astimezone(zone).replace(tzinfo=None) == wall:
            return moment
        wall += MINUTE
