"""Fingerprints of errors: equal for messages that differ only in numbers, ids and quoted parts."""

import re
from hashlib import blake2b

LINE_CHARACTERS_MAX = 400  # of the first line: enough to tell errors apart

_HEXADECIMAL = re.compile(r"\b(?:0x)?[0-9a-fA-F]{8,}\b|\b[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}\b")
_IDENTIFIER = re.compile(r"\b[a-z]+_[0-9A-HJKMNP-TV-Z]{26}\b")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_SPACE = re.compile(r"\s+")


def fingerprint(error: str) -> str:
    """Sixteen hexadecimal characters that name a kind of error."""
    lines = error.strip().splitlines()
    text = (lines[0] if lines else "")[:LINE_CHARACTERS_MAX]
    for pattern, sign in ((_IDENTIFIER, "#"), (_QUOTED, "?"), (_HEXADECIMAL, "#"), (_NUMBER, "#")):
        text = pattern.sub(sign, text)
    text = _SPACE.sub(" ", text).strip().lower()
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
