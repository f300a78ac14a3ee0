# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""What the jobs of each queue take, summed while they are written instead of when somebody asks.

Invariant: a row of `queue_storage` is the sum over the rows of `jobs` with that queue; a queue
without jobs has none.
"""

from collections.abc import Sequence
from typing import Final

import apsw

# Namespace and name of a queue.
Key = tuple[int, str]

_FIGURES: Final = 5  # jobs, then the sizes of one: payload, result, checkpoint, errors
_WRITE = (
    "INSERT INTO queue_storage VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
    "jobs = jobs + excluded.jobs, payload_bytes = payload_bytes + excluded.payload_bytes, "
    "result_bytes = result_bytes + excluded.result_bytes, "
    "checkpoint_bytes = checkpoint_bytes + excluded.checkpoint_bytes, "
    "errors = errors + excluded.errors"
)
_REMOVE = "DELETE FROM queue_storage WHERE ns = ? AND queue = ? AND jobs = 0"


class Storage:
    """Gathers what one transaction changes and writes it at the end."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._changes: dict[Key, list[int]] = {}

    def add(self, key: Key, sizes: Sequence[int]) -> None:
        """A job came."""
        self._sum(key, 1, sizes)

    def remove(self, key: Key, sizes: Sequence[int]) -> None:
        """A job went."""
        self._sum(key, -1, sizes)

    def change(self, source: Key, before: Sequence[int], target: Key, after: Sequence[int]) -> None:
        """A job takes more or less than before, or is in another queue."""
        if source != target or tuple(before) != tuple(after):
            self.remove(source, before)
            self.add(target, after)

    def _sum(self, key: Key, sign: int, sizes: Sequence[int]) -> None:
        figures = self._changes.get(key)
        if figures is None:
            figures = self._changes[key] = [0] * _FIGURES
        figures[0] += sign
        for position, size in enumerate(sizes, start=1):
            figures[position] += sign * size

    def write(self) -> None:
        """Add everything gathered to the table."""
        if not self._changes:
            return
        found = [(*key, *figures) for key, figures in self._changes.items()]
        self._connection.executemany(_WRITE, found)
        self._connection.executemany(_REMOVE, list(self._changes))
        self._changes.clear()
