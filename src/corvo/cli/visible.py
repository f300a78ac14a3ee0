"""Text from others made safe to print: what a job says must not speak to the terminal.

Payloads, errors, reasons and names come from whoever may enqueue. A control character among them
could move the cursor, rename the window or hide what follows; it is shown as an escape instead.
"""

import re
from typing import Final

# C0, delete, C1, the marks that turn the direction of text, and the two odd line ends.
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """The text on one line, without anything that a terminal would obey."""
    return _CONTROL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    sign = found[0]
    return _SHORT.get(sign) or (f"\\x{ord(sign):02x}" if sign < "\xa0" else f"\\u{ord(sign):04x}")
