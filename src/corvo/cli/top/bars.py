"""The thin lines around a page: its tabs above, what it shows below."""

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Static

from corvo.cli.top.page import Page
from corvo.cli.top.palette import STYLES
from corvo.cli.top.wording import plain

SAID_S = 8.0


class Tab(Static):
    """The name of a page; a click opens it."""

    class Clicked(Message):
        """This page is wanted."""

        def __init__(self, title: str) -> None:
            super().__init__()
            self.title = title

    def __init__(self, title: str) -> None:
        super().__init__(id=f"tab-{title.lower()}")
        self._title = title

    def on_click(self) -> None:
        self.post_message(self.Clicked(self._title))


class TabBar(Horizontal):
    """The pages by number and name, and the filter of the open one."""

    DEFAULT_CSS: ClassVar[str] = """
    TabBar Tab { width: auto; padding: 0 1; color: $secondary; }
    TabBar Tab.open { color: $foreground; background: $panel; text-style: bold; }
    TabBar #tab-filter { width: 1fr; padding: 0 2; }
    """

    def __init__(self, titles: Sequence[str]) -> None:
        super().__init__(id="tabs")
        self._tabs = {title: Tab(title) for title in titles}
        self._filter = Static(id="tab-filter")

    def compose(self) -> ComposeResult:
        yield from self._tabs.values()
        yield self._filter

    def show(self, page: Page) -> None:
        """Mark the open page and tell its filter."""
        for number, (title, tab) in enumerate(self._tabs.items(), start=1):
            is_open = title == page.title
            # The sign tells the open page where there are no colours.
            tab.update(f"▸{number} {title}" if is_open else f" {number} {title}")
            tab.set_class(is_open, "open")
        text = Text(no_wrap=True, overflow="ellipsis")
        if page.filter_text:
            text.append("filter ", STYLES["dim"])
            text.append(plain(page.filter_text), STYLES["accent"])
        self._filter.update(text)


class StatusLine(Static):
    """What the page shows; for a moment, what was just done; and trouble as long as it lasts."""

    def __init__(self) -> None:
        super().__init__(id="status")
        self._said: tuple[str, str] | None = None
        self._trouble = ""
        self._summary = ""

    def say(self, text: str, tone: str) -> None:
        """Show a sentence for a few seconds."""
        said = (text, tone)
        self._said = said
        self.set_timer(SAID_S, lambda: self._forget(said))
        self._draw()

    def tell(self, summary: str, trouble: str) -> None:
        """Show what the page is about."""
        self._summary, self._trouble = summary, trouble
        self._draw()

    def _forget(self, said: tuple[str, str]) -> None:
        if self._said is said:
            self._said = None
            self._draw()

    def _draw(self) -> None:
        text = Text(no_wrap=True, overflow="ellipsis")
        if self._said is not None:
            text.append(self._said[0], STYLES[self._said[1]])
            text.append("   ")
        elif self._trouble:
            text.append(f"{self._trouble}   ", STYLES["warn"])
        text.append(self._summary, STYLES["dim"])
        self.update(text)
