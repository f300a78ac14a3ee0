"""What the four pages have in common: they load, they show, they say what they show."""

from typing import Any, ClassVar

from textual.containers import Vertical
from textual.message import Message

from corvo.cli.top.actions import Target
from corvo.cli.top.source import Source
from corvo.runtime.clock import Clock


class Page(Vertical):
    """One tab. `load` is called by the one task that looks for the visible page."""

    title: ClassVar[str] = ""
    filter_hint: ClassVar[str] = ""
    has_jobs: ClassVar[bool] = False
    filters_here: ClassVar[bool] = True  # at each key, without asking the server

    class Told(Message):
        """What the page shows has changed, and so has the line about it."""

    class Wanted(Message):
        """The page wants to be loaded anew, at once."""

    class JobOpened(Message):
        """Somebody wants to see a job."""

        def __init__(self, job_id: str) -> None:
            super().__init__()
            self.job_id = job_id

    class JobsOpened(Message):
        """Somebody wants to see jobs that match a filter."""

        def __init__(self, filter_text: str) -> None:
            super().__init__()
            self.filter_text = filter_text

    def __init__(self, source: Source, clock: Clock) -> None:
        super().__init__(id=self.title.lower())
        self.source = source
        self.clock = clock
        self.filter_text = ""

    @property
    def now_s(self) -> float:
        """Now, for ages."""
        return self.clock.now_ms() / 1000

    async def load(self) -> None:
        """Ask the server and show the answer; raises what the call raises, and changes nothing."""
        raise NotImplementedError

    def summary(self) -> str:
        """One line about what is shown."""
        raise NotImplementedError

    def set_filter(self, text: str) -> None:
        """Show only what matches; raises FilterError, and changes nothing, when it is not read."""
        raise NotImplementedError

    def escape(self) -> bool:
        """Drop the marks; tells whether there were any."""
        raise NotImplementedError

    def target(self) -> Target | None:
        """The jobs an action would be about; None when there are none."""
        return None

    def settled(self) -> None:
        """An action was done: its marks have served."""
        self.escape()

    def copied(self) -> str | None:
        """The text `y` copies."""
        return None

    def focus_table(self) -> None:
        """Give the keys to the table of the page."""
        table: Any = self.query("Table").first()
        table.focus()
