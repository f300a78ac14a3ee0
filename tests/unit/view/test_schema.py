"""Connections to the projection: every one is set up, not only the first."""

from pathlib import Path

import apsw
import pytest

from corvo.view.schema import BUSY_MS, create, open_reader, open_writer


def test_every_reader_has_its_settings(tmp_path: Path):
    """Several at once, each of them read-only, patient, and of the same mind."""
    writer = open_writer(tmp_path / "view.sqlite")
    create(writer)
    readers = [open_reader(tmp_path / "view.sqlite") for _ in range(5)]
    for reader in readers:
        found = [reader.pragma(name) for name in ("query_only", "trusted_schema", "busy_timeout")]
        assert found == [1, 0, BUSY_MS]
        with pytest.raises(apsw.ReadOnlyError):
            reader.execute("DELETE FROM jobs")
        reader.close()
    assert (writer.pragma("journal_mode"), writer.pragma("synchronous")) == ("wal", 1)
    writer.close()
