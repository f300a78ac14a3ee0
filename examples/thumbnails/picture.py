"""Pictures with nothing but the standard library: PNG with eight bits of red, green and blue."""

import struct
import zlib
from pathlib import Path
from typing import NamedTuple

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = 3
# Eight bits, colour, and the only methods there are; not interlaced.
KIND = b"\x08\x02\x00\x00\x00"
PIXELS_MAX = 50_000_000  # a small file can unpack to a very large one


class PictureError(ValueError):
    """The file is no picture this module reads; trying again would not change that."""


class Picture(NamedTuple):
    """Rows from top to bottom, three bytes a pixel."""

    width: int
    height: int
    rows: list[bytes]


def read(path: Path) -> Picture:
    content = path.read_bytes()
    if not content.startswith(SIGNATURE):
        raise PictureError(f"{path.name} is no PNG")
    width, height, packed, position = 0, 0, b"", len(SIGNATURE)
    while position + 8 <= len(content):
        size, kind = struct.unpack_from(">I4s", content, position)
        body = content[position + 8 : position + 8 + size]
        if kind == b"IHDR":
            width, height = struct.unpack_from(">II", body)
            if body[8:] != KIND:
                raise PictureError(f"{path.name} is not plain RGB with eight bits")
        elif kind == b"IDAT":
            packed += body
        position += 12 + size  # length, kind and checksum
    if not 0 < width * height <= PIXELS_MAX:
        raise PictureError(f"{path.name} has {width} x {height} pixels")
    return Picture(width, height, _unfilter(path.name, packed, width * CHANNELS, height))


def _unfilter(name: str, packed: bytes, row_bytes: int, height: int) -> list[bytes]:
    try:
        data = zlib.decompressobj().decompress(packed, (row_bytes + 1) * height)
    except zlib.error as error:
        raise PictureError(f"{name}: {error}") from error
    if len(data) < (row_bytes + 1) * height:
        raise PictureError(f"{name} is cut off")
    rows: list[bytes] = []
    above = bytes(row_bytes)
    for start in range(0, height * (row_bytes + 1), row_bytes + 1):
        method = data[start]
        row = bytearray(data[start + 1 : start + 1 + row_bytes])
        if method:
            _undo(method, row, above)
        above = bytes(row)
        rows.append(above)
    return rows


def _undo(method: int, row: bytearray, above: bytes) -> None:
    """Add to each byte what the writer took from it, by its neighbours left and above."""
    for index in range(len(row)):
        left = row[index - CHANNELS] if index >= CHANNELS else 0
        corner = above[index - CHANNELS] if index >= CHANNELS else 0
        guesses = (0, left, above[index], (left + above[index]) // 2)
        guess = guesses[method] if method < len(guesses) else _nearest(left, above[index], corner)
        row[index] = (row[index] + guess) & 0xFF


def _nearest(left: int, above: int, corner: int) -> int:
    target = left + above - corner
    return min((left, above, corner), key=lambda value: abs(target - value))


def write(path: Path, picture: Picture) -> None:
    """Write a file as a whole or not at all: who reads meanwhile sees the old one."""
    header = struct.pack(">II", picture.width, picture.height) + KIND
    data = zlib.compress(b"".join(b"\0" + row for row in picture.rows))
    chunks = [(b"IHDR", header), (b"IDAT", data), (b"IEND", b"")]
    new = path.with_suffix(".new")
    new.write_bytes(SIGNATURE + b"".join(_chunk(kind, body) for kind, body in chunks))
    new.replace(path)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def shrink(picture: Picture, width: int) -> Picture:
    """Average boxes of pixels, down to a width; a smaller picture stays as it is."""
    if picture.width <= width:
        return picture
    step = picture.width / width
    height = max(1, round(picture.height / step))
    rows: list[bytes] = []
    for y in range(height):
        box = picture.rows[int(y * step) : max(int(y * step) + 1, int((y + 1) * step))]
        row = bytearray()
        for x in range(width):
            start, until = int(x * step) * CHANNELS, int((x + 1) * step) * CHANNELS
            for channel in range(CHANNELS):
                values = [
                    line[at] for line in box for at in range(start + channel, until, CHANNELS)
                ]
                row.append(sum(values) // len(values))
        rows.append(bytes(row))
    return Picture(width, height, rows)
