"""From bytes to frames and back, in JSON and in msgpack.

Format: documents are JSON text everywhere inside. A msgpack frame carries them as `bin` with that
text, byte for byte; a client may send any other value instead, which is written as JSON here.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final, Protocol

from msgspec import DecodeError, EncodeError, Raw, Struct, ValidationError, json, msgpack
from msgspec.structs import fields

from corvo.api import wire
from corvo.api.decode import Reader, invalid
from corvo.api.stream.frames import (
    BeatItem,
    ClientFrame,
    FailItem,
    HoldItem,
    ReleaseItem,
    ServerFrame,
    SnoozeItem,
)
from corvo.errors import RequestError

JSON_PROTOCOL: Final = "corvo.v1.json"
MSGPACK_PROTOCOL: Final = "corvo.v1.msgpack"

_LISTS: Final = ("acks", "fails", "releases", "snoozes", "holds", "heartbeats", "enqueues")
_ITEMS: Final = (
    wire.AckItem,
    FailItem,
    ReleaseItem,
    SnoozeItem,
    HoldItem,
    BeatItem,
    wire.EnqueueRequest,
    wire.StepFields,
)
_DOCUMENTS: Final[dict[type[Struct], tuple[str, ...]]] = {
    shape: tuple(field.name for field in fields(shape) if field.type is Raw) for shape in _ITEMS
}


class Codec(Protocol):
    """One encoding of a stream."""

    @property
    def is_text(self) -> bool:
        """Whether its messages are text."""
        ...

    def decode(self, message: bytes) -> ClientFrame:
        """Read a frame. Raises `RequestError`; then nothing of it counts."""
        ...

    def encode(self, frame: ServerFrame, /) -> bytes:
        """Write a frame."""
        ...

    def document(self, text: bytes) -> Raw:
        """Embed a JSON document in a frame to be written."""
        ...

    def request_id(self, message: bytes) -> int:
        """Find the number of a frame that could not be read; 0 when that can not be read either."""
        ...


class _Numbered(Struct):
    request_id: int = 0


def _number(found: _Numbered) -> int:
    return found.request_id if 0 <= found.request_id < 1 << 53 else 0


class JsonCodec:
    """Text messages with one JSON object each."""

    @property
    def is_text(self) -> bool:
        """JSON is text."""
        return True

    def __init__(self) -> None:
        self._reader = Reader(ClientFrame)
        self._numbered = json.Decoder(_Numbered)
        self._encode = json.Encoder().encode

    def decode(self, message: bytes) -> ClientFrame:
        """Read a frame."""
        return self._reader.read(message, b"")

    def encode(self, frame: ServerFrame, /) -> bytes:
        """Write a frame."""
        return self._encode(frame)

    def document(self, text: bytes) -> Raw:
        """Embed a document as it is."""
        return Raw(text)

    def request_id(self, message: bytes) -> int:
        """Find the number of a frame that could not be read."""
        try:
            return _number(self._numbered.decode(message))
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return 0


class MsgpackCodec:
    """Binary messages with one map each."""

    @property
    def is_text(self) -> bool:
        """It is not."""
        return False

    def __init__(self) -> None:
        self._decoder = msgpack.Decoder(ClientFrame)
        self._numbered = msgpack.Decoder(_Numbered)
        self._encode = msgpack.Encoder().encode

    def decode(self, message: bytes) -> ClientFrame:
        """Read a frame; its documents are JSON text afterwards."""
        try:
            frame = self._decoder.decode(message)
        except ValidationError as error:
            raise invalid(str(error)) from error
        except (DecodeError, UnicodeDecodeError, RecursionError) as error:
            message_text = f"the frame is not msgpack: {error}"
            raise RequestError(message_text, code="PARSE_ERROR", hint="send one map") from error
        for name in _LISTS:
            items: list[Struct] | None = getattr(frame, name)
            if items:
                for position, item in enumerate(items):
                    _settle_documents(item, f"{name}[{position}]")
        return frame

    def encode(self, frame: ServerFrame, /) -> bytes:
        """Write a frame."""
        return self._encode(frame)

    def document(self, text: bytes) -> Raw:
        """Embed a document as `bin`."""
        return Raw(_bin_head(len(text)) + text)

    def request_id(self, message: bytes) -> int:
        """Find the number of a frame that could not be read."""
        try:
            return _number(self._numbered.decode(message))
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return 0


JSON: Final = JsonCodec()
MSGPACK: Final = MsgpackCodec()
BY_PROTOCOL: Final[dict[str, Codec]] = {JSON_PROTOCOL: JSON, MSGPACK_PROTOCOL: MSGPACK}


def json_document(text: bytes, path: str) -> Raw:
    """Accept bytes that should be a JSON document."""
    try:
        # Safety: skipping over a value does not look at the encoding of its strings.
        text.decode()
        return _RAW.decode(text)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"this is not a JSON document: {error}", field=path) from error


_RAW: Final = json.Decoder(Raw)
_BIN: Final = frozenset({0xC4, 0xC5, 0xC6})


def _settle_documents(item: Struct, path: str) -> None:
    """Turn the documents of an item from msgpack into JSON text."""
    for name in _DOCUMENTS[type(item)]:
        raw: Raw = getattr(item, name)
        if raw is not wire.ABSENT:
            setattr(item, name, _json_of(bytes(raw), f"{path}.{name}"))
    if isinstance(item, wire.EnqueueRequest) and item.chain is not None:
        for step_path, step in _steps(item.chain):
            _settle_documents(step, f"{path}.chain.{step_path}")


def _steps(chain: wire.ChainFields) -> Iterator[tuple[str, wire.StepFields]]:
    for position, step in enumerate(chain.steps):
        yield f"steps[{position}]", step
    for name, step in (("on_failure", chain.on_failure), ("on_exit", chain.on_exit)):
        if step is not None:
            yield name, step


def _json_of(packed: bytes, path: str) -> Raw:
    try:
        value: Any = msgpack.decode(packed)
        if packed[0] in _BIN:
            return json_document(value, path)
        return Raw(json.encode(value))
    except (DecodeError, EncodeError, UnicodeError, RecursionError, TypeError, ValueError) as error:
        message = f"this can not be written as JSON: {error}"
        raise RequestError(message, field=path) from error


def _bin_head(size: int) -> bytes:
    if size < 1 << 8:
        return struct.pack(">BB", 0xC4, size)
    if size < 1 << 16:
        return struct.pack(">BH", 0xC5, size)
    return struct.pack(">BI", 0xC6, size)
