"""From requests to commands: every field of the wire lands where the machine reads it."""

from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.api import translate, wire, work
from corvo.api.decode import Reader
from corvo.api.routes.queues import patch_of, rate_of
from corvo.errors import RequestError
from corvo.model import limits
from corvo.model.ids import JOB, render_id
from corvo.model.job import (
    DEPENDENCY_HOLD,
    HOLD_APPROVE,
    TIER_NAMES,
    UNIQUE_WINDOW,
    Hold,
    Spec,
    Unique,
)
from corvo.model.queue import Rate
from corvo.model.retry import BACKOFF_LINEAR, BACKOFF_NAMES, DEFAULT_RETRY, RetryPolicy

ENQUEUE = Reader(wire.EnqueueRequest)
BATCH = Reader(wire.EnqueueBatchRequest)
NOW_MS = 1_700_000_000_000


def context():
    numbers = count(1)
    return translate.Context(
        lambda: next(numbers).to_bytes(16, "big"), limits.PAYLOAD_BYTES_MAX, lambda: NOW_MS
    )


def identifier(number: int):
    return number.to_bytes(16, "big")


def text_id(number: int):
    return render_id(JOB, identifier(number))


def spec_from(**fields: Any) -> Spec:
    request = ENQUEUE.read(msgspec.json.encode({"queue": "q"} | fields), b"strict=true")
    return translate.enqueue(request, 0, context(), None).spec


def refusal(**fields: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        spec_from(**fields)
    return caught.value


def test_a_job_that_says_only_its_queue_has_the_defaults():
    """Payload {}, priority normal, three attempts, exponential backoff."""
    assert spec_from() == Spec(identifier(1), 0, "q", b"{}")
    assert spec_from().retry == DEFAULT_RETRY


def test_every_field_of_a_job_lands_in_its_specification():
    """A request with all fields makes the specification with all of them."""
    spec = spec_from(
        payload={"n": 12345678901234567890123},
        checkpoint={"at": 1},
        priority="critical",
        unique_key="once",
        unique_period="10m",
        unique_mode="window",
        max_retries=5,
        retry_backoff="linear",
        retry_base_delay="2s",
        retry_max_delay=60,
        retry_jitter=0.25,
        scheduled_at="2026-02-11T10:00:00.5+01:00",
        expire_after="1h",
        tags={"tenant": "acme"},
        group="g",
        limit_key="user:1@example.com",
        limits=["a", "b", "a"],
        cost=3,
        parent_id=text_id(7),
        depends_on=[text_id(8), text_id(8)],
        on_dependency_failure="hold",
        hold={"reason": "look", "timeout": "1d", "timeout_action": "approve"},
        trace={"traceparent": "00-x"},
    )
    assert spec == Spec(
        identifier(1),
        0,
        "q",
        b'{"n":12345678901234567890123}',
        tier=0,
        retry=RetryPolicy(5, BACKOFF_LINEAR, 2_000, 60_000, 25),
        tags={"tenant": "acme"},
        unique=Unique("once", 600_000, UNIQUE_WINDOW),
        scheduled_ms=1770800400500,
        expire_after_ms=3_600_000,
        group="g",
        limit_key="user:1@example.com",
        limits=("a", "b"),
        cost=3,
        checkpoint=b'{"at":1}',
        parent_id=identifier(7),
        depends_on=(identifier(8),),
        on_dependency_failure=DEPENDENCY_HOLD,
        hold=Hold("look", 86_400_000, HOLD_APPROVE),
        trace=b'{"traceparent":"00-x"}',
    )


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"queue": "a b"}, "queue"),
        ({"queue": "q" * 300}, "queue"),
        ({"queue": "a\x00"}, "queue"),
        ({"group": ""}, "group"),
        ({"limit_key": "\n"}, "limit_key"),
        ({"limits": ["a", "!"]}, "limits[1]"),
        ({"limits": ["a", "b", "c", "d"]}, "limits"),
        ({"unique_key": ""}, "unique_key"),
        ({"unique_key": "x" * 513}, "unique_key"),
        ({"unique_period": 5}, "unique_period"),
        ({"unique_mode": "window"}, "unique_mode"),
        ({"unique_key": "k", "unique_period": 0}, "unique_period"),
        ({"retry_base_delay": "-5s"}, "retry_base_delay"),
        ({"retry_max_delay": "soon"}, "retry_max_delay"),
        ({"scheduled_at": "tomorrow"}, "scheduled_at"),
        ({"delay": "soon"}, "delay"),
        ({"delay": -1}, "delay"),
        ({"delay": "5m", "scheduled_at": "2026-02-11T10:00:00Z"}, "delay"),
        ({"expire_after": 0}, "expire_after"),
        ({"parent_id": "job_1"}, "parent_id"),
        ({"depends_on": ["#0"]}, "depends_on[0]"),
        ({"depends_on": [text_id(1)] * 65}, "depends_on"),
        ({"hold": {"timeout_action": "cancel"}}, "hold.timeout"),
        ({"hold": {"reason": "x" * 1025}}, "hold.reason"),
        ({"tags": {"a\x01": "b"}}, "tags"),
        ({"trace": "x" * 3000}, "trace"),
        ({"chain": {"steps": []}}, "chain.steps"),
        ({"chain": {"steps": [{"queue": "other"}]}}, "chain.steps[0].queue"),
        ({"chain": {"steps": [{"queue": "q"}, {"queue": "!"}]}}, "chain.steps[1].queue"),
        ({"chain": {"steps": [{"queue": "q", "cost": 2}]}}, "chain.steps[0]"),
        (
            {"payload": 1, "chain": {"steps": [{"queue": "q", "payload": 2}]}},
            "chain.steps[0].payload",
        ),
        (
            {"chain": {"steps": [{"queue": "q"}], "on_exit": {"queue": ""}}},
            "chain.on_exit.queue",
        ),
        ({"payload": "x" * (256 * 1024)}, "payload"),
        ({"payload": eval("[" * 65 + "1" + "]" * 65)}, "payload"),
    ],
)
def test_a_wrong_field_is_refused_by_its_path(fields: dict[str, Any], field: str | None):
    """The refusal names the field; size is 413, everything else 400."""
    assert refusal(**fields).field == field


@pytest.mark.parametrize("field", ["agent", "routing", "result_schema"])
def test_fields_of_features_not_built_are_refused(field: str | None):
    """A guardrail is never silently lost; null asks for nothing."""
    error = refusal(**{field: {"max_iterations": 3}})
    assert (error.code, error.field) == ("NOT_SUPPORTED", field)
    spec_from(**{field: None})


def test_null_is_the_same_as_absent():
    """Every optional field of a job may be null."""
    names = [name for name in wire.JobFields.__struct_fields__ if name != "payload"]
    assert spec_from(**dict.fromkeys(names)) == spec_from()
    assert spec_from(payload=None).payload == b"null"


def test_steps_of_a_chain_inherit_what_they_do_not_say():
    """A step has None where it inherits; a changed retry field keeps the others of the job."""
    spec = spec_from(
        max_retries=7,
        chain={
            "steps": [
                {"queue": "q"},
                {"queue": "r", "retry_base_delay": "1s", "payload": {"a": 1}},
            ],
            "on_failure": {"queue": "alerts", "priority": "high"},
        },
    )
    assert spec.chain is not None
    first, second = spec.chain.steps
    assert (first.retry, first.payload, first.tags) == (None, None, None)
    assert second.payload == b'{"a":1}'
    assert second.retry == RetryPolicy(max_attempts=7, base_ms=1_000)
    assert spec.chain.on_failure is not None
    assert spec.chain.on_failure.tier == 1
    assert spec.chain.id == spec.id


def test_the_payload_of_the_first_step_may_be_written_in_the_chain():
    """One place or the other, never both."""
    spec = spec_from(chain={"steps": [{"queue": "q", "payload": [1]}]})
    assert spec.payload == b"[1]"


def batch_from(body: bytes) -> object:
    return translate.enqueue_batch(BATCH.read(msgspec.json.encode(body), b""), 0, context(), None)


def test_siblings_can_be_named_only_backwards():
    """'#0' is an earlier job of the call; a later one, itself or none is refused."""
    jobs = [{"queue": "q"}, {"queue": "q", "depends_on": ["#0"]}]
    command = batch_from({"jobs": jobs})
    assert command.specs[1].depends_on == (command.specs[0].id,)
    for reference in ("#1", "#2", "#-1", "#", "#x", "#٠", "#0000000000000000000"):
        with pytest.raises(RequestError) as caught:
            batch_from({"jobs": [{"queue": "q"}, {"queue": "q", "depends_on": [reference]}]})
        assert caught.value.field == "jobs[1].depends_on[0]"


def test_the_first_malformed_job_refuses_a_batch():
    """All or nothing, with the position in the path."""
    with pytest.raises(RequestError) as caught:
        batch_from({"jobs": [{"queue": "q"}, {"queue": "q"}, {"queue": "!"}]})
    assert caught.value.field == "jobs[2].queue"
    with pytest.raises(RequestError) as caught:
        batch_from({"jobs": [{"queue": "q"}], "batch": {"callback_queue": "!"}})
    assert caught.value.field == "batch.callback_queue"
    with pytest.raises(RequestError) as caught:
        batch_from({"jobs": [{"queue": "q", "idempotency_key": "k"}]})
    assert (caught.value.code, caught.value.field) == ("NOT_SUPPORTED", "jobs[0].idempotency_key")


def test_members_of_a_batch_carry_its_id():
    """A batch has an identifier of its own, with or without a callback."""
    command = batch_from({"jobs": [{"queue": "q"}] * 2, "batch": {}})
    assert command.batch.callback_queue == ""
    assert {spec.batch_id for spec in command.specs} == {command.batch.id}
    assert batch_from({"jobs": [{"queue": "q"}]}).batch is None


def test_an_idempotency_key_has_the_fingerprint_of_the_body():
    """Header and field are the same key; the fingerprint tells bodies apart."""
    from_header = translate.idempotency_of(b"k", None, b"body")
    assert from_header == translate.idempotency_of(None, "k", b"body")
    assert from_header == translate.idempotency_of(b"k", "k", b"body")
    assert from_header != translate.idempotency_of(b"k", None, b"other body")
    assert translate.idempotency_of(None, None, b"body") is None
    for header, field in ((b"k", "l"), (b"", None), (b"\xff", None), (b"x" * 256, None)):
        with pytest.raises(RequestError):
            translate.idempotency_of(header, field, b"body")


@given(
    attempts=st.integers(0, limits.ATTEMPTS_MAX),
    backoff=st.sampled_from(BACKOFF_NAMES),
    priority=st.sampled_from(TIER_NAMES),
    base_ms=st.integers(0, limits.DURATION_MS_MAX),
    percent=st.integers(0, 100),
)
def test_words_and_numbers_translate_both_ways(
    attempts: int, backoff: str, priority: str, base_ms: int, percent: int
):
    """What the API answers about a job can be sent again and means the same."""
    from corvo.api.values import render_duration  # noqa: PLC0415 - used by this fact only

    spec = spec_from(
        max_retries=attempts,
        retry_backoff=backoff,
        priority=priority,
        retry_base_delay=render_duration(base_ms),
        retry_jitter=percent / 100,
    )
    assert TIER_NAMES[spec.tier] == priority
    assert spec.retry == RetryPolicy(
        attempts, BACKOFF_NAMES.index(backoff), base_ms, limits.RETRY_MAX_MS_DEFAULT, percent
    )


FETCH = Reader(wire.FetchRequest)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"queues": []}, "queues"),
        ({"queues": ["q"] * 65}, "queues"),
        ({"queues": ["q", "!"]}, "queues[1]"),
        ({"worker_id": ""}, "worker_id"),
        ({"worker_id": "w" * 201}, "worker_id"),
        ({"timeout": 61}, "timeout"),
        ({"timeout": -1}, "timeout"),
        ({"lease_duration": "999ms"}, "lease_duration"),
        ({"lease_duration": "25h"}, "lease_duration"),
        ({"count": 0}, "count"),
        ({"count": 513}, "count"),
        ({"hostname": "a\x00"}, "hostname"),
        ({"concurrency": -1}, "concurrency"),
    ],
)
def test_a_wrong_fetch_is_refused_by_its_field(fields: dict[str, Any], field: str | None):
    """Every bound of a fetch is enforced and named."""
    body = msgspec.json.encode({"queues": ["q"], "worker_id": "w"} | fields)
    with pytest.raises(RequestError) as caught:
        work.fetch(FETCH.read(body, b""), 0, 1)
    assert caught.value.field == field


def test_a_fetch_has_its_defaults():
    """Thirty seconds of waiting; the lease is left to the queue; queues are named once."""
    request = FETCH.read(b'{"queues":["a","b","a"],"worker_id":"w"}', b"")
    command, timeout_ms = work.fetch(request, 0, 1)
    assert (command.queues, command.lease_ms, timeout_ms) == (["a", "b"], 0, 30_000)


def test_reports_of_a_failure_are_cut_and_never_refused():
    """An error message of any length gets in."""
    body = msgspec.json.encode({"error": "é" * 50_000, "backtrace": "x" * 100_000})
    command = work.fail(Reader(wire.FailRequest).read(body, b""), 0, bytes(16), 1_000)
    assert len(command.error.encode()) <= limits.ERROR_BYTES_MAX
    assert len(command.backtrace) == limits.BACKTRACE_BYTES_MAX


def test_an_agent_status_is_refused():
    """The field of a feature that is not built does not complete a job by accident."""
    request = Reader(wire.AckRequest).read(b'{"agent_status":"continue"}', b"")
    with pytest.raises(RequestError) as caught:
        work.ack(request, 0, bytes(16), 1_000)
    assert caught.value.code == "NOT_SUPPORTED"


def test_a_snooze_says_exactly_one_of_delay_and_until():
    """Neither and both are refused."""
    reader = Reader(wire.SnoozeRequest)
    for body in (b"{}", b'{"delay":5,"until":"2030-01-01T00:00:00Z"}'):
        with pytest.raises(RequestError):
            work.snooze(reader.read(body, b""), 0, bytes(16), 1_000)
    assert work.snooze(reader.read(b'{"delay":"5s"}', b""), 0, bytes(16), 1).delay_ms == 5_000


def patch(**fields: Any):
    return patch_of(Reader(wire.SettingsRequest).read(msgspec.json.encode(fields), b"strict=true"))


def test_a_patch_keeps_absent_apart_from_null():
    """Absent stays, null and 0 remove, anything else sets."""
    assert patch().max_concurrency is msgspec.UNSET
    assert patch(max_concurrency=None).max_concurrency is None
    assert patch(max_concurrency=0).max_concurrency is None
    assert patch(max_concurrency=3).max_concurrency == 3
    assert patch(rate={"rate": 5, "period": "1m"}).rate == Rate(5, 60_000, 5)
    assert patch(rate={"rate": 0}).rate is None
    assert patch(key_rate={"rate": 5, "window_ms": 10, "burst": 2}).key_rate == Rate(5, 10, 2)
    assert patch(retention=0).retention_ms is None
    assert patch(lease_duration="2m").lease_ms == 120_000


def test_the_priority_mode_decides_whether_tiers_age():
    """Aging has a default step; strict has none."""
    assert patch().aging_ms is msgspec.UNSET
    assert patch(priority_mode="aging").aging_ms == limits.AGING_STEP_MS_DEFAULT
    assert patch(priority_mode="aging", aging_step="5s").aging_ms == 5_000
    assert patch(priority_mode="strict").aging_ms is None
    assert patch(aging_step="5s").aging_ms == 5_000
    with pytest.raises(RequestError):
        patch(priority_mode="strict", aging_step="5s")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"rate": {"rate": 5}}, "rate.period"),
        ({"key_rate": {"rate": 5, "period": "0s"}}, "key_rate.period"),
        ({"rate": {"rate": 5, "period": 1, "window_ms": 5}}, "rate.window_ms"),
        ({"rate": {"rate": -5, "period": 1}}, "rate.rate"),
        ({"weights": {"a b": 1}}, "weights"),
        ({"weights": {"a": 0}}, "weights[...]"),
        ({"lease_duration": "500ms"}, "lease_duration"),
        ({"max_concurrency": -1}, "max_concurrency"),
        ({"priority_mode": "chaos"}, "priority_mode"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_path(fields: dict[str, Any], field: str | None):
    """Every bound of the settings is enforced and named."""
    with pytest.raises(RequestError) as caught:
        patch(**fields)
    assert caught.value.field == field


def test_both_spellings_of_a_throttle_mean_the_same():
    """Period and window_ms set the same bucket."""
    by_period = rate_of(wire.RateFields(rate=10, period="1m"))
    assert by_period == rate_of(wire.RateFields(rate=10, window_ms=60_000))


def test_delay_counts_from_the_clock_of_the_server():
    """A job with a delay starts that much after the time the server has, whatever the client's."""
    body = b'{"queue":"q","delay":"1h30m"}'
    command = translate.enqueue(ENQUEUE.read(body, b""), 0, context(), None)
    assert command.spec.scheduled_ms == NOW_MS + 90 * 60_000
