"""One job: its fields, why it is not running, its errors, and its timeline as it grows."""

import asyncio
from collections import deque
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Static

from corvo.cli.top.actions import Target
from corvo.cli.top.pacing import Pace
from corvo.cli.top.palette import STYLES
from corvo.cli.top.sheets import errors_sheet, fields_sheet, timeline_sheet, title_line, why_sheet
from corvo.cli.top.source import EVENTS_MAX, Source, is_away
from corvo.cli.top.wording import plain
from corvo.runtime.clock import Clock
from corvo_sdk.errors import CorvoError as CallError
from corvo_sdk.errors import NotFoundError
from corvo_sdk.types import Job, JobEvent, Why

FOLLOW_RETRY_S = 2.0


class DetailScreen(Screen[None]):
    """Follows one job until it is left."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012 - Textual's form
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,left,backspace", "leave", "Back"),
        Binding("r", "ask('retry')", "Retry"),
        Binding("c", "ask('cancel')", "Cancel"),
        Binding("m", "ask('move')", "Move"),
        Binding("d", "ask('delete')", "Delete"),
        Binding("u", "app.undo", "Undo", show=False),
        Binding("f", "follow", "Follow"),
        Binding("y", "app.copy_id", "Copy id"),
        Binding("f5", "look", "Look again", show=False),
        Binding("question_mark", "app.help", "Help"),
    ]

    class Asked(Message):
        """Something is to be done to the job."""

        def __init__(self, action: str, target: Target) -> None:
            super().__init__()
            self.action = action
            self.target = target

    def __init__(self, source: Source, clock: Clock, job_id: str, interval_s: float) -> None:
        super().__init__()
        self.job_id = job_id
        self._source = source
        self._clock = clock
        self._pace = Pace(interval_s)
        self._job: Job | None = None
        self._why: Why | None = None
        # Bounded: a job that is retried for a year must not fill the memory of whoever watches.
        self._events: deque[JobEvent] = deque(maxlen=EVENTS_MAX)
        self._note = ""
        self._timeline_note = ""
        self._is_following = True
        # Held, not looked up: a look may end while the screen is taken down.
        self._title = Static(id="detail-title")
        self._fields = Static(id="fields")
        self._gates = Static(id="why")
        self._errors = Static(id="errors")
        self._timeline = Static(id="timeline")
        self._timeline_scroll = VerticalScroll(self._timeline, id="timeline-scroll")

    def compose(self) -> ComposeResult:
        yield self._title
        with Horizontal(id="detail-columns"):
            yield VerticalScroll(self._fields, id="fields-scroll")
            with Vertical(id="detail-right"):
                yield VerticalScroll(self._gates, self._errors, id="why-scroll")
                yield self._timeline_scroll
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._draw()
        self.query_one("#fields-scroll").focus()
        self.run_worker(self._look(), name="job", group="job", exclusive=True)
        self.run_worker(self._follow(), name="follow", group="follow", exclusive=True)

    # --- looking ----------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Read the job again and again; at once when something has happened to it."""
        while True:
            started_s = self._clock.monotonic()
            try:
                self._job = await self._source.job(self.job_id)
                self._why = await self._source.why(self.job_id)
            except NotFoundError:
                self._note = "this job is gone; what is shown is the last that was known"
                self._pace.fail()
            except CallError as error:
                self._note = "reconnecting …" if is_away(error) else plain(error.message)
                self._pace.fail()
            else:
                self._note = ""
                self._pace.succeed()
            self._draw()
            await self._pace.wait(self._clock.monotonic() - started_s)

    async def _follow(self) -> None:
        """Read the timeline there is, then the events as they come; resumes after every break."""
        is_read = False
        while True:
            try:
                if not is_read:
                    is_read = await self._read_timeline()
                last = self._events[-1].seq if self._events else None
                # While the past is missing, a break is a chance to ask for it again.
                events = self._source.follow(self.job_id, last, is_patient=is_read)
                async for event in events:
                    self._take(event)
            except CallError as error:
                self._timeline_note = "reconnecting …" if is_away(error) else plain(error.message)
            self._draw_timeline()
            await asyncio.sleep(FOLLOW_RETRY_S)

    async def _read_timeline(self) -> bool:
        try:
            timeline = await self._source.timeline(self.job_id)
        except NotFoundError:
            return True
        except CallError as error:
            if is_away(error):
                raise
            # Without the search index there is no past, but what happens from now on is seen.
            self._timeline_note = f"no earlier events: {plain(error.message)}"
            return False
        self._timeline_note = ""
        # What came live before the index was back is in both; an event is shown once, in its place.
        known = {event.seq: event for event in (*timeline.events, *self._events)}
        self._events.clear()
        self._events.extend(known[seq] for seq in sorted(known))
        self._draw_timeline()
        return True

    def _take(self, event: JobEvent) -> None:
        if self._events and event.seq <= self._events[-1].seq:
            return
        self._timeline_note = ""
        self._events.append(event)
        self._draw_timeline()
        self._pace.wake()

    # --- drawing ----------------------------------------------------------------------------------

    def _draw(self) -> None:
        now_s = self._clock.now_ms() / 1000
        self._title.update(title_line(self.job_id, self._job, self._note))
        if self._job is not None:
            self._fields.update(fields_sheet(self._job, now_s))
            self._errors.update(errors_sheet(self._job, now_s))
        elif not self._note:
            self._fields.update(Text("asking …", STYLES["dim"]))
        if self._why is not None:
            self._gates.update(why_sheet(self._why, now_s))

    def _draw_timeline(self) -> None:
        note = self._timeline_note or ("" if self._is_following else "not following; f follows")
        self._timeline.update(timeline_sheet(list(self._events), note))
        if self._is_following:
            self._timeline_scroll.scroll_end(animate=False)

    # --- keys -------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_look(self) -> None:
        self._pace.wake()

    def action_follow(self) -> None:
        """Keep the end of the timeline in sight, or stay where one reads."""
        self._is_following = not self._is_following
        self._draw_timeline()

    def action_ask(self, action: str) -> None:
        self.post_message(self.Asked(action, Target(job_ids=[self.job_id], count=1)))
