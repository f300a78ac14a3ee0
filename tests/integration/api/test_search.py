"""The routes of the view over a real socket, from a real server with a real view process."""

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest

from tests.support.process import ServerProcess

HOSTILE = (
    "it's",
    'a"b',
    "%",
    "_",
    "a\x00b",
    "\\",
    "'; DROP TABLE jobs; --",
    "é",
    "((",
    "*",
    "NEAR(",
)


class Conversation:
    """A client that reads what it wrote: every read waits for the index of the last write."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.index = 0

    def close(self) -> None:
        self._connection.close()

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"x-corvo-after": str(self.index)}
        if body is not None:
            headers["content-type"] = "application/json"
            body = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self._connection.request(method, "/api/v1" + path, body, headers)
        response = self._connection.getresponse()
        self.index = max(self.index, int(response.headers["x-corvo-index"]))
        content = response.read()
        return response.status, msgspec.json.decode(content) if content else None

    def post(self, path: str, body: Any, status: int = 200) -> Any:
        found, answer = self.call("POST", path, body)
        assert found == status, answer
        return answer

    def get(self, path: str, status: int = 200, **query: Any) -> Any:
        found, answer = self.call("GET", f"{path}?{urlencode(query)}" if query else path)
        assert found == status, answer
        return answer

    def search(self, **fields: Any) -> list[str]:
        return [job["id"] for job in self.post("/jobs/search?strict=true", fields)["jobs"]]

    def enqueue(self, queue: str, **fields: Any) -> str:
        return self.post("/enqueue", {"queue": queue, **fields}, 201)["job_id"]

    def fail(self, queue: str, error: str, **fields: Any) -> str:
        body = {"queues": [queue], "worker_id": "worker-abc", "timeout": 0}
        job = self.post("/fetch", body)
        report = {"error": error, "retryable": False, "lease_token": job["lease_token"]}
        self.post(f"/fail/{job['job_id']}", report | fields)
        return job["job_id"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all tests of this file; each uses queues of its own."""
    directory: Path = tmp_path_factory.mktemp("data")
    process = ServerProcess(directory, "--ephemeral").start()
    yield process
    process.stop()


@pytest.fixture
def talk(server: ServerProcess) -> Iterator[Conversation]:
    """A client, closed at the end."""
    conversation = Conversation(server.port)
    yield conversation
    conversation.close()


def test_the_example_of_the_design_finds_its_job(talk: Conversation) -> None:
    """The search request of the design runs as printed, with every filter at once."""
    payload = {"to": "user@example.com", "template": "welcome"}
    tags = {"tenant": "acme-corp"}
    wanted = talk.enqueue("emails.send", payload=payload, tags=tags)
    talk.enqueue("emails.send", payload={"to": "x@example.com", "template": "other"}, tags=tags)
    talk.fail("emails.send", "SMTP timeout")
    request = {
        "queue": "emails.send",
        "state": ["pending", "dead"],
        "priority": "normal",
        "tags": tags,
        "payload_contains": "user@example.com",
        "payload_jq": '.template == "welcome"',
        "created_after": "2020-02-10T00:00:00Z",
        "created_before": "2999-02-11T23:59:59Z",
        "worker_id": "worker-abc",
        "has_errors": True,
        "error_contains": "SMTP",
        "sort": "created_at",
        "order": "desc",
        "cursor": None,
        "limit": 50,
    }
    answer = talk.post("/jobs/search", request)
    (job,) = answer["jobs"]
    assert job["id"] == wanted
    assert job["payload"] == payload
    assert job["state"] == "dead"
    assert job["last_error"] == "SMTP timeout"
    assert job["tags"] == tags
    assert (answer["total"], answer["has_more"], answer["cursor"]) == (1, False, None)
    assert answer["duration_ms"] >= 0
    assert not answer["partial"]


@pytest.mark.parametrize(
    ("expression", "payload"),
    [
        ('.email == "user@example.com"', {"email": "user@example.com"}),
        (".amount > 100", {"amount": 101}),
        ('.tags | contains("vip")', {"tags": ["vip", "x"]}),
        ('.metadata.region == "us-east"', {"metadata": {"region": "us-east"}}),
        ('.template | startswith("welcome")', {"template": "welcome-2"}),
        (".items | length > 5", {"items": [1, 2, 3, 4, 5, 6]}),
    ],
)
def test_expressions_of_the_design_run_as_printed(
    talk: Conversation, expression: str, payload: Any
) -> None:
    """Each line of the design's table matches a job that has it and not one that has nothing."""
    wanted = talk.enqueue("seed.jq", payload=payload)
    talk.enqueue("seed.jq", payload={"amount": 1, "tags": [], "items": [1], "template": "x"})
    assert talk.search(queue="seed.jq", payload_jq=expression) == [wanted]
    assert wanted in talk.search(payload_jq=expression)


def test_a_client_reads_what_it_wrote_page_by_page(talk: Conversation) -> None:
    """Pages of a queue hold each job once, and the total is exact."""
    made = [talk.enqueue("pages", payload={"n": n}) for n in range(25)]
    found: list[str] = []
    cursor = None
    while True:
        request = {"queue": "pages", "state": "pending", "order": "asc", "limit": 10}
        answer = talk.post("/jobs/search", request | {"cursor": cursor})
        assert (answer["total"], answer["total_is_estimate"]) == (25, False)
        found += [job["id"] for job in answer["jobs"]]
        cursor = answer["cursor"]
        if not answer["has_more"]:
            break
    assert found == made


def test_dead_jobs_are_listed_and_grouped(talk: Conversation) -> None:
    """The dead letter has the last one first; groups join errors that differ in numbers only."""
    for queue, error in (("mail", "timeout after 31 s"), ("mail", "timeout after 7 s")):
        talk.enqueue(f"dead.{queue}")
        talk.fail(f"dead.{queue}", error)
    talk.enqueue("dead.other")
    other = talk.fail("dead.other", "no such user 'x'")
    answer = talk.get("/dead", queue="dead.mail")
    assert {job["last_error"] for job in answer["jobs"]} == {
        "timeout after 31 s",
        "timeout after 7 s",
    }
    assert answer["jobs"][0]["finished_at"] >= answer["jobs"][1]["finished_at"]
    assert answer["total"] == 2
    assert talk.get("/dead", queue="dead.other")["jobs"][0]["id"] == other
    groups = talk.get("/dead/groups", queue="dead.mail")["groups"]
    assert [(group["count"], group["queues"]) for group in groups] == [(2, ["dead.mail"])]
    same = talk.search(error_fingerprint=groups[0]["error_fingerprint"])
    assert len(same) == 2


def test_full_text_ranks_and_shows_where(talk: Conversation) -> None:
    """Words are found wherever they stand; phrases, endings and the rest of a word narrow it."""
    one = talk.enqueue("text", payload={"title": "the quick brown fox", "n": 1})
    two = talk.enqueue("text", payload={"title": "quick quick quick", "n": 2})
    answer = talk.get("/search/fulltext", q="quick", queue="text")
    assert {job["id"] for job in answer["results"]} == {one, two}
    assert answer["results"][0]["id"] == two
    for job in answer["results"]:
        start, end = job["highlights"][0]
        assert job["snippet"][start:end] == "quick"
        assert job["snippet_field"] == "payload"
    assert [job["id"] for job in talk.get("/search/fulltext", q='"brown fox"')["results"]] == [one]
    assert [job["id"] for job in talk.get("/search/fulltext", q="brow*")["results"]] == [one]
    assert talk.get("/search/fulltext", q='"fox brown"')["results"] == []
    assert talk.get("/search/fulltext", q="quick", limit=1)["has_more"]
    assert [job["id"] for job in talk.get("/search/fulltext", q=one)["results"]] == [one]


def test_graph_names_chain_batch_and_dependencies(talk: Conversation) -> None:
    """The graph of a job has what it waits for, what waits for it, and its batch."""
    parent = talk.enqueue("graph")
    child = talk.enqueue("graph", depends_on=[parent])
    grandchild = talk.enqueue("graph", depends_on=[child])
    answer = talk.get(f"/jobs/{child}/graph")
    assert {job["id"] for job in answer["jobs"]} == {parent, child, grandchild}
    assert {(edge["from"], edge["to"], edge["type"]) for edge in answer["edges"]} == {
        (parent, child, "dependency"),
        (child, grandchild, "dependency"),
    }
    assert not answer["truncated"]
    batch = talk.post(
        "/enqueue/batch",
        {"jobs": [{"queue": "graph.b"}, {"queue": "graph.b"}], "batch": {"callback_queue": "done"}},
        201,
    )
    answer = talk.get(f"/jobs/{batch['job_ids'][0]}/graph")
    assert {job["id"] for job in answer["jobs"]} == set(batch["job_ids"])
    assert answer["batch_id"] == batch["batch_id"]
    listed = talk.get("/batches", limit=1)["batches"]
    assert listed[0] == talk.get(f"/batches/{batch['batch_id']}")
    talk.get("/jobs/job_00000000000000000000000000/graph", 404)
    talk.get("/jobs/nonsense/graph", 404)


def test_chain_is_drawn_step_by_step(talk: Conversation) -> None:
    """Each step of a chain points at the next."""
    steps = [{"queue": "chain.a"}, {"queue": "chain.b"}]
    first = talk.enqueue("chain.a", chain={"steps": steps})
    job = talk.post("/fetch", {"queues": ["chain.a"], "worker_id": "w", "timeout": 0})
    talk.post(f"/ack/{job['job_id']}", {"result": {}, "lease_token": job["lease_token"]})
    answer = talk.get(f"/jobs/{first}/graph")
    (edge,) = answer["edges"]
    assert (edge["from"], edge["type"]) == (first, "chain")
    assert {job["queue"] for job in answer["jobs"]} == {"chain.a", "chain.b"}
    assert len(talk.search(chain_id=answer["chain_id"])) == 2


def test_storage_is_counted_by_queue(talk: Conversation) -> None:
    """Counts and bytes of payloads by queue add up."""
    talk.enqueue("space.large", payload={"x": "y" * 1_000})
    talk.enqueue("space.small", payload={})
    answer = talk.get("/stats/storage")
    queues = {queue["queue"]: queue for queue in answer["queues"]}
    assert queues["space.large"]["payload_bytes"] > 1_000
    assert queues["space.small"]["payload_bytes"] == 2
    assert answer["totals"]["jobs"] == sum(queue["jobs"] for queue in answer["queues"])
    assert answer["view_bytes"] > 0


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_never_fails(talk: Conversation, text: str) -> None:
    """Whatever stands in a text field is looked for, and nothing else happens."""
    for name in ("queue", "payload_contains", "error_contains", "worker_id", "batch_id"):
        assert talk.search(**{name: text, "state": ["held"]}) == []
    assert talk.search(tags={text: text}) == []
    assert talk.search(tags={"": ""}) == []
    assert talk.search(unique_key=text) == []
    assert talk.search(payload_jq=f"has({msgspec.json.encode(text).decode()})") == []
    status, answer = talk.call("GET", f"/search/fulltext?q={quote(text)}")
    assert status in (200, 400), answer
    assert talk.get("/dead", queue=text)["jobs"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1_001}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"state": ["undead"]}, "state"),
        ({"state": [1]}, "state[0]"),
        ({"priority": "urgent"}, "priority"),
        ({"sort": "payload"}, "sort"),
        ({"order": "up"}, "order"),
        ({"cursor": "eyJvZmZzZXQiOjUwfQ=="}, "cursor"),
        ({"payload_jq": ".a ="}, "payload_jq"),
        ({"payload_jq": '.a | test("(?=x)")'}, "payload_jq"),
        ({"created_after": "yesterday"}, "created_after"),
        ({"created_after": "2026-02-10"}, "created_after"),
        ({"attempt_min": -1}, "attempt_min"),
        ({"tags": {"a": 1}}, "tags[...]"),
        ({"payload_contains": "x" * 5_000}, "payload_contains"),
        ({"quue": "x"}, "quue"),
    ],
)
def test_mistakes_are_named(talk: Conversation, body: Any, field: str) -> None:
    """A wrong field is a 400 that names it."""
    status, answer = talk.call("POST", "/jobs/search?strict=true", body)
    assert (status, answer["field"]) == (400, field), answer


@pytest.mark.parametrize(
    "path",
    [
        "/dead?limit=0",
        "/dead?limit=x",
        "/dead?cursor=x",
        "/dead?sort=x",
        "/dead?order=x",
        "/dead/groups?limit=5000",
        "/search/fulltext",
        "/search/fulltext?q=",
        "/search/fulltext?q=!!",
        "/search/fulltext?q=a&limit=501",
        "/search/fulltext?q=a&state=x",
        "/batches?state=x",
        "/batches?limit=0",
        "/stats/storage?after=x",
    ],
)
def test_mistakes_in_queries_are_refused(talk: Conversation, path: str) -> None:
    """A wrong parameter is a 400."""
    status, answer = talk.call("GET", path)
    assert (status, answer["code"]) == (400, "VALIDATION_ERROR"), answer
