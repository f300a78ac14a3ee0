"""The heart and the reporter alone, with a server that misbehaves on purpose."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from corvo_sdk.context import Context, Stop
from corvo_sdk.errors import (
    ConnectionFailedError,
    CorvoError,
    LeaseLostError,
    NotFoundError,
    OverloadedError,
    PayloadTooLargeError,
    UnavailableError,
    ValidationError,
)
from corvo_sdk.types import Beat, FetchedJob, Heartbeat, HeartbeatAnswer
from corvo_sdk.worker import reporting
from corvo_sdk.worker.fetching import AHEAD_COUNT_MAX, Pool
from corvo_sdk.worker.flights import Flights
from corvo_sdk.worker.heart import CALL_JOBS_MAX, Heart
from corvo_sdk.worker.http import of_error
from corvo_sdk.worker.links import DONE, Delivery, Report, ReportResult, Signals
from corvo_sdk.worker.reporting import Reporter
from corvo_sdk.worker.verdict import Completed, Failed, Released, cut


def context_of(name: str = "job_1", token: int = 1, lease_s: int = 60) -> Context:
    job = FetchedJob(job_id=name, queue="q", lease_token=token, lease_duration=lease_s)
    return Context(job)


class FakeServer:
    """Answers heartbeats; refuses a document that says so; fails as long as it is told to."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Heartbeat]] = []
        self.statuses: dict[str, str] = {}
        self.error: CorvoError | None = None

    def heartbeat(
        self, jobs: dict[str, Heartbeat] | None = None, *, worker_id: str | None = None
    ) -> HeartbeatAnswer:
        assert worker_id == "w"
        jobs = jobs or {}
        self.calls.append(jobs)
        if self.error is not None:
            raise self.error
        if any(bytes(beat.checkpoint or b"") == b'"bad"' for beat in jobs.values()):
            raise PayloadTooLargeError("too large", status=413)
        beats = {name: Beat(status=self.statuses.get(name, "ok")) for name in jobs}
        return HeartbeatAnswer(jobs=beats)


def heart_of(server: FakeServer, *contexts: Context) -> Heart:
    flights = Flights()
    for context in contexts:
        flights.add(context)
    # Far enough ahead that everything in hand is due.
    return Heart(server, flights, "w", clock=lambda: time.monotonic() + 30)


def test_one_call_renews_all_jobs() -> None:
    """However many jobs, one heartbeat, up to the limit of a call."""
    server = FakeServer()
    heart = heart_of(server, *[context_of(f"job_{n}") for n in range(CALL_JOBS_MAX + 1)])
    heart.beat()
    assert [len(call) for call in server.calls] == [CALL_JOBS_MAX, 1]


def test_young_jobs_need_no_heartbeat() -> None:
    """A job that is over in milliseconds never costs one."""
    server = FakeServer()
    flights = Flights()
    flights.add(context_of())
    heart = Heart(server, flights, "w")
    heart.beat()
    assert all(call == {} for call in server.calls)


def test_wrong_document_costs_nobody_a_lease() -> None:
    """The leases are renewed without documents; only the wrong one is refused, once."""
    server = FakeServer()
    good, bad, plain = context_of("job_good"), context_of("job_bad"), context_of("job_plain")
    good.pending_checkpoint, bad.pending_checkpoint = b'"good"', b'"bad"'
    heart = heart_of(server, good, bad, plain)
    saved_good, saved_bad = heart.save(good), heart.save(bad)
    heart.beat()
    assert saved_good.result(0) is None
    with pytest.raises(PayloadTooLargeError):
        saved_bad.result(0)
    assert all(context.renewed_at_s > time.monotonic() for context in (good, bad, plain))
    assert bad.pending_checkpoint is None
    # Together, then the leases alone, then each document by itself.
    assert [sorted(call) for call in server.calls] == [
        ["job_bad", "job_good", "job_plain"],
        ["job_bad", "job_good", "job_plain"],
        ["job_good"],
        ["job_bad"],
    ]


def test_document_said_meanwhile_is_sent_next_time() -> None:
    """What arrived is struck; what the handler said during the call is kept."""
    server = FakeServer()
    context = context_of()
    context.progress(1)
    heart = heart_of(server, context)
    answer = server.heartbeat

    def slow(jobs: Any = None, *, worker_id: str | None = None) -> HeartbeatAnswer:
        context.progress(2)
        return answer(jobs, worker_id=worker_id)

    server.heartbeat = slow  # type: ignore[method-assign]
    heart.beat()
    assert context.pending_progress == b'{"done":2}'


def test_answers_stop_the_handlers_they_are_about() -> None:
    """`cancel` and `lost` reach the context; `ok` does not."""
    server = FakeServer()
    names = ("job_ok", "job_cancel", "job_lost")
    contexts = [context_of(name) for name in names]
    server.statuses = {"job_cancel": "cancel", "job_lost": "lost"}
    heart_of(server, *contexts).beat()
    assert [context.stop_reason for context in contexts] == [None, Stop.CANCEL, Stop.LOST]


def test_failed_heartbeat_leaves_the_lease_as_it_was() -> None:
    """A lease is longer only when the server said so; who waits for a checkpoint is told."""
    server = FakeServer()
    server.error = ConnectionFailedError("gone", was_sent=True)
    context = context_of()
    until_s = context.lease_until_s
    heart = heart_of(server, context)
    context.pending_checkpoint = b"1"
    saved = heart.save(context)
    heart.beat()
    assert context.lease_until_s == until_s
    assert context.pending_checkpoint == b"1"
    with pytest.raises(ConnectionFailedError):
        saved.result(0)


class FakeLink:
    """Takes reports as a list of scripted answers says."""

    def __init__(self, *answers: Delivery) -> None:
        self.answers = list(answers)
        self.calls: list[list[Report]] = []
        self.gate: asyncio.Event | None = None

    async def open(self, signals: Signals) -> None: ...

    async def fetch(self, *_: Any, **__: Any) -> list[FetchedJob]:
        return []

    def ready(self, queues: Sequence[str]) -> int:
        return len(queues) * 0

    async def drain(self) -> list[FetchedJob]:
        return []

    async def report(self, reports: Sequence[Report]) -> list[ReportResult]:
        self.calls.append(list(reports))
        if self.gate is not None:
            await self.gate.wait()
        delivery = self.answers.pop(0) if self.answers else Delivery.DONE
        return [ReportResult(delivery, error="as told") for _ in reports]

    async def close(self) -> None: ...


def report_with(link: FakeLink, count: int, *, gate: bool = False) -> list[tuple[Report, str]]:
    settled: list[tuple[Report, str]] = []

    async def body() -> None:
        if gate:
            link.gate = asyncio.Event()
        reporter = Reporter(
            link, lambda _, report, result: settled.append((report, result.delivery.value))
        )
        running = asyncio.ensure_future(reporter.run())
        reporter.put(context_of("job_0"), Completed())
        if link.gate is not None:
            while not link.calls:  # noqa: ASYNC110 - a list has no event
                await asyncio.sleep(0)
        for number in range(1, count):
            reporter.put(context_of(f"job_{number}"), Completed())
        if link.gate is not None:
            link.gate.set()
        async with asyncio.timeout(20):
            await reporter.wait_idle()
        running.cancel()

    asyncio.run(body())
    return settled


def test_reports_gather_while_a_call_is_under_way() -> None:
    """The first leaves at once and alone; all that came meanwhile leave together."""
    link = FakeLink()
    settled = report_with(link, 400, gate=True)
    assert [len(call) for call in link.calls] == [1, 399]
    assert len(settled) == 400


def test_undelivered_reports_are_sent_again_in_order() -> None:
    """A server that is away loses nothing: the same reports, with the same tokens."""
    link = FakeLink(Delivery.UNDELIVERED, Delivery.UNDELIVERED)
    settled = report_with(link, 3)
    assert [word for _, word in settled] == ["done"] * 3
    assert [report.job_id for report in link.calls[-1]] == ["job_0", "job_1", "job_2"]
    assert link.calls[0][0] == link.calls[-1][0]


def test_report_is_given_up_long_after_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else has the job by then; the backlog can not grow for ever."""
    monkeypatch.setattr(reporting, "GIVE_UP_S", -3_600.0)
    settled = report_with(FakeLink(*[Delivery.UNDELIVERED] * 3), 1)
    assert [word for _, word in settled] == ["lost"]


def test_refused_result_becomes_a_failure() -> None:
    """The job does not hang until its lease ends because its result is too large."""
    link = FakeLink(Delivery.REFUSED)
    settled = report_with(link, 1)
    ((report, word),) = settled
    assert word == "done"
    assert report.verdict == Failed("the result was refused: as told", retryable=False)


def test_refused_failure_is_the_end_of_it() -> None:
    """A report that can not be made plainer is not sent for ever."""
    link = FakeLink(Delivery.REFUSED, Delivery.REFUSED)
    assert [word for _, word in report_with(link, 1)] == ["refused"]
    assert len(link.calls) == 2


def test_slow_jobs_are_not_fetched_ahead() -> None:
    """A pool asks for what it can start soon: nothing beyond its slots when jobs are slow."""
    pool = Pool(["q"], 10, None)
    assert (pool.ahead(), pool.room()) == (0, 10)
    pool.note(5.0)
    assert (pool.ahead(), pool.room()) == (0, 10)


def test_short_jobs_are_fetched_far_ahead_in_large_steps() -> None:
    """With short jobs the pool keeps many ready, and asks again when half of them are gone."""
    pool = Pool(["q"], 10, None)
    pool.note(0.00001)
    assert pool.ahead() == AHEAD_COUNT_MAX
    assert pool.room() == 10 + AHEAD_COUNT_MAX
    for _ in range(AHEAD_COUNT_MAX * 3 // 4):
        pool.waiting.append((context_of(), None))
    assert pool.room() == 0


def test_document_beyond_the_limit_is_refused_where_it_is_said() -> None:
    """The handler that said it gets the error, with the size."""
    context = context_of()
    with pytest.raises(ValueError, match="at most"):
        context.checkpoint("x" * 300_000)
    with pytest.raises(ValueError, match="at most"):
        context.progress(1, message="x" * 5_000)
    assert context.pending_checkpoint is None


def test_cut_text_keeps_its_end() -> None:
    """The innermost frames of a traceback come last and are kept; no character is halved."""
    text = cut("ä" * 5_000 + "END", 1_000)
    assert len(text.encode()) <= 1_000
    assert text.endswith("END")
    assert msgspec.json.decode(msgspec.json.encode(text)) == text


def test_error_of_validation_is_not_retried_by_the_heart() -> None:
    """A refusal of the whole call without any document is counted and tried again later."""
    server = FakeServer()
    server.error = ValidationError("no", status=400)
    heart = heart_of(server, context_of())
    heart.beat()
    assert heart.failures_count == 1
    assert len(server.calls) == 1


def test_reports_of_one_worker_are_plain_values() -> None:
    """Equal reports are equal: what is sent again is what was sent."""
    assert Report("job", 1, Released()) == Report("job", 1, Released())
    assert DONE.delivery is Delivery.DONE


@pytest.mark.parametrize(
    ("error", "delivery"),
    [
        (OverloadedError("full", status=429, retry_after_ms=70), Delivery.UNDELIVERED),
        (UnavailableError("draining", status=503), Delivery.UNDELIVERED),
        (ConnectionFailedError("gone", was_sent=True), Delivery.UNDELIVERED),
        (CorvoError("a bug", status=500), Delivery.UNDELIVERED),
        (CorvoError("a new key is coming", status=401), Delivery.UNDELIVERED),
        (LeaseLostError("somebody else", status=409), Delivery.LOST),
        (NotFoundError("deleted", status=404), Delivery.LOST),
        (ValidationError("too deep", status=400), Delivery.REFUSED),
        (PayloadTooLargeError("too large", status=413), Delivery.REFUSED),
    ],
    ids=repr,
)
def test_answer_to_a_report_says_whether_to_send_it_again(
    error: CorvoError, delivery: Delivery
) -> None:
    """Only what is wrong with the report itself, or with whose job it is, ends it."""
    result = of_error(error)
    assert result.delivery is delivery
    if isinstance(error, OverloadedError):
        assert result.retry_after_ms == 70
