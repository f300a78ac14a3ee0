"""Why a body is not JSON, and at which field: only for bodies that were already refused.

The decoder is fast and says little ("input data was truncated" for a lone surrogate). This walks
the beginning of a refused body once more, slowly, to tell a person what to look at.
"""

import re
from typing import Final

from corvo.errors import RequestError
from corvo.model import limits

# Cost: this runs in Python at some 5 MB/s on the event loop, hence on a bounded prefix only.
_EXAMINED_BYTES: Final = 64 * 1024
TOO_DEEP: Final = f"this is nested deeper than {limits.JSON_DEPTH_MAX} levels"
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_LITERAL: Final = re.compile(r"true|false|null")
_CONSTANT: Final = re.compile(r"-?(?:NaN|Infinity|nan|inf\w*)")
_STRING: Final = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"')
_SURROGATE: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


class _FaultError(Exception):
    """The first thing wrong in a body, and where."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def explain(body: bytes, error: Exception) -> RequestError:
    """Describe a body that is not JSON."""
    if isinstance(error, UnicodeDecodeError):
        text = body[: min(error.start, _EXAMINED_BYTES)].decode(errors="replace")
        path, _ = _walk(text)
        return _refusal(f"the body is not UTF-8 at byte {error.start}", path)
    path, fault = _walk(body[:_EXAMINED_BYTES].decode(errors="replace"))
    if fault is None or (len(body) > _EXAMINED_BYTES and fault.position >= _EXAMINED_BYTES - 12):
        return _refusal(f"the body is not JSON: {error}", "")
    return _refusal(f"{fault.message} at character {fault.position}", path)


def too_deep(body: bytes) -> RequestError:
    """Describe a body nested so deep that the decoder gave up."""
    path, _ = _walk(body[:_EXAMINED_BYTES].decode(errors="replace"))
    top = re.split(r"[.\[]", path, maxsplit=1)[0]
    return RequestError(TOO_DEEP, field=top or None)


def _refusal(message: str, path: str) -> RequestError:
    field = path[: limits.NAME_BYTES_MAX] or None
    return RequestError(message, code="PARSE_ERROR", field=field, hint="send one JSON object")


def _walk(text: str) -> tuple[str, _FaultError | None]:
    """Go through a text until the first fault; answer the path reached, and the fault."""
    path: list[str | int] = []
    try:
        _scan(text, path)
    except _FaultError as fault:
        return _render(path), fault
    return "", None


def _render(path: list[str | int]) -> str:
    # Deep paths say nothing to a person: the first eight parts are enough to find the place.
    out = ""
    for part in path[:8]:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else part
    return out


def _scan(text: str, path: list[str | int]) -> None:
    """Read values with a stack: `path` holds, per open bracket, the key or the position."""
    position, closers = _skip(text, 0), list[str]()
    while True:
        position = _open_or_scalar(text, position, path, closers)
        # A value has ended: close what ends here, then go to the next member or element.
        while closers and text[position : position + 1] == closers[-1]:
            closers.pop()
            path.pop()
            position = _skip(text, position + 1)
        if not closers:
            if position < len(text):
                raise _FaultError("there is more text after the end of the document", position)
            return
        if position >= len(text):
            raise _FaultError("the document ends too early", position)
        if text[position] != ",":
            raise _FaultError(f"expected a comma or {closers[-1]}", position)
        position = _skip(text, position + 1)
        if closers[-1] == "}":
            path[-1], position = _key(text, position)
        else:
            last = path[-1]
            assert isinstance(last, int)
            path[-1] = last + 1


def _open_or_scalar(text: str, position: int, path: list[str | int], closers: list[str]) -> int:
    """Read one scalar or empty container, opening containers on the way to it."""
    while True:
        first = text[position : position + 1]
        if first not in ("{", "["):
            return _skip(text, _scalar(text, position))
        if len(closers) >= limits.JSON_DEPTH_MAX:
            raise _FaultError(TOO_DEEP, position)
        inside = _skip(text, position + 1)
        closer = "}" if first == "{" else "]"
        if text[inside : inside + 1] == closer:
            return _skip(text, inside + 1)
        closers.append(closer)
        if closer == "}":
            path.append("")
            path[-1], position = _key(text, inside)
        else:
            path.append(0)
            position = inside


def _key(text: str, position: int) -> tuple[str, int]:
    if text[position : position + 1] != '"':
        raise _FaultError("expected the name of a field in double quotes", position)
    until = _scalar(text, position)
    name = text[position + 1 : until - 1]
    position = _skip(text, until)
    if text[position : position + 1] != ":":
        raise _FaultError("expected a colon", position)
    return name, _skip(text, position + 1)


def _scalar(text: str, position: int) -> int:
    if position >= len(text):
        raise _FaultError("the document ends too early", position)
    if text[position] == '"':
        found = _STRING.match(text, position)
        if found is None:
            raise _FaultError(
                "this string has a control character, a bad escape or no end", position
            )
        if _SURROGATE.search(found.group(1)):
            raise _FaultError("this string has a lone surrogate, which no text can hold", position)
        return found.end()
    for pattern in (_NUMBER, _LITERAL):
        found = pattern.match(text, position)
        if found is not None:
            return found.end()
    if _CONSTANT.match(text, position):
        raise _FaultError("NaN and Infinity are not JSON", position)
    raise _FaultError("expected a value", position)


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    assert found is not None
    return found.end()
