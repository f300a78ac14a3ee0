"""Every part of the API against a server as a person starts it: its own process, files, a view."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from corvo_sdk.errors import (
    AlreadyExistsError,
    ConfirmationRequiredError,
    IdempotencyMismatchError,
    InvalidStateError,
    NotFoundError,
    UniqueConflictError,
    ValidationError,
)
from corvo_sdk.types import Ack, Heartbeat, NewJob
from tests.support.process import ServerProcess
from tests.support.receiver import receiving
from tests.support.sdk import client_of


@pytest.fixture
def real(process: ServerProcess, shell: str) -> Iterator[Any]:
    # A search index that is only just up answers 503 for a while: more patience than usual.
    with client_of(shell, process.url, deadline_s=60, retries=60) as client:
        yield client


@pytest.fixture
def queue() -> str:
    """A queue that no other test uses."""
    return f"q.{uuid4().hex[:12]}"


def test_producer_and_worker_meet(real: Any, queue: str) -> None:
    """All options arrive; a job is fetched, kept alive, completed, and its result can be read."""
    soon = datetime.now(UTC) - timedelta(seconds=1)
    made = real.enqueue(
        queue,
        {"n": 1.10},
        checkpoint={"at": 3},
        priority="critical",
        max_retries=7,
        retry_backoff="linear",
        retry_base_delay=timedelta(seconds=2),
        retry_max_delay="1m",
        retry_jitter=0.5,
        scheduled_at=soon,
        expire_after=90,
        tags={"tenant": "a"},
        group="g",
        limit_key="k",
        cost=2,
        trace={"id": "t"},
    )
    assert (made.status, made.is_duplicate) == ("pending", False)
    job = real.fetch(queue, worker_id="w", lease_duration=30, hostname="h", timeout=5)
    assert (job.job_id, job.attempt, job.max_retries, job.lease_duration) == (made.job_id, 1, 7, 30)
    assert bytes(job.payload) == b'{"n":1.1}'
    assert bytes(job.checkpoint) == b'{"at":3}'
    assert (job.tags, job.group, job.priority) == ({"tenant": "a"}, "g", "critical")
    assert job.created_at.tzinfo is not None
    beats = real.heartbeat(
        {
            job.job_id: Heartbeat(lease_token=job.lease_token, progress={"done": 1}),
            "job_00000000000000000000000000": Heartbeat(lease_token=1),
        },
        worker_id="w",
    )
    assert beats.jobs[job.job_id].status == "ok"
    assert beats.jobs["job_00000000000000000000000000"].status == "lost"
    assert "w" in [worker.id for worker in real.workers()]
    assert real.ack(job.job_id, job.lease_token, result=[1, 2]).status == "completed"
    read = real.wait(job.job_id, timeout=5)
    assert (read.state, read.result, read.is_settled) == ("completed", [1, 2], True)
    assert (read.retry_base_delay, read.progress, read.worker.id) == ("2s", {"done": 1}, "w")


def test_documents_pass_byte_for_byte(real: Any, queue: str) -> None:
    """A payload given as bytes of JSON reaches the worker unchanged, big numbers included."""
    text = b'{"a":  1.10, "b": 123456789012345678901234567890}'
    real.enqueue(queue, msgspec.Raw(text))
    job = real.fetch(queue, worker_id="w", timeout=5)
    assert bytes(job.payload) == text
    assert job.checkpoint is None
    real.ack(job.job_id, job.lease_token, result=msgspec.Raw(text))
    assert real.get_job(job.job_id).result["b"] == 123456789012345678901234567890


def test_unique_and_idempotent_jobs(real: Any, queue: str) -> None:
    """A duplicate names the holder; a key with another body is refused."""
    first = real.enqueue(queue, 1, unique_key="u", unique_period="1h")
    again = real.enqueue(queue, 2, unique_key="u", unique_period="1h")
    assert (again.job_id, again.is_duplicate, again.status) == (first.job_id, True, "duplicate")
    key = uuid4().hex
    one = real.enqueue(queue, 1, idempotency_key=key)
    assert real.enqueue(queue, 1, idempotency_key=key).job_id == one.job_id
    with pytest.raises(IdempotencyMismatchError):
        real.enqueue(queue, 2, idempotency_key=key)


def test_batch_runs_its_callback(real: Any, queue: str) -> None:
    """Jobs of one call form a batch, and its end enqueues the callback."""
    jobs = [NewJob(queue, n) for n in range(3)]
    made = real.enqueue_many(jobs, callback_queue=f"{queue}.done", callback_payload={"x": 1})
    assert len(made.results) == 3
    fetched = real.fetch_many(queue, 10, worker_id="w", timeout=5)
    acks = [Ack(job_id=job.job_id, lease_token=job.lease_token) for job in fetched]
    done = real.ack_many([*acks, Ack(job_id="job_00000000000000000000000000", lease_token=1)])
    assert done.acked == 3
    assert (done.results[3].status, done.results[3].code) == ("rejected", "NOT_FOUND")
    batch = real.batch(made.batch_id)
    assert (batch.total, batch.succeeded) == (3, 3)
    callback = real.fetch(f"{queue}.done", worker_id="w", timeout=5)
    assert msgspec.json.decode(callback.payload)["batch"]["succeeded"] == 3
    listed = [b.id for b in real.batches(page_size=2, after=done.index)]
    assert made.batch_id in listed


def test_failures_and_what_workers_give_back(real: Any, queue: str) -> None:
    """Fail, release, snooze, hold: each answer is typed and the job is where it says."""
    made = real.enqueue(queue, max_retries=2, retry_backoff="none")
    job = real.fetch(queue, worker_id="w", timeout=5)
    failed = real.fail(job.job_id, job.lease_token, error="boom", backtrace="at x", retry_after=0)
    assert failed.attempts_remaining == 1
    job = real.fetch(queue, worker_id="w", timeout=5)
    assert real.release(job.job_id, job.lease_token, checkpoint={"p": 1}).status == "pending"
    job = real.fetch(queue, worker_id="w", timeout=5)
    assert bytes(job.checkpoint) == b'{"p":1}'
    later = datetime.now(UTC) + timedelta(hours=1)
    snoozed = real.snooze(job.job_id, job.lease_token, until=later)
    assert abs(snoozed.scheduled_at - later) < timedelta(seconds=1)
    real.retry(made.job_id)
    job = real.fetch(queue, worker_id="w", timeout=5)
    held = real.hold(job.job_id, reason="look", timeout="1h", lease_token=job.lease_token)
    assert held.state == "held"
    assert real.approve(made.job_id, by="me").state == "pending"
    job = real.fetch(queue, worker_id="w", timeout=5)
    real.fail(job.job_id, job.lease_token, error="end", retryable=False)
    dead = real.get_job(made.job_id)
    assert dead.state == "dead"
    assert [error.error for error in dead.errors][-1] == "end"
    assert real.requeue(made.job_id).state == "pending"


def test_operator_changes_jobs(real: Any, queue: str) -> None:
    """Every single action, and the errors of those that do not fit."""
    made = real.enqueue(queue, 1, hold={"reason": "why", "timeout": 60})
    assert made.status == "held"
    assert real.reject(made.job_id, by="me", reason="no").state == "dead"
    job = real.enqueue(queue, 1).job_id
    assert real.set_priority(job, "high").state == "pending"
    assert real.move(job, f"{queue}.b", keep_priority=False).state == "pending"
    assert real.get_job(job).queue == f"{queue}.b"
    why = real.why(job)
    assert not why.runnable or why.gates
    copy = real.clone(job, queue=queue, payload={"c": 1})
    assert real.get_job(copy.job_id).payload == {"c": 1}
    assert real.cancel(job).state == "cancelled"
    with pytest.raises(InvalidStateError) as caught:
        real.cancel(job)
    assert caught.value.state == "cancelled"
    found = real.get_jobs([job, "job_00000000000000000000000000"])
    assert ([read.id for read in found.jobs], len(found.missing)) == ([job], 1)
    real.delete_job(job)
    with pytest.raises(NotFoundError):
        real.get_job(job)


def test_retry_names_who_holds_the_key(real: Any, queue: str) -> None:
    """The error of a conflict carries the id of the other job."""
    first = real.enqueue(queue, unique_key="u").job_id
    real.cancel(first)
    second = real.enqueue(queue, unique_key="u").job_id
    with pytest.raises(UniqueConflictError) as caught:
        real.retry(first)
    assert caught.value.unique_job_id == second


def test_queues_and_limits(real: Any, queue: str) -> None:
    """Settings are said and read back; removing needs a confirmation."""
    change = real.configure_queue(
        queue,
        max_concurrency=3,
        rate={"rate": 5, "period": timedelta(minutes=1), "burst": 9},
        lease_duration=90,
        weights={"a": 2},
    )
    assert (change.settings.max_concurrency, change.settings.rate.period) == (3, "1m")
    assert change.settings.lease_duration == "1m30s"
    assert real.configure_queue(queue, max_concurrency=None).settings.max_concurrency is None
    assert real.set_concurrency(queue, 4).settings.max_concurrency == 4
    assert real.throttle(queue, 7, period=2).settings.rate.rate == 7
    assert real.unthrottle(queue).settings.rate is None
    real.pause(queue)
    assert real.queue(queue).paused
    real.resume(queue)
    real.enqueue(queue)
    assert queue in [q.name for q in real.queues()]
    assert real.clear(queue).removed == 1
    assert real.drain(queue).active == 0
    with pytest.raises(ConfirmationRequiredError):
        real.delete_queue(queue)
    real.delete_queue(queue, confirm=True)
    with pytest.raises(NotFoundError):
        real.queue(queue)
    real.set_limit(queue, maximum=2, rate=10, period="1s")
    assert real.limit(queue).max == 2
    assert queue in [limit.name for limit in real.limits()]
    real.delete_limit(queue)
    with pytest.raises(ValidationError):
        real.throttle(queue, -1)


def test_search_goes_through_all_pages(real: Any, queue: str) -> None:
    """The iterator asks for page after page and sees every job once."""
    made = real.enqueue_many([NewJob(queue, {"n": n}, tags={"k": "v"}) for n in range(7)])
    found = list(real.search(queue=queue, page_size=3, after=made.index, order="asc"))
    assert [job.id for job in found] == made.job_ids
    page = real.search_page(
        queue=queue,
        state=["pending"],
        payload_jq=".n > 4",
        created_after=datetime(2020, 1, 1, tzinfo=UTC),
        limit=1,
    )
    assert (len(page.jobs), page.has_more, page.total) == (1, True, 2)
    assert queue in [row.queue for row in real.storage().queues]
    child = real.enqueue(queue, depends_on=[made.job_ids[0]])
    edges = real.graph(child.job_id, after=child.index).edges
    assert [(e.source, e.target, e.type) for e in edges] == [
        (made.job_ids[0], child.job_id, "dependency")
    ]
    assert real.view_position(after=made.index).position >= made.index


def test_dead_jobs_are_found(real: Any, queue: str) -> None:
    """Dead letters by page, by kind of error and by words."""
    word = f"w{uuid4().hex}"
    for n in range(3):
        real.enqueue(queue, {"text": word, "n": n}, max_retries=1)
    for job in real.fetch_many(queue, 3, worker_id="w", timeout=5):
        index = real.fail(job.job_id, job.lease_token, error=f"lost {word}").index
    assert len(list(real.dead(queue=queue, page_size=2, after=index))) == 3
    assert real.dead_page(queue=queue, limit=2).has_more
    groups = real.dead_groups(queue=queue).groups
    assert [group.count for group in groups] == [3]
    assert len(real.fulltext(word, queue=queue).results) == 3
    timeline = real.job_events(job.job_id, after=index)
    assert timeline.events[0].type == "enqueued"


def test_bulk_operations(real: Any, queue: str) -> None:
    """By filter and by id, tried out, followed, undone."""
    made = real.enqueue_many([NewJob(queue, n) for n in range(4)])
    dry = real.bulk("cancel", matching={"queue": queue}, is_dry_run=True)
    assert (dry.matched, dry.dry_run) == (4, True)
    done = real.bulk("cancel", matching={"queue": queue, "state": "pending"})
    assert (done.affected, done.is_accepted) == (4, False)
    assert real.undo_bulk(done.bulk_operation_id).restored == 4
    slow = real.bulk("hold", job_ids=made.job_ids, is_async=True, timeout=timedelta(hours=1))
    assert slow.is_accepted
    steps = list(real.bulk_progress(slow.bulk_operation_id))
    assert steps[-1].is_finished
    assert steps[-1].affected == 4
    known = [operation.id for operation in real.bulk_operations(page_size=1)]
    assert {done.bulk_operation_id, slow.bulk_operation_id} <= set(known)
    assert real.bulk_operation(slow.bulk_operation_id).status == "completed"
    with pytest.raises(InvalidStateError):
        real.abort_bulk(slow.bulk_operation_id)
    with pytest.raises(ValidationError):
        real.bulk("retry")


def test_schedules(real: Any, queue: str) -> None:
    """A schedule is created, previewed, run, paused, replaced and removed."""
    made = real.create_schedule(
        queue, "0 9 * * *", queue, {"a": 1}, timezone="Europe/Zurich", jitter=5, catch_up="skip"
    )
    assert (made.name, made.jitter, made.next_run_at.tzinfo) == (queue, "5s", UTC)
    with pytest.raises(AlreadyExistsError):
        real.create_schedule(queue, "0 9 * * *", queue)
    assert queue in [schedule.name for schedule in real.schedules(page_size=1)]
    assert len(real.preview_schedule(queue, count=3)) == 3
    assert len(real.preview_cron("*/5 * * * *", count=2)) == 2
    run = real.run_schedule(made.id)
    assert real.get_job(run.job_id).schedule_id == made.id
    assert real.pause_schedule(queue).status == "paused"
    assert real.resume_schedule(queue).status
    replaced = real.replace_schedule(made.id, queue, "0 10 * * *", queue)
    assert replaced.cron == "0 10 * * *"
    until = datetime.now(UTC)
    assert real.backfill_schedule(made.id, until - timedelta(days=2), until).slots == 2
    assert real.schedule(queue).id == made.id
    real.delete_schedule(made.id)
    with pytest.raises(NotFoundError):
        real.schedule(queue)


def test_webhooks(real: Any, queue: str) -> None:
    """An endpoint gets a test event; what another service sends becomes a job."""
    with receiving() as receiver:
        made = real.create_webhook(
            receiver.url, events=["job.completed"], queues=[queue], secret="s", timeout=5
        )
        assert (made.has_secret, made.timeout) == (True, "5s")
        assert real.test_webhook(made.id).status == "delivered"
        sent = real.deliveries(made.id)
        assert len(sent) == 1
        assert real.redeliver(made.id, sent[0].id).status == "delivered"
        assert real.replace_webhook(made.id, receiver.url, enabled=False).has_secret
        assert real.webhook(made.id).status == "disabled"
        assert made.id in [webhook.id for webhook in real.webhooks()]
        assert real.dead_letters(made.id) == []
        real.delete_webhook(made.id)
    posted = real.post_webhook(queue, b"plain text", priority="high", tags={"a": "b"})
    job = real.get_job(posted.job_id)
    assert (job.payload, job.priority, job.tags) == ("plain text", "high", {"a": "b"})


def test_figures_and_health(real: Any, queue: str) -> None:
    """What a server says about itself."""
    real.enqueue(queue)
    assert real.health().is_ok
    assert real.alive().status == "ok"
    assert "idempotency" in real.info().features
    assert real.cluster_status()["index"] > 0
    assert "corvo_" in real.metrics()
    assert len(real.throughput(queue=queue).minutes) == 60
    assert real.openapi()["openapi"].startswith("3.1")
    page = real.events_page(limit=1, queue=queue, event_type=["enqueued"])
    assert [event.type for event in page.events] == ["enqueued"]
    assert real.rebuild_progress().status in {"none", "done"}


def test_backup_and_export(real: Any, queue: str) -> None:
    """Archives arrive whole; lines of an export that exist already are refused one by one."""
    job = real.enqueue(queue, {"a": 1}).job_id
    archive = BytesIO()
    assert real.backup(archive) == len(archive.getvalue())
    assert b"manifest.json" in archive.getvalue()[:512]
    lines = BytesIO()
    real.export(lines)
    records = [line for line in lines.getvalue().splitlines() if job.encode() in line]
    head = lines.getvalue().splitlines()[0]
    answer = real.import_lines(b"\n".join([head, *records]) + b"\n")
    assert [refusal.code for refusal in answer.refused] == ["ALREADY_EXISTS"]


def test_anything_can_be_called_raw(real: Any, queue: str) -> None:
    """Paths from the root, JSON both ways, the index of the answer, and pieces of a stream."""
    answer = real.request("POST", "/api/v1/enqueue", body={"queue": queue})
    assert (answer.status, answer.body["status"]) == (201, "pending")
    assert answer.index == answer.body["index"]
    text = real.request("GET", "/api/v1/metrics")
    assert isinstance(text.body, str)
    found = real.request("GET", "/api/v1/dead", query={"queue": queue, "limit": 5})
    assert found.body["jobs"] == []
    with real.open("GET", "/api/v1/queues") as stream:
        assert stream.status == 200
        assert b"".join(stream.chunks).startswith(b"[")
    with pytest.raises(NotFoundError), real.open("GET", "/api/v1/nothing"):
        pass
    with pytest.raises(ValidationError):
        real.request("GET", "api/v1/queues")
    with pytest.raises(ValidationError):
        real.request("GET", "/api/v1/queues\r\nx: y")


def test_rebuild_of_the_view_can_be_asked_for(real: Any) -> None:
    """The answer says that it has begun."""
    assert real.rebuild_view().status == "running"
