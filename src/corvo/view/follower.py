# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Keeps the projection up with the server: follows the feed, and builds anew when it can not.

    start ──the file is a place in the server's history──▶ follow ◀──┐
      └──no file, another version or history──▶ build ───────────────┘
                                                  ▲
      follow ──too far behind, damaged, differs, or told to──┘

It runs in one thread with a socket that blocks: while a slice is being written nothing more is
asked for, so what is in memory is bounded by one message.
"""

import shutil
from collections.abc import Callable
from os import urandom
from pathlib import Path
from time import monotonic
from typing import Any, Final

import apsw
from msgspec import Struct
from msgspec.structs import replace

from corvo.model.copied import Copies
from corvo.model.ids import JOB, parse_id
from corvo.view import cursor, messages, minutes, rows, schema
from corvo.view.cursor import Cursor
from corvo.view.desk import Desk
from corvo.view.frames import BlockingFrames
from corvo.view.messages import Copied, Hello, Progress, Pull, Slice, Snapshot, Told, Want, Welcome
from corvo.view.projection import Projection
from corvo.view.rebuild import Source, build

FILE_PATTERN: Final = "view-*.sqlite"
SAMPLE_SECONDS: Final = 30.0
SAMPLE_JOBS: Final = 32
TIDY_SECONDS: Final = 600.0

OpenSource = Callable[[str], Source]
Report = Callable[[str, dict[str, Any]], None]


class _File(Struct):
    """The file in use."""

    path: Path
    connection: apsw.Connection
    projection: Projection
    cursor: Cursor


class Follower:
    """The one writer."""

    def __init__(
        self,
        frames: BlockingFrames,
        directory: Path,
        desk: Desk,
        open_source: OpenSource,
        report: Report,
    ) -> None:
        self._frames = frames
        self._directory = directory
        self._desk = desk
        self._open_source = open_source
        self._report = report
        self._file: _File | None = None
        self._events_count = 0
        self._rebuilds_count = 0
        self._sampled_s = monotonic()
        self._tidied_s = monotonic()

    def run(self) -> None:
        """Follow until the core is gone, which ends this with `ClosedError`."""
        try:
            reason = self._take_up()
            while True:
                if reason:
                    self._rebuild(reason)
                try:
                    reason = self._follow()
                except schema.DAMAGED as error:
                    reason = f"the file is damaged: {error}"
                if reason.startswith("the file is damaged"):
                    self._discard()
        finally:
            if self._file is not None:
                self._file.connection.close()

    # --- files ----------------------------------------------------------------------------------

    def _take_up(self) -> str:
        """Open the newest file and ask whether it can be gone on with; returns why not."""
        for path in self._directory.glob("*.building*"):
            schema.remove(path)
        for path in self._directory.glob("checkpoint-*"):
            shutil.rmtree(path, ignore_errors=True)
        found = sorted(self._directory.glob(FILE_PATTERN))
        for path in found[:-1]:
            schema.remove(path)
        if not found:
            return self._begin()
        try:
            reason = self._open(found[-1])
        except schema.DAMAGED as error:
            reason = f"the file is damaged: {error}"
        if not reason:
            reason = self._greet()
        if reason:
            self._report("the view begins anew", {"reason": reason})
            self._discard()
            return self._begin() if reason.startswith("the file") else reason
        assert self._file is not None
        self._desk.switch(self._file.path)
        return ""

    def _begin(self) -> str:
        """Start with nothing: from the feed when it still has everything, else from a copy."""
        path = self._next_path()
        connection = schema.open_writer(path)
        schema.create(connection)
        with connection:
            cursor.save(connection, Cursor())
        self._file = _File(path, connection, Projection(connection), Cursor())
        reason = self._greet()
        if reason:
            self._discard()
            return reason
        self._desk.switch(path)
        return ""

    def _open(self, path: Path) -> str:
        connection = schema.open_writer(path)
        try:
            found = cursor.load(connection)
        except schema.DAMAGED:
            connection.close()
            raise
        if found is None:
            connection.close()
            schema.remove(path)
            return "the file has another shape"
        self._file = _File(path, connection, Projection(connection), found)
        return ""

    def _discard(self) -> None:
        self._desk.switch(None)
        if self._file is not None:
            self._file.connection.close()
            schema.remove(self._file.path)
        self._file = None
        for path in self._directory.glob(FILE_PATTERN):
            schema.remove(path)

    def _next_path(self) -> Path:
        numbers = [int(path.stem.partition("-")[2]) for path in self._directory.glob(FILE_PATTERN)]
        return self._directory / f"view-{max(numbers, default=0) + 1:06d}.sqlite"

    # --- building anew --------------------------------------------------------------------------

    def _rebuild(self, reason: str) -> None:
        """Build a new file from a copy of the store; the old one answers meanwhile, if it may."""
        self._report("rebuilding the view", {"reason": reason})
        began_s = monotonic()
        progress = Progress(reason, "snapshot", 0, self._rebuilds_count)
        self._tell(progress)
        directory = self._directory / f"checkpoint-{urandom(6).hex()}"
        path = self._next_path()
        try:
            answer = self._ask(Snapshot(str(directory)))
            assert isinstance(answer, Copied)
            if answer.error:
                raise OSError(answer.error)
            source = self._open_source(str(directory))
            try:
                reached = build(
                    source,
                    path,
                    lambda step, done: self._tell(replace(progress, step=step, done=done)),
                )
            finally:
                source.close()
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        old = self._file
        opened = self._open(path)
        assert not opened, opened
        self._desk.switch(path)
        if old is not None:
            old.connection.close()
            schema.remove(old.path)
        self._rebuilds_count += 1
        self._tell(replace(progress, step="done", rebuilds=self._rebuilds_count))
        seconds = round(monotonic() - began_s, 3)
        self._report("the view is built", {"position": reached.position, "seconds": seconds})

    # --- following ------------------------------------------------------------------------------

    def _greet(self) -> str:
        assert self._file is not None
        found = self._file.cursor
        answer = self._ask(
            Hello(
                found.history,
                found.position,
                found.chain,
                found.block_position,
                found.block_digest,
            )
        )
        assert isinstance(answer, Welcome)
        return "" if answer.is_match else answer.reason

    def _follow(self) -> str:
        """Apply slices as they come; returns why the file has to be built anew."""
        while True:
            assert self._file is not None
            reason = self._apply_next(self._file)
            if reason:
                return reason
            if self._desk.is_damaged:
                self._desk.is_damaged = False
                return "the file is damaged: a query found it so"
            now_s = monotonic()
            if now_s - self._sampled_s >= SAMPLE_SECONDS:
                self._sampled_s = now_s
                reason = self.sample(self._file)
                if reason:
                    return reason

    def _apply_next(self, file: _File) -> str:
        """Ask for what follows and write it in one transaction; returns why that can not be."""
        stands = file.cursor
        self._tell(Pull(stands.position, self._events_count, stands.block_position))
        answer = self._receive()
        if isinstance(answer, Slice) and _is_empty(file.cursor, answer):
            return ""
        reason = ""
        with file.connection:
            while isinstance(answer, Copies):
                file.projection.apply_copies(answer)
                answer = self._receive()
            assert isinstance(answer, Slice)
            reason = _refusal(file.cursor, answer)
            if not reason:
                self._fetch_wanted(file.projection)
                file.cursor = self._write_slice(file, answer)
                file.projection.finish()
                cursor.save(file.connection, file.cursor)
        # Safety: rows committed without their cursor do no harm, since the file is thrown away.
        return reason

    def _write_slice(self, file: _File, answer: Slice) -> Cursor:
        before = file.cursor
        file.projection.apply_blocks(answer.blocks)
        if answer.floor_seq > before.floor_seq:
            file.projection.forget_events(answer.floor_seq)
        now_s = monotonic()
        if now_s - self._tidied_s >= TIDY_SECONDS:
            self._tidied_s = now_s
            minutes.forget_old(file.connection, answer.now_ms)
        reached = replace(
            before,
            history=answer.history,
            position=answer.position,
            chain=answer.chain,
            floor_seq=max(before.floor_seq, answer.floor_seq),
        )
        if not answer.blocks:
            return reached
        position, block = answer.blocks[-1]
        self._events_count += sum(len(each.events) for _, each in answer.blocks)
        return replace(
            reached,
            block_position=position,
            block_digest=messages.digest_of(position, block),
            seq=block.first_seq + len(block.events) - 1,
        )

    def _fetch_wanted(self, projection: Projection) -> None:
        """Get records that were named but not sent along."""
        while True:
            jobs, batches = projection.take_wanted()
            if not jobs and not batches:
                return
            self._tell(Want(jobs, batches))
            answer = self._receive()
            while isinstance(answer, Copies):
                projection.apply_copies(answer)
                answer = self._receive()
            assert isinstance(answer, Told)

    # --- checking -------------------------------------------------------------------------------

    def sample(self, file: _File) -> str:
        """Compare some rows with the records they were made of; returns what differs.

        Only a comparison at the very index the file stands at says anything; under load there may
        be none, and the next sample tries again.
        """
        connection = file.connection
        highest = connection.execute("SELECT max(n) FROM jobs").get or 0
        start = int.from_bytes(urandom(6), "big") % (highest + 1)
        sql = "SELECT id, ns FROM jobs WHERE n >= ? ORDER BY n LIMIT ?"
        chosen = list(connection.execute(sql, (start, SAMPLE_JOBS)))
        wanted = [(ns, parse_id(JOB, name) or b"") for name, ns in chosen]
        if not wanted:
            return ""
        self._tell(Want(wanted, []))
        found: list[Copies] = []
        answer = self._receive()
        while isinstance(answer, Copies):
            found.append(answer)
            answer = self._receive()
        assert isinstance(answer, Told)
        if answer.position != file.cursor.position:
            return ""
        differing = compare(connection, found)
        if differing:
            self._report("the view differs from the store", {"jobs": differing})
            return "a sample differs from the store"
        return ""

    # --- the socket -----------------------------------------------------------------------------

    def _tell(self, message: Any) -> None:
        self._frames.send(messages.encode(message))

    def _receive(self) -> Any:
        return messages.decode_to_view(self._frames.receive())

    def _ask(self, message: Any) -> Any:
        self._tell(message)
        return self._receive()


def compare(connection: apsw.Connection, found: list[Copies]) -> list[str]:
    """Name the jobs whose row is not what their record says."""
    columns = ", ".join((*rows.SPEC_COLUMNS, *rows.JOB_COLUMNS))
    sql = f"SELECT {columns}, payload_text FROM jobs JOIN job_payloads USING (n) WHERE id = ?"
    differing: list[str] = []
    for copies in found:
        differing += [identifier.hex() for identifier in copies.gone_jobs]
        for copy in copies.jobs:
            assert copy.spec is not None
            expected = (*rows.spec_row(copy, copy.spec), *rows.job_row(copy))
            actual = connection.execute(sql, (expected[0],)).get
            if actual != (*expected, rows.text(copy.spec.payload)):
                differing.append(expected[0])
    return differing


def _is_empty(before: Cursor, answer: Slice) -> bool:
    """Whether a slice changes nothing at all."""
    return not answer.must_rebuild and not answer.blocks and answer.position == before.position


def _refusal(before: Cursor, answer: Slice) -> str:
    """Say why a slice can not be applied after what is there."""
    if answer.must_rebuild:
        return answer.reason
    if answer.blocks and answer.blocks[0][1].first_seq != before.seq + 1:
        return "events are missing from the feed"
    return ""
