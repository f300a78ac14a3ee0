"""Keeps the view process running: starts it, notices its end, starts it again with back-off.

The two are joined by two pairs of sockets made before the start, so there is no path to guess, to
guard or to clean up, and each notices the end of the other at once.
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from corvo.runtime.telemetry import logger
from corvo.view.client import ViewClient

BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 10.0
STOP_S = 5.0
STREAM_BYTES = 1 << 20

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class ViewKeeper:
    """Runs one view process after another until cancelled."""

    def __init__(self, client: ViewClient, directory: str | None, log_form: str) -> None:
        self._client = client
        self._log_form = log_form
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="corvo-view-")
            directory = self._temporary.name
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process that runs now; 0 when there is none."""
        return self._process.pid if self._process is not None else 0

    async def run(self) -> None:
        """Keep it running. Never fails: without a view the server writes all the same."""
        telemetry = logger("server")
        backoff_s = BACKOFF_FIRST_S
        try:
            while True:
                try:
                    code = await self._run_once()
                except OSError as error:
                    telemetry.error("the view can not be started", error=str(error))
                    code = None
                if self._client.standing.take_served():
                    # It was at work: what ended it need not end the next one.
                    backoff_s = BACKOFF_FIRST_S
                telemetry.warning("the view ended", code=code, restart_in_s=backoff_s)
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, BACKOFF_MAX_S)
        finally:
            if self._temporary is not None:
                self._temporary.cleanup()

    async def _run_once(self) -> int | None:
        feed, feed_there = socket.socketpair()
        queries, queries_there = socket.socketpair()
        descriptors = (feed_there.fileno(), queries_there.fileno())
        arguments = [sys.executable, "-m", "corvo.server.view_process", self._directory]
        arguments += [str(number) for number in descriptors]
        if self._log_form == "json":
            arguments.append("--json")
        try:
            process = subprocess.Popen(  # noqa: S603, ASYNC220 - our own program; a fork, no wait
                arguments,
                pass_fds=descriptors,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=_environment(),
            )
        except OSError:
            feed.close()
            queries.close()
            raise
        finally:
            feed_there.close()
            queries_there.close()
        self._process = process
        self._client.standing.pid = process.pid
        writers: list[asyncio.StreamWriter] = []
        try:
            first, second = await _streams(feed), await _streams(queries)
            writers += [first[1], second[1]]
            await self._client.serve(first, second)
        finally:
            for writer in writers:
                writer.close()
            await self._reap(process)
            self._process = None
            self._client.standing.pid = 0
        return process.returncode

    async def _reap(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the end; its sockets are closed, so it comes by itself or is brought about."""
        loop = asyncio.get_running_loop()
        waiting = loop.run_in_executor(None, process.wait)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await asyncio.shield(waiting)
                return
        process.kill()
        await waiting


async def _streams(connection: socket.socket) -> Streams:
    return await asyncio.open_connection(sock=connection, limit=STREAM_BYTES)


def _environment() -> dict[str, str]:
    """The child finds the package where this process found it."""
    source = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": source + (os.pathsep + known if known else "")}
