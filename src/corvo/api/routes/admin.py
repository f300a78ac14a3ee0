"""Routes of operators: backup of everything, export and import of a namespace."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from corvo import __version__
from corvo.api import archive, errors, wire
from corvo.api.decode import Reader
from corvo.api.routes import records
from corvo.api.routing import Answer, Call, Stream, Table, takes_lines, written
from corvo.api.translate import Context
from corvo.model import limits
from corvo.model.command import ImportRecords
from corvo.model.ids import JOB, render_id
from corvo.model.outcome import Imported, Rejected
from corvo.model.record import (
    BatchImport,
    JobImport,
    LimitImport,
    QueueImport,
    ScheduleImport,
    WebhookImport,
)
from corvo.model.record_command import ImportedRecord

if TYPE_CHECKING:
    from corvo.engine import Engine
    from corvo.engine.backup import Copy

_PREFIX: Final = "/api/v1/admin"
_NOTHING: Final = Reader(wire.Nothing)
_LINES: Final = b"application/x-ndjson"
_KINDS: Final = {
    QueueImport: "queues",
    LimitImport: "limits",
    JobImport: "jobs",
    BatchImport: "batches",
    ScheduleImport: "schedules",
    WebhookImport: "webhooks",
}


class AdminRoutes:
    """Backup, export and import, bound to one engine."""

    def __init__(self, engine: "Engine", context: Context) -> None:
        self._engine = engine
        self._context = context

    def table(self) -> Table:
        """Paths, methods and operations."""
        return {
            f"{_PREFIX}/backup": {"POST": self.backup},
            f"{_PREFIX}/export": {"GET": self.export},
            f"{_PREFIX}/import": {"POST": self.bring},
        }

    async def backup(self, call: Call) -> Stream:
        """`POST /admin/backup`: everything as a tar, consistent, while the server runs."""
        call.read(_NOTHING)
        copy = await self._engine.copy()
        try:
            manifest = await copy.run(archive.survey, copy)
        except BaseException:
            await copy.close()
            raise
        name = f"corvo-{manifest.index}.tar"
        return Stream(
            archive.chunks(copy, manifest),
            kind=archive.MEDIA,
            extra=b'content-disposition: attachment; filename="%b"\r\n' % name.encode(),
            size=archive.size_of(manifest),
            index=manifest.index,
            on_end=copy.close,
        )

    async def export(self, call: Call) -> Stream:
        """`GET /admin/export`: the namespace as lines of JSON, consistent, with counts at the end.

        The last line says how many records there were; an export without it is not whole.
        """
        copy = await self._engine.copy()
        lines = _export(copy, call.principal.ns)
        return Stream(lines, kind=_LINES, index=copy.position.index, on_end=copy.close)

    @takes_lines
    async def bring(self, call: Call) -> Answer:
        """`POST /admin/import`: lines of an export; each record is taken or refused by itself."""
        ns = call.principal.ns
        found = records.parse(call.body, ns, self._context, self._engine.now_ms)
        taken: dict[str, int] = dict.fromkeys(records.KINDS, 0)
        refused: list[dict[str, Any]] = []
        index = self._engine.index
        for portion in _portions(found):
            command = ImportRecords(ns, [record for _, record in portion])
            outcome, index = await self._engine.perform(command)
            assert isinstance(outcome, Imported | Rejected), outcome
            if isinstance(outcome, Rejected):
                # The command failed as a whole, which only a bug does.
                return Answer(*errors.of_rejection(outcome), index=index)
            refusals = dict(outcome.refused)
            for position, (number, record) in enumerate(portion):
                if position in refusals:
                    refused.append(_refusal(number, refusals[position]))
                else:
                    taken[_kind(record)] += 1
        return written({**taken, "refused": refused}, index)


def _kind(record: ImportedRecord) -> str:
    return _KINDS[type(record)]


def _refusal(number: int, rejected: Rejected) -> dict[str, Any]:
    members: dict[str, Any] = {"line": number, "code": rejected.code, "error": rejected.message}
    if rejected.holder:
        members["unique_job_id"] = render_id(JOB, rejected.holder)
    return members


def _portions(
    found: list[tuple[int, ImportedRecord]],
) -> list[list[tuple[int, ImportedRecord]]]:
    """Cut into commands that are bounded in records and, roughly, in bytes."""
    portions: list[list[tuple[int, ImportedRecord]]] = []
    size = limits.ENTRY_BYTES_MAX
    for item in found:
        weight = _weight(item[1])
        is_full = not portions or len(portions[-1]) >= limits.IMPORT_RECORDS_MAX
        if is_full or size + weight > limits.ENTRY_BYTES_MAX:
            portions.append([])
            size = 0
        portions[-1].append(item)
        size += weight
    return portions


def _weight(record: ImportedRecord) -> int:
    if isinstance(record, JobImport):
        documents = (record.spec.payload, record.checkpoint, record.result)
        texts = sum(len(error.error) + len(error.backtrace) for error in record.errors)
        return 400 + texts + sum(len(document) for document in documents if document)
    if isinstance(record, BatchImport):
        return 400 + 18 * len(record.members)
    if isinstance(record, ScheduleImport):
        return 400 + len(record.spec.template.payload)
    return 400


async def _export(copy: "Copy", ns: int) -> AsyncIterator[bytes]:
    counts: dict[str, int] = dict.fromkeys(records.KINDS, 0)
    at = copy.position
    yield records.header(at.index, at.now_ms, __version__)
    queues = await copy.run(copy.queues, ns)
    counts["queues"] = len(queues)
    for start in range(0, len(queues), limits.EXPORT_PAGE):
        yield b"".join(map(records.render, queues[start : start + limits.EXPORT_PAGE]))
    name = ""
    while found := await copy.run(copy.limits, ns, name, limits.EXPORT_PAGE):
        counts["limits"] += len(found)
        name = found[-1].name
        yield b"".join(map(records.render, found))
    members: dict[bytes, list[bytes]] = {}
    for is_waiting in (False, True):
        last = b""
        while True:
            page, count, last = await copy.run(
                _job_page, copy, ns, last, members, is_waiting=is_waiting
            )
            counts["jobs"] += count
            yield page
            if not last:
                break
    last = b""
    while batches := await copy.run(copy.batches, ns, last, limits.EXPORT_PAGE, members):
        counts["batches"] += len(batches)
        last = batches[-1].id
        yield b"".join(map(records.render, batches))
    last = b""
    while schedules := await copy.run(copy.schedules, ns, last, limits.EXPORT_PAGE):
        counts["schedules"] += len(schedules)
        last = schedules[-1].spec.template.id
        yield b"".join(map(records.render, schedules))
    webhooks = await copy.run(copy.webhooks, ns)
    counts["webhooks"] = len(webhooks)
    yield b"".join(map(records.render, webhooks))
    yield records.end(counts)


def _job_page(
    copy: "Copy",
    ns: int,
    after: bytes,
    members: dict[bytes, list[bytes]],
    *,
    is_waiting: bool,
) -> tuple[bytes, int, bytes]:
    """Read and render one page of jobs, and note who belongs to which open batch. Blocks."""
    jobs, pairs, last = copy.jobs(ns, after, limits.EXPORT_PAGE, is_waiting=is_waiting)
    for batch, job in pairs:
        members.setdefault(batch, []).append(job)
    return b"".join(map(records.render, jobs)), len(jobs), last
