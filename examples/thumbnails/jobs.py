"""An album is a batch: one job for each picture, and a callback when the last one has ended."""

from html import escape
from pathlib import Path
from typing import TypedDict

import picture

from corvo_sdk import Corvo, Discard

app = Corvo("thumbnails")


class Counts(TypedDict):
    """What the server adds to the payload of a callback."""

    total: int
    succeeded: int
    failed: int


@app.task(queue="thumbnails", retries=3, timeout="2m", process=True)
def make_thumbnail(source: str, target: str, width: int = 160) -> tuple[int, int]:
    """Shrink one picture; in a process of its own, since it is nothing but computing."""
    try:
        small = picture.shrink(picture.read(Path(source)), width)
    except picture.PictureError as error:
        raise Discard(str(error)) from error
    picture.write(Path(target), small)
    return small.width, small.height


@app.task(queue="albums")
def write_index(folder: str, batch: Counts | None = None) -> str:
    """Write the page of an album. Runs once, after the last thumbnail, however each ended."""
    assert batch is not None
    names = sorted(path.name for path in Path(folder).glob("*.png"))
    images = "\n".join(f'<img src="{escape(name)}" alt="">' for name in names)
    note = f"{batch['succeeded']} of {batch['total']} pictures"
    (Path(folder) / "index.html").write_text(f"<h1>{note}</h1>\n{images}\n", encoding="utf-8")
    return note
