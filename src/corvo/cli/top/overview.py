"""The lines above everything: is the server well, how much is there, how fast does it go."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget

from corvo.cli.top.pacing import Link
from corvo.cli.top.palette import STATE_SIGNS, STYLES
from corvo.cli.top.rates import IDLE, Latency, Rate
from corvo.cli.top.source import Status
from corvo.cli.top.wording import NOTHING, compact, count, micros, plain, rate, span, spark
from corvo_sdk.types import Minute, Queue

COUNTED = ("pending", "active", "retrying", "dead", "held", "scheduled", "completed")
LABEL_WIDTH = 6
LINES_COUNT = 4
MINUTES_WIDTH = 30
LAG_NOTED = 1_000  # entries; a busy search index is always a few behind


class Figures(Struct):
    """What the overview shows; kept when the server goes away."""

    url: str = ""
    version: str = ""
    status: Status | None = None
    counts: dict[str, int] = {}
    queues_count: int = 0
    rate: Rate = IDLE
    minutes: Sequence[Minute] = ()
    wait: Latency | None = None
    run: Latency | None = None

    def take(self, queues: Sequence[Queue], moved: Rate) -> None:
        """Sum up all queues."""
        self.queues_count = len(queues)
        self.counts = {name: sum(getattr(queue, name) for queue in queues) for name in COUNTED}
        self.rate = moved


class Overview(Widget):
    """Four lines; on a narrow terminal what matters least falls off their ends."""

    def __init__(self, figures: Figures, link: Link) -> None:
        super().__init__(id="overview")
        self.figures = figures
        self.link = link
        self.now_s = 0.0

    def render(self) -> Text:
        width = self.size.width
        figures = self.figures
        lines = [_fit(self._state(), width)]
        if figures.status is not None:
            lines += [
                _fit(_jobs(figures), width),
                _fit(_flow(figures), width),
                _fit(_log(figures.status), width),
            ]
        return Text("\n", no_wrap=True).join(lines)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return LINES_COUNT

    def _state(self) -> Iterable[Text]:
        figures, link = self.figures, self.link
        yield Text("corvo", STYLES["title"])
        if link.is_up and figures.status is not None:
            yield _phase(figures.status.phase)
        elif link.has_answered:
            away_s = self.now_s - (link.down_since_s or self.now_s)
            yield Text(f"○ reconnecting {span(away_s)}", STYLES["warn"])
        else:
            yield Text("○ connecting", STYLES["warn"])
        yield Text(plain(figures.url), STYLES["plain"])
        if link.complaint:
            yield Text(plain(link.complaint), STYLES["dim"], overflow="ellipsis")
            return
        if figures.version:
            yield Text(f"version {plain(figures.version)}", STYLES["dim"])
        if figures.status is not None:
            yield Text(f"{plain(figures.status.mode)}", STYLES["dim"])
            yield Text(f"fsync {plain(figures.status.fsync)}", STYLES["dim"])


def _phase(phase: str) -> Text:
    if phase == "serving":
        return Text("● serving", STYLES["good"])
    return Text(f"◐ {plain(phase)}", STYLES["warn"])


def _jobs(figures: Figures) -> Iterable[Text]:
    yield _label("jobs")
    for name in COUNTED:
        number = figures.counts.get(name, 0)
        sign, tone = STATE_SIGNS[name]
        style = STYLES[tone if number else "dim"]
        yield Text.assemble(
            (f"{sign} ", style), (f"{name} ", STYLES["dim"]), (count(number), style)
        )
    yield _pair("queues", count(figures.queues_count))
    if figures.status is not None:
        yield _pair("workers", count(figures.status.workers_count))


def _flow(figures: Figures) -> Iterable[Text]:
    moved = figures.rate
    yield _label("flow")
    yield _pair("in/s", rate(moved.enqueued))
    yield _pair("done/s", rate(moved.completed))
    yield _pair("failed/s", rate(moved.failed), "bad" if moved.failed else "plain")
    yield _pair("wait", _latency(figures.wait))
    yield _pair("run", _latency(figures.run))
    done = [minute.completed for minute in figures.minutes]
    if any(done):
        line = spark(done, MINUTES_WIDTH)
        peak = compact(max(done))
        yield Text.assemble(
            ("hour ", STYLES["dim"]), (line, STYLES["accent"]), (f" peak {peak}/min", STYLES["dim"])
        )


def _latency(latency: Latency | None) -> str:
    middle = None if latency is None else latency.quantile(0.5)
    if latency is None or middle is None:
        return NOTHING
    final = latency.quantile(0.99)
    return f"p50 {span(middle)} p99 {span(middle if final is None else final)}"


def _log(status: Status) -> Iterable[Text]:
    yield _label("log")
    yield _pair("index", count(status.index))
    view = status.view
    if view.state == "off":
        yield _pair("search", "off", "dim")
    elif view.state == "ok" and view.lag < LAG_NOTED:
        yield _pair("search", f"ok, lag {count(view.lag)}")
    else:
        tone = "bad" if view.state == "down" else "warn"
        yield _pair("search", f"{plain(view.state)}, {count(view.lag)} entries behind", tone)
    for name, timing in (("sync", status.sync_time), ("apply", status.apply_time)):
        shown = (
            f"p50 {micros(timing.p50_us)} p99 {micros(timing.p99_us)}" if timing.count else NOTHING
        )
        yield _pair(name, shown)


def _label(text: str) -> Text:
    return Text(text.ljust(LABEL_WIDTH), STYLES["dim"])


def _pair(name: str, value: str, tone: str = "plain") -> Text:
    return Text.assemble((f"{name} ", STYLES["dim"]), (value, STYLES[tone]))


def _fit(parts: Iterable[Text], width: int) -> Text:
    """Join what fits, with two spaces between."""
    line = Text()
    for part in parts:
        room = width - line.cell_len - (2 if line else 0)
        if line and part.cell_len > room:
            if part.overflow != "ellipsis":
                # What does not fit ends the line: half a figure would be a wrong one.
                break
            part.truncate(max(0, room), overflow="ellipsis")
        if line:
            line.append("  ")
        line.append_text(part)
    line.truncate(width)
    return line
