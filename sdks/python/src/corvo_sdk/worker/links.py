"""The way to the server: take jobs, report on them. A port, because there are two ways.

`HttpLink` asks with long polls and answers in batches; `StreamLink` (`stream.py`) is pushed jobs
over one WebSocket. Both give the same guarantees:

- `fetch` gives jobs or an empty list when there are none; it raises `CorvoError` when the server
  can not be reached, and the caller waits before it asks again.
- `report` never raises for what the network or the server does: every report has a result. One that
  is `UNDELIVERED` may be sent again as it is; the token makes the second one harmless.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct

from corvo_sdk.types import FetchedJob
from corvo_sdk.worker.verdict import Verdict

FETCH_COUNT_MAX = 512  # jobs a server hands out in one answer
REPORT_COUNT_MAX = 512  # acknowledgements it takes in one call


class Report(Struct, frozen=True, gc=False):
    """What came of a job, with the documents nobody has carried yet."""

    job_id: str
    lease_token: int
    verdict: Verdict
    checkpoint: bytes | None = None
    usage: bytes | None = None


class Delivery(Enum):
    """What became of a report."""

    DONE = "done"
    LOST = "lost"  # the job is not ours any more
    REFUSED = "refused"  # the report itself is wrong; sending it again changes nothing
    UNDELIVERED = "undelivered"  # the server could not be asked; send it again


class ReportResult(Struct, frozen=True, gc=False):
    """What the server said to one report."""

    delivery: Delivery
    status: str = ""  # the state the job is in now
    error: str = ""
    retry_after_ms: int | None = None


class Signals(Struct, frozen=True):
    """What a link may be told without asking: calls back on the loop with the id of a job."""

    cancel: Callable[[str, int], None]
    lost: Callable[[str, int], None]
    arrived: Callable[[], None]  # jobs came that nobody asked for just now: look at `ready`


class Link(Protocol):
    """One way to the server."""

    async def open(self, signals: Signals) -> None:
        """Get ready; called once, on the loop of the worker."""
        ...

    async def fetch(
        self, queues: Sequence[str], count: int, wait_s: float, *, lease_ms: int | None = None
    ) -> list[FetchedJob]:
        """Take up to `count` jobs, waiting up to `wait_s` for the first."""
        ...

    def ready(self, queues: Sequence[str]) -> int:
        """How many jobs of these queues are here already; a fetch gives them at once."""
        ...

    async def drain(self) -> list[FetchedJob]:
        """Take nothing more; gives what came meanwhile and was not fetched."""
        ...

    async def report(self, reports: Sequence[Report]) -> list[ReportResult]:
        """Tell what came of jobs; one result each, in order."""
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...


DONE = ReportResult(Delivery.DONE)
