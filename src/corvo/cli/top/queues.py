"""The page of queues: how deep, how fast, since when."""

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from corvo.cli.top.columns import Cell, Column, Tone
from corvo.cli.top.filters import quoted
from corvo.cli.top.page import Page
from corvo.cli.top.rates import Meter
from corvo.cli.top.source import Source
from corvo.cli.top.table import Table
from corvo.cli.top.wording import age, count, plain, plural, rate, seconds_of, spark
from corvo.runtime.clock import Clock
from corvo_sdk.types import Queue

SPARK_WIDTH = 16


class QueuesPage(Page):
    """All queues; fed by the look that also feeds the overview."""

    title: ClassVar[str] = "Queues"
    filter_hint: ClassVar[str] = "part of a name, or a pattern with *"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("p", "pause", "Pause/resume")]

    def __init__(self, source: Source, clock: Clock, meter: Meter) -> None:
        super().__init__(source, clock)
        self.meter = meter
        self._all: Sequence[Queue] = ()
        self._is_fed = False
        self.table: Table[Queue] = Table(
            self._columns(), lambda queue: queue.name, sort="pending", id="queues-table"
        )
        self.table.empty = [Cell("asking the server …", "dim")]

    def compose(self) -> ComposeResult:
        yield self.table

    def _columns(self) -> list[Column[Queue]]:
        def number(name: str, title: str, width: int, rank: int, tone: Tone) -> Column[Queue]:
            def cell(queue: Queue) -> Cell:
                value: int = getattr(queue, name)
                return Cell(count(value), tone if value else "dim")

            return Column(
                name,
                title,
                cell,
                width=width,
                rank=rank,
                is_number=True,
                order=lambda queue: getattr(queue, name),
            )

        def pace(name: str, title: str, rank: int, tone: Tone = "plain") -> Column[Queue]:
            def value(queue: Queue) -> float:
                return getattr(self.meter.rate(queue.name), name)

            return Column(
                f"{name}_rate",
                title,
                lambda queue: Cell(rate(value(queue)), tone if value(queue) else "dim"),
                width=7,
                rank=rank,
                is_number=True,
                order=value,
            )

        return [
            Column(
                "name",
                "queue",
                lambda queue: Cell(plain(queue.name)),
                order=lambda queue: queue.name,
                is_falling_first=False,
            ),
            Column("state", "state", _state, width=10, order=_state_order),
            number("pending", "pending", 10, 0, "plain"),
            number("active", "active", 8, 0, "accent"),
            number("scheduled", "sched", 8, 5, "plain"),
            number("retrying", "retrying", 9, 4, "warn"),
            number("held", "held", 6, 7, "warn"),
            number("blocked", "blocked", 8, 8, "warn"),
            number("dead", "dead", 7, 1, "bad"),
            pace("enqueued", "in/s", 2),
            pace("completed", "out/s", 2),
            pace("failed", "fail/s", 6, "bad"),
            Column(
                "spark",
                "throughput",
                lambda queue: Cell(spark(self.meter.history(queue.name), SPARK_WIDTH), "accent"),
                width=SPARK_WIDTH,
                rank=3,
                order=lambda queue: sum(self.meter.history(queue.name)),
            ),
            Column(
                "oldest",
                "oldest",
                lambda queue: Cell(age(queue.oldest_pending_at, self.now_s)),
                width=8,
                rank=2,
                is_number=True,
                # The oldest first; no instant is no age at all.
                order=lambda queue: seconds_of(queue.oldest_pending_at, math.inf),
                is_falling_first=False,
            ),
            number("workers_waiting", "waiting", 8, 9, "good"),
        ]

    # --- data -------------------------------------------------------------------------------------

    def take(self, queues: Sequence[Queue]) -> None:
        """Show a new look at all queues."""
        self._all = queues
        self._is_fed = True
        self._show()

    async def load(self) -> None:
        """Nothing of its own to ask."""

    def _show(self) -> None:
        wanted = self.filter_text
        shown = [queue for queue in self._all if _matches(queue.name, wanted)]
        self.table.empty = self._empty()
        self.table.show(shown)
        self.post_message(self.Told())

    def _empty(self) -> list[Cell]:
        if not self._is_fed:
            return [Cell("asking the server …", "dim")]
        if self._all:
            return [
                Cell(f"no queue matches {plain(self.filter_text)!r}"),
                Cell("Escape shows all of them", "dim"),
            ]
        first = self.source.url.split(",")[0].strip()
        return [
            Cell("No queues yet. A queue appears with its first job:"),
            Cell(""),
            Cell(f"curl -s {first}/api/v1/enqueue \\", "accent"),
            Cell("  -H 'content-type: application/json' \\", "accent"),
            Cell('  -d \'{"queue": "hello", "payload": {"to": "world"}}\'', "accent"),
        ]

    def set_filter(self, text: str) -> None:
        self.filter_text = text.strip()
        self._show()

    def summary(self) -> str:
        shown, total = len(self.table.rows), len(self._all)
        parts = [
            plural(total, "queue")
            if shown == total
            else f"{count(shown)} of {plural(total, 'queue')}"
        ]
        if self.table.marks:
            parts.append(f"{count(len(self.table.marks))} marked")
        paused = sum(1 for queue in self._all if queue.paused)
        if paused:
            parts.append(f"{count(paused)} paused")
        return " · ".join(parts)

    def escape(self) -> bool:
        return self.table.clear_marks()

    def copied(self) -> str | None:
        row = self.table.current
        return None if row is None else row.name

    def names(self) -> list[str]:
        """All queues there are, for suggestions."""
        return [queue.name for queue in self._all]

    # --- keys -------------------------------------------------------------------------------------

    def on_table_opened(self, event: Table.Opened) -> None:
        event.stop()
        row = self.table.current
        if row is not None:
            self.post_message(self.JobsOpened(f"queue:{quoted(row.name)}"))

    def on_table_marked(self) -> None:
        self.post_message(self.Told())

    class PauseWanted(Page.Wanted):
        """Some queues are to be paused, or resumed when all of them are paused."""

        def __init__(self, queues: Sequence[Queue]) -> None:
            super().__init__()
            self.queues = queues

    def action_pause(self) -> None:
        names = set(self.table.chosen())
        chosen = [queue for queue in self._all if queue.name in names]
        if chosen:
            self.post_message(self.PauseWanted(chosen))


def _matches(name: str, wanted: str) -> bool:
    if not wanted:
        return True
    if "*" in wanted:
        return fnmatchcase(name, wanted)
    return wanted.casefold() in name.casefold()


def _state(queue: Queue) -> Cell:
    if queue.draining:
        return Cell("◐ draining", "warn")
    if queue.paused:
        return Cell("‖ paused", "warn")
    return Cell("open", "dim")


def _state_order(queue: Queue) -> int:
    return 2 if queue.draining else int(queue.paused)
