"""The view process: `python -m corvo.server.view_process DIRECTORY FEED QUERIES`.

Started by `server.supervise` with two sockets, the feed and the queries. It ends when either is
closed: it has no life of its own. Everything it keeps is below DIRECTORY.
"""

import contextlib
import fcntl
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corvo.keys.codec import Meta
from corvo.machine import extract
from corvo.machine.kv import Reader
from corvo.model.copied import JobCopy, ScheduleCopy, WebhookCopy
from corvo.model.event import EventBlock
from corvo.model.job import Batch
from corvo.model.queue import QueueRecord
from corvo.runtime.telemetry import configure, logger
from corvo.storage.memory import CHECKPOINT_NAME, MemoryStore
from corvo.view import answers
from corvo.view.cursor import Cursor
from corvo.view.desk import Desk
from corvo.view.follower import Follower
from corvo.view.frames import BlockingFrames, ClosedError

NICENESS = 5  # the write path goes first
READ_CACHE_BYTES = 16 << 20
EXIT_OK = 0
EXIT_FAILED = 1
EXIT_LOCKED = 3

assert answers.QUERIES, "the modules with queries are imported by this one"


class CheckpointSource:
    """A copy of the store, opened for reading: what a rebuild is made of."""

    def __init__(self, directory: str) -> None:
        if Path(directory, CHECKPOINT_NAME).exists():
            store = MemoryStore.load(directory)
        else:
            # Cost: most starts go on from a cursor and never open a store.
            from corvo.storage.rocks import RocksStore  # noqa: PLC0415

            store = RocksStore(directory, is_read_only=True, cache_bytes=READ_CACHE_BYTES)
        self._reader: Reader = store
        self._close = store.close
        self._meta: Meta | None = extract.read_meta(self._reader)
        self._queues = extract.queues_of(self._reader)

    @property
    def place(self) -> Cursor:
        meta = self._meta
        if meta is None:
            return Cursor()
        return Cursor(
            meta.epoch, meta.index, meta.chain, seq=meta.seq, floor_seq=meta.event_floor_seq
        )

    def queues(self) -> list[QueueRecord]:
        return [record for record in self._queues if not record.deleted]

    def batches(self) -> Iterator[Batch]:
        return extract.batches_of(self._reader)

    def jobs(self) -> Iterator[JobCopy]:
        names = {record.id: record.name for record in self._queues}
        return extract.jobs_of(self._reader, names)

    def schedules(self) -> Iterator[ScheduleCopy]:
        return extract.schedules_of(self._reader)

    def webhooks(self) -> Iterator[WebhookCopy]:
        return extract.webhooks_of(self._reader)

    def blocks(self) -> Iterator[tuple[int, EventBlock]]:
        return extract.blocks_of(self._reader, self._meta.event_floor if self._meta else 0)

    def close(self) -> None:
        self._close()


def main(arguments: list[str]) -> int:
    """Run until the core is gone."""
    directory = Path(arguments[0])
    feed, queries = (socket.socket(fileno=int(number)) for number in arguments[1:3])
    configure(form="json" if "--json" in arguments else "text", level="warning")
    # The core decides when to stop; a keyboard interrupt reaches the whole group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    directory.mkdir(parents=True, exist_ok=True)
    telemetry = logger("view")
    lock = os.open(directory / "LOCK", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        # A process of a server that was killed may still be finishing its transaction.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(30)
        fcntl.flock(lock, fcntl.LOCK_EX)
        signal.alarm(0)
    except OSError as error:
        telemetry.error("the view can not be locked", error=str(error))
        return EXIT_LOCKED

    def report(message: str, fields: dict[str, Any]) -> None:
        telemetry.warning(message, **fields)

    def query_failed(name: str, error: BaseException) -> None:
        telemetry.error("a query failed", query=name, exc_info=error)

    desk = Desk(BlockingFrames(queries), query_failed)
    follower = Follower(BlockingFrames(feed), directory, desk, CheckpointSource, report)
    codes: list[int] = []

    def follow() -> None:
        code = EXIT_FAILED
        try:
            with contextlib.suppress(ClosedError):
                follower.run()
            code = EXIT_OK
        except Exception as error:  # noqa: BLE001 - the process ends and is started again
            telemetry.error("the view failed", exc_info=error)
        finally:
            codes.append(code)
            # Wakes the main thread, which waits for queries.
            with contextlib.suppress(OSError):
                queries.shutdown(socket.SHUT_RDWR)

    thread = threading.Thread(target=follow, name="follower")
    thread.start()
    desk.serve()
    with contextlib.suppress(OSError):
        feed.shutdown(socket.SHUT_RDWR)
    thread.join()
    return codes[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
