"""What the Python client says: the same conversations as the Lua files, and those with batches."""

from typing import Any

import msgspec

from corvo.cli.client import API
from corvo.cli.load import post

PAYLOAD = {"to": "user@example.com", "template": "welcome", "locale": "en", "n": 12345}  # 70 bytes
LEASE_SECONDS = 3  # what a client leaves unfinished comes back soon after a run


class Conversation:
    """A script that counts what was refused."""

    def __init__(self) -> None:
        self.refused = 0

    def next_request(self) -> bytes | None:
        raise NotImplementedError

    def take_answer(self, status: int, body: bytes) -> None:  # noqa: ARG002 - of the protocol
        if status >= 300:
            self.refused += 1


class Enqueues(Conversation):
    """Single enqueues for ever."""

    def __init__(self, queue: str) -> None:
        super().__init__()
        body = msgspec.json.encode({"queue": queue, "payload": PAYLOAD})
        self._request = post(f"{API}/enqueue", body)

    def next_request(self) -> bytes | None:
        return self._request


class Cycles(Conversation):
    """Enqueue one, fetch one, acknowledge what was fetched."""

    def __init__(self, queue: str, number: int, limit_key: str | None) -> None:
        super().__init__()
        job: dict[str, object] = {"queue": queue, "payload": PAYLOAD}
        if limit_key is not None:
            job["limit_key"] = limit_key
        self._enqueue = post(f"{API}/enqueue", msgspec.json.encode(job))
        self._fetch = post(f"{API}/fetch", _fetch_body(queue, number))
        self._step = 0
        self._job: dict[str, Any] = {}

    def next_request(self) -> bytes | None:
        self._step = (self._step + 1) % 3
        if self._step == 1:
            return self._enqueue
        if self._step == 2:
            return self._fetch
        body = msgspec.json.encode({"lease_token": self._job["lease_token"]})
        return post(f"{API}/ack/{self._job['job_id']}", body)

    def take_answer(self, status: int, body: bytes) -> None:
        super().take_answer(status, body)
        if self._step == 2 and status == 200:
            self._job = msgspec.json.decode(body)
        elif self._step == 2:
            # Nothing was fetched, so there is nothing to acknowledge: begin again.
            self._step = 0


class BatchCycles(Conversation):
    """The same with many jobs per call; ends when the shared budget of jobs is used up."""

    def __init__(self, queue: str, number: int, size: int, budget: list[int]) -> None:
        super().__init__()
        self.completed = 0
        self._size = size
        self._budget = budget
        jobs = [{"queue": queue, "payload": PAYLOAD}] * size
        self._enqueue = post(f"{API}/enqueue/batch", msgspec.json.encode({"jobs": jobs}))
        self._fetch = post(f"{API}/fetch/batch", _fetch_body(queue, number, size))
        self._owed = 0  # enqueued by this conversation and not yet acknowledged by it
        self._jobs: list[dict[str, Any]] = []
        self._step = ""

    def next_request(self) -> bytes | None:
        if self._jobs:
            self._step = "ack"
            acks = [{"job_id": j["job_id"], "lease_token": j["lease_token"]} for j in self._jobs]
            self._jobs = []
            return post(f"{API}/ack/batch", msgspec.json.encode({"acks": acks}))
        if self._owed > 0:
            self._step = "fetch"
            return self._fetch
        if self._budget[0] <= 0:
            return None
        self._budget[0] -= self._size
        self._owed += self._size
        self._step = "enqueue"
        return self._enqueue

    def take_answer(self, status: int, body: bytes) -> None:
        super().take_answer(status, body)
        answer = msgspec.json.decode(body)
        if self._step == "fetch":
            self._jobs = answer["jobs"]
            self._owed = self._owed - len(self._jobs) if self._jobs else 0
        elif self._step == "ack":
            self.completed += answer["acked"]


def _fetch_body(queue: str, number: int, count: int = 1) -> bytes:
    body: dict[str, object] = {"queues": [queue], "worker_id": f"bench-{number}", "timeout": 5}
    body["lease_duration"] = LEASE_SECONDS
    if count > 1:
        body["count"] = count
    return msgspec.json.encode(body)


def scripts_for(name: str, connections: int) -> list[Conversation]:
    """Return the conversations that a Lua file of the same name holds."""
    if name == "enqueue":
        return [Enqueues("bench") for _ in range(connections)]
    if name == "mixed":
        return [Cycles("bench", n, None) for n in range(connections)]
    assert name == "keys", name
    return [Cycles("gated", n, f"key-{n % 64}") for n in range(connections)]
