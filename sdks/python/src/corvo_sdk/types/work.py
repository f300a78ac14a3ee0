"""What a worker gets and reports."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct

if TYPE_CHECKING:
    Document = Raw | None
else:
    Document = Raw  # Safety: a null becomes None below; the decoder knows no union with Raw

_NULL: Final = Raw(b"null")


class FetchedJob(Struct, kw_only=True):
    """A job under a lease. Documents are the bytes as they were sent."""

    job_id: str
    queue: str
    payload: Raw = Raw(b"{}")
    attempt: int = 1
    max_retries: int = 3
    lease_duration: int = 60  # seconds
    lease_token: int
    priority: str = "normal"
    checkpoint: Document = None
    tags: dict[str, str] = {}
    group: str | None = None
    created_at: datetime | None = None
    scheduled_at: datetime | None = None
    trace: Document = None
    index: int = 0

    def __post_init__(self) -> None:
        # Copies: a Raw is a window into the whole answer, which it would keep alive.
        self.payload = self.payload.copy()
        self.checkpoint = _document(self.checkpoint)
        self.trace = _document(self.trace)


def _document(raw: Raw | None) -> Raw | None:
    return None if raw is None or raw == _NULL else raw.copy()


class FetchedMany(Struct, kw_only=True):
    """Jobs; none when the time-out passed."""

    jobs: list[FetchedJob]
    index: int = 0


class Ack(Struct, kw_only=True, omit_defaults=True):
    """One job reported as done. A None is not sent."""

    job_id: str
    lease_token: int | None = None
    result: Any = None
    checkpoint: Any = None
    step_status: str | None = None  # continue or exit, in a chain
    usage: Any = None


class AckResult(Struct, kw_only=True):
    """What became of one acknowledgement; a refused one has the status `rejected` and a code."""

    job_id: str
    status: str
    error: str | None = None
    code: str | None = None
    field: str | None = None
    hint: str | None = None
    state: str | None = None


class AckedMany(Struct, kw_only=True):
    """One result for each acknowledgement, in order."""

    acked: int
    results: list[AckResult]
    index: int = 0


class Ended(Struct, kw_only=True):
    """The state the job is in now."""

    status: str
    index: int = 0


class Snoozed(Ended, kw_only=True):
    """The state the job is in now, and when it comes back."""

    scheduled_at: datetime | None = None


class FailedAttempt(Ended, kw_only=True):
    """What becomes of a failed attempt."""

    next_attempt_at: datetime | None = None
    attempts_remaining: int = 0


class Heartbeat(Struct, kw_only=True, omit_defaults=True):
    """What a worker reports about one of its jobs. A None is not sent."""

    lease_token: int | None = None
    progress: Any = None
    checkpoint: Any = None
    usage: Any = None


class Beat(Struct, kw_only=True):
    """Whether the worker still has the job: ok, cancel or lost."""

    status: str
    lease_expires_at: datetime | None = None


class HeartbeatAnswer(Struct, kw_only=True):
    """One status for each job."""

    jobs: dict[str, Beat]
    index: int = 0
