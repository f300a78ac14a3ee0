"""Proof of origin for what is sent and received: HMAC-SHA256 over time and body.

    X-Corvo-Timestamp: 1700000000
    X-Corvo-Signature: sha256=<hex of HMAC-SHA256(secret, timestamp "." body)>

The time is part of what is signed, so that an old request can not be sent again for ever.
"""

import hmac

from corvo.model import limits

TIMESTAMP = "X-Corvo-Timestamp"
SIGNATURE = "X-Corvo-Signature"
_SCHEME = "sha256="
_DIGITS_MAX = 15


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """Return the value of the signature header."""
    message = timestamp.encode() + b"." + body
    return _SCHEME + hmac.digest(secret.encode(), message, "sha256").hex()


def verify(secret: str, timestamp: str, signature: str, body: bytes, now_ms: int) -> str:
    """Return what is wrong with a signed request; empty when it is genuine and recent."""
    if not timestamp or not signature:
        return f"this queue takes signed requests only: {TIMESTAMP} and {SIGNATURE} are missing"
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _DIGITS_MAX):
        return f"{TIMESTAMP} must be whole seconds since 1970"
    # Safety: compared as bytes and in constant time; text outside ASCII would raise.
    expected = sign(secret, timestamp, body).encode()
    if not hmac.compare_digest(expected, signature.encode(errors="replace")):
        return f"{SIGNATURE} does not match the body"
    if abs(now_ms - int(timestamp) * 1_000) > limits.WEBHOOK_SKEW_MS_MAX:
        return f"{TIMESTAMP} is more than {limits.WEBHOOK_SKEW_MS_MAX // 60_000} minutes off"
    return ""
