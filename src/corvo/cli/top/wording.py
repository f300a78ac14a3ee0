"""How figures, ages and texts are written in a cell: short, aligned, and harmless to a terminal."""

import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

BLOCKS = "▁▂▃▄▅▆▇█"
NOTHING = "–"
TEXT_MAX = 2_000  # no cell is wider; a payload may be a quarter of a megabyte

_UNITS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))
_SPANS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))


def count(number: int) -> str:
    """A whole number: exact with separators below ten million, short beyond."""
    return f"{number:,}" if number < 10_000_000 else compact(number)


def compact(number: float) -> str:
    """A number in at most five characters: 999, 12.3k, 4.5M."""
    for size, unit in _UNITS:
        if number >= size:
            value = number / size
            return f"{value:.1f}{unit}" if value < 100 else f"{value:.0f}{unit}"
    return f"{number:.0f}"


def rate(per_second: float) -> str:
    """A rate per second; slow ones keep a digit, so that a trickle is not shown as nothing."""
    if per_second <= 0:
        return NOTHING
    if per_second < 0.05:
        return "<0.1"
    return f"{per_second:.1f}" if per_second < 10 else compact(per_second)


def span(seconds: float) -> str:
    """A length of time in two units at most."""
    seconds = max(seconds, 0)
    if seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    for size, unit, small, small_unit in _SPANS:
        if whole >= size:
            rest = whole % size // small
            return (
                f"{whole // size}{unit}{rest:02d}{small_unit}" if rest else f"{whole // size}{unit}"
            )
    return f"{whole}s"


def micros(microseconds: int) -> str:
    """A duration measured in microseconds."""
    if microseconds < 1_000:
        return f"{microseconds}µs"
    if microseconds < 100_000:
        return f"{microseconds / 1000:.1f}ms"
    return span(microseconds / 1_000_000)


def seconds_of(instant: datetime | None, missing: float = 0.0) -> float:
    """An instant as seconds since 1970, to sort by; `missing` stands for none."""
    return missing if instant is None else instant.timestamp()


def instant_text(instant: datetime) -> str:
    """An instant as the server writes it."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def age(instant: datetime | None, now_s: float) -> str:
    """How long ago an instant is; ahead of us it is shown with a sign."""
    if instant is None:
        return NOTHING
    moment = instant.timestamp()
    # A clock that differs from the server's by a moment must not show jobs of the future.
    if moment > now_s + 2:
        return f"in {span(moment - now_s)}"
    return span(now_s - moment)


def clock(instant: datetime | None) -> str:
    """The time of day of an instant, local, with milliseconds."""
    return NOTHING if instant is None else clock_of(round(instant.timestamp() * 1000))


def clock_of(moment_ms: int) -> str:
    """The time of day of a moment in milliseconds, local."""
    try:
        moment = datetime.fromtimestamp(moment_ms // 1000).astimezone()
    except (OverflowError, ValueError, OSError):
        return str(moment_ms)
    return moment.strftime("%H:%M:%S.") + f"{moment_ms % 1000:03d}"


def spark(values: Sequence[float], width: int) -> str:
    """A line of blocks, the latest value last; the highest one fills its cell."""
    shown = list(values)[-width:]
    top = max(shown, default=0.0)
    if top <= 0:
        return (BLOCKS[0] * len(shown)).rjust(width)
    steps = len(BLOCKS) - 1
    # Anything above nothing is seen: a queue that does one job a minute is not idle.
    cells = [BLOCKS[0 if value <= 0 else max(1, round(value / top * steps))] for value in shown]
    return "".join(cells).rjust(width)


def plain(text: str) -> str:
    """One line of text without anything a terminal would act upon.

    Safety: names, errors and payloads come from whoever may enqueue. Control characters and marks
    that change the direction of writing are shown as a dot, line ends as a sign.
    """
    cut = text[:TEXT_MAX]
    if cut.isascii() and cut.isprintable():
        return cut
    return "".join(_harmless(sign) for sign in cut)


def _harmless(sign: str) -> str:
    if sign == "\n":
        return "⏎"
    if sign == "\t":
        return " "
    return "·" if unicodedata.category(sign) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"} else sign


def lines(text: str, most: int) -> list[str]:
    """The first lines of a longer text, each harmless."""
    split = text.splitlines()
    shown = [plain(line.expandtabs(4)) for line in split[:most]]
    if len(split) > most:
        shown.append(f"… {len(split) - most} more lines")
    return shown


def document(value: Any) -> str:
    """A JSON value on one line."""
    return plain(msgspec.json.encode(value).decode("utf-8", "replace")[:TEXT_MAX])


def plural(number: int, noun: str) -> str:
    """A count with its noun: 1 job, 2 jobs."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"
