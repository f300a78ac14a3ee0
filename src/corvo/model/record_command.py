"""Naming a history and bringing records in. Part of the closed set in `command`."""

from msgspec import Struct

from corvo.model.record import (
    BatchImport,
    JobImport,
    LimitImport,
    QueueImport,
    ScheduleImport,
    WebhookImport,
)

ImportedRecord = (
    QueueImport | LimitImport | JobImport | BatchImport | ScheduleImport | WebhookImport
)


class SetEpoch(Struct, frozen=True, array_like=True, gc=False, tag=60):
    """Name the history: sixteen random bytes, drawn by the server when a directory begins to live.

    Cursors of the feed carry it, so that one from before a restore is told from one after it.
    """

    epoch: bytes
    previous: bytes = bytes(16)  # what it replaces; anything else in force: refused


class ImportRecords(Struct, frozen=True, array_like=True, gc=False, tag=61):
    """Bring back what an export wrote; each record is taken or refused by itself."""

    ns: int
    records: list[ImportedRecord]
