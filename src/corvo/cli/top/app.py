"""The application: the overview, four pages, one task that looks at the open one, actions."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import ContentSwitcher, Footer, Input

from corvo.cli.top.actions import ACTIONS, Action, Target, perform, preview, sentence, undo, undone
from corvo.cli.top.bars import StatusLine, Tab, TabBar
from corvo.cli.top.detail import DetailScreen
from corvo.cli.top.dialogs import ConfirmDialog, HelpScreen, MoveDialog
from corvo.cli.top.failures import FailuresPage
from corvo.cli.top.filters import LENGTH_MAX, FilterError, quoted
from corvo.cli.top.jobs import JobsList
from corvo.cli.top.overview import Overview
from corvo.cli.top.pacing import Pace
from corvo.cli.top.page import Page
from corvo.cli.top.palette import SHEET, THEME
from corvo.cli.top.pulse import Pulse
from corvo.cli.top.queues import QueuesPage
from corvo.cli.top.source import Source, is_away
from corvo.cli.top.wording import plain, plural, span
from corvo.cli.top.workers import WorkersPage
from corvo.runtime.clock import Clock
from corvo_sdk.errors import CorvoError as CallError
from corvo_sdk.types import Bulk, BulkResult, Queue


class TopApp(App[None]):
    """`corvo top`."""

    TITLE = "corvo top"
    CSS = SHEET
    ENABLE_COMMAND_PALETTE = False
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall")]  # noqa: RUF012 - Textual's form
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "page('queues')", "Queues", show=False),
        Binding("2", "page('jobs')", "Jobs", show=False),
        Binding("3", "page('failures')", "Failures", show=False),
        Binding("4", "page('workers')", "Workers", show=False),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("r", "ask('retry')", "Retry"),
        Binding("c", "ask('cancel')", "Cancel"),
        Binding("m", "ask('move')", "Move"),
        Binding("d", "ask('delete')", "Delete"),
        Binding("u", "undo", "Undo"),
        Binding("y", "copy_id", "Copy id", show=False),
        Binding("escape", "escape", "Clear", show=False),
        Binding("f5", "look", "Look again", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
        Binding("ctrl+c", "quit", "Quit", show=False, priority=True),
    ]

    def __init__(self, source: Source, clock: Clock, *, interval_s: float, queue: str = "") -> None:
        super().__init__()
        self.source = source
        self.clock = clock
        self.pulse = Pulse(source, clock, interval_s)
        self.queues_page = QueuesPage(source, clock, self.pulse.meter)
        self.jobs_page = JobsList(source, clock)
        self.failures_page = FailuresPage(source, clock)
        self.workers_page = WorkersPage(source, clock)
        self.pages: list[Page] = [
            self.queues_page,
            self.jobs_page,
            self.failures_page,
            self.workers_page,
        ]
        self.page_pace = Pace(interval_s)
        # Held, not looked up: a look that ends while the screens are taken down finds them still.
        self.overview = Overview(self.pulse.figures, self.pulse.link)
        self.tab_bar = TabBar([page.title for page in self.pages])
        self.switcher = ContentSwitcher(*self.pages, initial="queues", id="pages")
        self.filter_field = Input(id="filter", max_length=LENGTH_MAX, compact=True)
        self.status_line = StatusLine()
        self._wanted_queue = queue
        self._trouble = ""
        self._loaded_at_s: float | None = None
        self._has_jobs = False
        self._undo_id = ""
        self._filter_before = ""

    def compose(self) -> ComposeResult:
        yield self.overview
        yield self.tab_bar
        yield self.switcher
        yield self.filter_field
        yield self.status_line
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.register_theme(THEME)
        self.theme = THEME.name
        if self._wanted_queue:
            self.queues_page.set_filter(self._wanted_queue)
            self.jobs_page.set_filter(f"queue:{quoted(self._wanted_queue)}")
        self.run_worker(self.pulse.run(self._take, self._tell), name="pulse", group="pulse")
        self._open(self.queues_page)

    async def on_unmount(self) -> None:
        self.workers.cancel_all()
        await self.source.close()

    # --- looking ----------------------------------------------------------------------------------

    @property
    def current_page(self) -> Page:
        """The page of the open tab."""
        return next(page for page in self.pages if page.id == self.switcher.current)

    def _take(self, queues: Sequence[Queue]) -> None:
        self.queues_page.take(queues)

    def _open(self, page: Page) -> None:
        self.switcher.current = page.id
        self._close_filter()
        page.focus_table()
        self._has_jobs = page.has_jobs
        self.refresh_bindings()
        self._trouble = ""
        self._loaded_at_s = None
        self._resume()
        self._tell()

    def _resume(self) -> None:
        """Look at the open page, and at no other."""
        page = self.current_page
        self.page_pace = Pace(self.pulse.pace.interval_s)
        self._watch = self.run_worker(
            self._look(page, self.page_pace), name="page", group="page", exclusive=True
        )

    async def _look(self, page: Page, pace: Pace) -> None:
        while True:
            started_s = self.clock.monotonic()
            try:
                await page.load()
            except CallError as error:
                pace.fail()
                self._trouble = self._words(error)
            else:
                pace.succeed()
                self._trouble = ""
                self._loaded_at_s = self.clock.monotonic()
            self._tell()
            await pace.wait(self.clock.monotonic() - started_s)

    def _words(self, error: CallError) -> str:
        """Say what is wrong, and how old what is shown has become."""
        said = "reconnecting" if is_away(error) else plain(error.message)
        if self._loaded_at_s is None:
            return said
        return f"{said} · shown as of {span(self.clock.monotonic() - self._loaded_at_s)} ago"

    def _tell(self) -> None:
        page = self.current_page
        self.overview.now_s = self.clock.monotonic()
        self.overview.refresh()
        self.tab_bar.show(page)
        self.status_line.tell(page.summary(), self._trouble)

    def _say(self, text: str, tone: str = "plain") -> None:
        self.status_line.say(text, tone)
        if len(self.screen_stack) > 1:
            self.notify(text, severity="error" if tone == "bad" else "information", markup=False)

    def on_page_told(self) -> None:
        self._tell()

    def on_page_wanted(self) -> None:
        self.page_pace.wake()

    # --- going somewhere --------------------------------------------------------------------------

    def action_page(self, name: str) -> None:
        self._open(next(page for page in self.pages if page.id == name))

    def on_tab_clicked(self, event: Tab.Clicked) -> None:
        self.action_page(event.title.lower())

    def on_page_jobs_opened(self, event: Page.JobsOpened) -> None:
        self.jobs_page.set_filter(event.filter_text)
        self._open(self.jobs_page)

    def on_page_job_opened(self, event: Page.JobOpened) -> None:
        self._watch.cancel()
        screen = DetailScreen(self.source, self.clock, event.job_id, self.pulse.pace.interval_s)
        self.push_screen(screen, lambda _: self._resume())

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def action_look(self) -> None:
        self.pulse.pace.wake()
        self.page_pace.wake()

    # --- filter -----------------------------------------------------------------------------------

    def action_filter(self) -> None:
        page = self.current_page
        field = self.filter_field
        self._filter_before = page.filter_text
        field.placeholder = page.filter_hint
        field.value = page.filter_text
        field.add_class("shown")
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        page = self.current_page
        if event.input.id == "filter" and event.input.has_focus and page.filters_here:
            page.set_filter(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id != "filter":
            return
        try:
            self.current_page.set_filter(event.value)
        except FilterError as error:
            self._say(f"{error.message} · {error.hint}" if error.hint else error.message, "bad")
            return
        self._close_filter()
        self.current_page.focus_table()

    def _close_filter(self) -> None:
        self.filter_field.remove_class("shown")

    def action_escape(self) -> None:
        page = self.current_page
        if self.filter_field.has_class("shown"):
            self._close_filter()
            page.focus_table()
            if page.filter_text != self._filter_before:
                page.set_filter(self._filter_before)
        elif not page.escape() and page.filter_text:
            page.set_filter("")

    # --- doing something --------------------------------------------------------------------------

    def action_ask(self, name: str) -> None:
        page = self.current_page
        target = page.target()
        if target is not None:
            self._start(ACTIONS[name], target, page)
        elif page.has_jobs:
            self._say("nothing to act upon here: choose one kind of error, or mark jobs", "warn")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Offer what can be done where one is, and nothing else."""
        if action == "undo":
            return bool(self._undo_id)
        if action in {"page", "filter", "escape"}:
            return len(self.screen_stack) == 1
        return self._has_jobs if action == "ask" else True

    def on_detail_screen_asked(self, event: DetailScreen.Asked) -> None:
        self._start(ACTIONS[event.action], event.target, None)

    def _start(self, action: Action, target: Target, page: Page | None) -> None:
        work = self._act(action, target, page)
        self.run_worker(work, name=action.name, group="act", exclusive=True)

    async def _act(self, action: Action, target: Target, page: Page | None) -> None:
        """Ask, do, say what was done. A refusal is said; nothing is tried twice."""
        try:
            target = await preview(self.source, action, target)
            if not target.count:
                self._say("no job matches any more", "warn")
                return
            queue: str | None = None
            if action.name == "move":
                dialog = MoveDialog(action, target, self.queues_page.names())
                queue = await self.push_screen_wait(dialog)
                if queue is None:
                    return
            elif not await self.push_screen_wait(ConfirmDialog(action, target)):
                return
            self._say(f"{action.verb.lower()} under way …", "dim")
            result = await perform(self.source, action, target, queue)
        except CallError as error:
            self._say(f"{action.verb} failed: {plain(error.message)}", "bad")
            return
        self._remember(action, result)
        self._say(sentence(action, result), "good" if result.affected else "warn")
        if page is not None:
            page.settled()
        self.action_look()

    def _remember(self, action: Action, result: BulkResult | Bulk) -> None:
        if action.is_undoable and result.affected and result.bulk_operation_id:
            self._undo_id = result.bulk_operation_id
            self.refresh_bindings()

    def action_undo(self) -> None:
        operation_id, self._undo_id = self._undo_id, ""
        self.refresh_bindings()
        self.run_worker(self._undo(operation_id), name="undo", group="act", exclusive=True)

    async def _undo(self, operation_id: str) -> None:
        try:
            result = await undo(self.source, operation_id)
        except CallError as error:
            self._say(f"undo failed: {plain(error.message)}", "bad")
            return
        self._say(undone(result), "good" if result.restored else "warn")
        self.action_look()

    def on_queues_page_pause_wanted(self, event: QueuesPage.PauseWanted) -> None:
        event.stop()
        self.run_worker(self._pause(event.queues), name="pause", group="act", exclusive=True)

    async def _pause(self, queues: Sequence[Queue]) -> None:
        # Paused and open ones together: pause first, so that one key does one thing to all.
        is_paused = not all(queue.paused for queue in queues)
        changed = 0
        try:
            for queue in queues:
                if queue.paused != is_paused:
                    await self.source.pause(queue.name, is_paused=is_paused)
                    changed += 1
        except CallError as error:
            self._say(f"{'pause' if is_paused else 'resume'} failed: {plain(error.message)}", "bad")
        else:
            self._say(f"{'paused' if is_paused else 'resumed'} {plural(changed, 'queue')}", "good")
        self.queues_page.settled()
        self.action_look()

    def action_copy_id(self) -> None:
        screen = self.screen
        text = screen.job_id if isinstance(screen, DetailScreen) else self.current_page.copied()
        if text:
            self.copy_to_clipboard(text)
            self._say(f"copied {plain(text)}", "dim")
