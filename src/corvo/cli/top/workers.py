"""The page of workers: who is there, with how much to do, and who has gone quiet."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from textual.app import ComposeResult

from corvo.cli.top.columns import Cell, Column
from corvo.cli.top.filters import quoted
from corvo.cli.top.page import Page
from corvo.cli.top.source import Source
from corvo.cli.top.table import Table
from corvo.cli.top.wording import NOTHING, age, count, plain, plural, seconds_of
from corvo.runtime.clock import Clock
from corvo_sdk.types import WorkerInfo

SIGNS = {"healthy": Cell("● healthy", "good"), "draining": Cell("◐ draining", "warn")}


class WorkersPage(Page):
    """Workers the server has heard of lately."""

    title: ClassVar[str] = "Workers"
    filter_hint: ClassVar[str] = "part of an id, a host or a queue's name"

    def __init__(self, source: Source, clock: Clock) -> None:
        super().__init__(source, clock)
        self._all: Sequence[WorkerInfo] = ()
        self._is_loaded = False
        self.table: Table[WorkerInfo] = Table(
            self._columns(), lambda worker: worker.id, sort="id", id="workers-table"
        )
        self.table.empty = [Cell("asking the server …", "dim")]

    def compose(self) -> ComposeResult:
        yield self.table

    def _columns(self) -> list[Column[WorkerInfo]]:
        return [
            Column(
                "id",
                "worker",
                lambda worker: Cell(plain(worker.id)),
                order=lambda worker: worker.id,
                is_falling_first=False,
            ),
            Column("status", "status", _status, width=11, order=lambda worker: worker.status),
            Column(
                "jobs",
                "jobs",
                lambda worker: Cell(count(worker.jobs), "accent" if worker.jobs else "dim"),
                width=6,
                is_number=True,
                order=lambda worker: worker.jobs,
            ),
            Column(
                "slots",
                "slots",
                lambda worker: Cell(NOTHING if worker.slots is None else count(worker.slots)),
                width=6,
                rank=3,
                is_number=True,
                order=lambda worker: worker.slots or 0,
            ),
            Column(
                "seen",
                "heard",
                lambda worker: Cell(age(_seen_at(worker), self.now_s)),
                width=8,
                rank=1,
                is_number=True,
                order=lambda worker: seconds_of(_seen_at(worker)),
            ),
            Column(
                "started",
                "since",
                lambda worker: Cell(age(worker.started_at, self.now_s)),
                width=8,
                rank=5,
                is_number=True,
                order=lambda worker: seconds_of(worker.started_at),
            ),
            Column(
                "host",
                "host",
                lambda worker: Cell(plain(worker.hostname or NOTHING)),
                width=18,
                rank=4,
                order=lambda worker: worker.hostname or "",
                is_falling_first=False,
            ),
            Column(
                "version",
                "version",
                lambda worker: Cell(plain(worker.version or NOTHING), "dim"),
                width=10,
                rank=6,
            ),
            Column("queues", "queues", _queues, rank=2),
        ]

    async def load(self) -> None:
        self._all = await self.source.workers()
        self._is_loaded = True
        self._show()

    def _show(self) -> None:
        wanted = self.filter_text.casefold()
        shown = [worker for worker in self._all if _mentions(worker, wanted)]
        if not self._is_loaded:
            self.table.empty = [Cell("asking the server …", "dim")]
        elif self._all:
            self.table.empty = [
                Cell(f"no worker matches {plain(self.filter_text)}"),
                Cell("Escape shows all of them", "dim"),
            ]
        else:
            self.table.empty = [
                Cell("No workers. One shows up with its first fetch:"),
                Cell(""),
                Cell("corvo worker your.module:app", "accent"),
            ]
        self.table.show(shown)
        self.post_message(self.Told())

    def set_filter(self, text: str) -> None:
        self.filter_text = text.strip()
        self._show()

    def summary(self) -> str:
        busy = sum(worker.jobs for worker in self._all)
        parts = [plural(len(self._all), "worker"), f"{plural(busy, 'job')} in hand"]
        stale = sum(1 for worker in self._all if worker.status == "stale")
        if stale:
            parts.append(f"{count(stale)} gone quiet")
        return " · ".join(parts)

    def escape(self) -> bool:
        return self.table.clear_marks()

    def copied(self) -> str | None:
        row = self.table.current
        return None if row is None else row.id

    def on_table_opened(self, event: Table.Opened) -> None:
        event.stop()
        row = self.table.current
        if row is not None:
            self.post_message(self.JobsOpened(f"state:active worker:{quoted(row.id)}"))

    def on_table_marked(self) -> None:
        self.post_message(self.Told())


def _seen_at(worker: WorkerInfo) -> datetime | None:
    return max(worker.last_fetch_at, worker.last_heartbeat_at, key=seconds_of)


def _status(worker: WorkerInfo) -> Cell:
    return SIGNS.get(worker.status) or Cell(f"○ {plain(worker.status)}", "warn")


def _queues(worker: WorkerInfo) -> Cell:
    return Cell(plain(", ".join(worker.queues)), "dim")


def _mentions(worker: WorkerInfo, wanted: str) -> bool:
    texts = (worker.id, worker.hostname or "", *worker.queues)
    return not wanted or any(wanted in text.casefold() for text in texts)
