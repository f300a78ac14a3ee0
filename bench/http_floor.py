"""The floor of the HTTP edge: a bare httptools server beside the fast lane with a trivial handler.

    python bench/http_floor.py [--seconds 3] [--rounds 1]

Both decode the same struct (every field of enqueue) and answer the same size. Each runs in a
process of its own under `wrk -t1 -c64`; CPU per request comes from the kernel's account of that
process. Rounds are interleaved and the ratio is taken within a round, because the machine is shared
and drifts.
"""

import argparse
import asyncio
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import cast

import httptools
import msgspec
import uvloop
from starlette.applications import Starlette

from corvo.api.http import Exchange, Route, start

PATH = "/api/v1/enqueue"
ANSWER = {
    "job_id": "job_01HX7Y2K3M01HX7Y2K3M0000",
    "status": "pending",
    "unique_existing": False,
    "index": 12345,
}
WRK_SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"queue":"mail.send","payload":{"to":"user@example.com","template":"welcome","n":12}}'
"""


class EnqueueRequest(msgspec.Struct):
    """Every field an enqueue may carry; defaults as the server has them."""

    queue: str
    payload: msgspec.Raw
    checkpoint: msgspec.Raw | None = None
    priority: str = "normal"
    unique_key: str | None = None
    unique_period: int | str = 3600
    unique_mode: str = "until_done"
    max_retries: int = 3
    retry_backoff: str = "exponential"
    retry_base_delay: int | str = "5s"
    retry_max_delay: int | str = "10m"
    retry_jitter: int | str = 0
    scheduled_at: str | None = None
    expire_after: int | str | None = None
    tags: dict[str, str] | None = None
    parent_id: str | None = None
    depends_on: list[str] | None = None
    on_dependency_failure: str = "fail"
    chain: msgspec.Raw | None = None
    group: str | None = None
    limit_key: str | None = None
    cost: int = 1
    limits: list[str] | None = None
    trace: dict[str, str] | None = None
    hold: msgspec.Raw | None = None
    idempotency_key: str | None = None


decode = msgspec.json.Decoder(EnqueueRequest).decode
encode = msgspec.json.Encoder().encode


class BareProtocol(asyncio.Protocol):
    """The least that answers HTTP: no limits, no order, no time-outs, no second route."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.parser = httptools.HttpRequestParser(self)
        self.body = b""

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header: without them no server can tell a body's type or when to close."""

    def on_body(self, body: bytes) -> None:
        self.body = body

    def on_message_complete(self) -> None:
        decode(self.body)
        body = encode(ANSWER)
        self.transport.write(
            b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%b" % (len(body), body)
        )


def enqueue(exchange: Exchange) -> None:
    """Decode and answer; what an enqueue costs without an engine."""
    decode(exchange.body)
    exchange.reply(201, encode(ANSWER))


async def serve(kind: str) -> None:
    """Run one of the servers and print its port."""
    if kind == "bare":
        loop = asyncio.get_running_loop()
        server = await loop.create_server(BareProtocol, "127.0.0.1", 0, backlog=8192)
        port = server.sockets[0].getsockname()[1]
    else:
        listener = await start(
            "127.0.0.1",
            0,
            Starlette(),
            {PATH: Route(enqueue, 4 << 20)},
            report=lambda error, request_id: print(request_id, error, file=sys.stderr),
        )
        port = listener.port
    print(port, flush=True)
    await asyncio.Event().wait()


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(kind: str, script: str, seconds: int) -> tuple[float, float]:
    """Return requests per second and CPU microseconds per request of one server under wrk."""
    command = [sys.executable, __file__, "--serve", kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            before = cpu_seconds(server.pid)
            result = subprocess.run(
                [
                    "wrk",
                    "-t1",
                    "-c64",
                    f"-d{seconds}s",
                    "-s",
                    script,
                    f"http://127.0.0.1:{port}{PATH}",
                ],
                capture_output=True,
                text=True,
                check=True,
            )
            spent = cpu_seconds(server.pid) - before
        finally:
            server.kill()
    output = result.stdout
    if "Non-2xx" in output or "Socket errors" in output:
        raise SystemExit(f"{kind}: the run was not clean\n{output}")
    (total,) = re.findall(r"(\d+) requests in", output)
    (rate,) = re.findall(r"Requests/sec:\s+([\d.]+)", output)
    return float(rate), spent / int(total) * 1e6


def main() -> None:
    """Compare both servers and print the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", choices=("bare", "fast"))
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve(options.serve))
        return
    print(f"{platform.python_version()} {platform.machine()} cores={os.cpu_count()}")
    ratios: list[float] = []
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(WRK_SCRIPT)
        script.flush()
        for _ in range(options.rounds):
            rates: dict[str, float] = {}
            for kind in ("bare", "fast"):
                rates[kind], cost_us = measure(kind, script.name, options.seconds)
                print(f"{kind:5} {rates[kind]:9.0f} req/s {cost_us:6.1f} CPU us/request")
            ratios.append(rates["fast"] / rates["bare"])
    print(f"fast / bare = {statistics.median(ratios):.2f} (target 0.75)")


if __name__ == "__main__":
    main()
