"""`corvo bench`: load on a running server, in a queue of its own, with a check of every job.

A figure counts only when its run was right: every job enqueued has a different id, and in the
lifecycle every one of them was fetched once and completed once, by the server's own counters too.
"""

import secrets
import sys
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from corvo.cli.client import API, Client, segment
from corvo.cli.failure import EXIT_REFUSED
from corvo.cli.load import Run, drive, post
from corvo.cli.session import Session, connected

PAYLOAD = {"to": "user@example.com", "template": "welcome", "locale": "en"}
FETCH_TIMEOUT_SECONDS = 10


class Tally:
    """What all connections of a run saw, shared: jobs still to enqueue, ids, complaints."""

    def __init__(self, queue: str, jobs: int) -> None:
        self.queue = queue
        self.left = jobs
        self.enqueued: set[str] = set()
        self.fetched: set[str] = set()
        self.completed: set[str] = set()
        self.problems: list[str] = []

    def add(self, to: set[str], job_id: str, what: str) -> None:
        if job_id in to:
            self.problems.append(f"{job_id} was {what} twice")
        to.add(job_id)


class Enqueuer:
    """One producer: enqueues until the tally says enough."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        body = msgspec.json.encode({"queue": tally.queue, "payload": PAYLOAD})
        self._request = post(f"{API}/enqueue", body)

    def next_request(self) -> bytes | None:
        if self._tally.left <= 0:
            return None
        self._tally.left -= 1
        return self._request

    def take_answer(self, status: int, body: bytes) -> None:
        if status != 201:
            self._tally.problems.append(f"enqueue answered {status}: {body[:200]!r}")
            return
        self._tally.add(self._tally.enqueued, msgspec.json.decode(body)["job_id"], "enqueued")


class Cycler(Enqueuer):
    """A producer and worker in turn: enqueue one, fetch one, complete what was fetched."""

    def __init__(self, tally: Tally, worker_id: str) -> None:
        super().__init__(tally)
        body = {
            "queues": [tally.queue],
            "worker_id": worker_id,
            "timeout": FETCH_TIMEOUT_SECONDS,
        }
        self._fetch = post(f"{API}/fetch", msgspec.json.encode(body))
        self._step = 0
        self._job: dict[str, Any] = {}

    def next_request(self) -> bytes | None:
        if self._step == 0:
            return super().next_request()
        if self._step == 1:
            return self._fetch
        body = msgspec.json.encode({"lease_token": self._job["lease_token"]})
        return post(f"{API}/ack/{self._job['job_id']}", body)

    def take_answer(self, status: int, body: bytes) -> None:
        if self._step == 0:
            super().take_answer(status, body)
            self._step = 1
        elif self._step == 1:
            self._take_job(status, body)
        else:
            self._step = 0
            if status != 200:
                self._tally.problems.append(f"ack answered {status}: {body[:200]!r}")
                return
            self._tally.add(self._tally.completed, self._job["job_id"], "completed")

    def _take_job(self, status: int, body: bytes) -> None:
        if status != 200:
            # There is at least one job for each fetch under way: an empty answer means a lost job.
            self._tally.problems.append(f"fetch answered {status} although a job was waiting")
            self._step = 0
            return
        self._job = msgspec.json.decode(body)
        self._tally.add(self._tally.fetched, self._job["job_id"], "fetched")
        self._step = 2


@click.command()
@click.option("--mode", type=click.Choice(["lifecycle", "enqueue"]), default="lifecycle")
@click.option("--jobs", type=click.IntRange(1, 10_000_000), default=10_000, show_default=True)
@click.option("--connections", type=click.IntRange(1, 4_096), default=64, show_default=True)
@click.option("--keep", is_flag=True, help="keep the queue of the run instead of deleting it")
@connected
def bench(session: Session, mode: str, jobs: int, connections: int, *, keep: bool) -> None:
    """Measure a running server, and check that no job was lost or doubled."""
    client = session.client
    tally = Tally(f"bench.{secrets.token_hex(4)}", jobs)
    count = min(connections, jobs)
    parts = urlsplit(client.url)
    address = (parts.hostname or "127.0.0.1", parts.port or 80)
    if mode == "enqueue":
        run = drive(address, [Enqueuer(tally) for _ in range(count)])
    else:
        run = drive(address, [Cycler(tally, f"bench-{n}") for n in range(count)])
    problems = tally.problems + check(tally, mode, jobs, client)
    if not keep:
        client.call("DELETE", f"{API}/queues/{segment(tally.queue)}", query={"confirm": "true"})
    report = render(mode, jobs, count, run, problems)
    session.show(report)
    if problems:
        sys.exit(EXIT_REFUSED)


def check(tally: Tally, mode: str, jobs: int, client: Client) -> list[str]:
    """Compare what the connections saw with what the server counted."""
    problems: list[str] = []
    if len(tally.enqueued) != jobs:
        problems.append(f"{len(tally.enqueued)} of {jobs} jobs were enqueued")
    if mode == "lifecycle" and tally.completed != tally.enqueued:
        lost = len(tally.enqueued - tally.completed)
        problems.append(f"{lost} jobs were enqueued and not completed")
    counts: dict[str, int] = client.call("GET", f"{API}/queues/{segment(tally.queue)}").body
    expected = {"pending": jobs} if mode == "enqueue" else {"completed": jobs, "pending": 0}
    for state, count in expected.items():
        if counts[state] != count:
            problems.append(f"the server counts {counts[state]} {state} jobs instead of {count}")
    return problems


def render(mode: str, jobs: int, connections: int, run: Run, problems: list[str]) -> dict[str, Any]:
    """Put the figures of a run into the order a reader wants them."""
    return {
        "mode": mode,
        "jobs": jobs,
        "connections": connections,
        "seconds": round(run.seconds, 3),
        "jobs_per_second": round(jobs / run.seconds),
        "requests_per_second": round(run.requests / run.seconds),
        "latency_p50_ms": round(run.latency_ms(0.5), 3),
        "latency_p99_ms": round(run.latency_ms(0.99), 3),
        "verified": not problems,
        "problems": problems[:20],
    }
