"""The worker service over gRPC, with the stock client and stubs from the protocol file."""

import importlib.util
import queue
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pytest

from corvo.api.stream.generated import worker_pb2 as pb
from corvo.api.stream.held import Bounds
from corvo.server.grpc_edge import make_grpc_server
from tests.support.process import ROOT
from tests.support.server import Server, running

WAIT_SECONDS = 30


class GrpcEdge:
    """A server with gRPC beside it, and a stub."""

    def __init__(self, server: Server, stubs: ModuleType) -> None:
        self.server = server
        self.failures: list[BaseException] = []
        self._stubs = stubs

    def start(self) -> None:
        async def listen() -> None:
            self._grpc = make_grpc_server(
                self.server.engine,
                self.server.surface_found,
                256 * 1024,
                lambda error, _: self.failures.append(error),
            )
            await self._grpc.start("127.0.0.1", 0)

        self.server.run(listen)
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self._grpc.port}")
        self.stub: Any = self._stubs.WorkerServiceStub(self.channel)

    def stop(self) -> None:
        self.channel.close()
        self.server.run(self._grpc.stop)
        assert self.failures == []


class Lifecycle:
    """One StreamLifecycle call."""

    def __init__(self, stub: Any) -> None:
        self._requests: queue.Queue[Any] = queue.Queue()
        self.responses = stub.StreamLifecycle(iter(self._requests.get, None), timeout=WAIT_SECONDS)
        self._request_id = 0

    def send(self, **fields: Any) -> None:
        self._request_id += 1
        self._requests.put(pb.LifecycleStreamRequest(request_id=self._request_id, **fields))

    def call(self, **fields: Any) -> Any:
        self.send(**fields)
        response = next(self.responses)
        assert response.request_id == self._request_id
        return response

    def close(self) -> None:
        self._requests.put(None)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """What a user generates from the protocol file, with the tools everybody has."""
    out = tmp_path_factory.mktemp("stubs")
    arguments = ["-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", f"--python_out={out}"]
    arguments += [f"--grpc_python_out={out}", "corvo/v1/worker.proto"]
    subprocess.run([sys.executable, *arguments], check=True)
    text = (out / "corvo/v1/worker_pb2_grpc.py").read_text()
    # The generated import names a package that is ours here; the messages are the same.
    text = text.replace("from corvo.v1 import", "from corvo.api.stream.generated import")
    path = out / "worker_stubs.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("worker_stubs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def edge(stubs: ModuleType) -> Iterator[GrpcEdge]:
    with running("fast", bounds=Bounds(open_max=2)) as server:
        found = GrpcEdge(server, stubs)
        found.start()
        yield found
        found.stop()


def test_committed_messages_are_those_of_the_protocol_file(tmp_path: Path) -> None:
    """To repair: `make proto`."""
    arguments = ["-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", f"--python_out={tmp_path}"]
    arguments += [f"--pyi_out={tmp_path}", "corvo/v1/worker.proto"]
    subprocess.run([sys.executable, *arguments], check=True)
    for name in ("worker_pb2.py", "worker_pb2.pyi"):
        made = (tmp_path / "corvo/v1" / name).read_text()
        assert made == (ROOT / "src/corvo/api/stream/generated" / name).read_text(), name


def test_numbers_of_the_original_are_kept() -> None:
    """A client built from the original's messages is understood."""
    numbers = {
        field.name: field.number for field in pb.LifecycleStreamRequest.DESCRIPTOR.fields[:8]
    }
    names = "request_id queues worker_id hostname lease_duration fetch_count acks enqueues"
    assert numbers == {name: number for number, name in enumerate(names.split(), 1)}
    numbers = {
        field.name: field.number for field in pb.LifecycleStreamResponse.DESCRIPTOR.fields[:6]
    }
    names = "request_id jobs acked error enqueued_job_ids leader_addr"
    assert numbers == {name: number for number, name in enumerate(names.split(), 1)}
    assert pb.FetchBatchJob.DESCRIPTOR.fields_by_name["tags_json"].number == 8
    assert pb.UsageReport.DESCRIPTOR.fields_by_name["cost_usd"].number == 7


def test_unary_calls_do_what_http_does(edge: GrpcEdge) -> None:
    """Enqueue, fetch, heartbeat, ack and fail, with tokens, options and the codes of HTTP."""
    stub = edge.stub
    options = pb.EnqueueOptions(priority="high", tags={"k": "v"}, max_retries=2, unique_key="u")
    request = pb.EnqueueRequest(queue="q", payload_json='{"a": 1}', options=options)
    first = stub.Enqueue(request)
    assert (first.status, first.unique_existing) == ("pending", False)
    assert stub.Enqueue(request).unique_existing
    job = stub.Fetch(pb.FetchRequest(queues=["q"], worker_id="w", timeout="0s"))
    assert (job.found, job.job_id, job.payload_json) == (True, first.job_id, '{"a": 1}')
    assert (job.priority, job.max_retries, job.tags_json) == ("high", 2, '{"k":"v"}')
    beat = pb.HeartbeatJobUpdate(progress_json='{"p": 1}', lease_token=job.lease_token)
    beats = stub.Heartbeat(pb.HeartbeatRequest(jobs={job.job_id: beat, "x": beat}))
    assert {name: each.status for name, each in beats.jobs.items()} == {
        job.job_id: "ok",
        "x": "lost",
    }
    failed = stub.Fail(pb.FailRequest(job_id=job.job_id, error="no", lease_token=job.lease_token))
    assert (failed.status, failed.attempts_remaining) == ("retrying", 1)
    assert failed.next_attempt_at.seconds > 0
    assert not stub.Fetch(pb.FetchRequest(queues=["q"], worker_id="w", timeout="0s")).found
    assert "stream" in stub.GetServerInfo(pb.GetServerInfoRequest()).features


def test_batches_have_a_result_per_item(edge: GrpcEdge) -> None:
    """EnqueueBatch is all or none with a callback; AckBatch tells which acks landed."""
    stub = edge.stub
    jobs = [pb.EnqueueRequest(queue="q", payload_json=str(n)) for n in range(3)]
    made = stub.EnqueueBatch(pb.EnqueueBatchRequest(jobs=jobs, callback_queue="done"))
    assert made.batch_id.startswith("batch_")
    fetched = stub.FetchBatch(pb.FetchBatchRequest(queues=["q"], worker_id="w", count=5)).jobs
    assert [job.job_id for job in fetched] == list(made.job_ids)
    items = [pb.AckBatchItem(job_id=job.job_id, lease_token=job.lease_token) for job in fetched]
    items[1].lease_token -= 1
    acked = stub.AckBatch(pb.AckBatchRequest(items=items))
    assert acked.acked == 2
    assert [item.code for item in acked.results] == ["", "LEASE_LOST", ""]


@pytest.mark.parametrize(
    ("method", "request_", "status", "code"),
    [
        ("Ack", pb.AckRequest(job_id="job_x"), "NOT_FOUND", "NOT_FOUND"),
        ("Enqueue", pb.EnqueueRequest(queue="no name"), "INVALID_ARGUMENT", "VALIDATION_ERROR"),
        (
            "Enqueue",
            pb.EnqueueRequest(queue="q", payload_json='1,"queue":"r"'),
            "INVALID_ARGUMENT",
            "VALIDATION_ERROR",
        ),
        (
            "Enqueue",
            pb.EnqueueRequest(queue="q", agent=pb.AgentConfig(max_iterations=1)),
            "UNIMPLEMENTED",
            "NOT_SUPPORTED",
        ),
        ("Fetch", pb.FetchRequest(queues=["q"]), "INVALID_ARGUMENT", "VALIDATION_ERROR"),
        (
            "Enqueue",
            pb.EnqueueRequest(queue="q", payload_json='"' + "x" * 300_000 + '"'),
            "RESOURCE_EXHAUSTED",
            "PAYLOAD_TOO_LARGE",
        ),
    ],
)
def test_refusals_have_a_status_and_the_code(
    edge: GrpcEdge, method: str, request_: Any, status: str, code: str
) -> None:
    """The status tells what kind of thing is wrong, the trailer the code of the HTTP API."""
    with pytest.raises(grpc.RpcError) as refused:
        getattr(edge.stub, method)(request_)
    error: Any = refused.value
    assert error.code() is grpc.StatusCode[status]
    assert dict(error.trailing_metadata())["corvo-code"] == code


def test_stale_token_is_aborted(edge: GrpcEdge) -> None:
    """Over gRPC as everywhere: another's lease can not be settled."""
    edge.server.enqueue()
    job = edge.stub.Fetch(pb.FetchRequest(queues=["q"], worker_id="w"))
    with pytest.raises(grpc.RpcError) as refused:
        edge.stub.Ack(pb.AckRequest(job_id=job.job_id, lease_token=job.lease_token - 1))
    error: Any = refused.value
    assert error.code() is grpc.StatusCode.ABORTED
    assert edge.stub.Ack(pb.AckRequest(job_id=job.job_id, lease_token=job.lease_token)).status == (
        "completed"
    )


def test_fetch_of_a_client_that_left_claims_nothing(edge: GrpcEdge) -> None:
    """A call past its deadline leaves the queue, and the next job goes to somebody else."""
    with pytest.raises(grpc.RpcError):
        edge.stub.Fetch(pb.FetchRequest(queues=["q"], worker_id="w"), timeout=0.2)
    edge.server.wait_until(lambda: edge.server.engine.waiting(0, "q") == 0)
    edge.server.enqueue()
    assert edge.server.fetch()["attempt"] == 1


def test_stream_pushes_and_answers_item_by_item(edge: GrpcEdge) -> None:
    """Credits, pushes, a mix of items and a cancel, as over the WebSocket."""
    ids = [edge.server.enqueue(payload={"n": n}) for n in range(3)]
    stream = Lifecycle(edge.stub)
    credit = pb.CreditItem(queues=["q"], slots=2, lease_duration="30s")
    answer = stream.call(worker_id="w", credits=[credit])
    assert answer.stream.stream_id.startswith("str_")
    assert answer.credit_results[0].slots == 2
    pushed = next(stream.responses)
    assert (pushed.push, [job.job_id for job in pushed.jobs]) == (1, ids[:2])
    assert pushed.jobs[0].lease_duration == 30
    edge.server.post(f"/jobs/{ids[1]}/cancel")
    cancelled = next(stream.responses)
    assert [item.job_id for item in cancelled.cancels] == [ids[1]]
    answer = stream.call(
        acks=[pb.AckBatchItem(job_id=ids[0], lease_token=pushed.jobs[0].lease_token)],
        fails=[pb.FailRequest(job_id=ids[1], lease_token=1, error="stale")],
        heartbeats=[pb.HeartbeatItem(job_id=ids[1], lease_token=pushed.jobs[1].lease_token)],
        enqueues=[pb.LifecycleEnqueueItem(queue="q2", payload_json="{}")],
    )
    assert (answer.acked, answer.ack_results[0].status) == (1, "completed")
    assert answer.fail_results[0].code == "LEASE_LOST"
    assert answer.heartbeat_results[0].status == "cancel"
    assert list(answer.enqueued_job_ids) == [answer.enqueue_results[0].job_id]
    assert [job.job_id for job in next(stream.responses).jobs] == [ids[2]]
    stream.close()
    assert list(stream.responses) == []
    edge.server.wait_until(lambda: edge.server.streams.open_count == 0)
    assert edge.server.streams.statistics()["in_flight_count"] == 2


def test_original_client_works_in_the_old_style(edge: GrpcEdge) -> None:
    """Frames with fetch_count are answered one to one, with the fields the original has."""
    ids = [edge.server.enqueue() for _ in range(2)]
    stream = Lifecycle(edge.stub)
    answer = stream.call(queues=["q"], worker_id="w", hostname="h", fetch_count=1)
    assert [job.job_id for job in answer.jobs] == ids[:1]
    acks = [pb.AckBatchItem(job_id=ids[0]), pb.AckBatchItem(job_id=ids[1])]
    answer = stream.call(acks=acks, enqueues=[pb.LifecycleEnqueueItem(queue="q")], fetch_count=2)
    assert (answer.acked, len(answer.enqueued_job_ids), len(answer.jobs)) == (1, 1, 2)
    assert stream.call(fetch_count=-1).error.startswith("VALIDATION_ERROR: ")
    stream.close()


def test_too_many_streams_are_resource_exhausted(edge: GrpcEdge) -> None:
    """The third of two is refused; unreadable frames end a stream."""
    streams = [Lifecycle(edge.stub) for _ in range(2)]
    for stream in streams:
        stream.call()
    third = Lifecycle(edge.stub)
    with pytest.raises(grpc.RpcError) as refused:
        next(third.responses)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    third.close()
    for _ in range(10):
        streams[0].call(credits=[pb.CreditItem(slots=1)])
    assert "10 frames" in next(streams[0].responses).closing.error
    with pytest.raises(grpc.RpcError) as ended:
        next(streams[0].responses)
    assert ended.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    for stream in streams:
        stream.close()


def test_subscription_follows_and_resumes(edge: GrpcEdge) -> None:
    """Events come as they happen, filtered, and again from a number on."""
    first = edge.server.enqueue("watched")
    wanted = pb.SubscribeRequest(queues=["watched"], types=["enqueued"], last_event_id=0)
    events = edge.stub.Subscribe(wanted, timeout=WAIT_SECONDS)
    edge.server.wait_until(lambda: _subscribers(edge) == 1)
    second = edge.server.enqueue("watched")
    edge.server.enqueue("other")
    event = next(events)
    assert (event.type, event.job_id, event.queue) == ("enqueued", second, "watched")
    events.cancel()
    again = pb.SubscribeRequest(job_ids=[first, second], last_event_id=1)
    events = edge.stub.Subscribe(again, timeout=WAIT_SECONDS)
    assert next(events).job_id in (first, second)
    events.cancel()
    edge.server.wait_until(lambda: _subscribers(edge) == 0)


def _subscribers(edge: GrpcEdge) -> int:
    return edge._grpc._subscriptions.count
