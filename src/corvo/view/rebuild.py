# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Builds the projection anew from a copy of the store, into a file that gets its name at the end.

Whoever opens the copy is not this package's business: it comes as plain iterators.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from corvo.model.copied import JobCopy, ScheduleCopy, WebhookCopy
from corvo.model.event import EventBlock
from corvo.model.job import Batch
from corvo.model.queue import QueueRecord
from corvo.view import cursor, messages, schema
from corvo.view.cursor import Cursor
from corvo.view.projection import Projection

JOBS_PER_TRANSACTION = 2_000
EVENTS_PER_TRANSACTION = 5_000

OnProgress = Callable[[str, int], None]


class Source(Protocol):
    """A copy of the store, opened for reading."""

    @property
    def place(self) -> Cursor:
        """What the copy holds: history, position, chain, sequence number and floor of events."""
        ...

    def queues(self) -> list[QueueRecord]: ...
    def batches(self) -> Iterator[Batch]: ...
    def jobs(self) -> Iterator[JobCopy]: ...
    def schedules(self) -> Iterator[ScheduleCopy]: ...
    def webhooks(self) -> Iterator[WebhookCopy]: ...
    def blocks(self) -> Iterator[tuple[int, EventBlock]]: ...
    def close(self) -> None: ...


def build(source: Source, path: Path, on_progress: OnProgress) -> Cursor:
    """Write a complete file; nothing may be at the path, and a crash leaves what nobody opens."""
    building = path.with_name(path.name + ".building")
    schema.remove(building)
    connection = schema.open_writer(building)
    try:
        # A crash throws the file away, so nothing has to survive one.
        schema.run(connection, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        later = schema.create_without_indexes(connection)
        projection = Projection(connection)
        with connection:
            projection.apply_queues(source.queues())
            projection.apply_batches(source.batches())
            projection.apply_schedules(source.schedules())
            projection.apply_webhooks(source.webhooks())
        for total in _write_jobs(source, projection):
            on_progress("jobs", total)
        block_position, block_digest = 0, b""
        for total, (position, block) in _write_blocks(source, projection):
            block_position, block_digest = position, messages.digest_of(position, block)
            on_progress("events", total)
        on_progress("indexes", 0)
        for statement in later:
            schema.run(connection, statement)
        place = source.place
        reached = Cursor(
            place.history,
            place.position,
            place.chain,
            block_position,
            block_digest,
            place.seq,
            place.floor_seq,
        )
        with connection:
            cursor.save(connection, reached)
        schema.run(connection, "PRAGMA journal_mode = WAL")
    finally:
        connection.close()
    _sync(building)
    building.rename(path)
    return reached


def _write_jobs(source: Source, projection: Projection) -> Iterator[int]:
    """Insert all jobs, some thousands in a transaction; yields how many are in."""
    total = 0
    jobs = source.jobs()
    while True:
        count = 0
        with projection.connection:
            for copy in jobs:
                assert copy.spec is not None
                projection.insert_job(copy, copy.spec)
                count += 1
                if count == JOBS_PER_TRANSACTION:
                    break
            projection.finish()
        total += count
        yield total
        if count < JOBS_PER_TRANSACTION:
            return


def _write_blocks(
    source: Source, projection: Projection
) -> Iterator[tuple[int, tuple[int, EventBlock]]]:
    """Insert all events; yields how many are in, and the last block."""
    total = 0
    gathered: list[tuple[int, EventBlock]] = []
    count = 0
    for item in source.blocks():
        gathered.append(item)
        count += len(item[1].events)
        if count >= EVENTS_PER_TRANSACTION:
            with projection.connection:
                projection.apply_blocks(gathered)
            total += count
            yield total, item
            gathered, count = [], 0
    if gathered:
        with projection.connection:
            projection.apply_blocks(gathered)
        yield total + count, gathered[-1]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
