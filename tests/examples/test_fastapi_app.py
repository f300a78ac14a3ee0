"""examples/fastapi_app, as its page says."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from corvo_sdk import Client
from tests.examples.conftest import Start
from tests.support.page import free_port
from tests.support.process import ServerProcess
from tests.support.worker import wait_until

pytest.importorskip("fastapi", reason="the example is a FastAPI service")
pytest.importorskip("sqlalchemy", reason="the example keeps its users with SQLAlchemy")


def rows(database: Path, query: str) -> int:
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        return int(connection.execute(query).fetchone()[0])


def test_every_committed_user_gets_one_job_with_the_server_down_as_well(
    walk: Start, tmp_path: Path
) -> None:
    """One job for each user, none for a refused one, and nobody notices that Corvo was away."""
    port = free_port()
    flags = ("--bind", f"127.0.0.1:{port}", "--view", "off", "--shutdown-timeout", "1s")
    server = ServerProcess(tmp_path / "data", *flags)
    with server:
        page = walk("fastapi_app", "8000", url=server.url)
        database = page.folder / "service.db"
        page.step()
        page.step()
        signed_up = page.step()
        assert signed_up is not None
        assert '{"id":1}' in signed_up
        assert "this address is taken" in signed_up
        welcomed = "SELECT count(welcomed_at) FROM users"
        wait_until(lambda: rows(database, welcomed) == 1)
        server.stop()
        assert page.step() == '{"id":2}'
        assert rows(database, "SELECT count(*) FROM corvo_outbox") == 1
        server.start()
        wait_until(lambda: rows(database, welcomed) == 2)
        assert json.loads(page.rest()[0]) == [
            {"email": "ada@example.com", "welcomed": True},
            {"email": "grace@example.com", "welcomed": True},
        ]
        wait_until(lambda: rows(database, "SELECT count(*) FROM corvo_outbox") == 0)
        with Client(server.url) as client:
            assert client.queue("welcome").totals.enqueued == 2
