"""Payloads the machine composes: chain steps, handlers, batch callbacks.

Values are kept as the bytes they came in (big numbers survive); only the outermost object is
opened.
"""

from collections.abc import Mapping

from msgspec import Raw
from msgspec.json import Decoder, encode

_open_object = Decoder(dict[str, Raw]).decode

NULL = Raw(b"null")


def raw(document: bytes | None) -> Raw:
    """Wrap a JSON text; nothing becomes null."""
    return Raw(document) if document is not None else NULL


def text(value: str) -> Raw:
    """Wrap a string."""
    return Raw(encode(value))


def merge(payload: bytes | None, extra: Mapping[str, Raw]) -> bytes:
    """Add fields to a payload; a payload that is no object goes under `payload`."""
    if payload is None:
        fields: dict[str, Raw] = {}
    elif payload.lstrip()[:1] == b"{":
        fields = _open_object(payload)
    else:
        fields = {"payload": Raw(payload)}
    fields.update(extra)
    return encode(fields)
