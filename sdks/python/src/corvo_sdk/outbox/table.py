"""Putting jobs into the table, in a transaction that is the caller's."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from corvo_sdk.outbox.drivers import Runner, runner_of
from corvo_sdk.outbox.statements import TABLE_DEFAULT, Dialect, Statements, check_table, ddl
from corvo_sdk.outbox.statements import statements as statements_of
from corvo_sdk.task import TaskCall

PAYLOAD_BYTES_DEFAULT: Final = 256 * 1024  # what a server takes unless its operator chose otherwise


class OutboxError(ValueError):
    """A job that can not be put into the outbox."""


class OutboxCounts(Struct, frozen=True):
    """How many rows there are."""

    waiting: int
    refused: int


class SqlOutbox:
    """The table of jobs to be enqueued. Holds no connection; safe to share.

    `payload_bytes_max` is the server's limit: a larger payload is refused here, where the caller
    can do something about it, and not later by the server.
    """

    def __init__(
        self, table: str = TABLE_DEFAULT, *, payload_bytes_max: int = PAYLOAD_BYTES_DEFAULT
    ) -> None:
        check_table(table)
        self.table = table
        self._payload_bytes_max = payload_bytes_max
        self._statements: dict[Dialect, Statements] = {}

    def statements(self, dialect: Dialect) -> Statements:
        """Give the statements of this table."""
        if dialect not in self._statements:
            self._statements[dialect] = statements_of(dialect, self.table)
        return self._statements[dialect]

    def create(self, target: object) -> None:
        """Create the table where it is missing; committing is the caller's part."""
        runner = _sync(runner_of(target))
        for statement in ddl(runner.dialect, self.table):
            runner.run(statement, {})

    def add(self, target: object, call: TaskCall[Any]) -> None:
        """Put a job into the outbox; it is enqueued if and when the caller's transaction commits.

        `target` is a session or connection of SQLAlchemy, a connection of psycopg, sqlite3 or
        Django. There is no handle: the job has no id before the relay has sent it.
        """
        self.add_many(target, [call])

    def add_many(self, target: object, calls: Iterable[TaskCall[Any]]) -> None:
        """Put jobs into the outbox, in their order."""
        runner = _sync(runner_of(target))
        insert = self.statements(runner.dialect).insert
        for body in [self._body(call) for call in calls]:
            runner.run(insert, {"body": body})

    async def aadd(self, target: object, call: TaskCall[Any]) -> None:
        """Put a job into the outbox through an async session or connection."""
        await self.aadd_many(target, [call])

    async def aadd_many(self, target: object, calls: Iterable[TaskCall[Any]]) -> None:
        """Put jobs into the outbox through an async session or connection, in their order."""
        runner = runner_of(target)
        insert = self.statements(runner.dialect).insert
        for body in [self._body(call) for call in calls]:
            if runner.is_async:
                await runner.run(insert, {"body": body})
            else:
                await asyncio.to_thread(runner.run, insert, {"body": body})

    def counts(self, target: object) -> OutboxCounts:
        """Count the rows: those on their way, and those the server refused."""
        runner = _sync(runner_of(target))
        total, refused = runner.run(self.statements(runner.dialect).count, {})[0]
        return OutboxCounts(int(total) - int(refused), int(refused))

    def retry_refused(self, target: object) -> None:
        """Let relays try the rows again that the server refused; committing is the caller's."""
        runner = _sync(runner_of(target))
        runner.run(self.statements(runner.dialect).rearm, {})

    def _body(self, call: TaskCall[Any]) -> str:
        if "idempotency_key" in call.options:
            raise OutboxError(
                f"{call.task.name}: a job of an outbox has no idempotency key of its own;"
                " the relay sends every row once, and unique= keeps equal jobs apart"
            )
        if len(call.payload) > self._payload_bytes_max:
            raise OutboxError(
                f"{call.task.name}: the payload has {len(call.payload)} bytes, at most"
                f" {self._payload_bytes_max} are taken; store large data and send a reference"
            )
        return call.body().decode()


def _sync(runner: Runner) -> Runner:
    if runner.is_async:
        raise TypeError("this connection is async: use aadd and await it")
    return runner
