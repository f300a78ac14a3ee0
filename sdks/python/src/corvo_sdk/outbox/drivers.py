"""Whatever a caller has to reach a database, as one thing that runs statements.

Recognised by where its class comes from, so that no driver is imported that is not in use.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, Protocol, cast

from corvo_sdk.outbox.statements import Dialect, percent_style

# The library of a connection, and what it speaks.
_DRIVERS: Final[dict[str, Dialect]] = {
    "sqlite3": "sqlite",
    "psycopg": "postgresql",
    "psycopg2": "postgresql",
}
# What these raise when the database is in trouble, or says no.
_ERRORS: Final = (
    ("sqlite3", "Error"),
    ("psycopg", "Error"),
    ("psycopg2", "Error"),
    ("sqlalchemy.exc", "SQLAlchemyError"),
    ("django.db", "Error"),
)

Row = tuple[Any, ...]


class UnknownDriverError(TypeError):
    """What was passed is no connection or session this package knows."""


class Runner(Protocol):
    """Runs statements of one dialect.

    `run` gives the rows, or for an async connection something to await.
    """

    dialect: Dialect
    is_async: bool

    def run(self, statement: str, parameters: Mapping[str, Any]) -> Any: ...


class _Session:
    """SQLAlchemy: Session, Connection, scoped_session and their async cousins."""

    def __init__(self, target: Any, *, is_async: bool) -> None:
        self.is_async = is_async
        self._target = target
        self._text = import_module("sqlalchemy").text
        bind = target.get_bind() if hasattr(target, "get_bind") else target
        self.dialect: Dialect = _dialect_named(str(bind.dialect.name))

    def run(self, statement: str, parameters: Mapping[str, Any]) -> Any:
        result = self._target.execute(self._text(statement), dict(parameters))
        if self.is_async:
            return result
        return [tuple(row) for row in result.fetchall()] if result.returns_rows else []


class _Cursors:
    """A connection with cursors: sqlite3, psycopg, psycopg2, or one of Django's."""

    def __init__(self, target: Any, dialect: Dialect, *, is_named: bool, is_async: bool) -> None:
        self.dialect: Dialect = dialect
        self.is_async = is_async
        self._target = target
        self._is_named = is_named  # takes `:name` as it is

    def run(self, statement: str, parameters: Mapping[str, Any]) -> Any:
        written = statement if self._is_named else percent_style(statement)
        # Without parameters, signs of percent stand for themselves.
        given = dict(parameters) or ({} if self._is_named else None)
        if self.is_async:
            return self._target.execute(written, given)
        cursor = self._target.cursor()
        try:
            cursor.execute(written, given)
            return cursor.fetchall() if cursor.description is not None else []
        finally:
            cursor.close()


def runner_of(target: object) -> Runner:
    """Recognise a connection or a session."""
    homes = [kind.__module__ for kind in type(target).__mro__]
    roots = [home.partition(".")[0].lstrip("_") for home in homes]
    if "sqlalchemy" in roots and hasattr(target, "execute"):
        is_async = any(home.startswith("sqlalchemy.ext.asyncio") for home in homes)
        return _Session(target, is_async=is_async)
    if "django" in roots and hasattr(target, "vendor"):
        dialect = _dialect_named(str(cast("Any", target).vendor))
        return _Cursors(target, dialect, is_named=False, is_async=False)
    library = next((root for root in roots if root in _DRIVERS), None)
    if library is not None and hasattr(target, "cursor"):
        is_async = "Async" in type(target).__name__
        is_named = library == "sqlite3"
        return _Cursors(target, _DRIVERS[library], is_named=is_named, is_async=is_async)
    raise UnknownDriverError(
        f"{type(target).__module__}.{type(target).__qualname__} is no connection known here;"
        " pass a session or connection of SQLAlchemy, psycopg, sqlite3 or Django"
    )


def database_errors() -> tuple[type[Exception], ...]:
    """Give what the libraries that are loaded raise about a database."""
    loaded = [(sys.modules.get(home), name) for home, name in _ERRORS]
    return tuple(getattr(module, name) for module, name in loaded if module is not None)


def _dialect_named(name: str) -> Dialect:
    if name == "postgresql":
        return "postgresql"
    if name == "sqlite":
        return "sqlite"
    raise UnknownDriverError(f"the outbox knows PostgreSQL and SQLite, and this is {name}")
