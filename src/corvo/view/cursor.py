# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Where the projection stands, as the one row of the table `cursor`."""

from typing import Any

import apsw
from msgspec import Struct

from corvo.view.schema import SCHEMA_VERSION


class Cursor(Struct, frozen=True):
    """A place in a history. The fields are those of the table."""

    history: bytes = b""
    position: int = 0
    chain: bytes = b""
    block_position: int = 0
    block_digest: bytes = b""
    seq: int = 0
    floor_seq: int = 1


def load(connection: apsw.Connection) -> Cursor | None:
    """Read the cursor; None when the file has another shape or was never finished."""
    has_table = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'cursor'").get
    if not has_table:
        return None
    sql = (
        "SELECT history, position, chain, block_position, block_digest, seq, floor_seq "
        "FROM cursor WHERE schema_version = ?"
    )
    found: Any = connection.execute(sql, (SCHEMA_VERSION,)).get
    return Cursor(*found) if found else None


def save(connection: apsw.Connection, cursor: Cursor) -> None:
    """Write the cursor, in the transaction of the rows it vouches for."""
    values = (
        SCHEMA_VERSION,
        cursor.history,
        cursor.position,
        cursor.chain,
        cursor.block_position,
        cursor.block_digest,
        cursor.seq,
        cursor.floor_seq,
    )
    sql = "INSERT OR REPLACE INTO cursor VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)"
    connection.execute(sql, values)
