"""Write JSON values as YAML: a small emitter that can only write what every reader reads back.

A text stands plain when it can be nothing else, in JSON's quotes otherwise; YAML knows those
escapes. Empty lists and objects are written as JSON writes them. Nothing is ever read here, so none
of what makes YAML dangerous is needed, nor a library for it.
"""

import re
from typing import Any, Final, cast

import msgspec

# A word, possibly with spaces inside: no sign that YAML gives a meaning, no digit in front.
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./@-]*(?: [A-Za-z0-9_./@-]+)*", re.ASCII)
# Words that some version of YAML takes for a boolean or for nothing.
_TAKEN: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def render(value: object) -> str:
    """Write one document; ends with a line feed."""
    lines: list[str] = []
    _write(value, "", "", lines)
    return "\n".join(lines) + "\n"


def _write(value: Any, lead: str, indent: str, lines: list[str]) -> None:
    """Append a value; `lead` is what stands before it on its first line."""
    if isinstance(value, dict) and value:
        _write_members(cast("dict[str, Any]", value), lead, indent, lines)
    elif isinstance(value, list | tuple) and value:
        if lead.rstrip().endswith(":"):
            lines.append(lead.rstrip())
            lead = ""
        for item in cast("list[Any]", value):
            _write(item, f"{lead or indent}- ", f"{indent}  ", lines)
            lead = ""
    else:
        lines.append(lead + _scalar(cast("object", value)))


def _write_members(value: dict[str, Any], lead: str, indent: str, lines: list[str]) -> None:
    if lead.rstrip().endswith(":"):
        lines.append(lead.rstrip())
        lead = ""
    for name, member in value.items():
        # A list inside an object is indented too, which every reader accepts.
        _write(member, f"{lead or indent}{_scalar(name)}: ", f"{indent}  ", lines)
        lead = ""


def _scalar(value: object) -> str:
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _TAKEN
        return value if is_plain else _quoted(value)
    return msgspec.json.encode(value).decode()


def _quoted(text: str) -> str:
    # YAML allows no control character beyond ASCII as it is, and breaks lines at three of them.
    encoded = msgspec.json.encode(text).decode()
    return "".join(
        sign if " " <= sign < "\x7f" or "\xa0" <= sign < "\u2028" else _escaped(sign)
        for sign in encoded
    )


def _escaped(sign: str) -> str:
    code = ord(sign)
    if "\u2029" < sign < "\ud800" or "\ue000" <= sign < "\ufeff" or code > 0xFFFF:
        return sign
    return f"\\u{code:04x}"
