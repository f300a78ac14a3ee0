"""Connect on the HTTP port: JSON and protobuf bodies, its errors, and clients that leave."""

from collections.abc import Iterator
from typing import Any

import pytest

from corvo.api.stream.generated import worker_pb2 as pb
from tests.support.server import Reply, Server, running

PROTO = "application/proto"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running("fast") as found:
        yield found


def _call(server: Server, method: str, body: Any, kind: str = "application/json") -> Reply:
    path = f"/corvo.v1.WorkerService/{method}"
    return server.request("POST", path, body, headers={"content-type": kind})


def test_life_of_a_job_in_json(server: Server) -> None:
    """The JSON mapping of protobuf: camel case, and names as they are written in the file."""
    body = {"queue": "a", "payloadJson": '{"n":1}', "options": {"tags": {"k": "v"}}}
    made = _call(server, "Enqueue", body)
    assert made.status == 200
    assert made.headers["content-type"] == "application/json"
    job = _call(server, "Fetch", {"queues": ["a"], "worker_id": "w", "timeout": "0s"}).json
    assert (job["found"], job["jobId"]) == (True, made.json["jobId"])
    acked = _call(server, "Ack", {"jobId": job["jobId"], "leaseToken": job["leaseToken"]})
    assert acked.json["status"] == "completed"
    # Zero and empty are not written, as the mapping has it.
    assert _call(server, "Fetch", {"queues": ["a"], "workerId": "w", "timeout": "0s"}).json == {}


def test_life_of_a_job_in_protobuf(server: Server) -> None:
    """Binary bodies in, binary bodies out."""
    request = pb.EnqueueRequest(queue="b", payload_json="[1]")
    reply = _call(server, "Enqueue", request.SerializeToString(), PROTO)
    assert (reply.status, reply.headers["content-type"]) == (200, PROTO)
    made = pb.EnqueueResponse.FromString(reply.body)
    fetch = pb.FetchBatchRequest(queues=["b"], worker_id="w", count=2, timeout="0s")
    reply = _call(server, "FetchBatch", fetch.SerializeToString(), PROTO)
    (job,) = pb.FetchBatchResponse.FromString(reply.body).jobs
    assert (job.job_id, job.payload_json) == (made.job_id, "[1]")
    failing = pb.FailRequest(job_id=job.job_id, lease_token=job.lease_token, retryable=False)
    reply = _call(server, "Fail", failing.SerializeToString(), PROTO)
    assert pb.FailResponse.FromString(reply.body).status == "dead"


@pytest.mark.parametrize(
    ("method", "body", "status", "name", "code"),
    [
        ("Ack", {"jobId": "job_x"}, 404, "not_found", "NOT_FOUND"),
        ("Enqueue", {"queue": "no name"}, 400, "invalid_argument", "VALIDATION_ERROR"),
        ("Enqueue", b"{", 400, "invalid_argument", "PARSE_ERROR"),
        ("Enqueue", {"queue": 7}, 400, "invalid_argument", "PARSE_ERROR"),
        ("Enqueue", {"queue": "q", "agent": {"maxIterations": 1}}, 501, "unimplemented", None),
        ("Nonsense", {}, 404, "unimplemented", None),
        ("StreamLifecycle", {}, 501, "unimplemented", None),
    ],
)
def test_errors_are_those_of_connect(
    server: Server, method: str, body: Any, status: int, name: str, code: str | None
) -> None:
    """A JSON object with code and message, the status of the code, and our code in a header."""
    reply = _call(server, method, body)
    assert (reply.status, reply.json["code"]) == (status, name)
    assert reply.headers["content-type"] == "application/json"
    if code is not None:
        assert reply.headers["corvo-code"] == code
        assert reply.json["message"].startswith(f"{code}: ")


def test_stale_token_is_aborted(server: Server) -> None:
    """Over Connect as everywhere."""
    server.enqueue("c")
    job = server.fetch("c")
    body = {"jobId": job["job_id"], "leaseToken": job["lease_token"] - 1}
    reply = _call(server, "Ack", body)
    assert (reply.status, reply.json["code"]) == (409, "aborted")


def test_other_media_types_and_methods_are_refused(server: Server) -> None:
    """A form of a web page is no call; neither is a GET."""
    assert _call(server, "Enqueue", b"queue=q", "text/plain").status == 415
    assert server.request("GET", "/corvo.v1.WorkerService/Enqueue").status == 405
    assert _call(server, "Enqueue", b"\xff\xff\xff", PROTO).status == 400


def test_fetch_of_a_client_that_left_claims_nothing(server: Server) -> None:
    """A call that waits for work is given up with its connection."""
    connection = server.connect()
    connection.request(
        "POST",
        "/corvo.v1.WorkerService/Fetch",
        body=b'{"queues": ["d"], "workerId": "w"}',
        headers={"content-type": "application/json"},
    )
    server.wait_until(lambda: server.engine.waiting(0, "d") == 1)
    connection.close()
    server.wait_until(lambda: server.engine.waiting(0, "d") == 0)
    server.enqueue("d")
    assert server.fetch("d")["attempt"] == 1
