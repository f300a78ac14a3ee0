"""A view beside a bare machine, without processes: the real sender, follower and tables, joined.

What the follower sends is answered at once, in the same thread, so that a test decides after which
entries the view looks and how much it gets.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from corvo.engine.feed import Feed
from corvo.engine.reads import Reads
from corvo.machine import Machine
from corvo.model.command import Entry
from corvo.model.event import EventBlock
from corvo.runtime.clock import VirtualClock
from corvo.server.view_process import CheckpointSource
from corvo.storage.memory import MemoryStore
from corvo.view import messages, sender
from corvo.view.follower import Follower
from corvo.view.messages import Progress
from corvo.view.sender import Sender
from corvo.view.standing import Standing

TABLES_OF_JOBS = (
    "job_payloads",
    "job_dependencies",
    "job_documents",
    "job_tags",
    "job_workers",
    "job_errors",
    "job_usage",
    "job_iterations",
)
TABLES = (
    *("job_events", "queues", "batches", "queue_minutes", "job_marks", "workers"),
    *("schedules", "webhooks", "queue_storage"),
)


class BareEngine:
    """What the sender needs of an engine, over a machine without log and loop."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.clock = VirtualClock()
        self.machine = Machine(store)
        self.read = Reads(self.machine, self.clock)
        self._feed = Feed(self.machine.index, self.machine.events)

    def apply(self, raw: bytes, entry: Entry) -> None:
        """Apply the next entry."""
        index = self.machine.index + 1
        applied = self.machine.apply(index, raw, entry)
        if applied.events is not None:
            self._feed.append(index, applied.events)

    @property
    def index(self) -> int:
        return self.machine.index

    @property
    def event_floor(self) -> int:
        return self.machine.event_floor

    @property
    def event_floor_seq(self) -> int:
        return self.machine.event_floor_seq

    def feed(self, after: int, max_bytes: int) -> list[tuple[int, EventBlock]]:
        return self._feed.read(after, max_bytes)

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        return watcher

    async def snapshot(self, directory: str) -> int:
        self.store.checkpoint(directory)
        return self.index


class _Outbox:
    """What the sender writes, as the follower reads it."""

    def __init__(self) -> None:
        self.frames: deque[bytes] = deque()

    def write(self, frame: bytes) -> None:
        self.frames.append(frame[4:])

    async def drain(self) -> None:
        return


class Joined:
    """The follower's socket: a message sent is answered before `send` returns."""

    def __init__(self, engine: BareEngine) -> None:
        self._loop = asyncio.new_event_loop()
        self._outbox = _Outbox()
        self.standing = Standing(engine.clock, lambda: engine.index)
        self._sender = Sender(engine, self.standing, None, self._outbox)  # type: ignore[arg-type]

    def send(self, message: bytes) -> None:
        decoded = messages.decode_to_core(message)
        if isinstance(decoded, Progress):
            self.standing.note_progress(decoded)
            return
        answer = self._sender._answers[type(decoded)](decoded)
        self._loop.run_until_complete(answer)

    def receive(self) -> bytes:
        return self._outbox.frames.popleft()

    def close(self) -> None:
        self._loop.close()


class IdleDesk:
    """A desk nobody asks."""

    def __init__(self) -> None:
        self.is_damaged = False
        self.path: Path | None = None

    def switch(self, path: Path | None) -> None:
        self.path = path


class SideView:
    """A view beside a machine."""

    def __init__(self, engine: BareEngine, directory: Path) -> None:
        self.engine = engine
        self.directory = directory
        self.reports: list[str] = []
        directory.mkdir(exist_ok=True)
        self.open()

    def open(self) -> None:
        """Start, or start again on what is there."""
        if hasattr(self, "joined"):
            self.joined.close()
        self.joined = Joined(self.engine)
        self.desk = IdleDesk()
        self.follower = Follower(
            self.joined,  # type: ignore[arg-type]
            self.directory,
            self.desk,  # type: ignore[arg-type]
            CheckpointSource,
            lambda message, fields: self.reports.append(f"{message}: {fields}"),
        )
        reason = self.follower._take_up()
        if reason:
            self.follower._rebuild(reason)

    @property
    def connection(self) -> apsw.Connection:
        assert self.follower._file is not None
        return self.follower._file.connection

    @property
    def position(self) -> int:
        assert self.follower._file is not None
        return self.follower._file.cursor.position

    def pull(self) -> None:
        """Take one slice."""
        assert self.follower._file is not None
        reason = self.follower._apply_next(self.follower._file)
        if reason:
            self.follower._rebuild(reason)

    def catch_up(self) -> None:
        """Take slices until the view is level with the machine."""
        while self.position < self.engine.index:
            self.pull()

    def rebuild(self) -> None:
        self.follower._rebuild("the test wants it")

    def sample(self) -> str:
        assert self.follower._file is not None
        return self.follower.sample(self.follower._file)

    def close(self) -> None:
        """Drop everything in memory, as a kill would."""
        self.connection.close()
        self.joined.close()


def dump(connection: apsw.Connection) -> dict[str, list[Any]]:
    """Everything in the tables, with local numbers replaced by ids."""
    found: dict[str, list[Any]] = {}
    columns = [row[1] for row in connection.execute("PRAGMA table_info(jobs)") if row[1] != "n"]
    names = ", ".join("json(tags)" if name == "tags" else name for name in columns)
    found["jobs"] = sorted(connection.execute(f"SELECT {names} FROM jobs"), key=repr)
    for table in TABLES_OF_JOBS:
        # Binary JSON is compared as such: equal texts give equal bytes.
        sql = f"SELECT jobs.id, t.* FROM {table} t JOIN jobs USING (n)"
        rows = [(row[0], *row[2:]) for row in connection.execute(sql)]
        found[table] = sorted(rows, key=repr)
        orphans = f"SELECT count(*) FROM {table} WHERE n NOT IN (SELECT n FROM jobs)"
        assert connection.execute(orphans).get == 0, table
    for table in TABLES:
        found[table] = sorted(connection.execute(f"SELECT * FROM {table}"), key=repr)
    return found


def locks(connection: apsw.Connection, now_ms: int) -> list[Any]:
    """Unique locks that count at a moment."""
    sql = (
        "SELECT l.* FROM unique_locks l JOIN jobs ON jobs.id = l.job_id "
        "WHERE jobs.settled_ms IS NULL OR l.expires_ms > ? ORDER BY 1, 2, 3"
    )
    return list(connection.execute(sql, (now_ms,)))


def words(connection: apsw.Connection) -> list[Any]:
    """Which jobs are found by some words."""
    sql = "SELECT jobs.id FROM jobs_text JOIN jobs ON n = jobs_text.rowid WHERE jobs_text MATCH ?"
    asked = ("mail", "video", "lease_expired", "error", "n", "boom")
    return [sorted(connection.execute(sql, (f'"{word}"',))) for word in asked]


def hasten(monkeypatch: Any) -> None:
    """A pull is answered at once."""
    monkeypatch.setattr(sender, "IDLE_S", 0)
    monkeypatch.setattr(sender, "PACE_S", 0)
