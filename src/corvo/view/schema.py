# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# The stub of apsw names a type that came with Python 3.12.
"""Opening the file of the projection: for the one writer, and for readers that can not write."""

import re
from pathlib import Path
from typing import Final

import apsw

SCHEMA_VERSION: Final = 2
FILE_NAME: Final = "view.sqlite"
CACHE_KIB: Final = 32 * 1024
READER_CACHE_KIB: Final = 8 * 1024
MMAP_BYTES: Final = 256 * 1024 * 1024
CHECKPOINT_PAGES: Final = 4_000  # 16 MiB of WAL between two transfers into the file
BUSY_MS: Final = 5_000
SIDE_FILES: Final = ("-wal", "-shm", "-journal")

_SCHEMA = Path(__file__).parent / "sql" / "schema.sql"

# What a damaged or foreign file raises, sooner or later: the file is thrown away.
DAMAGED: Final = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)


def open_writer(path: Path) -> apsw.Connection:
    """Open or create the file for the one process that writes."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(BUSY_MS)
    try:
        _prepare_writer(connection)
    except apsw.Error:
        connection.close()
        raise
    return connection


def _prepare_writer(connection: apsw.Connection) -> None:
    run(connection, "PRAGMA journal_mode = WAL")
    # The log is the truth; after a power cut an older state of the view is taken up again. NORMAL
    # keeps the file whole and syncs at checkpoints only.
    run(connection, "PRAGMA synchronous = NORMAL")
    run(connection, f"PRAGMA cache_size = -{CACHE_KIB}")
    run(connection, "PRAGMA temp_store = MEMORY")
    run(connection, f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")


def open_reader(path: Path) -> apsw.Connection:
    """Open the file for queries: no statement on this connection can change it."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(BUSY_MS)
    run(connection, "PRAGMA query_only = ON")
    run(connection, "PRAGMA trusted_schema = OFF")
    run(connection, f"PRAGMA cache_size = -{READER_CACHE_KIB}")
    run(connection, f"PRAGMA mmap_size = {MMAP_BYTES}")
    run(connection, "PRAGMA temp_store = MEMORY")
    return connection


def create(connection: apsw.Connection) -> None:
    """Create all tables in an empty file."""
    with connection:
        run(connection, _SCHEMA.read_text(encoding="utf-8"))


def create_without_indexes(connection: apsw.Connection) -> list[str]:
    """Create the tables; returns the statements of the indexes, to run once rows are in.

    Cost: an index built over sorted rows is several times cheaper than one kept up row by row.
    """
    text = re.sub(r"--[^\n]*", "", _SCHEMA.read_text(encoding="utf-8"))
    statements = [part.strip() for part in text.split(";") if part.strip()]
    later = [part for part in statements if part.startswith("CREATE INDEX")]
    with connection:
        for part in statements:
            if part not in later:
                run(connection, part)
    return later


def run(connection: apsw.Connection, statements: str) -> None:
    """Run statements to their end; a cursor left half-way would skip those after a row."""
    for _ in connection.execute(statements):
        pass


def remove(path: Path) -> None:
    """Delete a file of the projection and what SQLite keeps beside it."""
    path.unlink(missing_ok=True)
    for suffix in SIDE_FILES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
