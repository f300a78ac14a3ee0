"""What a handler may say instead of returning a result: raise one of these, or return it.

Both ways mean the same. They are exceptions so that code deep below a handler can say it, too; they
survive pickling, since a handler may run in another process.
"""

from datetime import datetime
from typing import Literal

from corvo_sdk.duration import Duration, maybe_milliseconds, milliseconds

TimeoutAction = Literal["none", "cancel", "approve"]


class Control(Exception):  # noqa: N818 - a decision of the handler, not an error
    """The base of all of them; not meant to be raised itself."""

    def __str__(self) -> str:
        shown = ", ".join(repr(argument) for argument in self.args if argument is not None)
        return f"{type(self).__name__}({shown})"


class Snooze(Control):
    """Ask for this job again after a delay, or at an instant; no attempt is used up."""

    def __init__(self, delay: Duration | datetime) -> None:
        super().__init__(delay)
        self.until: datetime | None = None
        self.delay_ms: int = 0
        if isinstance(delay, datetime):
            self.until = aware(delay, "delay")
        else:
            self.delay_ms = milliseconds(delay, "delay")


class Retry(Control):
    """Count this attempt as failed and try again, after `after` instead of the task's back-off."""

    def __init__(self, after: Duration | None = None, error: str | None = None) -> None:
        super().__init__(after, error)
        self.after_ms: int | None = maybe_milliseconds(after, "after")
        self.error: str = error or "the handler asked for a retry"


class Discard(Control):
    """Give this job up for good: it is dead, whatever attempts were left."""

    def __init__(self, reason: str = "the handler discarded the job") -> None:
        super().__init__(reason)
        self.reason: str = reason


class Hold(Control):
    """Set this job aside until a person approves or rejects it, or until the time-out acts."""

    def __init__(
        self,
        reason: str = "",
        timeout: Duration | None = None,
        timeout_action: TimeoutAction | None = None,
    ) -> None:
        super().__init__(reason, timeout, timeout_action)
        self.reason: str = reason
        self.timeout_ms: int | None = maybe_milliseconds(timeout, "timeout")
        self.timeout_action: TimeoutAction | None = timeout_action


class Release(Control):
    """Give this job back at once, for any worker; no attempt is used up."""


def aware(instant: datetime, name: str) -> datetime:
    """Accept an instant only with a time zone: without one, two machines disagree about it."""
    if instant.tzinfo is None or instant.utcoffset() is None:
        hint = "use datetime.now(UTC) or attach a zone"
        raise ValueError(f"{name} is {instant.isoformat()} without a time zone; {hint}")
    return instant
