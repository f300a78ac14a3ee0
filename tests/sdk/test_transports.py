"""What users do to clients: fork, start loops again, share them between threads."""

import asyncio
import gc
import subprocess
import sys
import threading
import tomllib

import pytest

import corvo_sdk
from corvo_sdk import AsyncClient, Client
from corvo_sdk.errors import ConnectionFailedError, ProtocolError
from tests.support.process import environment
from tests.support.rude import rude
from tests.support.sdk import Loop, client_of
from tests.support.server import Server
from tests.tidy.source import ROOT

FORKING = """
import os, sys
from corvo_sdk import Client
client = Client(sys.argv[1])
client.enqueue("q", 0)
child = os.fork()
for n in range(30):
    made = client.enqueue("q", f"{os.getpid()} {n}")
    assert client.get_job(made.job_id).payload == f"{os.getpid()} {n}"
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_forked_processes_do_not_share_connections(server: Server) -> None:
    """A client made before a fork works on both sides of it."""
    subprocess.run(
        [sys.executable, "-c", FORKING, f"http://127.0.0.1:{server.port}"],
        check=True,
        env=environment(),
        timeout=30,
    )
    assert server.get("/queues/q").json["pending"] == 61


def test_threads_share_a_client(server: Server) -> None:
    """Each thread gets its own answers."""
    with Client(f"http://127.0.0.1:{server.port}") as client:
        failures: list[int] = []

        def work(number: int) -> None:
            for n in range(10):
                made = client.enqueue("q", [number, n])
                if client.get_job(made.job_id).payload != [number, n]:
                    failures.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert server.get("/queues/q").json["pending"] == 80


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a loop that ended left its sockets behind
def test_client_outlives_an_event_loop(server: Server) -> None:
    """A client of a module works in every `asyncio.run`, one after the other."""
    client = AsyncClient(f"http://127.0.0.1:{server.port}")

    async def use() -> str:
        return (await client.enqueue("q")).job_id

    async def end() -> None:
        await client.close()

    assert asyncio.run(use()) != asyncio.run(use())
    asyncio.run(end())
    gc.collect()


def test_client_on_two_loops_at_once_is_refused(server: Server) -> None:
    """The error says what to do, instead of a hang."""
    loop = Loop()
    client = AsyncClient(f"http://127.0.0.1:{server.port}", retries=0)
    loop.run(client.info())

    async def use() -> None:
        await client.info()

    with pytest.raises(ConnectionFailedError) as caught:
        asyncio.run(use())
    assert "per loop" in (caught.value.hint or "")
    loop.run(client.close())
    loop.close()


def test_cancelled_call_leaves_the_client_usable(server: Server) -> None:
    """A long poll that is cancelled ends at once, and the next call has its own answer."""

    async def use() -> None:
        async with AsyncClient(f"http://127.0.0.1:{server.port}") as client:
            waiting = asyncio.create_task(client.fetch("q", worker_id="w", timeout=60))
            while await asyncio.to_thread(nobody_waits):
                assert not waiting.done()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await client.health()).is_ok

    connection = server.connect()

    def nobody_waits() -> bool:
        return server.request("GET", "/api/v1/workers", connection=connection).json == []

    asyncio.run(asyncio.wait_for(use(), 20))
    connection.close()


def test_answer_of_something_else_is_told(shell: str) -> None:
    """A page of another service is an error that shows what came."""
    with rude() as server, client_of(shell, server.url) as client:
        server.script = [(200, {"content-type": "text/html"}, b"<html>hello")]
        with pytest.raises(ProtocolError) as caught:
            client.info()
    assert "<html>hello" in str(caught.value)


def test_redirects_are_not_followed(shell: str) -> None:
    """Credentials go where they were meant to go."""
    with rude() as server, client_of(shell, server.url, api_key="k") as client:
        server.script = [(302, {"location": "http://127.0.0.1:1/"}, b"")]
        with pytest.raises(ProtocolError):
            client.info()
    assert len(server.seen) == 1


def test_version_is_that_of_the_distribution() -> None:
    """The module, its project file and the server's dependency name one version."""
    project = tomllib.loads((ROOT / "sdks/python/pyproject.toml").read_text(encoding="utf-8"))
    assert corvo_sdk.__version__ == project["project"]["version"]
    assert (ROOT / "sdks/python/src/corvo_sdk/py.typed").exists()
    assert (ROOT / "sdks/python/LICENSE").read_text() == (ROOT / "LICENSE").read_text()
