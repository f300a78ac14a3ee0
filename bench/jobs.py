"""Filling and emptying queues around a measurement, and the check that nothing was lost."""

import time
from typing import Any

from bench.harness import check
from bench.scripts import PAYLOAD
from bench.servers import Corvo
from corvo.cli.client import API, Client

FILL_BATCH = 2_000
EMPTY_BATCH = 512
EMPTY_SECONDS_MAX = 600


def fill(server: Corvo, queue: str, jobs: int, **fields: object) -> None:
    """Enqueue jobs in batches."""
    client = server.client()
    left = jobs
    while left > 0:
        count = min(left, FILL_BATCH)
        body = {"jobs": [{"queue": queue, "payload": PAYLOAD, **fields}] * count}
        answer = client.call("POST", f"{API}/enqueue/batch", body)
        check(len(answer.body["job_ids"]) == count, "a batch answered with too few ids")
        left -= count
    client.close()


def empty(server: Corvo, queue: str) -> None:
    """Complete everything in a queue, also what a client left fetched and unacknowledged."""
    client = server.client()
    deadline = time.perf_counter() + EMPTY_SECONDS_MAX
    while time.perf_counter() < deadline:
        jobs = _fetch(client, queue)
        if jobs:
            _acknowledge(client, jobs)
            continue
        counts = server.queue(queue)
        if not any(counts[state] for state in ("pending", "active", "retrying", "scheduled")):
            client.close()
            return
    check(False, f"{queue} did not become empty")


def _fetch(client: Client, queue: str) -> list[dict[str, Any]]:
    body = {"queues": [queue], "worker_id": "bench-end", "count": EMPTY_BATCH, "timeout": 1}
    return client.call("POST", f"{API}/fetch/batch", body).body["jobs"]


def _acknowledge(client: Client, jobs: list[dict[str, Any]]) -> None:
    acks = [{"job_id": job["job_id"], "lease_token": job["lease_token"]} for job in jobs]
    answer = client.call("POST", f"{API}/ack/batch", {"acks": acks}).body
    check(answer["acked"] == len(jobs), f"{len(jobs) - answer['acked']} acks were refused")


def release(server: Corvo, jobs: list[dict[str, Any]]) -> None:
    """Complete jobs that were held during a measurement."""
    client = server.client()
    _acknowledge(client, jobs)
    client.close()


def check_all_completed(server: Corvo, queue: str, at_least: int) -> None:
    """Every job ever enqueued into the queue was completed, once."""
    empty(server, queue)
    view = server.queue(queue)
    enqueued, completed = view["totals"]["enqueued"], view["totals"]["completed"]
    check(enqueued >= at_least, f"{at_least} jobs were accepted, the server counts {enqueued}")
    check(enqueued == completed, f"{enqueued} jobs enqueued, {completed} completed")
    check(view["dead"] == 0, "jobs died")
