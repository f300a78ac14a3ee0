"""The page of jobs: a search, one page of it at a time."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from corvo.cli.top.actions import Target
from corvo.cli.top.columns import Cell
from corvo.cli.top.filters import STATES, parse
from corvo.cli.top.job_columns import columns
from corvo.cli.top.page import Page
from corvo.cli.top.source import Search, Source
from corvo.cli.top.table import Table
from corvo.cli.top.wording import count, plain, plural
from corvo.runtime.clock import Clock
from corvo_sdk.types import JobsPage, JobSummary, SearchFilter

PAGE_SIZE = 200
PAGES_MAX = 1_000  # cursors kept to go back; whoever turns that many wants a filter


class JobsList(Page):
    """Jobs that match a filter."""

    title: ClassVar[str] = "Jobs"
    filter_hint: ClassVar[str] = "queue:emails state:dead tag:tenant=acme words of the payload"
    has_jobs: ClassVar[bool] = True
    filters_here: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "next_state", "State"),
        Binding("A", "mean_all", "All that match", show=False),
        Binding("n", "turn(1)", "Next page", show=False),
        Binding("b", "turn(-1)", "Page before", show=False),
    ]

    def __init__(self, source: Source, clock: Clock) -> None:
        super().__init__(source, clock)
        self._filter: SearchFilter = {}
        self._cursors: list[str] = []  # of the pages before this one, the last one is ours
        self._answer: JobsPage | None = None
        self._means_all = False
        self.table: Table[JobSummary] = Table(
            columns(lambda: self.now_s), lambda job: job.id, sort="created", id="jobs-table"
        )
        self.table.empty = [Cell("searching …", "dim")]

    def compose(self) -> ComposeResult:
        yield self.table

    # --- data -------------------------------------------------------------------------------------

    async def load(self) -> None:
        asked = self._request()
        answer = await self.source.search(asked)
        if asked != self._request():
            return  # Filter, order or page have changed meanwhile; the next look is under way.
        if self._cursors and not answer.jobs:
            # The page has emptied since; the first one tells what there is.
            self._start_over()
            return
        self._answer = answer
        self.table.empty = self._empty()
        self.table.show(answer.jobs, keeps_marks=True)
        self.post_message(self.Told())

    def _request(self) -> Search:
        return Search(
            conditions=self._filter,
            sort=self.table.order.server_order,
            order="desc" if self.table.is_falling else "asc",
            limit=PAGE_SIZE,
            cursor=self._cursors[-1] if self._cursors else None,
        )

    def _empty(self) -> list[Cell]:
        if self.filter_text:
            return [
                Cell(f"no job matches {plain(self.filter_text)}"),
                Cell("Escape drops the filter, / changes it", "dim"),
            ]
        return [
            Cell("No jobs. Enqueue one:"),
            Cell(""),
            Cell('corvo enqueue hello \'{"to": "world"}\'', "accent"),
        ]

    def set_filter(self, text: str) -> None:
        self._filter = parse(text)
        self.filter_text = text.strip()
        self.table.clear_marks()
        self._start_over()

    def _start_over(self) -> None:
        self._means_all = False
        self._cursors.clear()
        self.table.go_to(0)
        self.post_message(self.Wanted())

    def summary(self) -> str:
        answer = self._answer
        if answer is None:
            return "searching …"
        about = "at least " if answer.total_is_estimate else ""
        parts = [f"{about}{plural(answer.total, 'job')}"]
        if answer.has_more or self._cursors:
            parts.append(
                f"page {len(self._cursors) + 1}" + (" · n next" if answer.has_more else "")
            )
        if self._means_all:
            parts.append("ALL that match are meant")
        elif self.table.marks:
            parts.append(f"{count(len(self.table.marks))} marked")
        if answer.partial:
            parts.append("the search ran out of time, this is a part")
        return " · ".join(parts)

    # --- what actions are about -------------------------------------------------------------------

    def target(self) -> Target | None:
        if self._means_all and self._answer is not None:
            label = f"All that match: {self.filter_text or 'every job there is'}"
            return Target(filter=self._filter, count=self._answer.total, label=label)
        chosen = self.table.chosen()
        return Target(job_ids=chosen, count=len(chosen)) if chosen else None

    def escape(self) -> bool:
        had = self._means_all
        self._means_all = False
        return self.table.clear_marks() or had

    def copied(self) -> str | None:
        row = self.table.current
        return None if row is None else row.id

    # --- keys -------------------------------------------------------------------------------------

    def on_table_opened(self, event: Table.Opened) -> None:
        event.stop()
        row = self.table.current
        if row is not None:
            self.post_message(self.JobOpened(row.id))

    def on_table_sorted(self) -> None:
        self._start_over()

    def on_table_marked(self) -> None:
        # The news that marks were dropped comes after the key that means all.
        if self.table.marks:
            self._means_all = False
        self.post_message(self.Told())

    def action_mean_all(self) -> None:
        self.table.clear_marks()
        self._means_all = bool(self._answer and self._answer.total)
        self.post_message(self.Told())

    def action_turn(self, by: int) -> None:
        answer = self._answer
        if by < 0 and self._cursors:
            self._cursors.pop()
        elif by > 0 and answer and answer.has_more and answer.cursor:
            if len(self._cursors) >= PAGES_MAX:
                return
            self._cursors.append(answer.cursor)
        else:
            return
        self.table.go_to(0)
        self.post_message(self.Wanted())

    def action_next_state(self) -> None:
        """Show the jobs of the next state, after the last one those of all states."""
        now = self._filter.get("state")
        current = now[0] if isinstance(now, list) and len(now) == 1 else None
        at = STATES.index(current) + 1 if current in STATES else 0
        kept = [term for term in self.filter_text.split() if not term.startswith("state:")]
        if at < len(STATES):
            kept.append(f"state:{STATES[at]}")
        self.set_filter(" ".join(kept))
