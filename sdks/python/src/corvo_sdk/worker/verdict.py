"""What came of an attempt, as the worker reports it. Closed: `match` on it ends in assert_never."""

from typing import Literal

from msgspec import Struct

ERROR_BYTES_MAX = 8_192  # what a server keeps; the rest is cut here, so that it never travels
BACKTRACE_BYTES_MAX = 32_768


class Completed(Struct, frozen=True, tag=True):
    """The handler returned; `result` is JSON."""

    result: bytes | None = None


class Failed(Struct, frozen=True, tag=True):
    """The attempt failed."""

    error: str
    backtrace: str | None = None
    retryable: bool = True
    retry_after_ms: int | None = None  # None: the job's own back-off


class Snoozed(Struct, frozen=True, tag=True):
    """The job comes back later; the attempt does not count."""

    delay_ms: int = 0
    until: str | None = None  # RFC 3339, instead of the delay


class Held(Struct, frozen=True, tag=True):
    """The job waits for a person."""

    reason: str = ""
    timeout_ms: int | None = None
    timeout_action: Literal["none", "cancel", "approve"] | None = None


class Released(Struct, frozen=True, tag=True):
    """The job goes back to its queue; the attempt does not count."""


class Lost(Struct, frozen=True, tag=True):
    """The lease is gone: nothing may be reported."""


Verdict = Completed | Failed | Snoozed | Held | Released | Lost


def cut(text: str, bytes_max: int) -> str:
    """Keep the start and, mostly, the end of a long text: the innermost frames come last."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= bytes_max:
        return encoded.decode()
    mark = b"\n... cut ...\n"
    head = bytes_max // 4
    tail = bytes_max - head - len(mark)
    return (encoded[:head] + mark + encoded[-tail:]).decode("utf-8", "ignore")
