"""Putting jobs into the outbox through whatever a caller has."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from corvo_sdk import Client, Corvo
from corvo_sdk.outbox import OutboxError, Relay, SqlOutbox, Step, ddl
from corvo_sdk.outbox.drivers import UnknownDriverError
from corvo_sdk.task import FunctionTask
from tests.sdk.outbox.conftest import Connect, Rows

Work = FunctionTask[..., Any, ..., Any]


@pytest.fixture
def work(app: Corvo) -> Work:
    @app.task(queue="q")
    def work(number: int, text: str = "") -> None: ...

    return work


@pytest.fixture
def engine(connect: Connect) -> Iterator[sqlalchemy.Engine]:
    """SQLAlchemy on the same database."""
    probe = connect()
    name = "sqlite://" if isinstance(probe, sqlite3.Connection) else "postgresql+psycopg://"
    probe.close()
    engine = sqlalchemy.create_engine(name, creator=connect)
    yield engine
    engine.dispose()


def test_a_session_takes_a_job_along(engine: sqlalchemy.Engine, work: Work, rows: Rows) -> None:
    """The row is there when the session commits, and gone when it does not."""
    outbox = SqlOutbox()
    with Session(engine) as session:
        outbox.add(session, work.call(1))
        session.rollback()
        outbox.add(session, work.call(2))
        session.commit()
    with engine.begin() as connection:
        outbox.add(connection, work.call(3))
    scoped = scoped_session(sessionmaker(engine))
    outbox.add(scoped, work.call(4))
    scoped.commit()
    scoped.remove()
    assert rows.left() == 3


def test_a_relay_runs_on_an_engine(
    engine: sqlalchemy.Engine, client: Client, work: Work, rows: Rows
) -> None:
    """`engine.connect` is all a relay needs."""
    with Session(engine) as session, session.begin():
        SqlOutbox().add_many(session, [work.call(number) for number in range(3)])
    relay = Relay(engine.connect, client)
    assert [Step("sent", 3), Step("idle")] == [relay.run_once(), relay.run_once()]
    relay.close()
    assert rows.jobs() == [0, 1, 2]


def test_an_async_connection_takes_a_job_along(postgres: str, client: Client, work: Work) -> None:
    """Psycopg's async connections are awaited; the sync way says so."""

    async def body() -> None:
        async with await psycopg.AsyncConnection.connect(postgres) as connection:
            await connection.execute("DROP TABLE IF EXISTS corvo_outbox")
            for statement in ddl("postgresql"):
                await connection.execute(statement)  # type: ignore[call-overload]
            await SqlOutbox().aadd(connection, work.call(1))
            await SqlOutbox().aadd_many(connection, [work.call(2), work.call(3)])
            with pytest.raises(TypeError, match="use aadd"):
                SqlOutbox().add(connection, work.call(4))

    asyncio.run(body())
    relay = Relay(lambda: psycopg.connect(postgres), client)
    assert Step("sent", 3) == relay.run_once()
    relay.close()


def test_an_async_session_takes_a_job_along(postgres: str, client: Client, work: Work) -> None:
    """SQLAlchemy's async sessions and connections are awaited, and their transaction decides."""
    address = f"postgresql+psycopg://corvo@/postgres?{postgres.split(maxsplit=1)[0]}"

    async def body() -> None:
        engine = create_async_engine(address)
        async with engine.begin() as connection:
            await connection.execute(sqlalchemy.text("DROP TABLE IF EXISTS corvo_outbox"))
            for statement in ddl("postgresql"):
                await connection.execute(sqlalchemy.text(statement))
            await SqlOutbox().aadd(connection, work.call(1))
        async with AsyncSession(engine) as session:
            await SqlOutbox().aadd(session, work.call(2))
            await session.rollback()
            await SqlOutbox().aadd(session, work.call(3))
            await session.commit()
        await engine.dispose()

    asyncio.run(body())
    relay = Relay(lambda: psycopg.connect(postgres), client)
    assert relay.run_once() == Step("sent", 2)
    relay.close()


def test_a_plain_connection_is_taken_by_the_async_way_as_well(work: Work, tmp_path: Path) -> None:
    """An async program with a blocking driver does not stop its loop."""
    connection = sqlite3.connect(tmp_path / "x.db", check_same_thread=False)
    SqlOutbox().create(connection)
    asyncio.run(SqlOutbox().aadd(connection, work.call(1)))
    assert SqlOutbox().counts(connection).waiting == 1
    connection.close()


def test_a_table_may_have_another_name(connect: Connect, client: Client, work: Work) -> None:
    """Two outboxes in one database do not see each other."""
    other = SqlOutbox("other_jobs")
    connection = connect()
    connection.cursor().execute("DROP TABLE IF EXISTS other_jobs")
    other.create(connection)
    other.create(connection)
    other.add(connection, work.call(1))
    connection.commit()
    assert (other.counts(connection).waiting, SqlOutbox().counts(connection).waiting) == (1, 0)
    connection.close()
    relay = Relay(connect, client, outbox=other)
    assert Step("sent", 1) == relay.run_once()
    relay.close()


@pytest.mark.parametrize("name", ["", "a b", "x; DROP TABLE y", "1a", "a.b.c", 'a"b', "a" * 50])
def test_the_name_of_a_table_is_checked(name: str) -> None:
    """It becomes part of statements, so nothing but a plain name is taken."""
    with pytest.raises(ValueError, match="not the name of a table"):
        SqlOutbox(name)
    with pytest.raises(ValueError, match="not the name of a table"):
        ddl("sqlite", name)


def test_what_is_no_connection_is_named() -> None:
    """The error says what was passed and what is known."""
    app = Corvo()

    @app.task()
    def work() -> None: ...

    with pytest.raises(UnknownDriverError, match=r"builtins\.dict is no connection known here"):
        SqlOutbox().add({}, work.call())


def test_a_payload_the_server_would_refuse_is_refused_in_the_transaction(
    connect: Connect, work: Work, rows: Rows
) -> None:
    """Where somebody can still do something about it; nothing of the call is added."""
    connection = connect()
    with pytest.raises(OutboxError, match="at most 262144 are taken"):
        SqlOutbox().add_many(connection, [work.call(1), work.call(2, "x" * 300_000)])
    with pytest.raises(OutboxError, match="no idempotency key"):
        SqlOutbox().add(connection, work.with_options(idempotency_key="k").call(1))
    connection.commit()
    connection.close()
    assert rows.left() == 0
