"""Tasks against a real server: what arrives there, and what handles say about it."""

import asyncio
import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from corvo_sdk import Client, Corvo
from corvo_sdk.errors import ValidationError
from corvo_sdk.handle import JobNotCompletedError
from corvo_sdk.options import Unique
from corvo_sdk.payload import PayloadError
from tests.support.server import Server


@dataclass
class Receipt:
    total: int
    at: datetime


def complete(server: Server, queue: str, result: Any = None) -> None:
    job = server.fetch(queue)
    body = {"lease_token": job["lease_token"], "result": result}
    assert server.post(f"/ack/{job['job_id']}", body).status == 200


def test_an_enqueued_task_is_a_job_with_its_options(server: Server, app: Corvo) -> None:
    """Queue, payload, tag and options are on the server; the handle knows the job."""

    @app.task(queue="emails", retries=7, base_delay="1500ms", group="{to}", priority="high")
    def send(to: str, count: int = 1) -> None: ...

    handle = send.with_options(tags={"team": "a"}, expire_after="1h").enqueue("a", count=2)
    assert handle.status == "pending"
    assert not handle.is_duplicate
    job = server.job(handle.id)
    assert job["queue"] == "emails"
    assert job["payload"] == {"to": "a", "count": 2}
    assert job["tags"] == {"task": "send", "team": "a"}
    assert (job["max_retries"], job["retry_base_delay"], job["group"]) == (7, "1s500ms", "a")
    assert (job["priority"], job["expire_after"]) == ("high", "1h")
    assert handle.refresh().payload == {"to": "a", "count": 2}


def test_a_wrong_argument_sends_nothing(server: Server, app: Corvo) -> None:
    """The index of the server's log does not move."""

    @app.task()
    def send(to: str) -> None: ...

    before = server.index
    with pytest.raises(PayloadError):
        send.enqueue(7)  # type: ignore[arg-type]
    with pytest.raises(PayloadError):
        send.enqueue_many([send.call("a"), send.call(None)])  # type: ignore[arg-type]
    assert before == server.index


def test_a_refusal_of_the_server_is_an_error_with_its_field(app: Corvo) -> None:
    """What only the server can judge comes back typed."""

    @app.task(queue="not a name")
    def send() -> None: ...

    with pytest.raises(ValidationError) as caught:
        send.enqueue()
    assert caught.value.field == "queue"


def test_times_are_kept(server: Server, app: Corvo) -> None:
    """`at` and `in_` give scheduled jobs."""

    @app.task()
    def send() -> None: ...

    instant = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
    at = send.at(instant).enqueue()
    later = send.in_("2h").enqueue()
    assert (at.status, later.status) == ("scheduled", "scheduled")
    assert instant == at.refresh().scheduled_at
    wait = later.refresh().scheduled_at
    assert wait is not None
    assert timedelta(minutes=115) < wait - datetime.now(UTC) < timedelta(minutes=125)


def test_a_result_comes_back_as_the_task_declares_it(server: Server, app: Corvo) -> None:
    """A dataclass with an instant is one again."""

    @app.task(queue="q")
    def buy() -> Receipt: ...  # type: ignore[empty-body]

    handle = buy.enqueue()
    complete(server, "q", {"total": 3, "at": "2030-01-01T00:00:00Z"})
    assert Receipt(3, datetime(2030, 1, 1, tzinfo=UTC)) == handle.result(timeout=30)
    assert handle.wait(30).state == "completed"


def test_waiting_for_a_job_ends_with_the_job_or_with_the_time(server: Server, app: Corvo) -> None:
    """A waiter is woken by the end of the job; one that runs out of patience says so."""

    @app.task(queue="q")
    def work() -> int: ...  # type: ignore[empty-body]

    handle = work.enqueue()
    with pytest.raises(TimeoutError, match=f"{handle.id} is not settled after 50ms"):
        handle.wait("50ms")
    results: list[int] = []
    waiter = threading.Thread(target=lambda: results.append(handle.result(30)))
    waiter.start()
    complete(server, "q", 5)
    waiter.join(30)
    assert results == [5]


def test_a_job_without_a_result_says_why(server: Server, app: Corvo) -> None:
    """Dead and cancelled jobs raise with the job at hand."""

    @app.task(queue="q", retries=0)
    def work() -> int: ...  # type: ignore[empty-body]

    handle = work.enqueue()
    job = server.fetch("q")
    server.post(f"/fail/{handle.id}", {"lease_token": job["lease_token"], "error": "no ink"})
    with pytest.raises(JobNotCompletedError, match="is dead: no ink"):
        handle.result(30)
    other = work.enqueue()
    other.cancel()
    with pytest.raises(JobNotCompletedError, match="is cancelled") as caught:
        other.result(30)
    assert caught.value.job.state == "cancelled"


def test_unique_tasks_give_the_job_that_is_there(server: Server, app: Corvo) -> None:
    """The second enqueue is a duplicate until the first job is done."""

    @app.task(queue="q", unique=True)
    def work(a: int) -> None: ...

    @app.task(queue="q", unique=Unique("key:{a}", period="1h", mode="window"))
    def windowed(a: int) -> int: ...  # type: ignore[empty-body]

    first, second, third = work.enqueue(1), work.enqueue(1), work.enqueue(2)
    assert (first.id, True) == (second.id, second.is_duplicate)
    assert not third.is_duplicate
    complete(server, "q")
    assert not work.enqueue(1).is_duplicate
    kept = windowed.enqueue(9)
    assert server.job(kept.id)["unique_key"] == "key:9"
    assert kept.id == windowed.enqueue(9).id


def test_many_calls_are_jobs_in_their_order(server: Server, app: Corvo) -> None:
    """Calls of one task or of several, each with options of its own; duplicates are told."""

    @app.task(queue="q", unique="{a}")
    def one(a: int) -> None: ...
    @app.task(queue="other")
    def two() -> None: ...

    handles = one.enqueue_many(
        [one.call(1), one.with_options(priority="high").call(2), one.call(1)]
    )
    assert [handle.is_duplicate for handle in handles] == [False, False, True]
    assert [server.job(handle.id)["payload"]["a"] for handle in handles] == [1, 2, 1]
    assert server.job(handles[1].id)["priority"] == "high"
    mixed = app.enqueue_many([one.call(5), two.call()])
    assert [server.job(handle.id)["queue"] for handle in mixed] == ["q", "other"]
    assert one.enqueue_many([]) == []


def test_more_calls_than_one_request_takes_are_sent_in_parts(server: Server, app: Corvo) -> None:
    """A list beyond the limit arrives whole and in order."""

    @app.task(queue="q")
    def work(a: int) -> None: ...

    handles = work.enqueue_many(work.call(number) for number in range(2_500))
    assert len({handle.id for handle in handles}) == 2_500
    assert server.job(handles[2_400].id)["payload"]["a"] == 2_400
    large = work.with_options(tags={"x": "y"})
    assert len(work.enqueue_many([large.call(1)] * 3)) == 3


def test_the_async_twins_do_the_same(server: Server, app: Corvo) -> None:
    """Enqueue, many, wait, result, refresh and cancel, from two event loops in turn."""

    @app.task(queue="q")
    async def work(a: int) -> int: ...  # type: ignore[empty-body]

    async def first() -> None:
        handle = await work.aenqueue(1)
        complete(server, "q", 10)
        assert await handle.aresult(30) == 10
        assert (await handle.await_(30)).state == "completed"
        other, third = await work.aenqueue_many([work.call(2), work.call(3)])
        await other.acancel()
        assert (await other.arefresh()).state == "cancelled"
        with pytest.raises(TimeoutError):
            await third.await_("50ms")
        assert len(await app.aenqueue_many([work.call(4)])) == 1
        await app.aclose()

    async def second() -> None:
        assert (await work.in_(0).aenqueue(5)).status.replace("scheduled", "pending") == "pending"
        await app.aclose()

    asyncio.run(first())
    asyncio.run(second())


def test_bound_clients_are_used_and_left_open(server: Server) -> None:
    """Tests and servers with clients of their own bind them; unbinding makes own ones again."""
    app = Corvo(url="http://127.0.0.1:1", retries=0)

    @app.task()
    def work() -> None: ...

    with Client(f"http://127.0.0.1:{server.port}") as client:
        app.bind(client=client)
        assert client is app.client
        first = work.enqueue()
        app.close()
        assert first.id == client.get_job(first.id).id
    app.bind()
    assert app.client.urls == ("http://127.0.0.1:1",)
    app.close()


def test_an_app_can_be_told_its_server_later(server: Server) -> None:
    """Tasks are declared at import, and settings may be known only then."""
    app = Corvo(url="http://127.0.0.1:1", retries=0)

    @app.task()
    def work() -> None: ...

    first = app.client
    app.close()
    app.configure(f"http://127.0.0.1:{server.port}")
    assert app.client is not first
    assert work.enqueue().status == "pending"
    app.close()


def test_a_forked_process_gets_a_client_of_its_own(server: Server, app: Corvo) -> None:
    """Connections made before a fork are not shared with the child."""

    @app.task(queue="q")
    def work(a: int) -> None: ...

    work.enqueue(1)
    parent = app.client
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # The child leaves by _exit, whatever happens, so that it never runs the rest of the suite.
        is_other = b"0"
        try:
            is_other = b"1" if app.client is not parent else b"0"
        finally:
            os.write(write, is_other)
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 1) == b"1"
    os.close(read)
    assert parent is app.client


def test_threads_share_one_client(app: Corvo) -> None:
    """The first use from many threads at once makes one client."""
    found: list[Client] = []
    start = threading.Barrier(8)

    def look() -> None:
        start.wait()
        found.append(app.client)

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
