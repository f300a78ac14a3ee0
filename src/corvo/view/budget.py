# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""A time limit for the queries of one call, tighter than the one every query has anyway."""

from time import monotonic
from typing import Final, Self

import apsw

from corvo.view import functions

_STEPS: Final = 2_000  # of SQLite's machine between two looks at the clock

# What running out of time raises: SQLite's own interrupt, or a pattern within one row.
OVER: Final = (apsw.InterruptError, TimeoutError)


class Budget:
    """Within it, a query that takes longer raises one of `OVER`. One may lie within another."""

    def __init__(self, connection: apsw.Connection, budget_ms: int) -> None:
        self._connection = connection
        self._until = monotonic() + budget_ms / 1_000
        self._outer = float("inf")

    def __enter__(self) -> Self:
        functions.register(self._connection)
        self._outer = functions.set_deadline(self._until)
        self._connection.set_progress_handler(self._is_over, _STEPS, id=self)
        return self

    def __exit__(self, *_error: object) -> None:
        functions.set_deadline(self._outer)
        self._connection.set_progress_handler(None, id=self)

    def _is_over(self) -> bool:
        return monotonic() >= self._until
