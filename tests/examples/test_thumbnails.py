"""examples/thumbnails, as its page says."""

import sys

from corvo_sdk import Client
from tests.examples.conftest import Start


def test_callback_runs_once_after_the_last_picture(walk: Start, client: Client) -> None:
    """Eight thumbnails of the asked width, one dead job, one page that counts both."""
    page = walk("thumbnails")
    printed = page.rest()[-1]
    assert printed.startswith("8 of 9 pictures: "), printed
    folder = page.folder / "thumbnails"
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert index.count("<img ") == 8
    sizes = {path.read_bytes()[16:24] for path in folder.glob("*.png")}
    assert sizes == {(160).to_bytes(4, "big") + (120).to_bytes(4, "big")}
    assert client.queue("albums").totals.enqueued == 1
    counts = client.queue("thumbnails")
    assert (counts.completed, counts.dead) == (8, 1)


def test_pictures_with_every_filter_of_the_format_are_read(walk: Start) -> None:
    """A row may be written as the difference to its neighbours, in four ways."""
    folder = walk("thumbnails").folder
    sys.path.insert(0, str(folder))
    try:
        import picture  # noqa: PLC0415 - the module of the example
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("picture", None)
    above = bytes([10, 20, 30, 40, 50, 60])
    expected = {
        1: [1, 2, 3, 5, 7, 9],
        2: [11, 22, 33, 44, 55, 66],
        3: [6, 12, 18, 27, 36, 45],
        4: [11, 22, 33, 44, 55, 66],
    }
    for method, values in expected.items():
        row = bytearray([1, 2, 3, 4, 5, 6])
        picture._undo(method, row, above)
        assert list(row) == values, method
