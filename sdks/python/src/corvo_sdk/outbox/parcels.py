"""Parcels of an outbox, as a relay sees them through its own connection.

Safety: every statement is atomic by itself and the order of statements is safe at each point, so
a connection that commits after each of them is as good as one that commits here.
"""

import uuid
from typing import Any, Final

from msgspec import Struct

from corvo_sdk.outbox.drivers import runner_of
from corvo_sdk.outbox.table import SqlOutbox

PARCEL_BYTES_MAX: Final = 8 * 1024 * 1024  # the server takes twice that in one call
_ERROR_CHARACTERS_MAX: Final = 1_000


class Parcel(Struct, frozen=True):
    """Rows that were bound together for good."""

    key: str
    bodies: list[str]

    def body(self) -> bytes:
        """What is sent.

        Format: made of the rows alone. Another version of this package must make the same bytes of
        them, or the server refuses the key of a parcel that an older relay has sent.
        """
        return ('{"jobs":[' + ",".join(self.bodies) + "]}").encode()


class Parcels:
    """The parcels of one table."""

    def __init__(self, connection: Any, outbox: SqlOutbox) -> None:
        self._connection = connection
        self._runner = runner_of(connection)
        if self._runner.is_async:
            raise TypeError("a relay needs a connection that is not async")
        self._statements = outbox.statements(self._runner.dialect)

    def claim(self, *, now_ms: int, until_ms: int, rows_max: int) -> Parcel | None:
        """Take over the oldest parcel nobody has, or else bind the next waiting rows; or None."""
        times = {"now_ms": now_ms, "until_ms": until_ms}
        taken = self._runner.run(self._statements.take_over, times)
        if taken:
            found = self._read(str(taken[0][0]))
            self._connection.commit()
            return found
        key = uuid.uuid4().hex
        bound = {"key": key, "until_ms": until_ms, "most": rows_max}
        self._runner.run(self._statements.bind, bound)
        parcel = self._cut(key)
        self._connection.commit()
        return parcel

    def delete(self, parcel: Parcel) -> None:
        """Forget a parcel that was sent."""
        self._do(self._statements.delete, {"key": parcel.key})

    def give_back(self, parcel: Parcel) -> None:
        """Let any relay take a parcel at once."""
        self._do(self._statements.give_back, {"key": parcel.key})

    def split(self, parcel: Parcel) -> None:
        """Make parcels of one out of one that was refused as a whole."""
        self._do(self._statements.split, {"key": parcel.key})

    def refuse(self, parcel: Parcel, error: str, now_ms: int) -> None:
        """Set a parcel of one aside."""
        shown = error[:_ERROR_CHARACTERS_MAX]
        self._do(self._statements.refuse, {"key": parcel.key, "error": shown, "now_ms": now_ms})

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _do(self, statement: str, parameters: dict[str, Any]) -> None:
        self._runner.run(statement, parameters)
        self._connection.commit()

    def _read(self, key: str) -> Parcel:
        rows = self._runner.run(self._statements.read, {"key": key})
        return Parcel(key, [str(row[1]) for row in rows])

    def _cut(self, key: str) -> Parcel | None:
        # What would make the request too large waits for the next parcel.
        rows = self._runner.run(self._statements.read, {"key": key})
        size = 0
        for index, (first_id, body) in enumerate(rows):
            size += len(body.encode()) + 1
            if index and size > PARCEL_BYTES_MAX:
                self._runner.run(self._statements.unbind, {"key": key, "first_id": first_id})
                rows = rows[:index]
                break
        return Parcel(key, [str(row[1]) for row in rows]) if rows else None
