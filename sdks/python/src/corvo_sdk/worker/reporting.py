"""Reports on their way to the server: gathered while a call is under way, repeated until answered.

There is no timer. A report leaves as soon as no call is under way; whatever came meanwhile leaves
together. At low rates that is one report at once, at high rates hundreds in one call.

A finished job stays with the heart until its report is answered, so that its lease lives through
a restart of the server. A report is given up only when the server says that the job is not ours, or
when it could not be delivered for `GIVE_UP_S` after the lease ran out: somebody else has it then.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from itertools import islice

from corvo_sdk.context import Context
from corvo_sdk.worker.links import REPORT_COUNT_MAX, Delivery, Link, Report, ReportResult
from corvo_sdk.worker.verdict import Completed, Failed, Lost, Verdict

GIVE_UP_S = 60.0
PAUSE_FIRST_S = 0.05
PAUSE_MAX_S = 2.0
# Above this nothing new is fetched; a handler's end is never refused.
BACKLOG_MAX = 2_048

_log = logging.getLogger("corvo.worker")

Settled = Callable[[Context, Report, ReportResult], None]


class _Entry:
    __slots__ = ("context", "report")

    def __init__(self, context: Context, report: Report) -> None:
        self.context = context
        self.report = report


class Reporter:
    """Carries verdicts over a link; `settled` is called once for each."""

    def __init__(self, link: Link, settled: Settled) -> None:
        self._link = link
        self._settled = settled
        self._waiting: deque[_Entry] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._pause_s = 0.0
        self.sent_calls_count = 0

    @property
    def backlog(self) -> int:
        """Reports that are not answered."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= BACKLOG_MAX

    def put(self, context: Context, verdict: Verdict) -> None:
        """Send this; a lost job is settled without a word."""
        job = context.job
        checkpoint, usage = context.pending_checkpoint, context.pending_usage
        report = Report(job.job_id, job.lease_token, verdict, checkpoint, usage)
        if isinstance(verdict, Lost):
            self._settled(context, report, ReportResult(Delivery.LOST))
            return
        self._waiting.append(_Entry(context, report))
        self._wake.set()
        self._idle.clear()

    async def wait_idle(self) -> None:
        """Wait until every report is answered."""
        await self._idle.wait()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._wake.wait()
            # One turn of the loop: handlers that end in the same turn report together.
            await asyncio.sleep(0)
            await self._send()
            if self._pause_s:
                await asyncio.sleep(self._pause_s)

    async def _send(self) -> None:
        entries = list(islice(self._waiting, REPORT_COUNT_MAX))
        if entries:
            self.sent_calls_count += 1
            results = await self._link.report([entry.report for entry in entries])
            for _ in entries:
                self._waiting.popleft()
            self._take(entries, results)
        if not self._waiting:
            self._wake.clear()
            self._idle.set()

    def _take(self, entries: list[_Entry], results: list[ReportResult]) -> None:
        again: list[_Entry] = []
        retry_after_ms = 0
        for entry, result in zip(entries, results, strict=True):
            match result.delivery:
                case Delivery.DONE | Delivery.LOST:
                    self._settled(entry.context, entry.report, result)
                case Delivery.UNDELIVERED:
                    retry_after_ms = max(retry_after_ms, result.retry_after_ms or 0)
                    if self._is_hopeless(entry.context):
                        lost = ReportResult(Delivery.LOST, error=result.error)
                        self._settled(entry.context, entry.report, lost)
                    else:
                        again.append(entry)
                case Delivery.REFUSED:
                    self._refused(entry, result, again)
        self._waiting.extendleft(reversed(again))
        if not again:
            self._pause_s = 0.0
        elif retry_after_ms:
            self._pause_s = retry_after_ms / 1_000
        else:
            self._pause_s = min(PAUSE_MAX_S, self._pause_s * 2 or PAUSE_FIRST_S)

    def _is_hopeless(self, context: Context) -> bool:
        return time.monotonic() > context.lease_until_s + GIVE_UP_S

    def _refused(self, entry: _Entry, result: ReportResult, again: list[_Entry]) -> None:
        report = entry.report
        _log.error("the report on %s was refused: %s", report.job_id, result.error)
        instead: Verdict
        if isinstance(report.verdict, Completed):
            # A result the server does not take (too large, too deep) will not be better next time.
            instead = Failed(f"the result was refused: {result.error}", retryable=False)
        else:
            instead = Failed(f"the report was refused: {result.error}")
        if isinstance(report.verdict, Failed):
            # Already the plainest thing there is to say; the lease will tell the rest.
            self._settled(entry.context, report, result)
            return
        plain = Report(report.job_id, report.lease_token, instead)
        again.append(_Entry(entry.context, plain))
