"""A table that draws only what is on the screen, so that ten thousand rows cost what forty do.

The rows are plain values; a cell is made when its line is drawn. A refresh hands over a new list:
cursor and marks stay with the rows they were on, by key, whatever has moved meanwhile.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from corvo.cli.top.columns import GAP, Cell, Column, Placed, Row, Tone, aligned, place

MARGIN = 3  # cursor, mark, space
MARKS_MAX = 10_000
BETWEEN = " " * GAP


class Table(ScrollView, Generic[Row], can_focus=True):
    """Rows under headings, with a cursor, marks and an order."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "table--head",
        "table--head-sorted",
        "table--cursor",
        "table--cursor-blurred",
        "table--marked",
        "table--plain",
        "table--dim",
        "table--good",
        "table--warn",
        "table--bad",
        "table--accent",
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "Up", show=False),
        Binding("down,j", "step(1)", "Down", show=False),
        Binding("pageup", "leap(-1)", "Page up", show=False),
        Binding("pagedown", "leap(1)", "Page down", show=False),
        Binding("home,g", "edge(-1)", "First", show=False),
        Binding("end,G", "edge(1)", "Last", show=False),
        Binding("enter", "open", "Open"),
        Binding("space", "mark", "Mark", key_display="space"),
        Binding("a", "mark_all", "Mark all", show=False),
        Binding("s", "sort_next", "Sort"),
        Binding("S", "sort_turn", "Reverse", show=False),
    ]

    class Opened(Message):
        """Enter or a click on the row under the cursor."""

        def __init__(self, table: "Table[Row]") -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> "Table[Row]":
            return self.table

    class Moved(Opened):
        """The cursor is on another row."""

    class Sorted(Opened):
        """Another order is wanted; a table of the server's order waits for new rows."""

    class Marked(Opened):
        """Marks have changed."""

    def __init__(
        self,
        columns: Sequence[Column[Row]],
        key_of: Callable[[Row], str],
        *,
        sort: str,
        id: str,  # noqa: A002 - the name Textual gives it
    ) -> None:
        super().__init__(id=id)
        self._columns = list(columns)
        self._key_of = key_of
        self._rows: list[Row] = []
        self._placed: list[Placed[Row]] = []
        self.cursor = 0
        self.marks: set[str] = set()
        self.sort = sort
        self.is_falling = self._column(sort).is_falling_first
        self.empty: Sequence[Cell] = ()
        self._tones: dict[str, Style] = {}

    # --- what others ask --------------------------------------------------------------------------

    @property
    def rows(self) -> Sequence[Row]:
        """The rows as they are shown."""
        return self._rows

    @property
    def current(self) -> Row | None:
        """The row under the cursor."""
        return self._rows[self.cursor] if self._rows else None

    @property
    def order(self) -> Column[Row]:
        """The column the rows are sorted by."""
        return self._column(self.sort)

    def chosen(self) -> list[str]:
        """Keys of the marked rows, else of the one under the cursor."""
        if self.marks:
            return sorted(self.marks)
        row = self.current
        return [] if row is None else [self._key_of(row)]

    def show(self, rows: Sequence[Row], *, keeps_marks: bool = False) -> None:
        """Take new rows; marks of rows that are gone go, unless they may be on other pages."""
        before = self.current
        key = None if before is None else self._key_of(before)
        self._rows = self._sorted(rows)
        if self.marks and not keeps_marks:
            self.marks &= {self._key_of(row) for row in self._rows}
        self._find(key)
        self._settle()
        after = self.current
        if (None if after is None else self._key_of(after)) != key:
            self.post_message(self.Moved(self))

    def clear_marks(self) -> bool:
        """Drop all marks; tells whether there were any."""
        had = bool(self.marks)
        self.marks.clear()
        self.refresh()
        self.post_message(self.Marked(self))
        return had

    def go_to(self, index: int) -> None:
        """Put the cursor on a row."""
        index = max(0, min(index, len(self._rows) - 1))
        if index != self.cursor:
            self.cursor = index
            self.post_message(self.Moved(self))
        self._scroll_to_cursor()
        self.refresh()

    # --- order ------------------------------------------------------------------------------------

    def sort_by(self, name: str) -> None:
        """Sort by a column; asked again, the other way round."""
        column = self._column(name)
        if not column.is_sortable:
            return
        self.is_falling = not self.is_falling if name == self.sort else column.is_falling_first
        self.sort = name
        if column.order is not None:
            self.show(self._rows, keeps_marks=True)
        self.refresh()
        self.post_message(self.Sorted(self))

    def _sorted(self, rows: Sequence[Row]) -> list[Row]:
        order = self._column(self.sort).order
        if order is None:
            return list(rows)
        # Equal rows stay in the order of their keys, so that nothing dances between two looks.
        named = sorted(rows, key=self._key_of)
        return sorted(named, key=order, reverse=self.is_falling)

    def _column(self, name: str) -> Column[Row]:
        return next(column for column in self._columns if column.name == name)

    # --- keys and mouse ---------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        self.go_to(self.cursor + by)

    def action_leap(self, by: int) -> None:
        self.go_to(self.cursor + by * max(1, self._height - 1))

    def action_edge(self, by: int) -> None:
        self.go_to(0 if by < 0 else len(self._rows) - 1)

    def action_open(self) -> None:
        if self._rows:
            self.post_message(self.Opened(self))

    def action_mark(self) -> None:
        row = self.current
        if row is None:
            return
        key = self._key_of(row)
        if key in self.marks:
            self.marks.discard(key)
        elif len(self.marks) < MARKS_MAX:
            self.marks.add(key)
        self.post_message(self.Marked(self))
        self.go_to(self.cursor + 1)

    def action_mark_all(self) -> None:
        keys = [self._key_of(row) for row in self._rows]
        if self.marks.issuperset(keys):
            self.marks.difference_update(keys)
        else:
            self.marks.update(keys[: max(0, MARKS_MAX - len(self.marks))])
        self.refresh()
        self.post_message(self.Marked(self))

    def action_sort_next(self) -> None:
        names = [placed.column.name for placed in self._placed if placed.column.is_sortable]
        if names:
            at = names.index(self.sort) if self.sort in names else -1
            self.sort_by(names[(at + 1) % len(names)])

    def action_sort_turn(self) -> None:
        self.sort_by(self.sort)

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            for placed in self._placed:
                if placed.start <= event.x < placed.start + placed.width:
                    self.sort_by(placed.column.name)
            return
        index = self.scroll_offset.y + event.y - 1
        if not 0 <= index < len(self._rows):
            return
        if event.x < MARGIN:
            self.go_to(index)
            self.action_mark()
            return
        if index == self.cursor and event.chain > 1:
            self.action_open()
        self.go_to(index)

    # --- drawing ----------------------------------------------------------------------------------

    @property
    def _height(self) -> int:
        return max(1, self.scrollable_content_region.height - 1)

    def on_resize(self) -> None:
        self._settle()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def _find(self, key: str | None) -> None:
        for index, row in enumerate(self._rows):
            if self._key_of(row) == key:
                self.cursor = index
                return
        self.cursor = max(0, min(self.cursor, len(self._rows) - 1))

    def _settle(self) -> None:
        # A column of air at the right, so that figures do not stick to the bar.
        self._placed = place(self._columns, self.scrollable_content_region.width - 1, MARGIN)
        # Nothing is wider than the screen: columns give way instead. One line is the heading's.
        self.virtual_size = Size(1, len(self._rows) + 1)
        self._scroll_to_cursor()
        self.refresh()

    def _scroll_to_cursor(self) -> None:
        top, height = self.scroll_offset.y, self._height
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, immediate=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, immediate=True)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if y == 0:
            return self._heading(width)
        index = self.scroll_offset.y + y - 1
        if index < len(self._rows):
            return self._line(index, width)
        return self._empty_line(y, width)

    def _heading(self, width: int) -> Strip:
        head = self.get_component_rich_style("table--head")
        strong = self.get_component_rich_style("table--head-sorted")
        parts = [Segment(" " * MARGIN, head)]
        for placed in self._placed:
            column, title = placed.column, placed.column.title
            is_sorted = column.name == self.sort
            if is_sorted:
                title = f"{title}{'↓' if self.is_falling else '↑'}"
            text = aligned(title, placed.width, is_number=column.is_number)
            parts.append(Segment(text + BETWEEN, strong if is_sorted else head))
        return Strip(parts).adjust_cell_length(width, head)

    def _line(self, index: int, width: int) -> Strip:
        row = self._rows[index]
        is_marked = self._key_of(row) in self.marks
        is_current = index == self.cursor
        base = self._base(is_current=is_current, is_marked=is_marked)
        # The signs tell cursor and mark where there are no colours.
        lead = ("▌" if is_current else " ") + ("●" if is_marked else " ") + " "
        parts = [Segment(lead, base + self._tone("accent"))]
        for placed in self._placed:
            cell = placed.column.cell(row)
            text = aligned(cell.text, placed.width, is_number=placed.column.is_number)
            parts.append(Segment(text + BETWEEN, base + self._tone(cell.tone)))
        return Strip(parts).adjust_cell_length(width, base)

    def _empty_line(self, y: int, width: int) -> Strip:
        base = self._base(is_current=False, is_marked=False)
        at = y - 3
        if self._rows or not 0 <= at < len(self.empty):
            return Strip.blank(width, base)
        cell = self.empty[at]
        text = Segment(" " * MARGIN + cell.text, base + self._tone(cell.tone))
        return Strip([text]).adjust_cell_length(width, base)

    def _base(self, *, is_current: bool, is_marked: bool) -> Style:
        if is_current:
            name = "table--cursor" if self.has_focus else "table--cursor-blurred"
            return self.get_component_rich_style(name)
        return self.get_component_rich_style("table--marked" if is_marked else "table--plain")

    def _tone(self, tone: Tone) -> Style:
        known = self._tones.get(tone)
        if known is None:
            # Only the colour of the letters: the ground is that of the row.
            style = self.get_component_rich_style(f"table--{tone}")
            known = self._tones[tone] = Style(color=style.color)
        return known

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._tones.clear()
