"""The life of the process: start, banner, signals, drain, exit code.

    serving ──SIGTERM or SIGINT──▶ draining ──nothing left, or --shutdown-timeout──▶ stopped
       │                              └──a second signal──▶ stopped at once
       └──the disk failed──▶ stopped at once

Stopping at once is safe in every state: what was answered is on disk.
"""

import asyncio
import contextlib
import os
import signal
import sys
import traceback
from typing import NoReturn, TextIO

import uvloop

from corvo import __version__
from corvo.errors import CorvoError, StorageError
from corvo.runtime.tasks import Supervisor
from corvo.runtime.telemetry import configure, logger
from corvo.server.config import Config
from corvo.server.wiring import Server, build

EXIT_OK = 0
EXIT_CRASHED = 70  # a bug: a part of the server failed
EXIT_STORAGE = 6  # the disk failed; the same number as in the command line
SIGNALS = (signal.SIGTERM, signal.SIGINT)
ACTIVE_POLL_S = 0.1
CLOSE_TIMEOUT_S = 30.0
# Where a kernel without asynchronous syncs leaves only a thread, this bounds its fight with the
# loop for the interpreter.
SWITCH_INTERVAL_S = 5e-5


def run(config: Config) -> int:
    """Serve until a signal; returns the exit code. Raises what kept it from starting."""
    configure(form=config.log_format, level=config.log_level)
    for notice in config.notices:
        _say(f"notice: {notice}", sys.stderr)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    return uvloop.run(_serve(config))


async def _serve(config: Config) -> int:
    server = await build(config, _die)
    # Until here a signal ends the process the default way, which is as safe as pulling the plug.
    signals = Signals()
    _print_banner(config, server)
    crashed = await _wait_for_end(server, signals)
    if crashed is not None:
        logger("server").error("a part of the server failed", exc_info=crashed)
        return _stop_at_once(EXIT_CRASHED)
    await _drain(server, config.shutdown_timeout)
    await _close(server)
    signals.restore()
    return EXIT_OK


async def _close(server: Server) -> None:
    """Flush and close; a disk that does not answer must not keep the process for ever."""
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await server.close()
    except TimeoutError:
        logger("server").error("the data could not be closed in time", seconds=CLOSE_TIMEOUT_S)
        _stop_at_once(EXIT_STORAGE)


class Signals:
    """Turns the first signal into a wish to stop, and the second into the end of the process."""

    def __init__(self) -> None:
        self.wanted = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        for number in SIGNALS:
            self._loop.add_signal_handler(number, self._take, number)

    def _take(self, number: int) -> None:
        if self.wanted.is_set():
            _stop_at_once(128 + number)
        self.wanted.set()

    def restore(self) -> None:
        """Give the signals back; the process is about to end by itself."""
        for number in SIGNALS:
            self._loop.remove_signal_handler(number)


async def _wait_for_end(server: Server, signals: Signals) -> BaseException | None:
    """Wait for a signal (None) or for a part of the server to fail (its failure)."""
    waiting = Supervisor()
    failures: list[BaseException] = []

    async def watch() -> None:
        try:
            await server.tasks.wait()
        except Exception as error:  # noqa: BLE001 - reported by the caller, which ends the process
            failures.append(error)
        signals.wanted.set()

    waiting.start("watch", watch())
    await signals.wanted.wait()
    await waiting.stop()
    return failures[0] if failures else None


async def _drain(server: Server, timeout_ms: int) -> None:
    """Send waiting workers home, take nothing new, and let what is under way finish.

    Workers that hold jobs may still report on them, so the server stays while there are any, up to
    the time-out. Their leases are in the log: whoever does not make it reports after the restart.
    """
    telemetry = logger("server")
    active = server.active_count
    telemetry.info("draining", active_jobs=active, timeout_ms=timeout_ms)
    if active and sys.stderr.isatty():
        _say(f"{active} jobs are active; a second signal stops at once", sys.stderr)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    closing = Supervisor()
    # Order: the listener first, so that the answers to parked fetches say `Connection: close`.
    closing.start("listener", _drain_listener(server, timeout_ms))
    await asyncio.sleep(0)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout_at(deadline):
            await server.engine.drain()
    # Cost: a sum over all queues ten times a second, only while draining.
    while server.active_count and loop.time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(ACTIVE_POLL_S)
    server.listener.stop_accepting()
    # Again, for connections that came while the server was draining.
    await server.listener.drain(max(0, int((deadline - loop.time()) * 1000)))
    await closing.stop()
    telemetry.info("drained", active_jobs=server.active_count)


async def _drain_listener(server: Server, timeout_ms: int) -> None:
    await server.listener.drain(timeout_ms)


def _print_banner(config: Config, server: Server) -> None:
    host, _ = config.address
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{server.listener.port}"
    where = config.data_dir
    promise = f"fsync {config.fsync}"
    if config.ephemeral:
        where, promise = "in memory", "gone when it stops"
    grpc = f"  grpc    {_grpc_target(config, server)}\n" if server.grpc is not None else ""
    _say(
        f"corvo {__version__} listens on {url}\n"
        f"  data    {where}, {promise}\n"
        f"{grpc}"
        f"  try     curl -s {url}/api/v1/enqueue -H 'content-type: application/json' "
        f"""-d '{{"queue": "hello", "payload": {{"to": "world"}}}}'""",
        sys.stdout,
    )


def _grpc_target(config: Config, server: Server) -> str:
    """Where gRPC listens, as a client writes it."""
    assert config.grpc_address is not None
    assert server.grpc is not None
    host, _ = config.grpc_address
    return f"{f'[{host}]' if ':' in host else host}:{server.grpc.port}"


def _say(text: str, stream: TextIO) -> None:
    stream.write(f"{text}\n")
    stream.flush()


def _die(error: BaseException) -> None:
    """End the process because the disk can not be trusted any more.

    Safety: nothing may be answered after this, so no handler and no clean-up runs.
    """
    logger("server").critical("the process stops: what it holds may be ahead of the disk")
    code = error.code if isinstance(error, CorvoError) else type(error).__name__
    _say(f"error: {error} [{code}]", sys.stderr)
    if isinstance(error, CorvoError) and error.hint:
        _say(f"hint: {error.hint}", sys.stderr)
    if not isinstance(error, CorvoError):
        traceback.print_exception(error)
    _stop_at_once(EXIT_STORAGE if isinstance(error, StorageError) else EXIT_CRASHED)


def _stop_at_once(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
