"""Instants as the API writes them: RFC 3339, UTC, milliseconds."""

from datetime import UTC, datetime


def instant(at_ms: int) -> str:
    """Write an instant."""
    seconds, ms = divmod(at_ms, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"


def maybe_instant(at_ms: int | None) -> str | None:
    """Write an instant; nothing for none."""
    return instant(at_ms) if at_ms else None
