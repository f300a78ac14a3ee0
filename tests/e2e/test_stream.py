"""The worker stream of a server as a person starts it: its own loop, real disk, real signals."""

import re
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import grpc
import pytest
from websockets.exceptions import ConnectionClosed

from corvo.api.stream.generated import worker_pb2 as pb
from tests.support.process import ServerProcess, environment
from tests.support.streaming import MSGPACK, Stream, ack, streaming

GRPC = re.compile(r"grpc +127\.0\.0\.1:(\d+)")


def test_stop_lets_workers_report_and_then_closes(tmp_path: Path) -> None:
    """SIGTERM is pushed as drain; the last report ends stream and server, and the job is done."""
    with ServerProcess(tmp_path, "--view", "off") as server:
        with streaming(server.port, MSGPACK) as stream:
            stream.start()
            stream.call(enqueues=[{"queue": "q", "payload": {"n": 1}}])
            (job,) = stream.jobs(1)
            server.send(signal.SIGTERM)
            assert stream.push()["drain"]["code"] == "DRAINING"
            assert stream.call(acks=[ack(job)])["acked"] == 1
            with pytest.raises(ConnectionClosed) as ended:
                while True:
                    stream.socket.recv(timeout=30)
            assert ended.value.rcvd is not None
            assert ended.value.rcvd.code == 1001
        assert server.wait() == 0
        server.start()
        with closing(server.client()) as client:
            found = client.call("GET", f"/api/v1/jobs/{job['job_id']}").body
        assert found["state"] == "completed"


def test_worker_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    """The new server knows no stream, but every lease: named jobs are held on and settled once."""
    server = ServerProcess(tmp_path, "--view", "off", "--grpc-bind", "off")
    with server:
        stream = Stream(server.port)
        stream_id = stream.start()["stream"]["stream_id"]
        stream.call(enqueues=[{"queue": "q"}, {"queue": "q"}])
        jobs = stream.jobs(2)
        server.kill()
        stream.close()
        server.start()
        assert "grpc" not in server.banner
        with streaming(server.port) as again:
            answer = again.call(
                worker_id="w",
                resume={"stream_id": stream_id, "received": 1, "jobs": [ack(job) for job in jobs]},
                credits=[{"queues": ["q"], "slots": 2}],
            )
            assert answer["stream"]["resumed"] is False
            assert len(answer["stream"]["held"]) == 2
            assert answer["credits"][0]["in_flight"] == 2
            assert again.call(acks=[ack(job) for job in jobs])["acked"] == 2


def test_grpc_listens_beside_http_and_is_named(tmp_path: Path) -> None:
    """The banner says where; figures of streams are in the status and on the page of metrics."""
    with ServerProcess(tmp_path, "--view", "off") as server:
        match = GRPC.search(server.banner)
        assert match is not None
        with grpc.insecure_channel(f"127.0.0.1:{match.group(1)}") as channel:
            info = channel.unary_unary(
                "/corvo.v1.WorkerService/GetServerInfo",
                request_serializer=pb.GetServerInfoRequest.SerializeToString,
                response_deserializer=pb.GetServerInfoResponse.FromString,
            )
            assert info(pb.GetServerInfoRequest(), timeout=30).api_version == "v1"
        with streaming(server.port) as stream:
            stream.start()
            with closing(server.client()) as client:
                status = client.call("GET", "/api/v1/cluster/status").body
            assert status["streams"]["open_count"] == 1
        assert server.stop() == 0


def test_grpc_address_that_is_taken_keeps_the_server_from_starting(tmp_path: Path) -> None:
    """An address that was asked for and can not be had is an error with a hint."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ["--bind", "127.0.0.1:0", "--grpc-bind", f"127.0.0.1:{port}"]
        arguments += ["--data-dir", str(tmp_path), "--log-level", "error"]
        ended = subprocess.run(
            [sys.executable, "-m", "corvo", "server", *arguments],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode != 0
    assert "ADDRESS_UNAVAILABLE" in ended.stderr
    assert "--grpc-bind" in ended.stderr


def test_server_without_grpc_never_imports_it() -> None:
    """Free when off: neither gRPC nor protobuf is loaded by the parts of the server."""
    code = "import sys, corvo.server.run; print({'grpc', 'google.protobuf'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
