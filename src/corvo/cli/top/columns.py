"""Columns of a table, and which of them fit: the least important ones give way first."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct
from rich.cells import cell_len, set_cell_size

Row = TypeVar("Row")
Tone = Literal["plain", "dim", "good", "warn", "bad", "accent"]
GAP = 2


class Cell(Struct, frozen=True):
    """A text and how much it wants to be seen."""

    text: str
    tone: Tone = "plain"


class Column(Struct, Generic[Row], frozen=True):
    """One column. `order` sorts here, `server_order` is what a search calls it; neither: unsorted.

    `rank` says who stays when the terminal is narrow: rank 0 always does. A column without a width
    takes what the others leave, and at least its `least`.
    """

    name: str
    title: str
    cell: Callable[[Row], Cell]
    width: int = 0
    least: int = 16
    rank: int = 0
    is_number: bool = False
    order: Callable[[Row], Any] | None = None
    server_order: str = ""
    is_falling_first: bool = True

    @property
    def is_sortable(self) -> bool:
        return self.order is not None or bool(self.server_order)


class Placed(Struct, Generic[Row], frozen=True):
    """A column that fits, where it begins and how wide it is."""

    column: Column[Row]
    start: int
    width: int


def place(columns: Sequence[Column[Row]], width: int, margin: int) -> list[Placed[Row]]:
    """Choose the columns that fit into a width, and share out what is left."""
    kept = list(columns)
    while len(kept) > 1 and _needed(kept) + margin > width:
        rank = max(column.rank for column in kept)
        if rank == 0:
            break
        last = max(index for index, column in enumerate(kept) if column.rank == rank)
        del kept[last]
    spare = max(0, width - margin - _needed(kept))
    flexible_count = sum(1 for column in kept if not column.width)
    placed: list[Placed[Row]] = []
    start = margin
    for column in kept:
        size = column.width or column.least + spare // max(1, flexible_count)
        placed.append(Placed(column, start, size))
        start += size + GAP
    return placed


def _needed(columns: Sequence[Column[Row]]) -> int:
    return sum(column.width or column.least for column in columns) + GAP * (len(columns) - 1)


def aligned(text: str, width: int, *, is_number: bool) -> str:
    """A text of exactly this width on the screen; what is cut off is marked."""
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, width - 1) + "…" if width > 1 else set_cell_size(text, width)
    return " " * (width - size) + text if is_number else text + " " * (width - size)
