"""The page of failures: kinds of errors above, the dead jobs of the one under the cursor below."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from corvo.cli.top.actions import Target
from corvo.cli.top.columns import Cell, Column
from corvo.cli.top.job_columns import dead_columns
from corvo.cli.top.page import Page
from corvo.cli.top.source import Search, Source
from corvo.cli.top.table import Table
from corvo.cli.top.wording import age, count, plain, plural, seconds_of
from corvo.runtime.clock import Clock
from corvo_sdk.types import DeadGroup, JobSummary, SearchFilter

JOBS_SHOWN = 200


class FailuresPage(Page):
    """Dead jobs by kind of error."""

    title: ClassVar[str] = "Failures"
    filter_hint: ClassVar[str] = "part of an error or of a queue's name"
    has_jobs: ClassVar[bool] = True

    def __init__(self, source: Source, clock: Clock) -> None:
        super().__init__(source, clock)
        self._all: Sequence[DeadGroup] = ()
        self._is_loaded = False
        self.groups: Table[DeadGroup] = Table(self._columns(), _key, sort="count", id="groups")
        self.dead: Table[JobSummary] = Table(
            dead_columns(lambda: self.now_s), lambda job: job.id, sort="failed", id="dead"
        )
        self.groups.empty = [Cell("searching …", "dim")]
        self.caption = Static(id="dead-caption", classes="caption")

    def compose(self) -> ComposeResult:
        with Vertical(id="failures-split"):
            yield self.groups
            yield self.caption
            yield self.dead

    def _columns(self) -> list[Column[DeadGroup]]:
        return [
            Column(
                "count",
                "dead",
                lambda group: Cell(count(group.count), "bad"),
                width=9,
                is_number=True,
                order=lambda group: group.count,
            ),
            Column(
                "last",
                "last",
                lambda group: Cell(age(group.last_at, self.now_s)),
                width=8,
                rank=1,
                is_number=True,
                order=lambda group: seconds_of(group.last_at),
            ),
            Column(
                "first",
                "first",
                lambda group: Cell(age(group.first_at, self.now_s)),
                width=8,
                rank=3,
                is_number=True,
                order=lambda group: seconds_of(group.first_at),
            ),
            Column("queues", "queues", _queues, width=26, rank=2),
            Column("error", "error", _error, order=_error_text, is_falling_first=False),
        ]

    # --- data -------------------------------------------------------------------------------------

    async def load(self) -> None:
        self._all = await self.source.groups()
        self._is_loaded = True
        self._show_groups()
        group = self.groups.current
        if group is None:
            self.dead.show([])
            self._caption(None, 0)
            return
        answer = await self.source.search(
            Search(
                conditions=_filter_of(group),
                sort=self.dead.order.server_order,
                order="desc" if self.dead.is_falling else "asc",
                limit=JOBS_SHOWN,
            )
        )
        jobs = answer.jobs
        if group.error_fingerprint is None:
            # Jobs that died without an error are told apart by their reason, which no search knows.
            jobs = [job for job in jobs if job.dead_reason == group.dead_reason]
        if self.groups.current is not None and _key(self.groups.current) == _key(group):
            self.dead.show(jobs)
            self._caption(group, len(jobs))

    def _show_groups(self) -> None:
        wanted = self.filter_text.casefold()
        shown = [group for group in self._all if _mentions(group, wanted)]
        if not self._is_loaded:
            self.groups.empty = [Cell("searching …", "dim")]
        elif self._all:
            self.groups.empty = [
                Cell(f"no kind of error mentions {plain(self.filter_text)}"),
                Cell("Escape drops the filter", "dim"),
            ]
        else:
            self.groups.empty = [
                Cell("✓ No dead jobs.", "good"),
                Cell(
                    "A job that has used up its tries shows up here, with its error.",
                    "dim",
                ),
            ]
        self.groups.show(shown)
        self.post_message(self.Told())

    def _caption(self, group: DeadGroup | None, shown: int) -> None:
        text = ""
        if group is not None:
            text = f"{count(shown)} of {plural(group.count, 'job')} with this error"
        self.caption.update(Text(text))

    def set_filter(self, text: str) -> None:
        self.filter_text = text.strip()
        self._show_groups()
        self.post_message(self.Wanted())

    def summary(self) -> str:
        dead = sum(group.count for group in self._all)
        parts = [f"{plural(dead, 'dead job')} in {plural(len(self._all), 'kind')} of errors"]
        if len(self.groups.rows) != len(self._all):
            parts.append(f"{count(len(self.groups.rows))} shown")
        marked = len(self.dead.marks) + len(self.groups.marks)
        if marked:
            parts.append(f"{count(marked)} marked")
        return " · ".join(parts)

    # --- what actions are about -------------------------------------------------------------------

    def target(self) -> Target | None:
        if self.dead.has_focus:
            chosen = self.dead.chosen()
            return Target(job_ids=chosen, count=len(chosen)) if chosen else None
        keys = set(self.groups.chosen())
        groups = [group for group in self._all if _key(group) in keys]
        if len(groups) != 1 or groups[0].error_fingerprint is None:
            return None
        group = groups[0]
        label = f"All dead jobs with the error: {plain(group.error or '')}"
        return Target(filter=_filter_of(group), count=group.count, label=label)

    def escape(self) -> bool:
        had = self.groups.clear_marks()
        return self.dead.clear_marks() or had

    def copied(self) -> str | None:
        row = self.dead.current
        return None if row is None else row.id

    # --- keys -------------------------------------------------------------------------------------

    def on_table_opened(self, event: Table.Opened) -> None:
        event.stop()
        if event.table.id == "groups":
            group = self.groups.current
            if group is not None and group.error_fingerprint is not None:
                self.post_message(self.JobsOpened(f"state:dead kind:{group.error_fingerprint}"))
            return
        row = self.dead.current
        if row is not None:
            self.post_message(self.JobOpened(row.id))

    def on_table_moved(self, event: Table.Moved) -> None:
        if event.table.id == "groups":
            self.post_message(self.Wanted())

    def on_table_sorted(self, event: Table.Sorted) -> None:
        if event.table.id == "dead":
            self.post_message(self.Wanted())

    def on_table_marked(self) -> None:
        self.post_message(self.Told())


def _key(group: DeadGroup) -> str:
    """What tells this group from others."""
    return group.error_fingerprint or f"reason:{group.dead_reason}"


def _filter_of(group: DeadGroup) -> SearchFilter:
    if group.error_fingerprint is not None:
        return {"state": ["dead"], "error_fingerprint": group.error_fingerprint}
    return {"state": ["dead"], "has_errors": False}


def _queues(group: DeadGroup) -> Cell:
    names = ", ".join(plain(name) for name in group.queues)
    more = group.queues_count - len(group.queues)
    return Cell(f"{names} +{more}" if more > 0 else names)


def _error_text(group: DeadGroup) -> str:
    return group.error or (group.dead_reason or "no error").replace("_", " ")


def _error(group: DeadGroup) -> Cell:
    return Cell(plain(_error_text(group)), "plain" if group.error else "warn")


def _mentions(group: DeadGroup, wanted: str) -> bool:
    return not wanted or any(
        wanted in text.casefold() for text in (_error_text(group), *group.queues)
    )
