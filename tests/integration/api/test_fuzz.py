"""No input makes a 500: thousands of requests made of right and wrong parts, to every route."""

import random
from collections import Counter

import msgspec
import pytest

from tests.support.server import LANES, Server, running

REQUESTS_COUNT = 1_500

WORDS = ["", "q", "a b", "\x00", "é💥", "x" * 300, "critical", "5s", "-1s", "#0", "none", "aging"]
TIMES = ["2030-01-01T00:00:00Z", "2030-01-01", "0000-00-00T00:00:00Z", "2030-01-01T00:00:00+99:9"]
NUMBERS = [0, 1, -1, 3, 2**31, 2**53, 2**63, 10**40, 0.5, -0.0, 1e308]
FRAGMENTS = [b"NaN", b'"\\ud800"', b'"\xff"', b"[" * 80 + b"]" * 80, b"{", b"nul", b"1e999", b""]

NAMES = """
queue payload checkpoint priority unique_key unique_period unique_mode max_retries
retry_backoff retry_base_delay retry_max_delay retry_jitter scheduled_at expire_after tags
group limit_key limits cost parent_id depends_on on_dependency_failure chain hold trace
idempotency_key agent jobs batch steps on_failure on_exit callback_queue callback_payload
queues worker_id hostname timeout lease_duration count concurrency version draining
lease_token result step_status usage agent_status acks job_id error backtrace retryable
retry_after delay until progress reason by note timeout_action reset_attempts
keep_priority job_ids overrides max rate period window_ms burst max_concurrency
key_concurrency key_rate weights priority_mode aging_step retention retention_count
require_token max_payload webhook_secret
""".split()

POSTS = [
    "/enqueue",
    "/enqueue/batch",
    "/fetch",
    "/fetch/batch",
    "/ack/batch",
    "/heartbeat",
    "/jobs/bulk-get",
]
OF_JOB = ["/ack/{}", "/fail/{}", "/release/{}", "/snooze/{}"] + [
    "/jobs/{}/" + name
    for name in "retry requeue cancel move priority hold approve reject clone why".split()
]
OF_NAME = ["/queues/{}/" + name for name in "pause resume clear drain concurrency throttle".split()]
OF_NAME += ["/queues/{}", "/limits/{}"]
METHODS = ["GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


class Fuzzer:
    """Makes requests from a seed: the same seed, the same requests."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ids = ["nonsense", "job_" + "0" * 26, "job_" + "Z" * 26, "%00", "job_%C3%A9"]

    def value(self, depth: int = 0) -> object:
        """Some JSON value."""
        choose = self.random
        kind = choose.randrange(9 if depth < 3 else 6)
        if kind == 0:
            return choose.choice(WORDS)
        if kind == 1:
            return choose.choice(NUMBERS)
        if kind == 2:
            return choose.choice([None, True, False])
        if kind == 3:
            return choose.choice(self.ids + TIMES)
        if kind in (4, 5):
            return choose.choice(["q", "r", 1, 5, "5s", {"a": 1}])
        if kind == 6:
            return [self.value(depth + 1) for _ in range(choose.randrange(4))]
        return self.fields(depth + 1, choose.randrange(4))

    def fields(self, depth: int, count: int) -> dict[str, object]:
        """An object of known names and any values."""
        return {self.random.choice(NAMES): self.value(depth) for _ in range(count)}

    def likely(self, path: str) -> dict[str, object]:
        """What makes the request valid but for a few fields."""
        if path == "/enqueue":
            return {"queue": self.random.choice("qr"), "payload": {"n": 1}}
        if path == "/enqueue/batch":
            return {"jobs": [{"queue": "q"}, {"queue": "r"} | self.fields(1, 1)]}
        if path.startswith("/fetch"):
            return {"queues": ["q", "r"], "worker_id": "w", "timeout": 0}
        if path == "/ack/batch":
            return {"acks": [{"job_id": self.random.choice(self.ids)}]}
        if path == "/heartbeat":
            return {"jobs": {self.random.choice(self.ids): self.fields(1, 2)}}
        return {"job_ids": self.ids[-3:]} if path.endswith("bulk-get") else {"queue": "r"}

    def request(self) -> tuple[str, str, bytes | None]:
        """Method, path and body."""
        choose = self.random
        kind = choose.randrange(10)
        if kind < 5:
            path = choose.choice(POSTS)
        elif kind < 8:
            path = choose.choice(OF_JOB).format(choose.choice(self.ids))
        else:
            path = choose.choice(OF_NAME).format(
                choose.choice(["q", "r", "a%2Fb", "%00", "%C3%A9"])
            )
        method = "POST" if choose.random() < 0.85 else choose.choice(METHODS)
        fields = (self.likely(path) if choose.random() < 0.7 else {}) | self.fields(
            0, choose.choice([0, 0, 1, 1, 2, 4])
        )
        if "timeout" in fields and path.startswith("/fetch"):
            fields["timeout"] = choose.choice([0, 0, 0, -1, "x"])
        elif path.startswith("/fetch"):
            fields["timeout"] = 0
        body = msgspec.json.encode(fields)
        damaged = self.damaged(body)
        # A fetch whose time-out became an unknown field would wait, rightly, for half a minute.
        if b'"timeout":' in damaged or not path.startswith("/fetch"):
            body = damaged
        query = choose.choice(["", "", "", "?strict=true", "?confirm=true", "?%ff=%00", "?&&=="])
        return method, "/api/v1" + path + query, body

    def damaged(self, body: bytes) -> bytes:
        """The body, now and then with something inserted or overwritten."""
        choose = self.random
        position = choose.randrange(len(body))
        damage = choose.random()
        if damage < 0.08:
            return body[:position] + choose.choice(FRAGMENTS) + body[position:]
        if damage < 0.12:
            return body[:position] + bytes([choose.randrange(256)]) + body[position + 1 :]
        return body

    def learn(self, body: bytes) -> None:
        """Remember ids of jobs that exist, so that later requests meet them."""
        try:
            identifier = msgspec.json.decode(body).get("job_id")
        except (msgspec.DecodeError, AttributeError):
            return
        if isinstance(identifier, str) and len(self.ids) < 200:
            self.ids.append(identifier)


def fuzz(server: Server, seed: int) -> list[int]:
    """Send many requests; return the status of each."""
    fuzzer = Fuzzer(seed)
    statuses: list[int] = []
    for number in range(REQUESTS_COUNT):
        method, path, body = fuzzer.request()
        reply = server.request(method, path, body)
        assert reply.status < 500, (seed, number, method, path, body, reply.body)
        if reply.status >= 400 and method != "HEAD":
            assert reply.json["code"], (seed, number, reply.body)
            assert reply.json["error"], (seed, number, reply.body)
        statuses.append(reply.status)
        fuzzer.learn(reply.body)
        if "connection" in reply.headers:
            server.close_connection()
        if number % 50 == 0:
            server.advance(20_000)
    return statuses


@pytest.mark.parametrize("seed", [1, 2])
def test_no_request_makes_a_500_and_the_lanes_agree(seed: int):
    """Thousands of requests: every answer below 500, the audit clean, the same in both lanes."""
    answers: dict[str, list[int]] = {}
    for lane in LANES:
        with running(lane) as server:
            answers[lane] = fuzz(server, seed)
    assert answers["fast"] == answers["slow"]
    # A fuzzer that is refused everything proves nothing.
    counts = Counter(answers["fast"])
    assert counts[200] + counts[201] > REQUESTS_COUNT // 5, counts
    assert counts[400] > REQUESTS_COUNT // 5, counts
