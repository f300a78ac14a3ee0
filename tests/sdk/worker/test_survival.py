"""Servers restart and workers die; jobs do not notice."""

import asyncio
import socket
import threading
from collections import Counter
from pathlib import Path
from signal import SIGTERM

import pytest

from corvo_sdk.app import Corvo
from corvo_sdk.client import Client
from corvo_sdk.types import NewJob
from corvo_sdk.worker.runtime import Worker
from tests.support.process import ServerProcess
from tests.support.worker import WorkerProcess, WorkerThread, wait_until

COUNT = 600


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def server_on(folder: Path, port: int) -> ServerProcess:
    flags = ("--bind", f"127.0.0.1:{port}", "--view", "off", "--shutdown-timeout", "1s")
    return ServerProcess(folder / "data", *flags)


@pytest.mark.parametrize("end", ["drained", "killed"])
def test_server_restart_under_a_busy_worker_completes_every_job_once(
    tmp_path: Path, end: str
) -> None:
    """Reports are sent again with their tokens; handlers that run meanwhile are not run again."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    app = Corvo("restart", url=url)
    ran: Counter[int] = Counter()
    gate = threading.Event()

    # A claim whose answer died with the server comes back when its lease ends.
    @app.task(queue="q", lease="60s" if end == "drained" else "5s", retries=5)
    async def note(n: int) -> int:
        if n % 50 == 0:
            await asyncio.to_thread(gate.wait, 30)  # these run through the restart
        ran[n] += 1
        return n

    first = server_on(tmp_path, port).start()
    note.enqueue_many([note.call(n) for n in range(COUNT)])
    thread = WorkerThread(Worker(app, concurrency=50)).start()
    wait_until(lambda: sum(ran.values()) > COUNT // 3)
    if end == "drained":
        first.send(SIGTERM)
        first.wait()
    else:
        first.kill()
    with server_on(tmp_path, port):
        gate.set()
        with Client(url) as client:
            settled = lambda: client.request("GET", "/api/v1/queues/q").body  # noqa: E731
            wait_until(lambda: settled()["completed"] == COUNT, 60)
        thread.worker.stop()
        thread.join()
        app.close()
    if end == "drained":
        assert ran == dict.fromkeys(range(COUNT), 1)
    else:
        assert sorted(ran) == list(range(COUNT))


JOBS = """
import asyncio, pathlib
from corvo_sdk import Context, Corvo

app = Corvo("jobs")
HERE = pathlib.Path(__file__).parent

@app.task(queue="q", lease="1s")
async def work(ctx: Context, n: int) -> str:
    start = (ctx.checkpoint_value or {"row": 0})["row"]
    for row in range(start, 5):
        await ctx.acheckpoint({"row": row + 1})
        if row == 2 and start == 0:
            (HERE / f"middle-{n}").touch()
            await asyncio.sleep(600)
    return f"rows {start} to 5"
"""


def test_worker_killed_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    """SIGKILL: the lease ends, another worker goes on from the last checkpoint."""
    (tmp_path / "jobs.py").write_text(JOBS)
    with server_on(tmp_path, free_port()) as server:
        client = Client(server.url)
        made = client.enqueue_many([NewJob(queue="q", payload={"n": n}) for n in range(5)])
        with WorkerProcess(tmp_path, server.url) as process:
            wait_until(lambda: len(list(tmp_path.glob("middle-*"))) == 5)
            process.kill()
        with WorkerProcess(tmp_path, server.url) as process:
            jobs = [f"/api/v1/jobs/{result.job_id}" for result in made.results]
            for path in jobs:
                wait_until(
                    lambda path=path: client.request("GET", path).body["state"] == "completed"
                )
                job = client.request("GET", path).body
                assert job["result"] == "rows 3 to 5"
                assert job["attempt"] == 2
            process.send(SIGTERM)
            assert process.wait() == 0
        client.close()
