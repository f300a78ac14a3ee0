"""Functions SQLite calls while it searches. All are pure; none is reachable from a user's text."""

from time import monotonic
from typing import Final

import apsw

from corvo.view import jq_sql, pattern


class Deadline:
    """When a query must end; set by whoever runs it, read by what takes long within one row."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = float("inf")

    def is_over(self) -> bool:
        """Say whether the time is up."""
        return monotonic() >= self.at


deadline: Final = Deadline()


def register(connection: apsw.Connection) -> None:
    """Make the functions known to a connection."""
    connection.create_scalar_function("corvo_test", _test, 3, deterministic=True)
    connection.create_scalar_function("corvo_length", len, 1, deterministic=True)
    connection.create_scalar_function("corvo_order", jq_sql.order, 2, deterministic=True)


def _test(text: str, source: str, flags: str) -> bool:
    return pattern.compiled(source, flags).matches(text, deadline.is_over)
