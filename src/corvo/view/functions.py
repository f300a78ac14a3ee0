# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Functions SQLite calls while it searches. All are pure; none is reachable from a user's text.

Queries run in several threads, each with a connection of its own: patterns and the time a query
must end by are kept per thread.
"""

import threading
from collections import OrderedDict
from time import monotonic
from typing import Any, Final
from weakref import WeakSet

import apsw

from corvo.view import jq_sql
from corvo.view.pattern import Pattern

_PATTERNS_MAX: Final = 32


class _Local(threading.local):
    def __init__(self) -> None:
        self.until = float("inf")
        self.patterns: OrderedDict[tuple[str, str], Pattern] = OrderedDict()


_local: Final = _Local()
_known: Final[WeakSet[apsw.Connection]] = WeakSet()


def register(connection: apsw.Connection) -> None:
    """Make the functions known to a connection; once is enough."""
    if connection in _known:
        return
    functions: dict[str, tuple[Any, int]] = {
        "corvo_test": (_test, 3),
        "corvo_length": (len, 1),
        "corvo_order": (jq_sql.order, 2),
    }
    for name, (function, count) in functions.items():
        connection.create_scalar_function(name, function, count, deterministic=True)
    _known.add(connection)


def set_deadline(until: float) -> float:
    """Let what takes long within one row end at this time of this thread's clock.

    Returns the time that held before.
    """
    before, _local.until = _local.until, until
    return before


def _is_over() -> bool:
    return monotonic() >= _local.until


def _test(text: str, source: str, flags: str) -> bool:
    patterns = _local.patterns
    pattern = patterns.get((source, flags))
    if pattern is None:
        pattern = patterns[source, flags] = Pattern(source, ignores_case="i" in flags)
        if len(patterns) > _PATTERNS_MAX:
            patterns.popitem(last=False)
    return pattern.matches(text, _is_over)
