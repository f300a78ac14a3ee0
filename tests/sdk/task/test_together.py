"""Chains and batches of tasks, against a real server."""

import asyncio
from typing import Any

import pytest

from corvo_sdk import Corvo, chain
from tests.support.server import Server


def run(server: Server, app: Corvo, queue: str) -> Any:
    """Do what a worker does with the next job of a queue: find, decode, call, ack."""
    job = server.fetch(queue)
    task = app.find(queue, job["tags"])
    assert task is not None
    raw = server.request("GET", f"/api/v1/jobs/{job['job_id']}").json["payload"]
    arguments = task.decode(task.codec.encode_result(raw))
    value = task(*arguments.args, **arguments.kwargs)
    body = {"lease_token": job["lease_token"], "result": value}
    assert server.post(f"/ack/{job['job_id']}", body).status == 200
    return value


def declare(app: Corvo) -> dict[str, Any]:
    @app.task(queue="one", retries=7)
    def first(number: int) -> int:
        return number + 1

    @app.task(queue="two", priority="high")
    def second(factor: int, previous_result: int = 0) -> int:
        return factor * previous_result

    @app.task(queue="two")
    def third(previous_result: int = 0, previous_job_id: str = "") -> str:
        return f"{previous_result} {previous_job_id[:4]}"

    @app.task(queue="failed")
    def failed(note: str, error: str = "", failed_step: int = -1) -> str:
        return f"{note}: {error} at {failed_step}"

    @app.task(queue="done")
    def done(album: int, batch: dict[str, Any] | None = None) -> Any:
        assert batch is not None
        return [album, batch["total"], batch["succeeded"], batch["failed"]]

    return dict(app.tasks)


def test_each_step_of_a_chain_gets_the_result_before(server: Server, app: Corvo) -> None:
    """Two tasks of one queue are told apart, arguments and results go along."""
    tasks = declare(app)
    first, second, third = tasks["first"], tasks["second"], tasks["third"]
    handle = chain(first.call(4), second.call(10), third.call()).enqueue()
    assert server.job(handle.id)["max_retries"] == 7
    assert run(server, app, "one") == 5
    assert run(server, app, "two") == 50
    assert run(server, app, "two") == "50 job_"
    assert handle.result(30) == 5


def test_a_chain_that_fails_runs_what_was_named_for_it(server: Server, app: Corvo) -> None:
    """The handler of the failure is a task with its own arguments and the error."""
    tasks = declare(app)
    call = tasks["first"].with_options(retries=0).call(1)
    handle = chain(call, tasks["third"].call(), on_failure=tasks["failed"].call("sorry")).enqueue()
    job = server.fetch("one")
    server.post(f"/fail/{handle.id}", {"lease_token": job["lease_token"], "error": "no ink"})
    assert run(server, app, "failed") == "sorry: no ink at 0"
    assert server.fetch("two") is None


def test_what_only_a_whole_job_can_have_is_refused_in_a_later_step(app: Corvo) -> None:
    """A unique key, a time or a chain inside of a chain; and too many steps."""
    tasks = declare(app)
    first = tasks["first"]
    call = first.call(1)
    for later, reason in (
        (first.in_("5m").call(1), "cannot have delay: first"),
        (first.with_options(unique=True).call(1), "cannot have unique_key: first"),
        (chain(call, call), "cannot have chain: first"),
    ):
        with pytest.raises(ValueError, match=reason):
            chain(call, later)
    with pytest.raises(ValueError, match="cannot begin with a chain"):
        chain(chain(call, call), call)
    with pytest.raises(ValueError, match="at most 64 steps"):
        chain(*[call] * 65)


def test_a_batch_ends_with_its_callback(server: Server, app: Corvo) -> None:
    """The callback gets its own arguments and the counts."""
    tasks = declare(app)
    first = tasks["first"]
    batch = app.enqueue_batch(
        [first.call(1), first.with_options(retries=0).call(2)], callback=tasks["done"].call(9)
    )
    assert [job.status for job in batch.jobs] == ["pending", "pending"]
    assert batch.refresh().total == 2
    assert run(server, app, "one") == 2
    job = server.fetch("one")
    server.post(f"/fail/{job['job_id']}", {"lease_token": job["lease_token"]})
    assert run(server, app, "done") == [9, 2, 1, 1]


def test_a_batch_needs_no_callback_and_has_an_async_twin(server: Server, app: Corvo) -> None:
    """Both are counted by the server."""
    first = declare(app)["first"]
    assert app.enqueue_batch([first.call(1)]).refresh().total == 1

    async def body() -> int:
        batch = await app.aenqueue_batch([first.call(1), chain(first.call(2), first.call(3))])
        total = (await batch.arefresh()).total
        await app.aclose()
        return total

    assert asyncio.run(body()) == 2


def test_a_batch_that_cannot_work_is_refused_before_it_is_sent(server: Server, app: Corvo) -> None:
    """No calls, too many, or a callback whose queue does not say which task it is for."""
    tasks = declare(app)
    call = tasks["first"].call(1)
    before = server.index
    for calls, callback, reason in (
        ([], None, "1 to 5000 calls"),
        ([call] * 5_001, None, "1 to 5000 calls"),
        ([call], tasks["third"].call(), "not the only task of 'two'"),
    ):
        with pytest.raises(ValueError, match=reason):
            app.enqueue_batch(calls, callback=callback)
    assert server.index == before
