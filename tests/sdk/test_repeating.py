"""What is sent again and what is not, over real sockets with a server that misbehaves."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from corvo_sdk.errors import (
    ConnectionFailedError,
    DeadlineExceededError,
    InternalError,
    LeaseLostError,
    NotFoundError,
    OverloadedError,
    PayloadTooLargeError,
    UnauthorizedError,
    UnavailableError,
)
from corvo_sdk.types import Ack, NewJob
from tests.support.rude import RudeServer, refusal, rude
from tests.support.sdk import client_of
from tests.support.server import Server


def _pending(server: Server, queue: str = "q") -> int:
    reply = server.get(f"/queues/{queue}")
    return reply.json["pending"] if reply.status == 200 else 0


@pytest.mark.parametrize("fault", ["drop", "lose", "half"])
def test_enqueue_whose_answer_is_lost_makes_one_job(
    server: Server, middle: RudeServer, shell: str, fault: str
) -> None:
    """The repeated request carries the same key, so the server answers it from memory."""
    middle.script = [fault, fault]
    with client_of(shell, middle.url) as client:
        job = client.enqueue("q", {"a": 1})
    assert [request.body for request in middle.seen] == [middle.seen[0].body] * 3
    assert _pending(server) == 1
    assert server.job(job.job_id)["payload"] == {"a": 1}


def test_batch_whose_answer_is_lost_is_enqueued_once(
    server: Server, middle: RudeServer, shell: str
) -> None:
    """One key covers all jobs of the call."""
    middle.script = ["lose"]
    with client_of(shell, middle.url) as client:
        many = client.enqueue_many([NewJob("q", n) for n in range(5)], callback_queue="done")
    assert len(middle.seen) == 2
    assert _pending(server) == 5
    assert len(set(many.job_ids)) == 5
    assert many.batch_id is not None


def test_two_enqueues_have_two_keys(middle: RudeServer, shell: str) -> None:
    """Calls that look alike are different calls."""
    with client_of(shell, middle.url) as client:
        first, second = client.enqueue("q", 1), client.enqueue("q", 1)
    assert first.job_id != second.job_id
    assert middle.seen[0].json["idempotency_key"] != middle.seen[1].json["idempotency_key"]


def test_clone_whose_answer_is_lost_makes_one_copy(
    server: Server, middle: RudeServer, shell: str
) -> None:
    """A clone is an enqueue and has a key too."""
    original = server.enqueue("q", payload={"a": 1}, priority="high")
    middle.script = ["lose"]
    with client_of(shell, middle.url) as client:
        copy = client.clone(original, max_retries=9)
    assert _pending(server) == 2
    job = server.job(copy.job_id)
    assert (job["cloned_from"], job["priority"], job["max_retries"]) == (original, "high", 9)


def test_fetch_whose_answer_is_lost_is_not_repeated(
    server: Server, middle: RudeServer, shell: str
) -> None:
    """A second fetch would claim a second job; the caller hears that the first may have arrived."""
    server.enqueue("q")
    server.enqueue("q")
    middle.script = ["lose"]
    with client_of(shell, middle.url) as client, pytest.raises(ConnectionFailedError) as caught:
        client.fetch("q", worker_id="w", timeout=0)
    assert caught.value.was_sent
    assert len(middle.seen) == 1
    assert _pending(server) == 1


def test_fetch_refused_in_time_is_repeated(server: Server, middle: RudeServer, shell: str) -> None:
    """A refusal means that nothing was claimed."""
    job = server.enqueue("q")
    middle.script = [
        refusal(503, "STARTING", retry_after_ms=20),
        refusal(429, "OVERLOADED", retry_after_ms=20),
    ]
    with client_of(shell, middle.url) as client:
        fetched = client.fetch("q", worker_id="w", timeout=0)
    assert fetched.job_id == job
    assert len(middle.seen) == 3


@pytest.mark.parametrize("verb", ["ack", "fail", "release", "snooze"])
def test_report_with_its_token_is_repeated(
    server: Server, middle: RudeServer, shell: str, verb: str
) -> None:
    """The token that settled a job gets the same answer again."""
    server.enqueue("q")
    middle.script = ["pass", "lose"]
    options = {"snooze": {"delay": 60}, "fail": {"error": "x"}}.get(verb, {})
    with client_of(shell, middle.url) as client:
        job = client.fetch("q", worker_id="w", timeout=0)
        ended = getattr(client, verb)(job.job_id, job.lease_token, **options)
    states = {"ack": "completed", "fail": "retrying", "release": "pending", "snooze": "scheduled"}
    assert ended.status == states[verb]
    assert len(middle.seen) == 3
    assert server.job(job.job_id)["state"] == states[verb]


def test_many_reports_with_tokens_are_repeated(
    server: Server, middle: RudeServer, shell: str
) -> None:
    """Each item of a batch is answered as it was the first time."""
    for _ in range(3):
        server.enqueue("q")
    middle.script = ["pass", "lose"]
    with client_of(shell, middle.url) as client:
        jobs = client.fetch_many(["q"], 10, worker_id="w", timeout=0)
        acked = client.ack_many([Ack(job_id=j.job_id, lease_token=j.lease_token) for j in jobs])
    assert acked.acked == 3
    assert [result.status for result in acked.results] == ["completed"] * 3


def test_report_without_token_is_not_repeated(
    server: Server, middle: RudeServer, shell: str
) -> None:
    """Without a token nobody can tell a repetition from a report about a later attempt."""
    job = server.enqueue("q")
    server.fetch("q")
    middle.script = ["lose"]
    with client_of(shell, middle.url) as client, pytest.raises(ConnectionFailedError) as caught:
        client.ack(job)
    assert caught.value.was_sent
    assert len(middle.seen) == 1


@pytest.mark.parametrize("verb", ["retry", "cancel", "delete_job", "requeue"])
def test_change_of_state_is_not_repeated_when_it_may_have_arrived(
    server: Server, middle: RudeServer, shell: str, verb: str
) -> None:
    """What is said once about a job must not be said again about what became of it."""
    job = server.enqueue("q")
    middle.script = ["drop"]
    with client_of(shell, middle.url) as client, pytest.raises(ConnectionFailedError):
        getattr(client, verb)(job)
    assert len(middle.seen) == 1


def test_refusal_of_a_proxy_repeats_only_what_is_safe(middle: RudeServer, shell: str) -> None:
    """A proxy's 503 does not tell whether the server behind it has acted."""
    middle.script = [(503, {}, b"<html>"), (502, {}, b""), (504, {}, b"")]
    with client_of(shell, middle.url) as client:
        assert client.queues() == []
        assert len(middle.seen) == 4
        middle.script = [(503, {}, b"<html>")]
        with pytest.raises(UnavailableError) as caught:
            client.fetch("q", worker_id="w", timeout=0)
    assert caught.value.code == "HTTP_503"
    assert len(middle.seen) == 5


def test_time_named_by_the_server_is_honoured(middle: RudeServer, shell: str) -> None:
    """Nobody comes back before retry_after_ms, and Retry-After counts where that is missing."""
    middle.script = [refusal(429, "OVERLOADED", retry_after_ms=250)]
    with client_of(shell, middle.url) as client:
        began = time.monotonic()
        client.info()
        assert 0.25 <= time.monotonic() - began < 5
        middle.script = [(503, {"retry-after": "1"}, b"")]
        began = time.monotonic()
        client.info()
        assert 1 <= time.monotonic() - began < 5


def test_wait_beyond_the_deadline_fails_at_once(middle: RudeServer, shell: str) -> None:
    """Waiting for a time that will not be used helps nobody."""
    middle.script = [refusal(503, "DISK_FULL", retry_after_ms=60_000)]
    with client_of(shell, middle.url, deadline_s=2) as client:
        began = time.monotonic()
        with pytest.raises(UnavailableError) as caught:
            client.enqueue("q")
    assert time.monotonic() - began < 1
    assert (caught.value.code, caught.value.retry_after_ms) == ("DISK_FULL", 60_000)


def test_number_of_tries_is_bounded(middle: RudeServer, shell: str) -> None:
    """After the last try the error is the server's own."""
    middle.script = [refusal(429, "OVERLOADED", retry_after_ms=1)] * 9
    with client_of(shell, middle.url, retries=2) as client, pytest.raises(OverloadedError):
        client.enqueue("q")
    assert len(middle.seen) == 3


def test_silent_server_is_given_up_in_time(middle: RudeServer, shell: str) -> None:
    """A server that never answers costs one time-out per try and no more than the deadline."""
    middle.script = ["stall"] * 9
    with client_of(shell, middle.url, timeout_s=0.2, deadline_s=0.7) as client:
        began = time.monotonic()
        with pytest.raises(DeadlineExceededError) as caught:
            client.enqueue("q")
        assert 0.2 <= time.monotonic() - began < 3
        assert caught.value.was_sent
        with pytest.raises(DeadlineExceededError):
            client.fetch("q", worker_id="w", timeout=0)


def test_dribbling_server_is_given_up_in_time(middle: RudeServer, shell: str) -> None:
    """The time-out is for the whole answer, not for the next byte of it."""
    middle.script = ["dribble"]
    with client_of(shell, middle.url, timeout_s=0.3, retries=0) as client:
        began = time.monotonic()
        with pytest.raises(DeadlineExceededError):
            client.info()
        assert time.monotonic() - began < 3


def test_connections_are_kept(middle: RudeServer, shell: str) -> None:
    """One call after the other goes over one connection, whatever the answers were."""
    middle.script = [refusal(404, "NOT_FOUND")]
    with client_of(shell, middle.url) as client:
        with pytest.raises(NotFoundError):
            client.info()
        client.enqueue("q", "x" * 100_000)
        assert client.fetch("q", worker_id="w", timeout=0) is not None
        assert client.fetch("q", worker_id="w", timeout=0) is None
        client.queues()
    assert (len(middle.seen), middle.connections_count) == (5, 1)


def test_long_poll_is_not_cut_by_the_time_out(server: Server, shell: str) -> None:
    """The time-out of a call begins where the wait of the server ends."""
    url = f"http://127.0.0.1:{server.port}"
    with client_of(shell, url, timeout_s=0.5, deadline_s=0.5, retries=0) as client:
        began = time.monotonic()
        assert client.fetch("q", worker_id="w", timeout="1200ms") is None
        assert time.monotonic() - began >= 1.2
        job = client.enqueue("q").job_id
        assert client.wait(job, timeout=1) is None
        assert client.fetch_many("other", 5, worker_id="w", timeout=0.6) == []


def test_dead_server_is_passed_over_and_remembered(middle: RudeServer, shell: str) -> None:
    """A call goes to the next server when one was never reached; later calls go there first."""
    with rude() as gone:
        dead_url = gone.url
    with client_of(shell, [dead_url, middle.url]) as client:
        began = time.monotonic()
        assert client.fetch("q", worker_id="w", timeout=0) is None
        assert time.monotonic() - began < 1
        assert client.urls[0] == middle.url
        client.info()
    assert len(middle.seen) == 2


def test_draining_server_hands_over_to_the_next(middle: RudeServer, shell: str) -> None:
    """With another server at hand there is nothing to wait for."""
    with (
        rude(middle.backend_port) as other,
        client_of(shell, f"{middle.url},{other.url}") as client,
    ):
        middle.script = [refusal(503, "DRAINING", retry_after_ms=5_000)]
        began = time.monotonic()
        client.enqueue("q")
        assert time.monotonic() - began < 2
        assert len(other.seen) == 1


@contextmanager
def taken_port() -> Iterator[int]:
    """A port at which nobody listens, and nobody else can begin to."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def test_all_servers_down_is_one_error(shell: str) -> None:
    """The error says that nothing was sent, and what to look at."""
    with (
        taken_port() as gone,
        taken_port() as away,
        client_of(
            shell, [f"http://127.0.0.1:{port}" for port in (gone, away)], retries=3
        ) as client,
        pytest.raises(ConnectionFailedError) as caught,
    ):
        client.enqueue("q")
    assert not caught.value.was_sent
    assert caught.value.hint is not None


def test_refused_token_is_refreshed_once(middle: RudeServer, shell: str) -> None:
    """The provider is asked at first and after a 401; a second 401 is the caller's."""
    tokens = iter(["old", "new", "newer"])
    middle.script = [refusal(401, "UNAUTHORIZED")]
    with client_of(shell, middle.url, token_provider=lambda: next(tokens)) as client:
        client.info()
        client.info()
        sent = [request.headers["authorization"] for request in middle.seen]
        assert sent == ["Bearer old", "Bearer new", "Bearer new"]
        middle.script = [refusal(401, "UNAUTHORIZED")] * 2
        with pytest.raises(UnauthorizedError):
            client.info()
    assert len(middle.seen) == 5


def test_credentials_and_headers_are_sent(
    middle: RudeServer, shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key comes from the argument or the environment; own headers are added."""
    monkeypatch.setenv("CORVO_API_KEY", "from-environment")
    with client_of(shell, middle.url, headers={"X-Team": "a"}, user_agent="me/1") as client:
        client.info()
    with client_of(shell, middle.url, api_key="k", bearer_token="b") as client:
        client.info()
    first, second = (request.headers for request in middle.seen)
    assert (first["x-api-key"], first["x-team"], first["user-agent"]) == (
        "from-environment",
        "a",
        "me/1",
    )
    assert (second["x-api-key"], second["authorization"]) == ("k", "Bearer b")
    assert second["user-agent"].startswith("corvo-sdk/")


def test_errors_have_the_class_of_their_code(client: Any, server: Server) -> None:
    """A caller catches what it means, not a number."""
    with pytest.raises(NotFoundError):
        client.get_job("job_00000000000000000000000000")
    with pytest.raises(PayloadTooLargeError):
        client.enqueue("q", "x" * 300_000)
    client.enqueue("q")
    job = client.fetch("q", worker_id="w", timeout=0)
    with pytest.raises(LeaseLostError) as caught:
        client.ack(job.job_id, job.lease_token + 1)
    assert caught.value.status == 409
    assert caught.value.hint


def test_bug_of_the_server_is_not_repeated(middle: RudeServer, shell: str) -> None:
    """A 500 is reported with its request id, once."""
    middle.script = [refusal(500, "INTERNAL_ERROR", request_id="abc")]
    with client_of(shell, middle.url) as client, pytest.raises(InternalError) as caught:
        client.info()
    assert caught.value.request_id == "abc"
    assert len(middle.seen) == 1
