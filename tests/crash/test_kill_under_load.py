"""A real server under load, killed without warning, again and again."""

import asyncio
import contextlib
import os
import random
import signal
from pathlib import Path

import msgspec
import pytest

from corvo.cli.client import API, Client
from corvo.cli.failure import UnreachableError
from corvo.cli.load import drive, post
from tests.support.process import ServerProcess, corvo

CYCLES = 25
CONNECTIONS = 12
ANSWERS_MAX = 1_200
KILL_DELAY_S_MAX = 0.02  # several group commits
QUEUES = ("one", "two", "three")
BULK = 1_000


class Witness:
    """What was asked of the server and what it answered, over all of its lives."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.enqueued: dict[str, int] = {}  # job to the number it carries
        self.ack_sent: set[str] = set()
        self.acked: set[str] = set()
        self.failed: set[str] = set()
        self.number = 0
        self.fresh: set[str] = set()  # touched in this life
        self.answers = 0
        self.fatal_answer = 0
        self.pid = 0
        self.refusals: list[str] = []

    def arm(self, pid: int) -> None:
        """Choose the answer after which the plug is pulled."""
        self.pid = pid
        self.answers = 0
        self.fatal_answer = self.random.randint(20, ANSWERS_MAX)
        self.fresh = set()

    def count_answer(self) -> None:
        self.answers += 1
        if self.answers == self.fatal_answer:
            # A little later: at the moment of an answer the server is always in the same step.
            delay_s = self.random.random() * KILL_DELAY_S_MAX
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, os.kill, self.pid, signal.SIGKILL)


class Life:
    """One connection: producers only enqueue, the others take what is there and end it."""

    def __init__(self, witness: Witness, worker_id: str, *, is_producer: bool) -> None:
        self._witness = witness
        self._worker_id = worker_id
        self._is_producer = is_producer
        self._sent = ""
        self._number = 0
        self._job: dict[str, object] = {}

    def next_request(self) -> bytes:
        witness = self._witness
        if self._job:
            return self._end()
        if self._is_producer or witness.random.random() < 0.4:
            self._sent = "enqueue"
            witness.number += 1
            self._number = witness.number
            job: dict[str, object] = {"queue": witness.random.choice(QUEUES)}
            job["payload"] = {"n": self._number}
            if witness.random.random() < 0.2:
                job["limit_key"] = f"key-{self._number % 5}"
            return post(f"{API}/enqueue", msgspec.json.encode(job))
        self._sent = "fetch"
        body = {"queues": QUEUES, "worker_id": self._worker_id, "timeout": 0}
        return post(f"{API}/fetch", msgspec.json.encode(body))

    def _end(self) -> bytes:
        witness, job_id = self._witness, str(self._job["job_id"])
        witness.fresh.add(job_id)
        body: dict[str, object] = {"lease_token": self._job["lease_token"]}
        if witness.random.random() < 0.1:
            self._sent = "fail"
            body["retry_after"] = "1h"
            return post(f"{API}/fail/{job_id}", msgspec.json.encode(body))
        self._sent = "ack"
        # Noted before it is sent: an ack without an answer may count or not.
        witness.ack_sent.add(job_id)
        return post(f"{API}/ack/{job_id}", msgspec.json.encode(body))

    def take_answer(self, status: int, body: bytes) -> None:
        witness = self._witness
        if status >= 400:
            witness.refusals.append(f"{self._sent} answered {status}: {body!r}")
        if self._sent == "enqueue" and status == 201:
            job_id = msgspec.json.decode(body)["job_id"]
            assert job_id not in witness.enqueued, "an id was given twice"
            witness.enqueued[job_id] = self._number
            witness.fresh.add(job_id)
        elif self._sent == "fetch":
            self._job = msgspec.json.decode(body) if status == 200 else {}
        elif self._job:
            kept = witness.acked if self._sent == "ack" else witness.failed
            if status == 200:
                kept.add(str(self._job["job_id"]))
            self._job = {}
        witness.count_answer()


def put_under_load(server: ServerProcess, witness: Witness) -> None:
    """Keep the server busy until it is killed from within the load."""
    witness.arm(server.process.pid)
    lives = [Life(witness, f"worker-{n}", is_producer=n % 4 == 0) for n in range(CONNECTIONS)]
    with contextlib.suppress(UnreachableError):
        drive(("127.0.0.1", server.port), lives)
    server.kill()


def check_kept(client: Client, witness: Witness, job_ids: list[str]) -> None:
    """Everything that was answered is there, and nothing else happened."""
    for start in range(0, len(job_ids), BULK):
        part = job_ids[start : start + BULK]
        answer = client.call("POST", f"{API}/jobs/bulk-get", {"job_ids": part}).body
        assert answer["missing"] == [], "an acknowledged enqueue is gone"
        for job in answer["jobs"]:
            job_id = job["id"]
            if job_id in witness.enqueued:
                assert job["payload"] == {"n": witness.enqueued[job_id]}
            if job_id in witness.acked:
                assert job["state"] == "completed", "an acknowledged ack was undone"
            if job["state"] == "completed":
                assert job_id in witness.ack_sent, "a job was completed that nobody acknowledged"
            if job_id in witness.failed:
                assert job["state"] == "retrying", "an acknowledged failure was undone"


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", [20])
def test_nothing_acknowledged_is_lost_when_the_server_is_killed_under_load(
    seed: int, tmp_path: Path
) -> None:
    """25 kills: every acknowledged enqueue present, no acknowledged ack undone, audit clean."""
    witness = Witness(seed)
    data = tmp_path / "data"
    server = ServerProcess(data, "--shutdown-timeout", "1ms")
    for cycle in range(CYCLES):
        with server:
            client = server.client()
            check_kept(client, witness, sorted(witness.fresh))
            client.close()
            put_under_load(server, witness)
        if cycle % 8 == 7:
            audited = corvo("fsck", "--data-dir", str(data))
            assert audited.returncode == 0, audited.stdout + audited.stderr
    with server:
        client = server.client()
        check_kept(client, witness, list(witness.enqueued))
        client.close()
        assert server.stop() == 0, server.errors()
    assert witness.refusals == []
    assert len(witness.acked) > CYCLES
    audited = corvo("fsck", "--data-dir", str(data))
    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert "0 violations" in audited.stdout
