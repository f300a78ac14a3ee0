"""Answers put together from bytes are the JSON they claim to be."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corvo.api import render, views
from corvo.api.values import render_instant
from corvo.model.ids import JOB, render_id
from corvo.model.job import ACTIVE, COMPLETED, DEAD, PENDING, RETRYING, SCHEDULED, Job, Spec
from corvo.model.limits import TIME_MS_MAX
from corvo.model.outcome import (
    BEAT_CANCEL,
    BEAT_LOST,
    BEAT_OK,
    BatchEnqueued,
    Beaten,
    Claim,
    Duplicate,
    Ended,
    Enqueued,
    Rejected,
)
from corvo.model.view import JobView

ID = bytes(range(16))
TEXT = render_id(JOB, ID)
decode = msgspec.json.decode


def test_a_new_job_is_201_with_its_index():
    """The answer to enqueue has id, status and index."""
    status, body = render.enqueued(Enqueued(ID, SCHEDULED), 7)
    expected = {"job_id": TEXT, "status": "scheduled", "unique_existing": False, "index": 7}
    assert (status, decode(body)) == (201, expected)


def test_a_duplicate_is_200_with_the_owner():
    """The answer to a duplicate has the owner's state and, in mode window, its result."""
    status, body = render.enqueued(Duplicate(ID, COMPLETED, b'{"a":1}'), 7)
    assert status == 200
    assert decode(body) == {
        "job_id": TEXT,
        "status": "duplicate",
        "unique_existing": True,
        "state": "completed",
        "result": {"a": 1},
        "index": 7,
    }
    assert decode(render.enqueued(Duplicate(ID, PENDING, is_replaced=True), 1)[1])["replaced"]


def test_a_batch_has_a_result_per_job():
    """job_ids, batch_id and results are in the order of the call."""
    outcome = BatchEnqueued([Enqueued(ID, PENDING), Duplicate(bytes(16), ACTIVE)], ID)
    body = decode(render.batch_enqueued(outcome, 3))
    assert body["job_ids"] == [TEXT, render_id(JOB, bytes(16))]
    assert body["batch_id"].startswith("batch_")
    assert [result["status"] for result in body["results"]] == ["pending", "duplicate"]
    assert decode(render.batch_enqueued(BatchEnqueued([], None), 3))["batch_id"] is None


@given(
    tags=st.none() | st.dictionaries(st.text(min_size=1), st.text()),
    at_ms=st.integers(0, TIME_MS_MAX),
    checkpoint=st.none() | st.just(b'{"offset":12345678901234567890123}'),
)
def test_a_claim_is_json_whatever_is_in_it(
    tags: dict[str, str] | None, at_ms: int, checkpoint: bytes | None
):
    """Tags are escaped, documents embedded as they are, instants UTC with milliseconds."""
    try:
        msgspec.json.encode(tags)
    except UnicodeEncodeError:
        return  # a lone surrogate cannot have come in
    spec = Spec(ID, 0, "q", b'{"n":12345678901234567890123}', tags=tags, scheduled_ms=at_ms)
    item = Claim(spec, "q.moved", 1, 2, 0, 5, 2**52, 61_500, at_ms, checkpoint)
    text = render.claim(item, b',"index":9')
    body = decode(text)
    assert b'"payload":{"n":12345678901234567890123}' in text
    assert body["tags"] == (tags or {})
    assert body["created_at"] == render_instant(at_ms)
    assert body["scheduled_at"] == (render_instant(at_ms) if at_ms else None)
    assert (body["job_id"], body["queue"], body["priority"]) == (TEXT, "q.moved", "high")
    assert (body["lease_token"], body["lease_duration"], body["index"]) == (2**52, 61, 9)
    assert (checkpoint is None) is (body["checkpoint"] is None)


@pytest.mark.parametrize(
    ("outcome", "status", "at"),
    [
        (Ended(RETRYING, 1_500, 4), "retrying", "1970-01-01T00:00:01.500Z"),
        (Ended(PENDING, 0, 4), "retrying", None),
        (Ended(DEAD), "dead", None),
    ],
)
def test_a_failure_says_what_comes_next(outcome: Ended, status: str, at: str | None):
    """A failure without delay is a retry, too."""
    body = decode(render.failed(outcome, 2))
    assert (body["status"], body["next_attempt_at"]) == (status, at)
    assert body["attempts_remaining"] == outcome.attempts_remaining


def test_a_batch_of_acks_counts_only_what_was_acknowledged():
    """Each item has its own result; a refused one has its code."""
    outcomes = [Ended(COMPLETED), Rejected("LEASE_LOST", 'a "quoted" reason', state=ACTIVE)]
    body = decode(render.acked([TEXT, TEXT], outcomes, 5))
    assert body["acked"] == 1
    assert body["results"][0] == {"job_id": TEXT, "status": "completed"}
    assert body["results"][1]["code"] == "LEASE_LOST"
    assert body["results"][1]["status"] == "rejected"


def test_a_heartbeat_answers_every_name():
    """Ok with the new end of the lease, cancel, lost; names that are no job are lost."""
    outcomes = [Beaten(BEAT_OK, 1_000), Beaten(BEAT_CANCEL), Beaten(BEAT_LOST), Rejected("X", "")]
    body = decode(render.beaten(["a", "b", "c", "d"], outcomes, ['e"'], 5))
    statuses = {name: job["status"] for name, job in body["jobs"].items()}
    assert statuses == {"a": "ok", "b": "cancel", "c": "lost", "d": "lost", 'e"': "lost"}
    assert body["jobs"]["a"]["lease_expires_at"] == "1970-01-01T00:00:01.000Z"


def test_the_job_object_never_has_the_lease_token():
    """Whoever reads a job does not own it."""
    job = Job(ID, 0, ACTIVE, 1, 2, 1, b"", 5, 3, token=123_456_789, worker="w", lease_until_ms=9)
    view = JobView(Spec(ID, 0, "q", b"[1]"), job, "q", [], None, None, None, None, [])
    text = render.encode(views.job_members(view))
    assert b"123456789" not in text
    body = decode(text)
    assert body["payload"] == [1]
    assert body["worker"] == {"id": "w", "hostname": None}
    assert body["lease_expires_at"] == "1970-01-01T00:00:00.009Z"
