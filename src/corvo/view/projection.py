# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Applies copies of records and slices of events to the tables.

Everything here runs inside a transaction its caller began and will commit together with the cursor.
A record is applied whole: the row afterwards depends on the record alone, so applying it twice, or
a newer one first, ends in the same tables.
"""

from collections.abc import Iterable
from typing import Any, Final

import apsw

from corvo.model import event as ev
from corvo.model import limits
from corvo.model.copied import Copies, JobCopy, ScheduleCopy, WebhookCopy
from corvo.model.event import EVENT_NAMES, EventBlock
from corvo.model.ids import BATCH, JOB, WEBHOOK, parse_id, render_id
from corvo.model.job import UNIQUE_MODE_NAMES, Batch, Spec
from corvo.model.queue import QueueRecord
from corvo.model.schedule import SCHEDULE
from corvo.view import rows, small_rows
from corvo.view.minutes import Minutes
from corvo.view.storage import Storage

_COLUMNS: Final = (*rows.SPEC_COLUMNS, *rows.JOB_COLUMNS)
_INSERT_JOB = (
    f"INSERT INTO jobs ({', '.join(_COLUMNS)}, scheduled_ms, tags, payload_bytes) "
    f"VALUES ({', '.join('?' * len(_COLUMNS))}, ?, jsonb(?), ?)"
)
_UPDATE_JOB = (
    f"UPDATE jobs SET {', '.join(f'{name} = ?' for name in rows.JOB_COLUMNS)}, "
    "scheduled_ms = coalesce(?, asked_ms) WHERE n = ?"
)
_SIZES: Final = "payload_bytes, result_bytes, checkpoint_bytes, error_count"
_FIND_JOB = f"SELECT n, queue, last_error, unique_key, worker_id, {_SIZES} FROM jobs WHERE id = ?"
_WRITE_PAYLOAD = (
    "INSERT OR REPLACE INTO job_payloads (n, payload_text, payload, options, bytes) "
    "VALUES (?1, ?2, CASE WHEN json_valid(?2) THEN jsonb(?2) END, ?3, ?4)"
)
_WRITE_TEXT = "INSERT OR REPLACE INTO jobs_text (rowid, id, queue, payload, tags, error) VALUES "
_WRITE_EVENT = "INSERT OR REPLACE INTO job_events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WRITE_ERROR = "INSERT OR REPLACE INTO job_errors VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WRITE_USAGE = "INSERT OR REPLACE INTO job_usage VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WRITE_QUEUE = f"INSERT OR REPLACE INTO queues VALUES ({', '.join('?' * 20)})"
_WRITE_BATCH = f"INSERT OR REPLACE INTO batches VALUES ({', '.join('?' * 12)})"
_WRITE_SCHEDULE = "INSERT OR REPLACE INTO schedules VALUES (?, ?, ?, ?, ?, ?)"
_WRITE_WEBHOOK = "INSERT OR REPLACE INTO webhooks VALUES (?, ?, ?, ?, ?)"
_WRITE_LOCK = "INSERT OR REPLACE INTO unique_locks VALUES (?, ?, ?, ?, ?, ?, ?)"
_WRITE_WORKER = (
    "INSERT INTO workers VALUES (?1, ?2, NULL, ?3, ?4, ?5) ON CONFLICT DO UPDATE "
    "SET last_seen_ms = ?4, started_count = started_count + ?5"
)
_WRITE_ITERATION = (
    "INSERT OR REPLACE INTO job_iterations SELECT n, ?, ?, ?, ?, ?, ? FROM jobs WHERE id = ?"
)
_WRITE_JOB_WORKER = "INSERT OR IGNORE INTO job_workers VALUES (?, ?)"
_OF_ITERATIONS: Final = frozenset({ev.ITERATED, ev.DELETED, ev.PURGED})
# Tables whose rows go with the job.
_OWNED: Final = (
    "job_payloads",
    "job_dependencies",
    "job_documents",
    "job_tags",
    "job_workers",
    "job_errors",
    "job_usage",
    "job_iterations",
)


class Projection:
    """The tables of one file, as seen by the one who writes them."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        # Jobs and batches named by events or rows whose records were not sent along.
        self._wanted_jobs: set[tuple[int, bytes]] = set()
        self._wanted_batches: set[tuple[int, bytes]] = set()
        # Who has each job of the slice, as its record says.
        self._workers_seen: dict[bytes, str] = {}
        self._storage = Storage(connection)

    def take_wanted(self) -> tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]]:
        """Records that have to be asked for before the transaction may be committed."""
        found = sorted(self._wanted_jobs), sorted(self._wanted_batches)
        self._wanted_jobs.clear()
        self._wanted_batches.clear()
        return found

    # --- records --------------------------------------------------------------------------------

    def apply_copies(self, copies: Copies) -> None:
        """Write records as they stand, and remove what is gone."""
        for copy in copies.jobs:
            self.apply_job(copy)
            self._workers_seen[copy.job.id] = copy.job.worker
        for identifier in copies.gone_jobs:
            self._remove_job(identifier)
        if copies.queues:
            self.apply_queues(copies.queues)
        if copies.batches:
            self.apply_batches(copies.batches)
        if copies.gone_queues:
            sql = "DELETE FROM queues WHERE ns = ? AND name = ?"
            self.connection.executemany(sql, copies.gone_queues)
        self._remove("batches", BATCH, copies.gone_batches)
        if copies.schedules:
            self.apply_schedules(copies.schedules)
        if copies.webhooks:
            self.apply_webhooks(copies.webhooks)
        self._remove("schedules", SCHEDULE, copies.gone_schedules)
        self._remove("webhooks", WEBHOOK, copies.gone_webhooks)

    def _remove(self, table: str, prefix: str, identifiers: list[bytes]) -> None:
        if identifiers:
            names = [(render_id(prefix, identifier),) for identifier in identifiers]
            self.connection.executemany(f"DELETE FROM {table} WHERE id = ?", names)

    def apply_queues(self, records: Iterable[QueueRecord]) -> None:
        """Write queues."""
        self.connection.executemany(_WRITE_QUEUE, [rows.queue_row(record) for record in records])

    def apply_batches(self, batches: Iterable[Batch]) -> None:
        """Write batches."""
        self.connection.executemany(_WRITE_BATCH, [rows.batch_row(batch) for batch in batches])

    def apply_schedules(self, copies: Iterable[ScheduleCopy]) -> None:
        """Write schedules."""
        found = [small_rows.schedule_row(copy) for copy in copies]
        self.connection.executemany(_WRITE_SCHEDULE, found)

    def apply_webhooks(self, copies: Iterable[WebhookCopy]) -> None:
        """Write webhooks."""
        found = [small_rows.webhook_row(copy) for copy in copies]
        self.connection.executemany(_WRITE_WEBHOOK, found)

    def apply_job(self, copy: JobCopy) -> None:
        """Write one job, or note that its spec is wanted."""
        job = copy.job
        identifier = render_id(JOB, job.id)
        found: Any = self.connection.execute(_FIND_JOB, (identifier,)).get
        if found is None:
            if copy.spec is None:
                self._wanted_jobs.add((job.ns, job.id))
                return
            self.insert_job(copy, copy.spec)
            return
        number, queue, last_error, unique_key, worker, *sizes = found
        row = rows.job_row(copy)
        self.connection.execute(_UPDATE_JOB, (*row, rows.due_of(copy), number))
        payload_bytes = sizes[0]
        if copy.spec is not None:
            self._write_spec(number, copy.spec)
            payload_bytes = self._replace_size(number, payload_bytes, copy.spec)
        after = rows.storage_of(row, payload_bytes)
        self._storage.change((job.ns, queue), sizes, (job.ns, copy.queue), after)
        error = row[rows.LAST_ERROR]
        if copy.spec is not None or queue != copy.queue or error != last_error:
            self._rewrite_text(number)
        if copy.job.worker and copy.job.worker != worker:
            self.connection.execute(_WRITE_JOB_WORKER, (number, copy.job.worker))
        self._write_reports(number, copy, is_new=False)
        if unique_key is not None:
            self._write_lock(identifier, unique_key, copy)

    def insert_job(self, copy: JobCopy, spec: Spec) -> None:
        """Write a job that is not in the tables."""
        row = rows.spec_row(copy, spec)
        mutable = rows.job_row(copy)
        tags = rows.tags_text(spec)
        due_ms = rows.due_of(copy)
        scheduled_ms = due_ms if due_ms is not None else spec.scheduled_ms or None
        values = (*row, *mutable, scheduled_ms, tags, len(spec.payload))
        self._storage.add((spec.ns, copy.queue), rows.storage_of(mutable, len(spec.payload)))
        self.connection.execute(_INSERT_JOB, values)
        # Cost: RETURNING would give the same number for half as much again.
        number = self.connection.last_insert_rowid()
        self._write_spec(number, spec)
        error = mutable[rows.LAST_ERROR]
        words = (number, row[0], copy.queue, rows.text(spec.payload), tags or "", error or "")
        self.connection.execute(_WRITE_TEXT + "(?, ?, ?, ?, ?, ?)", words)
        if copy.job.worker:
            self.connection.execute(_WRITE_JOB_WORKER, (number, copy.job.worker))
        self._write_reports(number, copy, is_new=True)
        if spec.unique is not None:
            self._write_lock(row[0], spec.unique.key, copy, spec)

    def _write_spec(self, number: int, spec: Spec) -> None:
        payload = rows.text(spec.payload)
        values = (number, payload, rows.options_text(spec), len(spec.payload))
        self.connection.execute(_WRITE_PAYLOAD, values)
        if spec.tags:
            tags = [(number, key, value) for key, value in spec.tags.items()]
            self.connection.executemany("INSERT OR REPLACE INTO job_tags VALUES (?, ?, ?)", tags)
        if spec.depends_on:
            parents = [(number, render_id(JOB, parent)) for parent in spec.depends_on]
            sql = "INSERT OR IGNORE INTO job_dependencies VALUES (?, ?)"
            self.connection.executemany(sql, parents)

    def _replace_size(self, number: int, before: int, spec: Spec) -> int:
        """Note the size of a payload that took the place of another one."""
        size = len(spec.payload)
        if size != before:
            sql = "UPDATE jobs SET payload_bytes = ? WHERE n = ?"
            self.connection.execute(sql, (size, number))
        return size

    def finish(self) -> None:
        """Write what was summed up; the last thing before a transaction is committed."""
        self._storage.write()

    def _write_reports(self, number: int, copy: JobCopy, *, is_new: bool) -> None:
        """Write what workers said: errors, documents, usage."""
        execute = self.connection.execute
        if copy.errors:
            self._write_errors(number, copy)
        documents = rows.documents_row(copy)
        if documents is not None:
            sql = "INSERT OR REPLACE INTO job_documents VALUES (?, ?, ?)"
            execute(sql, (number, *documents))
        elif not is_new:
            execute("DELETE FROM job_documents WHERE n = ?", (number,))
        usage = rows.usage_row(copy)
        if usage is not None:
            execute(_WRITE_USAGE, (number, *usage))

    def _write_errors(self, number: int, copy: JobCopy) -> None:
        assert copy.errors is not None
        assert copy.job.rare is not None
        found = [(number, *rows.error_row(position, error)) for position, error in copy.errors]
        self.connection.executemany(_WRITE_ERROR, found)
        workers = [(number, error.worker) for _, error in copy.errors if error.worker]
        self.connection.executemany(_WRITE_JOB_WORKER, workers)
        first_kept = copy.job.rare.errors - limits.ERRORS_KEPT_LAST
        if first_kept > 1:
            sql = "DELETE FROM job_errors WHERE n = ? AND number > 0 AND number < ?"
            self.connection.execute(sql, (number, first_kept))

    def _write_lock(
        self, identifier: str, key: str, copy: JobCopy, spec: Spec | None = None
    ) -> None:
        execute = self.connection.execute
        execute("DELETE FROM unique_locks WHERE job_id = ?", (identifier,))
        if not copy.lock_ms:
            return
        if spec is not None and spec.unique is not None:
            mode = UNIQUE_MODE_NAMES[spec.unique.mode]
        else:
            sql = (
                "SELECT options ->> 'unique_mode' FROM job_payloads "
                "JOIN jobs USING (n) WHERE jobs.id = ?"
            )
            mode = execute(sql, (identifier,)).get
        place = (copy.job.ns, copy.job.queue_id, copy.queue, key)
        execute(_WRITE_LOCK, (*place, identifier, mode, copy.lock_ms))

    def _rewrite_text(self, number: int) -> None:
        sql = (
            _WRITE_TEXT.removesuffix("VALUES ")
            + "SELECT n, id, queue, payload_text, coalesce(json(tags), ''), "
            "coalesce(last_error, '') FROM jobs JOIN job_payloads USING (n) WHERE n = ?"
        )
        self.connection.execute(sql, (number,))

    def _remove_job(self, identifier: bytes) -> None:
        name = render_id(JOB, identifier)
        execute = self.connection.execute
        execute("DELETE FROM unique_locks WHERE job_id = ?", (name,))
        sql = f"DELETE FROM jobs WHERE id = ? RETURNING n, ns, batch_id, queue, {_SIZES}"
        found: Any = execute(sql, (name,)).get
        if found is None:
            return
        number, ns, batch_id, queue, *sizes = found
        self._storage.remove((ns, queue), sizes)
        if batch_id is not None:
            self._want_batch(ns, batch_id)
        for table in _OWNED:
            execute(f"DELETE FROM {table} WHERE n = ?", (number,))
        execute("DELETE FROM jobs_text WHERE rowid = ?", (number,))

    def _want_batch(self, ns: int, name: Any) -> None:
        batch_id = parse_id(BATCH, name) if isinstance(name, str) else None
        if batch_id is not None:
            self._wanted_batches.add((ns, batch_id))

    # --- events ---------------------------------------------------------------------------------

    def apply_blocks(self, blocks: Iterable[tuple[int, EventBlock]]) -> None:
        """Write events, and what is counted from them."""
        minutes = Minutes(self.connection)
        found: list[rows.Row] = []
        workers: dict[tuple[int, str], list[int]] = {}
        for position, block in blocks:
            for offset, event in enumerate(block.events):
                job_id = render_id(JOB, event.job) if event.job else None
                found.append(
                    (
                        block.first_seq + offset,
                        position,
                        block.at_ms,
                        EVENT_NAMES[event.type],
                        event.ns,
                        job_id,
                        event.queue,
                        event.attempt,
                        rows.event_data(event.data),
                    )
                )
                if job_id is not None:
                    minutes.add(event, job_id, block.at_ms)
                if event.type == ev.STARTED:
                    self._note_worker(workers, event, job_id, block.at_ms)
                elif event.type in _OF_ITERATIONS:
                    self._note_iteration(event, found[-1])
        self.connection.executemany(_WRITE_EVENT, found)
        seen = [(*key, *figures) for key, figures in workers.items()]
        self.connection.executemany(_WRITE_WORKER, seen)
        minutes.write()
        self._workers_seen.clear()

    def _note_worker(
        self,
        workers: dict[tuple[int, str], list[int]],
        event: ev.Event,
        job_id: str | None,
        at_ms: int,
    ) -> None:
        worker = event.data.get("worker") if event.data else None
        if not worker:
            return
        figures = workers.setdefault((event.ns, worker), [at_ms, at_ms, 0])
        figures[1] = at_ms
        figures[2] += 1
        # Cost: as a rule the record sent along names the worker, and its row is there already.
        if self._workers_seen.get(event.job) != worker:
            sql = "INSERT OR IGNORE INTO job_workers SELECT n, ? FROM jobs WHERE id = ?"
            self.connection.execute(sql, (worker, job_id))

    def _note_iteration(self, event: ev.Event, row: rows.Row) -> None:
        seq, _, at_ms, _, _, job_id, _, attempt, data = row
        if event.type != ev.ITERATED:
            # A job of that id that comes back was not there: it has no iterations.
            sql = "DELETE FROM job_iterations WHERE n = (SELECT n FROM jobs WHERE id = ?)"
            self.connection.execute(sql, (job_id,))
        elif event.data is not None:
            about = (event.data["iteration"], event.data["status"])
            self.connection.execute(_WRITE_ITERATION, (*about, attempt, at_ms, seq, data, job_id))

    def forget_events(self, floor_seq: int) -> None:
        """Drop events the store does not keep any more."""
        self.connection.execute("DELETE FROM job_events WHERE seq < ?", (floor_seq,))
        self.connection.execute("DELETE FROM job_iterations WHERE seq < ?", (floor_seq,))
