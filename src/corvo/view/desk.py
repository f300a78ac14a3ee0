# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Answers queries in threads of their own, each with a connection that can not write.

SQLite releases the interpreter while it works, so a search and the follower run side by side.
"""

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final

import apsw
import msgspec

from corvo.errors import CorvoError
from corvo.view import messages
from corvo.view.frames import BlockingFrames, ClosedError
from corvo.view.messages import Answer, Query
from corvo.view.queries import REGISTRY, Parameters
from corvo.view.schema import DAMAGED, open_reader

THREADS: Final = 3
PROGRESS_STEPS: Final = (
    4_000  # virtual-machine steps between two looks at the time, well below 1 ms
)
QUEUE_MAX: Final = 1_024  # the core asks for fewer at a time

_decode_parameters = msgspec.msgpack.Decoder(dict[str, object]).decode


class Reader:
    """One connection, opened anew when the file was exchanged."""

    def __init__(self) -> None:
        self._connection: apsw.Connection | None = None
        self._path: Path | None = None
        self._deadline = 0.0

    def run(self, path: Path, name: str, parameters: Parameters, budget_ms: int) -> bytes:
        """Run one query in one snapshot."""
        connection = self._open(path)
        self._deadline = monotonic() + budget_ms / 1_000
        connection.execute("BEGIN")
        try:
            return REGISTRY[name](connection, parameters)
        finally:
            self._deadline = 0.0
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _open(self, path: Path) -> apsw.Connection:
        if self._connection is None or path != self._path:
            self.close()
            self._connection = open_reader(path)
            self._connection.set_progress_handler(self._is_over, PROGRESS_STEPS)
            self._path = path
        return self._connection

    def _is_over(self) -> bool:
        return bool(self._deadline) and monotonic() > self._deadline

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


class Desk:
    """Takes queries from the core and hands each to a thread."""

    def __init__(
        self, frames: BlockingFrames, on_failure: Callable[[str, BaseException], None]
    ) -> None:
        self._frames = frames
        self._on_failure = on_failure
        self._sending = threading.Lock()
        self._waiting: queue.Queue[Query] = queue.Queue(QUEUE_MAX)
        self._path: Path | None = None
        self.is_damaged = False  # a query met a damaged file; the follower looks at this

    def switch(self, path: Path | None) -> None:
        """Answer from this file from now on; None: there is nothing to answer from."""
        self._path = path

    def serve(self) -> None:
        """Take queries until the core is gone."""
        for number in range(THREADS):
            threading.Thread(target=self._work, name=f"query-{number}", daemon=True).start()
        while True:
            try:
                message = messages.decode_to_view(self._frames.receive())
            except ClosedError:
                return
            assert isinstance(message, Query)
            self._waiting.put(message)

    def _work(self) -> None:
        reader = Reader()
        while True:
            asked = self._waiting.get()
            answer = self._answer(reader, asked)
            with self._sending:
                try:
                    self._frames.send(messages.encode(answer))
                except ClosedError:
                    return

    def _answer(self, reader: Reader, asked: Query) -> Answer:
        path = self._path
        if path is None:
            return Answer(asked.number, b"", "VIEW_DOWN", "the search index is being built")
        if asked.name not in REGISTRY:
            return Answer(asked.number, b"", "INTERNAL_ERROR", f"no query is called {asked.name}")
        try:
            parameters = _decode_parameters(asked.parameters)
            body = reader.run(path, asked.name, parameters, asked.budget_ms)
        except CorvoError as error:
            return Answer(
                asked.number, b"", error.code, error.message, error.field or "", error.hint or ""
            )
        except apsw.InterruptError:
            text = f"the query took longer than {asked.budget_ms} ms"
            return Answer(asked.number, b"", "QUERY_TIMEOUT", text)
        except Exception as error:  # noqa: BLE001 - one query must not end the others
            reader.close()
            if isinstance(error, DAMAGED):
                self.is_damaged = True
            self._on_failure(asked.name, error)
            text = f"the query {asked.name} failed"
            return Answer(asked.number, b"", "INTERNAL_ERROR", text)
        return Answer(asked.number, body)
