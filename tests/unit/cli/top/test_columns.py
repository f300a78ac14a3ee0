"""Which columns fit, and what a cell looks like in its width."""

from corvo.cli.top.columns import Cell, Column, aligned, place

COLUMNS = [
    Column[str]("name", "name", Cell),
    Column[str]("much", "much", Cell, width=10, rank=1),
    Column[str]("more", "more", Cell, width=10, rank=2),
]


def _names(width: int) -> list[str]:
    return [placed.column.name for placed in place(COLUMNS, width, 3)]


def test_the_least_important_column_goes_first() -> None:
    """Narrower and narrower, until what always stays is left."""
    assert _names(80) == ["name", "much", "more"]
    assert _names(40) == ["name", "much"]
    assert _names(25) == ["name"]
    assert _names(5) == ["name"]


def test_what_is_left_goes_to_the_column_without_a_width() -> None:
    """All columns and the gaps between them fill the width exactly."""
    placed = place(COLUMNS, 80, 3)
    assert placed[-1].start + placed[-1].width == 80
    assert placed[0].width == 80 - 3 - 10 - 10 - 4


def test_cells_are_exactly_as_wide_as_their_column() -> None:
    """Numbers stand at the right, texts at the left; wide signs count twice; a cut is marked."""
    assert aligned("12", 5, is_number=True) == "   12"
    assert aligned("ab", 5, is_number=False) == "ab   "
    assert aligned("日本", 5, is_number=False) == "日本 "
    assert aligned("abcdef", 4, is_number=False) == "abc…"
    assert aligned("ab", 1, is_number=False) == "a"
