"""The backup archive: a tar with a manifest first, and a checksum of every file in it.

    manifest.json       where the copy stands, and size and SHA-256 of each file
    store/NAME          the files of the copy

The archive is plain: `tar tf` lists it and any tool can unpack it. Its size is known before the
first byte is sent, so a truncated download is noticed by whoever counts, and a damaged one by the
checksums. Nothing in here trusts a name: files have no folders, links and devices are refused.
"""

import hashlib
import re
import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from corvo import __version__
from corvo.errors import CorruptionError

if TYPE_CHECKING:
    from corvo.engine.backup import Copy

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
FOLDER: Final = "store/"
MEDIA: Final = b"application/x-tar"

_CHUNK_BYTES: Final = 256 * 1024
_BLOCK_BYTES: Final = 512
_MANIFEST_BYTES_MAX: Final = 16 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# What the store leaves beside its data: its own diagnostics, and its lock.
_LEFT_OUT: Final = re.compile(r"LOG(\.old.*)?|LOCK|.*\.log")
_HINT: Final = "take the backup again, or use another one"


class File(Struct, frozen=True):
    """One file of the copy."""

    name: str
    size: int
    sha256: str


class Manifest(Struct, frozen=True):
    """What an archive says about itself."""

    format: int
    server_version: str
    index: int
    now_ms: int
    seq: int
    chain: str
    epoch: str
    machine_version: int
    files: list[File]


def survey(copy: "Copy") -> Manifest:
    """Measure the files of a copy. Blocks: it reads all of them."""
    found: list[File] = []
    for path in sorted(Path(copy.directory).iterdir()):
        if path.is_file() and not _LEFT_OUT.fullmatch(path.name):
            size, digest = _digest(path)
            found.append(File(path.name, size, digest))
    at = copy.position
    return Manifest(
        FORMAT,
        __version__,
        at.index,
        at.now_ms,
        at.seq,
        at.chain.hex(),
        at.epoch.hex(),
        at.machine_version,
        found,
    )


def _digest(path: Path) -> tuple[int, str]:
    total = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            total.update(chunk)
            size += len(chunk)
    return size, total.hexdigest()


def _head(name: str, size: int, at_ms: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mtime = at_ms // 1_000
    entry.mode = 0o600
    return entry.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK_BYTES)


def size_of(manifest: Manifest) -> int:
    """Bytes of the whole archive."""
    sizes = [len(_encode(manifest)), *(file.size for file in manifest.files)]
    return sum(_BLOCK_BYTES + size + len(_padding(size)) for size in sizes) + 2 * _BLOCK_BYTES


def _encode(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


async def chunks(copy: "Copy", manifest: Manifest) -> AsyncIterator[bytes]:
    """The archive, piece by piece; files are read away from the loop."""
    text = _encode(manifest)
    yield _head(MANIFEST, len(text), manifest.now_ms) + text + _padding(len(text))
    for each in manifest.files:
        yield _head(FOLDER + each.name, each.size, manifest.now_ms)
        with await copy.run(Path(copy.directory, each.name).open, "rb") as file:
            left = each.size
            while left:
                chunk = await copy.run(file.read, min(left, _CHUNK_BYTES))
                if not chunk:
                    raise CorruptionError(f"{each.name} of the copy has shrunk")
                left -= len(chunk)
                yield chunk
        yield _padding(each.size)
    yield bytes(2 * _BLOCK_BYTES)


# --- reading ----------------------------------------------------------------------------------


def _damaged(message: str) -> CorruptionError:
    return CorruptionError(f"the archive is damaged: {message}", hint=_HINT)


def unpack(source: Path, target: Path | None) -> Manifest:
    """Check an archive from end to end; with a target, write the store's files into it. Blocks.

    Raises `CorruptionError` for anything that is not exactly what `chunks` wrote.
    """
    try:
        with tarfile.open(source, "r:") as archive:
            manifest = _read_manifest(archive)
            _unpack_files(archive, manifest, target)
    except tarfile.TarError as error:
        raise _damaged(str(error)) from error
    if source.stat().st_size != size_of(manifest):
        raise _damaged("it is shorter or longer than it says")
    return manifest


def _read_manifest(archive: tarfile.TarFile) -> Manifest:
    entry = archive.next()
    if entry is None or entry.name != MANIFEST or entry.size > _MANIFEST_BYTES_MAX:
        raise _damaged(f"it does not begin with {MANIFEST}")
    with _content(archive, entry) as file:
        text = file.read()
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
    except msgspec.DecodeError as error:
        raise _damaged(f"{MANIFEST} cannot be read: {error}") from error
    if manifest.format != FORMAT:
        message = f"the archive has format {manifest.format}, this program reads {FORMAT}"
        raise CorruptionError(message, hint="use the version of corvo that wrote it, or a newer")
    names = [file.name for file in manifest.files]
    if len(set(names)) != len(names) or not all(map(_NAME.fullmatch, names)):
        raise _damaged("its manifest names files that no store has")
    return manifest


def _content(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(entry) if entry.isreg() else None
    if file is None:
        raise _damaged(f"{entry.name} is not a file")
    return file


def _unpack_files(archive: tarfile.TarFile, manifest: Manifest, target: Path | None) -> None:
    for each in manifest.files:
        entry = archive.next()
        if entry is None or entry.name != FOLDER + each.name or entry.size != each.size:
            raise _damaged(f"{each.name} is missing or has another size")
        total = hashlib.sha256()
        with _content(archive, entry) as file:
            if target is None:
                for chunk in _pieces(file):
                    total.update(chunk)
            else:
                with (target / each.name).open("xb") as written:
                    for chunk in _pieces(file):
                        total.update(chunk)
                        written.write(chunk)
        if total.hexdigest() != each.sha256:
            raise _damaged(f"{each.name} has another checksum")
    if archive.next() is not None:
        raise _damaged("it holds more than its manifest says")


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk
